//! A server is killed, or stopped for longer than its ttl, under a client that goes on trusting.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use crate::common::World;
use crate::web::{Session, serve};

const TTL: [&str; 2] = ["--ttl", "1500ms"];

/// Waits until the other one leads. The first one must trust nothing any more by then.
fn leads_after(second: &mut Session, first: &Session) -> Instant {
    second.until("leading");
    let now = Instant::now();
    let trusted = first.trusted_until.unwrap();
    assert!(now >= trusted, "two clients trusted for {:?}", trusted - now);
    assert!(second.told["term"].as_u64() > first.told["term"].as_u64());
    now
}

/// W5: kill -9 of the server. Its client trusts on, until its trust runs out by itself; no other
/// leads before that, although the store could prove the death of any other process.
#[test]
fn a_killed_servers_client_is_not_replaced_while_it_trusts() {
    let world = World::new();
    let first = serve(&world, "one", &TTL);
    let second = serve(&world, "two", &TTL);
    let mut trusting = Session::begin(&first.web, "jobs", &json!({ "id": "a" }));
    trusting.until("leading");
    let mut waiting = Session::begin(&second.web, "jobs", &json!({ "id": "b" }));
    trusting.beat(0).unwrap();
    first.process.signal(Signal::KILL);
    assert!(trusting.beat(0).is_err(), "it is gone");
    leads_after(&mut waiting, &trusting);
}

/// W1, W4: SIGSTOP of the server for longer than its ttl, with a beat under way. The answer that
/// comes when the server goes on grants nothing that reaches beyond the next leader's election.
#[test]
fn a_stopped_server_grants_nothing_when_it_goes_on() {
    let world = World::new();
    let first = serve(&world, "one", &TTL);
    let second = serve(&world, "two", &TTL);
    let mut trusting = Session::begin(&first.web, "jobs", &json!({ "id": "a" }));
    trusting.until("leading");
    let mut waiting = Session::begin(&second.web, "jobs", &json!({ "id": "b" }));
    trusting.beat(0).unwrap();
    first.process.signal(Signal::STOP);
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            let mut late = trusting.again();
            late.beat(400).unwrap();
            late
        });
        let led = leads_after(&mut waiting, &trusting);
        first.process.signal(Signal::CONT);
        let late = late.join().unwrap();
        assert!(late.trusted_until.is_none_or(|until| until <= led), "{:?}", late.told);
        late
    });
    // What it hears from now on is that its term is over.
    trusting.told = late.told;
    trusting.until("lost");
    assert_eq!(first.web.get("/v1/elections/jobs/leader").0, 503);
    assert_eq!(second.web.get("/v1/elections/jobs/leader").0, 200);
}
