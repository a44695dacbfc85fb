//! What a supervisor sees: while the store is away, when the server is ready, whether its loop
//! goes on, and when it stops.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tenure_testkit::proxy::{Flow, Proxy};

use crate::common::{World, wait_for};
use crate::web::{Session, Web, serve, served};

/// systemd's side of the notifications.
struct Supervisor {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Supervisor {
    fn new(world: &World) -> Self {
        let socket = UnixDatagram::bind(world.path("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// What was said up to now, line by line.
    fn heard(&mut self) -> &[String] {
        let mut piece = [0; 4_096];
        while let Ok(length) = self.socket.recv(&mut piece) {
            let text = String::from_utf8_lossy(&piece[..length]);
            self.heard.extend(text.lines().map(str::to_owned));
        }
        &self.heard
    }

    fn until(&mut self, word: &str) {
        wait_for(word, || self.heard().iter().any(|line| line == word).then_some(()));
    }
}

/// A store that is down at the start: the process lives and says what it waits for, its supervisor
/// is told nothing too early, and when the store is back it serves.
#[test]
fn a_store_that_is_away_at_the_start_is_told_of_and_waited_for() {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL").expect("run by `cargo xtask test`");
    let (proxy, through) = Proxy::before(&url);
    proxy.set_flow(Flow::Hold);
    let world = World::on(through);
    let mut supervisor = Supervisor::new(&world);
    let port = tenure_testkit::free_port();
    let web = Web::at(format!("127.0.0.1:{port}"));
    let mut command = world.tenure(&["--json", "serve", "--ttl", "2s", "--stand", "nightly"]);
    command.args(["--listen", web.address()]);
    command.env("NOTIFY_SOCKET", world.path("notify")).env("WATCHDOG_USEC", "300000");
    let process = world.start("serve", command);

    wait_for("the process to answer", || web.ask("GET", "/livez", "").ok().filter(|a| a.0 == 200));
    let (status, ready) = web.get("/readyz");
    assert_eq!(status, 503, "{ready}");
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert!(ready["because"].as_str().unwrap().contains("the store has not answered"), "{ready}");
    for (method, path) in
        [("GET", "/v1/elections"), ("GET", "/metrics"), ("POST", "/v1/elections/e/sessions")]
    {
        let (status, said) = web.ask(method, path, "{}").unwrap();
        let problem: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &problem["code"]), (503, &json!("starting")), "{path}: {said}");
        assert!(problem["remedy"].as_str().is_some_and(|remedy| remedy.contains("store")));
        assert_eq!(problem["may_have_applied"], json!(false));
    }
    supervisor.until("STATUS=waiting for the store");
    assert!(!supervisor.heard().iter().any(|line| line == "READY=1"), "{:?}", supervisor.heard);

    proxy.set_flow(Flow::Pass);
    supervisor.until("READY=1");
    let members = web.json("/v1/members?fresh=1");
    assert_eq!(members["members"].as_array().unwrap().len(), 1, "READY is said after the join");
    assert_eq!(web.get("/readyz").0, 200);
    supervisor.until("WATCHDOG=1");
    wait_for("the server to lead", || {
        (web.get("/v1/elections/nightly/leader").0 == 200).then_some(())
    });
    process.signal(Signal::TERM);
    supervisor.until("STOPPING=1");
    let mut process = process;
    assert_eq!(process.code(), 0, "{}", process.said());
}

/// A process that lives while its loop does not: the supervisor is told nothing. Here the whole
/// process is stopped, which is all that can be done to the loop from outside.
#[test]
fn a_stopped_server_feeds_no_watchdog() {
    let world = World::new();
    let mut supervisor = Supervisor::new(&world);
    let mut command = world.tenure(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", world.path("notify")).env("WATCHDOG_USEC", "150000");
    let served = served(world.start("serve", command));
    supervisor.until("WATCHDOG=1");
    served.process.signal(Signal::STOP);
    wait_for("the process to be stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", served.process.child.id()));
        stat.unwrap().contains(") T ").then_some(())
    });
    supervisor.heard();
    supervisor.heard.clear();
    tenure_testkit::let_pass_blocking(Duration::from_millis(300), "two limits of the watchdog");
    assert!(supervisor.heard().is_empty(), "{:?}", supervisor.heard);
    served.process.signal(Signal::CONT);
    supervisor.until("WATCHDOG=1");
}

/// Nothing set up: the default store, and the dashboard's address. SIGTERM lets clients stop
/// first; a second signal ends it at once.
#[test]
fn it_begins_with_nothing_set_up_and_stops_in_two_phases() {
    let world = World::new();
    let mut command = world.tenure(&["serve", "--listen", "127.0.0.1:0"]);
    command.env_remove("TENURE_STORE");
    let plain = world.start("plain", command);
    plain.until_printed("http://127.0.0.1:");
    assert!(plain.printed().contains(".local/state/tenure/"), "{}", plain.printed());
    drop(plain);

    let mut first = serve(&world, "one", &["--ttl", "3s"]);
    let mut session = Session::begin(&first.web, "jobs", &json!({ "id": "a" }));
    session.until("leading");
    first.process.signal(Signal::TERM);
    session.until("stopping");
    assert_eq!(first.web.get("/readyz").0, 503, "it is answered while a client drains");
    assert_eq!(first.web.post(&session.path("/resign"), &json!({})).unwrap().0, 200);
    assert_eq!(first.process.code(), 0, "{}", first.process.said());

    let mut second = serve(&world, "two", &["--ttl", "3s"]);
    let mut session = Session::begin(&second.web, "jobs", &json!({ "id": "a" }));
    session.until("leading");
    second.process.signal(Signal::TERM);
    session.until("stopping");
    second.process.signal(Signal::INT);
    assert_eq!(second.process.code(), 130);
}
