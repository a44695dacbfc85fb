//! What the server tells: who leads, members, terms, the journal, names, its health.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, TTL, member, serve};
use serde_json::json;
use tenure::Tenure;
use tenure::testing::FaultyStore;
use tenure_server::{Options, Server};
use tenure_store::MemoryStore;
use tenure_testkit::until;

/// A load balancer sends requests to the one server that leads, by the status alone.
#[tokio::test]
async fn the_status_says_whether_this_server_leads() {
    let (server, client) = serve(Options::new().stand_for("nightly")).await;
    let path = "/v1/elections/nightly/leader";
    until("the server to lead", async || client.get(path).await.status == 200).await;
    let answer = client.get(path).await.json();
    assert_eq!((&answer["leading"], &answer["term"]), (&json!(true), &json!(1)));
    for method in ["HEAD", "OPTIONS"] {
        assert_eq!(client.ask(method, path, None).await.status, 200, "{method}");
    }
    assert_eq!(client.get("/v1/elections/nightly/standby").await.status, 503);
    assert_eq!(client.get("/v1/elections/other/leader").await.status, 503);
    assert_eq!(client.get("/v1/elections/other/standby").await.status, 503);
    server.stop().await.unwrap();
}

/// H3, E4: an application that only asks whether it leads is told *no* as soon as the leader is
/// asked to stop, and the term is kept for the drain.
#[tokio::test]
async fn a_server_that_is_asked_to_step_down_says_no_before_it_gives_the_term_up() {
    let (server, client) = serve(Options::new().stand_for("nightly")).await;
    let path = "/v1/elections/nightly/leader";
    until("the server to lead", async || client.get(path).await.status == 200).await;
    let asked = client.post("/v1/elections/nightly/step-down", json!({"reason": "test"})).await;
    assert_eq!(asked.status, 200, "{asked:?}");
    until("the answer no", async || client.get(path).await.status == 503).await;
    let held = client.get("/v1/elections/nightly?fresh=1").await.json();
    assert_eq!(held["leader"]["id"], "server", "the term is kept for the drain: {held}");
    server.stop().await.unwrap();
}

/// Elections, terms and members are told as the program tells them.
#[tokio::test]
async fn elections_members_terms_and_the_journal_are_told() {
    let (server, client) = serve(Options::new()).await;
    let other = server.member().member_in("default").id("web-1").endpoint("10.0.0.1:80");
    let other = other.metadata("blue").connect().await.unwrap();
    other.election("nightly").campaign().await.unwrap().resign().await.unwrap();
    let leadership = other.election("nightly").campaign().await.unwrap();

    let all = client.get("/v1/elections?fresh=1").await.json();
    assert_eq!(all["elections"][0]["leader"]["endpoints"], json!(["10.0.0.1:80"]));
    let one = client.get("/v1/elections/nightly").await.json();
    assert_eq!((&one["term"], &one["leader"]["metadata"]), (&json!(2), &json!("blue")));
    client.get("/v1/elections/nihgtly").await.is_problem(404, "not_found");
    let terms = client.get("/v1/elections/nightly/history").await.json();
    assert_eq!(terms["terms"][0]["ended"], "resigned");
    assert_eq!(terms["terms"][1]["stands"], true);
    client.get("/v1/elections/nihgtly/history").await.is_problem(404, "not_found");
    let members = client.get("/v1/members").await.json();
    assert!(members["members"].as_array().unwrap().iter().any(|m| m["id"] == "web-1"));

    let journal = client.get("/v1/journal?limit=1000").await.json();
    let newest = journal["seq"].as_u64().unwrap();
    let count = journal["entries"].as_array().unwrap().len();
    let mut after = 0;
    let mut read = 0;
    while after < newest {
        let page = client.get(&format!("/v1/journal?after={after}&limit=2")).await.json();
        read += page["entries"].as_array().unwrap().len();
        after = page["seq"].as_u64().unwrap();
    }
    assert_eq!(read, count, "pages skip nothing and repeat nothing");
    drop(leadership);
    other.shutdown().await.unwrap();
    server.stop().await.unwrap();
}

