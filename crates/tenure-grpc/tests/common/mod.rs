//! A service of texts, hand-written where tonic would generate it: no test needs protoc. Its
//! servers listen on real sockets.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test file uses a part of it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut};
use futures_util::{Stream, StreamExt, stream};
use tenure::{Election, Leadership, Tenure};
use tenure_grpc::{LeaderChannel, LeaderOnly};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
use tower_layer::Layer;

/// Texts as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts;

impl Codec for Texts {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Texts {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, item: String, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(item.as_bytes());
        Ok(())
    }
}

impl Decoder for Texts {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        String::from_utf8(bytes).map(Some).map_err(|_| Status::internal("no text"))
    }
}

/// What the handlers of all servers of a test have done: which request, under which token.
pub type Handled = Arc<Mutex<Vec<(String, u64)>>>;

/// The service. `test.Texts/Say` answers a text, `/Slow` after 300 ms, `/Fails` with
/// FAILED_PRECONDITION of its own, `/Chat` answers each of a stream.
#[derive(Clone, Debug, Default)]
pub struct Service {
    pub handled: Handled,
    /// Where each handler appends a line as it begins, if it does.
    pub log: Option<std::path::PathBuf>,
}

impl Service {
    fn begins(&self, text: &str, token: u64) {
        self.handled.lock().unwrap().push((text.to_owned(), token));
        if let Some(log) = &self.log {
            let mut file = std::fs::File::options().append(true).create(true).open(log).unwrap();
            std::io::Write::write_all(&mut file, format!("{text} {token}\n").as_bytes()).unwrap();
        }
    }
}

impl NamedService for Service {
    const NAME: &'static str = "test.Texts";
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

struct Unary(Service, bool);
struct Chat(Service);

fn token(extensions: &http::Extensions) -> u64 {
    extensions.get::<Leadership>().map_or(0, Leadership::token)
}

impl UnaryService<String> for Unary {
    type Response = String;
    type Future = Answer<String>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let Self(service, slow) = self;
        let service = service.clone();
        let slow = *slow;
        Box::pin(async move {
            let token = token(request.extensions());
            let text = request.into_inner();
            service.begins(&text, token);
            if slow {
                tenure_testkit::let_pass(Duration::from_millis(300), "a slow handler").await;
            }
            if text == "fail" {
                return Err(Status::failed_precondition("the handler's own"));
            }
            if text == "forward" {
                // What another server said, passed on as it is.
                let mut status = Status::failed_precondition("another's");
                status.metadata_mut().insert(tenure_grpc::REFUSED, "1".parse().unwrap());
                return Err(status);
            }
            Ok(Response::new(format!("{text} under {token}")))
        })
    }
}

impl StreamingService<String> for Chat {
    type Response = String;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;
    type Future = Answer<Self::ResponseStream>;

    fn call(&mut self, request: Request<Streaming<String>>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move {
            let token = token(request.extensions());
            let answers = request.into_inner().map(move |text| {
                let text = text?;
                service.begins(&text, token);
                Ok(format!("{text} under {token}"))
            });
            // A first message, so that the caller knows that it is open.
            let open = stream::once(async move { Ok(format!("open under {token}")) });
            Ok(Response::new(Box::pin(open.chain(answers)) as Self::ResponseStream))
        })
    }
}

impl tower_service::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(Texts);
            Ok(match request.uri().path() {
                "/test.Texts/Slow" => grpc.unary(Unary(this, true), request).await,
                "/test.Texts/Chat" => grpc.streaming(Chat(this), request).await,
                _ => grpc.unary(Unary(this, false), request).await,
            })
        })
    }
}

/// A server on a socket of its own. It ends when it is dropped.
pub struct Running {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A listener of this machine, before there is a server.
pub async fn listen(host: &str) -> TcpListener {
    TcpListener::bind((host, 0)).await.unwrap()
}

pub fn incoming(
    listener: TcpListener,
) -> impl Stream<Item = std::io::Result<tokio::net::TcpStream>> {
    stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| {
            stream.set_nodelay(true).unwrap();
            stream
        });
        Some((accepted, listener))
    })
}

/// Serves the texts behind `LeaderOnly`.
pub fn serve(listener: TcpListener, election: Election, service: Service) -> Running {
    serve_with(listener, LeaderOnly::new(election), service, None)
}

pub fn serve_with(
    listener: TcpListener,
    only: LeaderOnly,
    service: Service,
    tls: Option<ServerTlsConfig>,
) -> Running {
    let address = listener.local_addr().unwrap();
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).unwrap();
    }
    let server = server.add_service(only.layer(service));
    let task = tokio::spawn(async move {
        server.serve_with_incoming(incoming(listener)).await.unwrap();
    });
    Running { address, task }
}

/// A member that publishes where it listens, with its server.
pub struct Member {
    pub tenure: Tenure,
    pub election: Election,
    pub server: Running,
}

/// One on a store in memory that the test shares by its name.
pub async fn member(store: &str, id: &str, service: &Service) -> Member {
    let listener = listen("127.0.0.1").await;
    let endpoint = listener.local_addr().unwrap().to_string();
    let tenure = Tenure::builder(store).id(id).endpoint(endpoint).connect().await.unwrap();
    let election = tenure.election("texts");
    let server = serve(listener, election.clone(), service.clone());
    Member { tenure, election, server }
}

/// A client as tonic would generate it.
#[derive(Clone)]
pub struct Client(pub tonic::client::Grpc<LeaderChannel>);

impl Client {
    pub fn new(channel: LeaderChannel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    pub async fn unary(&mut self, method: &str, text: &str) -> Result<String, Status> {
        self.unary_with(method, Request::new(text.to_owned())).await
    }

    pub async fn unary_with(
        &mut self,
        method: &str,
        request: Request<String>,
    ) -> Result<String, Status> {
        self.0.ready().await?;
        let path = format!("/test.Texts/{method}").parse().unwrap();
        self.0.unary(request, path, Texts).await.map(Response::into_inner)
    }

    pub async fn say(&mut self, text: &str) -> Result<String, Status> {
        self.unary("Say", text).await
    }

    pub async fn chat(
        &mut self,
        messages: impl Stream<Item = String> + Send + 'static,
    ) -> Result<Streaming<String>, Status> {
        self.0.ready().await?;
        let path = "/test.Texts/Chat".parse().unwrap();
        let request = Request::new(messages);
        self.0.streaming(request, path, Texts).await.map(Response::into_inner)
    }
}
