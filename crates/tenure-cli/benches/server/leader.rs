//! Whether this server leads, asked as a load balancer does, beside an empty handler.

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;

use crate::Outcome;
use crate::client::{Line, rest};
use crate::report::Report;
use crate::served::Served;

/// The part of the empty handler.
pub(crate) const FLOOR: &str = "play-the-floor";

const SLICES: usize = 20;
const SLICE: usize = 250;

/// An empty handler of axum, under the same connection loop as the server's.
pub(crate) async fn floor() -> Outcome {
    let router = Router::new().route("/", get(async || {}));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        tokio::spawn(async move {
            let service =
                tower::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    tower::ServiceExt::oneshot(router.clone(), request.map(Body::new))
                });
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                .await;
        });
    }
}

pub(crate) async fn run(report: &mut Report) -> Outcome {
    println!("\nwho leads, over one connection that stays open");
    let served = Served::start(None, &["--stand", "nightly"])?;
    let floor = Served::again(FLOOR)?;
    let mut ours = Line::open(&served.at, "/v1/elections/nightly/leader").await?;
    let mut empty = Line::open(&floor.at, "/").await?;
    while ours.ask().await? != 200 {
        rest().await;
    }
    let mut of_ours = Vec::new();
    let mut of_empty = Vec::new();
    for _ in 0..SLICES {
        for (line, took) in [(&mut ours, &mut of_ours), (&mut empty, &mut of_empty)] {
            for _ in 0..SLICE {
                let from = Instant::now();
                assert_eq!(line.ask().await?, 200);
                took.push(from.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    let ours = report.spread("/leader", &mut of_ours, "µs");
    let empty = report.spread("an empty handler of axum", &mut of_empty, "µs");
    report.at_most("/leader / an empty handler, p50", ours / empty, 2.0, "x");
    Ok(())
}