/// Names are read with their owners.
#[tokio::test]
async fn names_are_told() {
    let (server, client) = serve(Options::new()).await;
    let name = tenure::naming::Name::new("orders:user/42").unwrap();
    let value = tenure::naming::Value::at("10.0.0.7:9000").unwrap();
    let mine = server.member().names().take(name, value).await.unwrap();
    let all = client.get("/v1/names?prefix=orders:").await.json();
    assert_eq!(all["names"][0]["owner"], "server");
    let one = client.get("/v1/names/orders:user/42").await.json();
    assert_eq!(one["token"], mine.token().get());
    client.get("/v1/names/orders:user/43").await.is_problem(404, "not_found");
    assert_eq!(client.get("/v1/names?owner=stranger").await.json()["names"], json!([]));
    server.stop().await.unwrap();
}

/// B6: never the name of a leader whose ttl may be over. The store hangs; what was read serves
/// until the leader's ttl, and then the answer is *stale*.
#[tokio::test]
async fn what_is_too_old_names_no_leader() {
    let store = FaultyStore::new(MemoryStore::new().shared());
    let member = |id: &str| Tenure::with_store(store.shared()).id(id).ttl(TTL);
    let other = member("web-1").connect().await.unwrap();
    let _leadership = other.election("nightly").campaign().await.unwrap();
    let server = Server::start(member("server"), Options::new()).await.unwrap();
    let client = Client::of(&server);
    let fresh = client.get("/v1/elections/nightly?fresh=1").await;
    assert_eq!(fresh.json()["leader"]["id"], "web-1");

    store.outage(true);
    client.get("/v1/elections/nightly?fresh=1").await.is_problem(503, "store_away");
    until("the answer to be stale", async || {
        let answer = client.get("/v1/elections/nightly").await;
        assert!(answer.status == 503 || answer.json()["age_ms"].as_u64().unwrap() < 1_500);
        answer.status == 503
    })
    .await;
    let problem = client.get("/v1/elections/nightly").await.is_problem(503, "stale");
    assert!(problem["remedy"].as_str().unwrap().contains("/readyz"));
    client.get("/v1/elections").await.is_problem(503, "stale");
    until("it to be unready", async || client.get("/readyz").await.status == 503).await;
    assert_eq!(client.get("/livez").await.status, 200, "the process lives all the same");

    store.outage(false);
    until("the store to be heard", async || client.get("/readyz").await.status == 200).await;
    assert_eq!(client.get("/v1/elections/nightly?fresh=1").await.status, 200);
}

/// Readiness is about the member and the store, and not about leading: a rollout of followers
/// must not wait for ever (azents #830, flux2 #5880).
#[tokio::test]
async fn a_follower_is_ready() {
    let (server, client) = serve(Options::new()).await;
    until("it to be ready", async || client.get("/readyz").await.status == 200).await;
    assert_eq!(client.get("/v1/elections/nightly/leader").await.status, 503);
    server.stop().await.unwrap();
}

/// Every metric that the documents name is there, with its HELP.
#[tokio::test]
async fn what_is_measured_has_a_name_and_help() {
    let (server, client) = serve(Options::new().stand_for("nightly")).await;
    let path = "/v1/elections/nightly/leader";
    until("the server to lead", async || client.get(path).await.status == 200).await;
    // What never happened has no line.
    let lost = server.member().election("lost").campaign().await.unwrap();
    lost.resign().await.unwrap();
    let documented = include_str!("../README.md").lines();
    let documented = documented.filter_map(|line| line.strip_prefix("| `tenure_"));
    let names: Vec<_> = documented.filter_map(|line| line.split('`').next()).collect();
    assert!(names.len() >= 14, "{names:?}");
    let mut text = String::new();
    until("all to be measured", async || {
        text = client.get("/metrics").await.body;
        text.contains("tenure_renew_margin_seconds_count")
            && text.contains("tenure_leaderships_lost_total")
    })
    .await;
    for name in names {
        // The line of a counter ends with `_total`, its HELP does not.
        let base = name.trim_end_matches("_total");
        assert!(text.contains(&format!("# HELP tenure_{base} ")), "{name} is not in\n{text}");
    }
    assert!(text.contains("tenure_leader{namespace=\"default\",election=\"nightly\"} 1"), "{text}");
    // Before it happens: what appears with its first event has no increase to be alerted by.
    let lost = "tenure_leaderships_lost_total{namespace=\"default\",election=\"nightly\",\
                reason=\"not renewed in time\"} 0";
    assert!(text.contains(lost), "{text}");
    assert!(text.ends_with("# EOF\n"));
    server.stop().await.unwrap();
}

