//! Campaigns of clients: what they may trust, and what becomes of their terms.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Instant;

use common::session::Session;
use common::{Client, TTL, serve};
use serde_json::{Value, json};
use tenure::Tenure;
use tenure_server::{Options, Server};
use tenure_testkit::until;

fn id(id: &str) -> Value {
    json!({ "id": id, "ttl_ms": 1_500 })
}

/// A client leads, is told how long it may trust, and is a member under its own name.
#[tokio::test]
async fn a_client_leads_under_its_own_name() {
    let (server, client) = serve(Options::new()).await;
    let body = json!({ "id": "node-1", "ttl_ms": 1_500, "endpoints": ["10.0.0.7:80"],
                       "metadata": "blue", "priority": 200 });
    let mut session = Session::begin(&client, "jobs", body).await;
    session.until("leading").await;
    assert_eq!(session.told["term"], 1);
    let left = session.told["remaining_ms"].as_u64().unwrap();
    assert!(left > 0 && left <= 1_500, "{left}");
    let shown = client.get("/v1/elections/jobs?fresh=1").await.json();
    assert_eq!(shown["leader"]["id"], "node-1");
    assert_eq!(shown["leader"]["endpoints"], json!(["10.0.0.7:80"]));
    assert_eq!(client.get("/v1/elections/jobs/leader").await.status, 200);

    // It goes on for as long as it beats.
    let began = Instant::now();
    while began.elapsed() < TTL * 3 {
        session.beat(300).await;
        assert_eq!((session.state(), &session.told["term"]), ("leading", &json!(1)));
        assert!(session.trusted_until() > Instant::now(), "{:?}", session.told);
    }
    let over = client.post(&session.path("/resign"), json!({})).await.json();
    assert_eq!((&over["state"], &over["remaining_ms"]), (&json!("lost"), &json!(0)));
    let shown = client.get("/v1/elections/jobs?fresh=1").await.json();
    assert_eq!(shown["leader"], Value::Null, "it is given back when the answer comes");
    server.stop().await.unwrap();
}

/// W4: the term of a client that falls silent is given back, and not before the client's trust
/// has ended.
#[tokio::test]
async fn a_silent_client_is_replaced_when_its_trust_has_ended() {
    let (server, client) = serve(Options::new()).await;
    let mut first = Session::begin(&client, "jobs", id("first")).await;
    first.until("leading").await;
    let mut second = Session::begin(&client, "jobs", id("second")).await;
    first.beat(0).await;
    let trusted_until = first.trusted_until();
    second.until("leading").await;
    assert!(Instant::now() >= trusted_until, "the first still trusted its term");
    assert!(second.told["term"].as_u64() > first.told["term"].as_u64());
    // It hears that it was lost, as long as it is not forgotten.
    first.beat(0).await;
    assert_eq!(first.state(), "lost");
    assert_eq!(first.told["reason"], "the client was silent for the session's ttl");
    assert_eq!(first.told["remaining_ms"], 0);
    server.stop().await.unwrap();
}

/// E4, E5: an operator's step-down reaches the client, which drains and resigns; only then does
/// the next one lead.
#[tokio::test]
async fn a_client_that_is_asked_to_stop_drains_first() {
    let (server, client) = serve(Options::new()).await;
    let mut first = Session::begin(&client, "jobs", id("first")).await;
    first.until("leading").await;
    let mut second = Session::begin(&client, "jobs", id("second")).await;
    let path = "/v1/elections/jobs/step-down";
    client.post(path, json!({"to": "third"})).await.is_problem(404, "not_found");
    client.post(path, json!({"term": 7})).await.is_problem(409, "superseded");
    let asked = client.post(path, json!({"reason": "deploying", "to": "second"})).await;
    assert_eq!((asked.status, &asked.json()["leader"]), (200, &json!("first")));
    first.until("stopping").await;
    assert!(first.told["reason"].as_str().unwrap().contains("deploying"), "{:?}", first.told);
    assert!(first.told["drain_ms"].as_u64().unwrap() > 0);
    for _ in 0..3 {
        first.beat(100).await;
        assert!(first.trusted_until() > Instant::now(), "it is renewed while it drains");
        second.beat(0).await;
        assert_eq!(second.state(), "waiting");
    }
    let resigned = Instant::now();
    assert_eq!(client.ask("DELETE", &first.path(""), None).await.status, 204);
    second.until("leading").await;
    println!("a hand-over took {:?}", resigned.elapsed());
    server.stop().await.unwrap();
}

/// A client that does not stop loses the term when its drain is over; the next one leads when
/// the first one's trust has ended.
#[tokio::test]
async fn the_drain_bounds_a_client_that_does_not_stop() {
    let (server, client) = serve(Options::new()).await;
    let body = json!({ "id": "first", "ttl_ms": 1_500, "drain_ms": 200 });
    let mut first = Session::begin(&client, "jobs", body).await;
    first.until("leading").await;
    let mut second = Session::begin(&client, "jobs", id("second")).await;
    first.beat(0).await;
    let trusted_until = first.trusted_until();
    client.post("/v1/elections/jobs/step-down", json!({})).await;
    first.until("lost").await;
    assert!(first.told["remaining_ms"] == 0 && first.told["reason"].as_str().is_some());
    second.until("leading").await;
    assert!(Instant::now() >= trusted_until, "the first still trusted its term");
    server.stop().await.unwrap();
}

