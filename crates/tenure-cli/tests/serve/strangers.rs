//! What strangers can do to a server: nothing that its store or its other clients notice.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{World, wait_for};
use crate::web::{Served, Web, serve, served};

/// More connections than the process may open files say nothing: they use up their own listener's share. The store has files
/// left, and clients of another listener are answered.
#[test]
fn strangers_do_not_use_up_the_files_of_a_server() {
    let world = World::new();
    let socket = world.path("s");
    let listen = format!("unix:{}", socket.display());
    let script = "ulimit -n 160; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args([
        "-c",
        script,
        env!("CARGO_BIN_EXE_tenure"),
        "--json",
        "serve",
        "--ttl",
        "1500ms",
    ]);
    command.args(["--listen", "127.0.0.1:0", "--listen", &listen, "--stand", "nightly"]);
    command.env("TENURE_STORE", world.store()).env("HOME", world.dir());
    let Served { process, web, .. } = served(world.start("serve", command));
    let ours = Web::on(socket);
    let leads = || ours.ask("GET", "/v1/elections/nightly/leader", "").ok();
    wait_for("it to lead", || leads().filter(|answer| answer.0 == 200));
    // Until the system's queue is full, too: then the next one is not even connected.
    let mut strangers = Vec::new();
    let at = web.address().parse().unwrap();
    while let Ok(mut stranger) = TcpStream::connect_timeout(&at, Duration::from_millis(300)) {
        if strangers.len() % 2 == 0 {
            let _ = stranger.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-");
        }
        strangers.push(stranger);
    }
    assert!(strangers.len() > 100, "{}", strangers.len());
    let began = Instant::now();
    let term = ours.json("/v1/elections/nightly?fresh=1")["term"].clone();
    while began.elapsed() < Duration::from_secs(4) {
        assert_eq!(leads().map(|answer| answer.0), Some(200), "{}", process.said());
        tenure_testkit::let_pass_blocking(Duration::from_millis(100), "more than a ttl");
    }
    let shown = ours.json("/v1/elections/nightly?fresh=1");
    assert_eq!(shown["term"], term, "the term was lost meanwhile: {shown}");
    drop(strangers);
    wait_for("a place for others", || web.ask("GET", "/livez", "").ok());
}

/// What the process has in memory.
fn resident_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sends requests over one connection, one after the other.
struct Line(TcpStream);

impl Line {
    fn ask(&mut self, method: &str, path: &str, body: &str) -> String {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.0.write_all(head.as_bytes()).unwrap();
        let mut said = Vec::new();
        loop {
            let mut piece = [0; 4_096];
            let read = self.0.read(&mut piece).unwrap();
            said.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&said);
            let length = text.split_once("\r\n\r\n").and_then(|(head, body)| {
                let line = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
                Some(body.len() >= line.parse().unwrap())
            });
            if read == 0 || length.unwrap_or(text.starts_with("HTTP/1.1 204")) {
                return text.into_owned();
            }
        }
    }
}

/// Ten thousand sessions at once: the next one is refused with a remedy, memory is bounded, and
/// everything else is answered as before.
#[test]
fn ten_thousand_sessions_are_kept_and_no_more() {
    const MANY: usize = 10_000;
    let world = World::new();
    let served = serve(&world, "one", &["--store", "memory:", "--ttl", "60s"]);
    let id = served.process.child.id();
    let address = served.web.address().to_owned();
    let empty = resident_kib(id);
    let begin = |from: usize| {
        let mut line = Line(TcpStream::connect(&address).unwrap());
        let mut first = String::new();
        for n in from..from + MANY / 4 {
            // Each with a life of its own; all in a hundred elections.
            let body = json!({ "id": format!("client-{n}"), "ttl_ms": 600_000 }).to_string();
            let said = line.ask("POST", &format!("/v1/elections/e{}/sessions", n % 100), &body);
            assert!(said.starts_with("HTTP/1.1 201"), "{n}: {said}");
            first = said;
        }
        first
    };
    let began = Instant::now();
    let last = std::thread::scope(|scope| {
        let lines: Vec<_> = (0..4).map(|n| scope.spawn(move || begin(n * MANY / 4))).collect();
        lines.into_iter().map(|line| line.join().unwrap()).next_back().unwrap()
    });
    let each = (resident_kib(id).saturating_sub(empty)) as f64 / MANY as f64;
    eprintln!("{MANY} sessions in {:?}, {each:.1} KiB each", began.elapsed());
    assert!(each < 64.0, "{each} KiB for a session");
    let one_more = served.web.post("/v1/elections/e/sessions", &json!({})).unwrap();
    assert_eq!((one_more.0, &one_more.1["code"]), (429, &json!("too_many_sessions")));
    assert!(one_more.1["remedy"].as_str().is_some());
    let key = last.split("\"session\":\"").nth(1).unwrap().split('"').next().unwrap();
    let mut line = Line(TcpStream::connect(served.web.address()).unwrap());
    let said = line.ask("POST", &format!("/v1/sessions/{key}/beat"), "{}");
    assert!(said.contains("\"state\":\"waiting\"") || said.contains("\"leading\""), "{said}");
    let text = served.web.get("/metrics").1;
    assert!(text.contains(&format!("\ntenure_sessions {MANY}\n")), "{text}");
    let said = line.ask("DELETE", &format!("/v1/sessions/{key}"), "");
    assert!(said.starts_with("HTTP/1.1 204"), "{said}");
    wait_for("room for one more", || {
        let again = served.web.post("/v1/elections/e/sessions", &json!({})).unwrap();
        (again.0 == 201).then_some(())
    });
}