/// However many elections there are, the measurements stay of one size.
#[tokio::test]
async fn the_thousandth_election_and_more_share_a_label() {
    let (server, client) = serve(Options::new()).await;
    for n in 0..1_010 {
        server.member().operator().election(format!("e{n:04}")).pause("").await.unwrap();
    }
    let text = client.get("/metrics").await.body;
    let paused = text.lines().filter(|line| line.starts_with("tenure_election_paused{"));
    assert_eq!(paused.count(), 1_001);
    assert!(text.contains("tenure_election_paused{namespace=\"default\",election=\"other\"} 10"));
    server.stop().await.unwrap();
}

/// Requests that cannot be understood are refused by a problem with a remedy, and cost nothing.
#[tokio::test]
async fn bad_requests_are_explained() {
    let (server, client) = serve(Options::new()).await;
    client.get("/v1/nothing").await.is_problem(404, "not_found");
    client.ask("PUT", "/v1/elections", Some("{}")).await.is_problem(405, "bad_method");
    for method in ["TRACE", "PUT", "PATCH", "DELETE", "POST"] {
        client.raw(method, "/v1/elections").await.is_problem(405, "bad_method");
    }
    client.ask("POST", "/logout", Some("\0")).await.is_problem(400, "bad_request");
    client.get("/v1/elections/%00").await.is_problem(400, "bad_request");
    client.get("/v1/elections/%ff").await.is_problem(400, "bad_request");
    client.get("/v1/elections?frseh=1").await.is_problem(400, "bad_request");
    client.get("/v1/journal?limit=0").await.is_problem(400, "bad_request");
    client.get("/v1/journal?after=-1").await.is_problem(400, "bad_request");
    let begin = "/v1/elections/e/sessions";
    for body in ["", "{", "[]", "7", "{\"id\":7}", "{\"idd\":\"a\"}", "{\"ttl_ms\":-1}"] {
        client.ask("POST", begin, Some(body)).await.is_problem(400, "bad_request");
    }
    for body in [json!({"ttl_ms": 1}), json!({"endpoints": ["a\nb"]}), json!({"id": ""})] {
        client.post(begin, body).await.is_problem(400, "bad_request");
    }
    let large = json!({ "metadata": "x".repeat(100_000) });
    client.post(begin, large).await.is_problem(413, "too_large");
    let form = client.with("Content-Type", "application/x-www-form-urlencoded");
    form.ask("POST", begin, Some("id=a")).await.is_problem(415, "not_json");
    let other = client.with("Host", "evil.example");
    other.get("/v1/elections").await.is_problem(421, "other_host");
    let page = client.with("Origin", "http://evil.example");
    page.post("/v1/elections/e/pause", json!({})).await.is_problem(403, "forbidden");
    assert_eq!(
        client.get("/v1/elections").await.json()["elections"],
        json!([]),
        "nothing was done"
    );
    server.stop().await.unwrap();
}

/// What is measured of a member's store is also said by the server's own member.
#[tokio::test]
async fn a_server_on_another_store_is_another_world() {
    let (one, _) = serve(Options::new()).await;
    let two = Server::start(member("two"), Options::new()).await.unwrap();
    let members = Client::of(&two).get("/v1/members?fresh=1").await.json();
    assert_eq!(members["members"].as_array().unwrap().len(), 1, "{members}");
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}
