//! W4: no term of a client is given to another while the client may trust it, however it ended.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::session::Session;
use common::{Client, TTL};
use serde_json::json;
use tenure::Tenure;
use tenure_server::{Options, Server};
use tenure_testkit::until;

/// A server, its client, and a candidate of another process on the same store.
async fn server_and_rival() -> (Server, Client, Tenure) {
    let url = format!("memory:{}", tenure_testkit::fresh_name("trust"));
    let rival = Tenure::builder(&url).id("rival").ttl(TTL).connect().await.unwrap();
    let member = Tenure::builder(&url).id("server").ttl(TTL);
    let server = Server::start(member, Options::new()).await.unwrap();
    let client = Client::of(&server);
    (server, client, rival)
}

/// A client that leads, drains within 100 ms, and was granted what its ttl gives just now.
async fn granted(client: &Client) -> Session {
    let body = json!({ "id": "first", "ttl_ms": 1_500, "drain_ms": 100 });
    let mut session = Session::begin(client, "jobs", body).await;
    session.until("leading").await;
    session.beat(0).await;
    assert!(session.trusted_until() > Instant::now() + Duration::from_millis(500));
    session
}

/// Returns when the rival leads, which must not be while the client trusts its term.
async fn rival_leads_after(rival: &Tenure, session: &Session) {
    let leadership = rival.election("jobs").campaign().await.unwrap();
    let now = Instant::now();
    let trusted_until = session.trusted_until();
    assert!(now >= trusted_until, "two trusted for {:?}", trusted_until - now);
    assert!(leadership.token() > session.told["term"].as_u64().unwrap());
}

/// The drain is over long before the trust that was granted before it began.
#[tokio::test]
async fn a_drain_that_is_over_gives_no_term_away_that_is_trusted() {
    let (server, client, rival) = server_and_rival().await;
    let session = granted(&client).await;
    client.post("/v1/elections/jobs/step-down", json!({})).await;
    rival_leads_after(&rival, &session).await;
    server.stop().await.unwrap();
}

/// What is granted while the client drains ends with the drain, so that it keeps no other waiting.
#[tokio::test]
async fn a_client_that_drains_is_granted_no_more_than_the_drain() {
    let (server, client, rival) = server_and_rival().await;
    let body = json!({ "id": "first", "ttl_ms": 1_500, "drain_ms": 600 });
    let mut session = Session::begin(&client, "jobs", body).await;
    session.until("leading").await;
    client.post("/v1/elections/jobs/step-down", json!({})).await;
    session.until("stopping").await;
    let mut newest = session.trusted_until();
    while session.state() == "stopping" {
        let drain = session.told["drain_ms"].as_u64().unwrap();
        let remaining = session.told["remaining_ms"].as_u64().unwrap();
        assert!(remaining <= drain, "{:?}", session.told);
        newest = newest.max(session.trusted_until());
        session.beat(50).await;
    }
    assert_eq!((session.state(), &session.told["remaining_ms"]), ("lost", &json!(0)));
    let leadership = rival.election("jobs").campaign().await.unwrap();
    assert!(Instant::now() >= newest, "two trusted");
    drop(leadership);
    server.stop().await.unwrap();
}

/// A client that says that it has stopped, after it was told that the term is lost, keeps no
/// other waiting for what it was granted.
#[tokio::test]
async fn a_client_that_stops_late_keeps_no_other_waiting() {
    let (server, client, rival) = server_and_rival().await;
    let mut session = granted(&client).await;
    client.post("/v1/elections/jobs/step-down", json!({})).await;
    let granted_until = session.trusted_until();
    session.until("lost").await;
    assert_eq!(client.post(&session.path("/resign"), json!({})).await.status, 200);
    drop(rival.election("jobs").campaign().await.unwrap());
    assert!(Instant::now() < granted_until, "it was waited for all the same");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_gives_no_term_away_that_is_trusted() {
    let (server, client, rival) = server_and_rival().await;
    let session = granted(&client).await;
    let stopping = tokio::spawn(server.stop());
    rival_leads_after(&rival, &session).await;
    stopping.await.unwrap().unwrap();
}

/// Dropped without a word, it answers no client, and gives its terms back all the same.
#[tokio::test]
async fn a_server_that_is_dropped_gives_its_terms_back_in_time() {
    let (server, client, rival) = server_and_rival().await;
    let session = granted(&client).await;
    drop(server);
    rival_leads_after(&rival, &session).await;
    until("the members to have left", async || rival.members().await.unwrap().len() == 1).await;
}

/// A runtime that is torn down says nothing of the clients either.
#[test]
fn a_runtime_that_is_torn_down_gives_no_term_away_that_is_trusted() {
    let here = tokio::runtime::Runtime::new().unwrap();
    let theirs = tokio::runtime::Runtime::new().unwrap();
    let (server, client, rival) = theirs.block_on(server_and_rival());
    let session = here.block_on(granted(&client));
    std::mem::forget(server);
    theirs.shutdown_background();
    here.block_on(rival_leads_after(&rival, &session));
}

/// The server's own term is granted by `/leader` (W1), and kept for as long as was said.
#[tokio::test]
async fn a_term_that_leader_granted_is_kept_until_that_has_ended() {
    let url = format!("memory:{}", tenure_testkit::fresh_name("trust"));
    let rival = Tenure::builder(&url).id("rival").ttl(TTL).connect().await.unwrap();
    let member = Tenure::builder(&url).id("server").ttl(TTL).drain(Duration::from_millis(100));
    let server = Server::start(member, Options::new().stand_for("jobs")).await.unwrap();
    let client = Client::of(&server);
    let mut granted = Instant::now();
    until("the server to lead", async || {
        let sent = Instant::now();
        let said = client.get("/v1/elections/jobs/leader").await;
        let here = said.json();
        let remaining = here["remaining_ms"].as_u64().unwrap();
        assert_eq!(here["trusted_until_boottime_ns"].is_u64(), remaining > 0, "{here}");
        granted = sent + Duration::from_millis(remaining);
        said.status == 200 && remaining > 500
    })
    .await;
    client.post("/v1/elections/jobs/step-down", json!({})).await;
    let _leadership = rival.election("jobs").campaign().await.unwrap();
    let now = Instant::now();
    assert!(now >= granted, "two trusted for {:?}", granted - now);
    server.stop().await.unwrap();
}
