//! The channel beside what it is made of: the hand-over itself, tonic's plain channel and its
//! balancer, a bare server, and legrpc's rule for polling. One program, one store (SQLite, two
//! members with a server each), contenders in turns, medians.
//!
//! `cargo xtask bench grpc`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../../../tenure/benches/common/mod.rs"]
mod common;
mod hand_over;
mod legrpc;
#[path = "../../tests/common/mod.rs"]
mod texts;

use std::time::{Duration, Instant};

use common::{Bars, median};
use http::Request;
use tenure::Tenure;
use tenure_grpc::{LeaderChannel, LeaderOnly};
use texts::{Client, Service, Texts};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Server};
use tower_layer::Layer;
use tower_service::Service as _;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut bars = Bars::default();
    runtime.block_on(async {
        hand_over::run(&mut bars).await;
        warm(&mut bars).await;
        layer(&mut bars).await;
        dead_endpoint(&mut bars).await;
        hand_over::load(&mut bars).await;
    });
    bars.finish();
}

/// A call with nothing in its way, by both channels in turns.
async fn warm(bars: &mut Bars) {
    let listener = texts::listen("127.0.0.1").await;
    let endpoint = listener.local_addr().unwrap().to_string();
    let tenure = Tenure::builder("memory:").endpoint(&endpoint).connect().await.unwrap();
    let election = tenure.election("texts");
    let _leadership = election.campaign().await.unwrap();
    // Without `LeaderOnly`: both call the same bare server.
    let server = Server::builder().add_service(Service::default());
    tokio::spawn(server.serve_with_incoming(texts::incoming(listener)));
    let mut leader = Client::new(LeaderChannel::builder(election).build().unwrap());
    let plain =
        Endpoint::from_shared(format!("http://{endpoint}")).unwrap().connect().await.unwrap();
    let mut plain = tonic::client::Grpc::new(plain);
    leader.say("warm").await.unwrap();
    let mut of_leader = Vec::new();
    let mut of_plain = Vec::new();
    for round in 0..40_000 {
        let from = Instant::now();
        if (round / 50) % 2 == 0 {
            leader.say("x").await.unwrap();
            of_leader.push(from.elapsed().as_secs_f64() * 1e6);
        } else {
            say(&mut plain).await.unwrap();
            of_plain.push(from.elapsed().as_secs_f64() * 1e6);
        }
    }
    let (leader, low, high) = median(&mut of_leader);
    println!("warm call through LeaderChannel: {leader:.1} us ({low:.1} to {high:.1})");
    let (plain, low, high) = median(&mut of_plain);
    println!("warm call through tonic's Channel: {plain:.1} us ({low:.1} to {high:.1})");
    bars.at_most("warm call, LeaderChannel / plain Channel, p50", leader / plain, 1.05, "x");
}

async fn say(plain: &mut tonic::client::Grpc<Channel>) -> Result<String, tonic::Status> {
    plain.ready().await.map_err(|error| tonic::Status::from_error(Box::new(error)))?;
    let path = "/test.Texts/Say".parse().unwrap();
    let answer = plain.unary(tonic::Request::new("x".to_owned()), path, Texts).await?;
    Ok(answer.into_inner())
}

/// What the layer adds to a call, without a network in between.
async fn layer(bars: &mut Bars) {
    #[derive(Clone)]
    struct Bare;

    impl tower_service::Service<Request<Body>> for Bare {
        type Response = http::Response<Body>;
        type Error = std::convert::Infallible;
        type Future =
            std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            Box::pin(async move {
                std::hint::black_box(request);
                Ok(http::Response::new(Body::empty()))
            })
        }
    }

    let tenure = Tenure::connect("memory:").await.unwrap();
    let election = tenure.election("texts");
    let _leadership = election.campaign().await.unwrap();
    let mut guarded = LeaderOnly::new(election).layer(Bare);
    let mut bare = Bare;
    let mut of_guarded = Vec::new();
    let mut of_bare = Vec::new();
    for _ in 0..100 {
        let from = Instant::now();
        for _ in 0..1_000 {
            std::hint::black_box(guarded.call(Request::new(Body::empty())).await.unwrap());
        }
        of_guarded.push(from.elapsed().as_secs_f64() * 1e6 / 1_000.0);
        let from = Instant::now();
        for _ in 0..1_000 {
            std::hint::black_box(bare.call(Request::new(Body::empty())).await.unwrap());
        }
        of_bare.push(from.elapsed().as_secs_f64() * 1e6 / 1_000.0);
    }
    let guarded = median(&mut of_guarded).0;
    let bare = median(&mut of_bare).0;
    println!("a call of the bare service: {bare:.3} us; behind LeaderOnly: {guarded:.3} us");
    bars.at_most("LeaderOnly per call, over the bare service", guarded - bare, 1.0, "us");
}

/// Two endpoints, of which the first refuses connections.
async fn dead_endpoint(bars: &mut Bars) {
    let dead = format!("127.0.0.1:{}", tenure_testkit::free_port());
    let listener = texts::listen("127.0.0.1").await;
    let alive = listener.local_addr().unwrap().to_string();
    let member = Tenure::builder("memory:").endpoint(&dead).endpoint(&alive);
    let tenure = member.connect().await.unwrap();
    let election = tenure.election("texts");
    let _leadership = election.campaign().await.unwrap();
    let _server = texts::serve(listener, election.clone(), Service::default());
    let mut leader = Client::new(LeaderChannel::builder(election).build().unwrap());
    let ends = [dead, alive].map(|end| Endpoint::from_shared(format!("http://{end}")).unwrap());
    let mut balanced = tonic::client::Grpc::new(Channel::balance_list(ends.into_iter()));
    let mut failed = [0; 2];
    for _ in 0..200 {
        failed[0] += u32::from(leader.say("x").await.is_err());
        let answer = tokio::time::timeout(Duration::from_secs(1), say(&mut balanced)).await;
        failed[1] += u32::from(!matches!(answer, Ok(Ok(_))));
    }
    println!("of 200 calls with one dead endpoint of two, tonic's balancer failed {}", failed[1]);
    bars.at_most("failed calls with one dead endpoint of two", f64::from(failed[0]), 0.0, "");
}