/// The server stops in two phases: its clients are told, drain, and resign; meanwhile it
/// answers; then it closes.
#[tokio::test]
async fn a_server_that_stops_lets_its_clients_stop_first() {
    let (server, client) = serve(Options::new()).await;
    let mut session = Session::begin(&client, "jobs", id("first")).await;
    session.until("leading").await;
    let store = server.member().operator().clone();
    let stopping = tokio::spawn(server.stop());
    session.until("stopping").await;
    assert_eq!(client.get("/readyz").await.status, 503);
    let another = client.post("/v1/elections/other/sessions", id("late")).await;
    another.is_problem(503, "shutting_down");
    assert!(!stopping.is_finished(), "a client drains");
    client.post(&session.path("/resign"), json!({})).await;
    stopping.await.unwrap().unwrap();
    drop(store);
}

/// B3: two processes of one id do not both stand; a session that is over can be told, and one
/// that is not known cannot.
#[tokio::test]
async fn sessions_that_cannot_be_are_refused() {
    let (server, client) = serve(Options::new().max_sessions(2)).await;
    let begin = "/v1/elections/jobs/sessions";
    let session = Session::begin(&client, "jobs", id("first")).await;
    let again = client.post(begin, id("first")).await;
    again.is_problem(409, "already_standing");
    assert!(again.header("retry-after").is_some());
    client.post(begin, json!({"id": "server"})).await.is_problem(409, "already_standing");
    let other = json!({ "id": "first", "ttl_ms": 2_000 });
    client.post("/v1/elections/b/sessions", other).await.is_problem(409, "other_profile");
    // The same process may stand for several elections, under one heartbeat.
    let _second = Session::begin(&client, "more", id("first")).await;
    let members = client.get("/v1/members?fresh=1").await.json();
    let count =
        members["members"].as_array().unwrap().iter().filter(|m| m["id"] == "first").count();
    assert_eq!(count, 1);
    client.post(begin, id("third")).await.is_problem(429, "too_many_sessions");
    client.post("/v1/sessions/0123/beat", json!({})).await.is_problem(410, "no_session");
    assert_eq!(client.ask("DELETE", &session.path(""), None).await.status, 204);
    server.stop().await.unwrap();
}

/// A request that is sent again under its key is carried out once: the same session is begun, and
/// a step-down means the term that led when it was asked for first.
#[tokio::test]
async fn a_request_that_is_repeated_under_its_key_is_carried_out_once() {
    let (server, client) = serve(Options::new()).await;
    let keyed = |key: &str| client.with("Idempotency-Key", key);
    let begin = "/v1/elections/jobs/sessions";
    let first = keyed("begin").post(begin, id("first")).await;
    let again = keyed("begin").post(begin, id("first")).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.json()["session"], again.json()["session"]);
    keyed("begin").post(begin, id("other")).await.is_problem(422, "key_used");
    keyed(&"k".repeat(129)).post(begin, id("x")).await.is_problem(400, "bad_request");

    let mut session = Session::begin(&client, "work", id("first")).await;
    session.until("leading").await;
    let mut second = Session::begin(&client, "work", id("second")).await;
    let path = "/v1/elections/work/step-down";
    let asked = keyed("once").post(path, json!({"reason": "a"})).await;
    assert_eq!(asked.json()["term"], session.told["term"]);
    session.until("stopping").await;
    client.post(&session.path("/resign"), json!({})).await;
    second.until("leading").await;
    let repeated = keyed("once").post(path, json!({"reason": "a"})).await;
    assert_eq!((repeated.status, repeated.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(repeated.body, asked.body);
    let shown = client.get("/v1/elections/work?fresh=1").await.json();
    assert_eq!(shown["step_down"], Value::Null, "the next leader was not asked");
    server.stop().await.unwrap();
}

/// A thousand clients come and go, and leave nothing behind.
#[tokio::test]
async fn sessions_that_are_over_are_forgotten() {
    let (server, client) = serve(Options::new()).await;
    for round in 0..20 {
        let ids = (0..50).map(|n| format!("client-{round}-{n}"));
        let sessions = ids.map(|id| {
            let client = client.clone();
            async move {
                let body = json!({ "id": id, "ttl_ms": 1_500 });
                let session = Session::begin(&client, &id, body).await;
                client.ask("DELETE", &session.path(""), None).await
            }
        });
        for answer in futures_util::future::join_all(sessions).await {
            assert_eq!(answer.status, 204);
        }
    }
    let text = client.get("/metrics").await.body;
    assert!(text.contains("\ntenure_sessions 0\n"), "{text}");
    until("all to have left", async || {
        let members = client.get("/v1/members?fresh=1").await.json();
        members["members"].as_array().unwrap().len() == 1
    })
    .await;
    server.stop().await.unwrap();
}

/// M4, W5: a store that proves death does not end the members of a server that has died, whose
/// clients trust on: the next leader waits for the ttl.
#[tokio::test]
async fn the_death_of_a_server_proves_nothing_of_its_clients() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("t.db").display());
    let server = Server::start(Tenure::builder(&url).id("server").ttl(TTL), Options::new());
    let server = server.await.unwrap();
    assert!(!server.member().capabilities().proof_of_death);
    let client = Client::of(&server);
    let mut session = Session::begin(&client, "jobs", id("first")).await;
    session.until("leading").await;
    let locks = std::fs::read_dir(dir.path().join("t.db-live")).unwrap();
    let locks = locks
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".lock"));
    assert_eq!(locks.count(), 0, "a free lock would prove a death");
    server.stop().await.unwrap();
}
