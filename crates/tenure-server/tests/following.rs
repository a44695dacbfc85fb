//! Events: in order, none missing, for each client at its own pace.

#![allow(clippy::unwrap_used)]

mod common;

use common::serve;
use tenure::Tenure;
use tenure_server::Options;
use tenure_testkit::until;

async fn reign(tenure: &Tenure, election: &str) {
    let leadership = tenure.election(election).campaign().await.unwrap();
    leadership.resign().await.unwrap();
}

/// Each entry of the journal arrives once, in order; also across a hundred connections.
#[tokio::test]
async fn a_client_that_comes_back_misses_nothing() {
    let (server, client) = serve(Options::new()).await;
    let member = server.member().clone();
    let work = tokio::spawn(async move {
        for _ in 0..100 {
            reign(&member, "nightly").await;
        }
    });
    let mut last = 0;
    for _ in 0..100 {
        let mut events = client.events("/v1/events", Some(last)).await;
        for _ in 0..2 {
            let entry = events.entry().await;
            assert_eq!(entry.id, Some(last + 1), "{entry:?}");
            assert_eq!(entry.data["seq"], last + 1);
            last += 1;
        }
    }
    work.await.unwrap();
    server.stop().await.unwrap();
}

/// One election alone, from now on.
#[tokio::test]
async fn one_election_can_be_followed() {
    let (server, client) = serve(Options::new()).await;
    reign(server.member(), "before").await;
    let mut events = client.events("/v1/events?election=mine", None).await;
    assert_eq!(events.next().await.unwrap().name, "hello");
    reign(server.member(), "other").await;
    reign(server.member(), "mine").await;
    for _ in 0..3 {
        assert_eq!(events.entry().await.data["election"], "mine");
    }
    server.stop().await.unwrap();
    while let Some(event) = events.next().await {
        assert_ne!(event.data["election"], "other");
    }
}

/// A reader that has stopped delays no other.
#[tokio::test]
async fn a_reader_that_stopped_delays_no_other() {
    let (server, client) = serve(Options::new()).await;
    let mut stuck = Vec::new();
    for _ in 0..20 {
        stuck.push(client.events("/v1/events?after=0", None).await);
    }
    let mut reader = client.events("/v1/events", None).await;
    assert_eq!(reader.next().await.unwrap().name, "hello");
    for _ in 0..300 {
        reign(server.member(), "nightly").await;
        while reader.entry().await.data["event"] != "released" {}
    }
    assert_eq!(client.get("/livez").await.status, 200);
    drop(stuck);
    drop(reader);
    until("all to be gone", async || {
        let text = client.get("/metrics").await.body;
        // A connection is known to be gone when something is written to it.
        reign(server.member(), "nightly").await;
        text.contains("\ntenure_sse_clients 0\n")
    })
    .await;
    server.stop().await.unwrap();
}

/// A reader that falls behind by more than what is kept for all, and reads on later, is told each
/// entry once and in order, and then what happens.
#[tokio::test]
async fn a_reader_that_falls_behind_misses_nothing() {
    let (server, client) = serve(Options::new()).await;
    let mut reader = client.narrow().events("/v1/events", Some(0)).await;
    for _ in 0..700 {
        reign(server.member(), "nightly").await;
    }
    let newest = client.get("/v1/journal?limit=1").await.json()["seq"].as_u64().unwrap();
    assert!(newest > 1_400, "{newest}");
    for place in 1..=newest {
        assert_eq!(reader.entry().await.id, Some(place));
    }
    reign(server.member(), "nightly").await;
    assert_eq!(reader.entry().await.id, Some(newest + 1));
    server.stop().await.unwrap();
}

/// Ids that are none are refused.
#[tokio::test]
async fn a_place_that_is_none_is_refused() {
    let (server, client) = serve(Options::new()).await;
    let client = client.with("Last-Event-ID", "seven");
    client.get("/v1/events").await.is_problem(400, "bad_request");
    server.stop().await.unwrap();
}
