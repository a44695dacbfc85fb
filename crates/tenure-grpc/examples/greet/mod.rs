//! The service of both programs, written by hand where `tonic-build` would generate it from a
//! `.proto` file: so neither needs protoc. Messages are texts.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};

/// The path of its one method.
pub(crate) const GREET: &str = "/greet.Greeter/Greet";

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Texts;

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

    fn encode(&mut self, text: String, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Texts {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        String::from_utf8(bytes.into()).map(Some).map_err(|_| Status::invalid_argument("no text"))
    }
}

/// A server of the service, around a function that greets.
#[derive(Clone)]
pub(crate) struct GreeterServer<F>(pub(crate) F);

impl<F> NamedService for GreeterServer<F> {
    const NAME: &'static str = "greet.Greeter";
}

impl<F> UnaryService<String> for GreeterServer<F>
where
    F: FnMut(Request<String>) -> Result<String, Status>,
{
    type Response = String;
    type Future = std::future::Ready<Result<Response<String>, Status>>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        std::future::ready((self.0)(request).map(Response::new))
    }
}

impl<F> tower_service::Service<http::Request<Body>> for GreeterServer<F>
where
    F: FnMut(Request<String>) -> Result<String, Status> + Clone + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let greeter = self.clone();
        Box::pin(async move { Ok(Grpc::new(Texts).unary(greeter, request).await) })
    }
}
