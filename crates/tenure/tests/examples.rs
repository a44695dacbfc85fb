//! The examples as their reader runs them: two processes on one file, of which one leads; the
//! first is stopped, and the other goes on.

#![cfg(all(target_os = "linux", feature = "sqlite"))]
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tenure_testkit::LIMIT;
use tenure_testkit::process::{Signal, signal};

/// An example that runs. It is killed with the test.
struct Example {
    child: Child,
    said: Receiver<String>,
    seen: Vec<String>,
}

/// Where cargo has put it: examples are built with the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join(name)
}

impl Example {
    fn start(name: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program(name));
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (say, said) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| say.send(l)));
        Self { child, said, seen: Vec::new() }
    }

    /// Waits for a line that contains this.
    fn says(&mut self, what: &str) -> String {
        loop {
            let Ok(line) = self.said.recv_timeout(LIMIT) else {
                panic!("it did not say {what:?}: {:?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Ends it as a person does at a terminal, and waits until it is gone.
    fn stop(&mut self, by: Signal) {
        signal(self.child.id(), by);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:?}", self.seen);
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file for the elections of one test.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> String {
        self.0.path().join("t.db").display().to_string()
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.file())
    }
}

/// The token at the end of a line.
fn token(line: &str) -> u64 {
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Of two that run one leads; it is stopped, and the other leads under a higher token.
fn moves_on(name: &str, args: &[&str], leads: &str, by: Signal) -> (Example, Example) {
    let mut first = Example::start(name, args);
    let before = token(&first.says(leads));
    let mut second = Example::start(name, args);
    first.stop(by);
    let after = token(&second.says(leads));
    assert!(after > before, "{after} after {before}");
    (first, second)
}

#[test]
fn the_singleton_worker_works_in_one_process() {
    let place = Place::new();
    let mut first = Example::start("singleton_worker", &[&place.url(), "3"]);
    first.says("working under term 1");
    let mut second = Example::start("singleton_worker", &[&place.url(), "1"]);
    first.says("done, resigned");
    second.says("working under term 2");
    second.says("done, resigned");
}

#[test]
fn the_cron_job_runs_in_one_process() {
    let place = Place::new();
    let mut first = Example::start("cron", &[&place.url()]);
    first.says("rotating the error log under token 1");
    let mut second = Example::start("cron", &[&place.url()]);
    second.says("another process runs the job");
    first.stop(Signal::TERM);
    second.says("rotating the access log under token 2");
}

#[test]
fn the_queue_is_consumed_by_one_process_and_each_message_once() {
    let place = Place::new();
    let mut first = Example::start("queue_consumer", &[&place.file()]);
    first.says("third under token 1");
    let mut second = Example::start("queue_consumer", &[&place.file()]);
    // It has put three more on the queue, for the consumer.
    first.says("third under token 1");
    first.stop(Signal::INT);
    second.says("consumes under token 2");
    let taken = first.seen.iter().filter(|line| line.contains("first under")).count();
    assert_eq!(taken, 2, "{:?}", first.seen);
    assert!(
        first.seen.iter().any(|line| line.starts_with("consumes no more")) || {
            first.says("consumes no more").contains("term 1")
        }
    );
}

#[test]
fn the_web_service_reports_its_leader_and_passes_requests_on() {
    let place = Place::new();
    let mut first = Example::start("web_service", &[&place.url()]);
    first.says("leads: term 1");
    let mut second = Example::start("web_service", &[&place.url()]);
    let here = second.says("listens on").rsplit(' ').next().unwrap().to_owned();
    assert!(get(&here, "/leader").contains("leads term 1"));
    assert!(get(&here, "/work").contains("done under token 1"), "the leader has answered");
    first.stop(Signal::INT);
    second.says("leads: term 2");
    assert!(get(&here, "/work").contains("done under token 2"));
}

fn get(address: &str, path: &str) -> String {
    let mut line = TcpStream::connect(address).unwrap();
    write!(line, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
    answer
}

#[test]
fn the_follower_sees_the_leader_change() {
    // Without a store it shows both sides in one process, and ends.
    let mut both = Example::start("follow_leader", &[]);
    both.says("send requests to 10.0.0.7:8080 (api-1, term 1)");
    both.says("the leader of term 1 is gone");
    assert!(both.child.wait().unwrap().success());
}

#[test]
fn the_importer_finishes_its_item_before_the_next_leader_begins() {
    let place = Place::new();
    let leads = "leading under term";
    let (mut first, _) = moves_on("graceful_shutdown", &[&place.url()], leads, Signal::TERM);
    first.says("told to stop; the last item is finished");
    first.says("left the store");
}

#[test]
fn three_namespaces_are_led_by_one_process_and_then_by_the_other() {
    let place = Place::new();
    let mut first = Example::start("three_namespaces", &[&place.url()]);
    let all = ["billing", "search", "mail"];
    for _ in all {
        first.says("leads under token 1");
    }
    let mut second = Example::start("three_namespaces", &[&place.url()]);
    first.stop(Signal::INT);
    for _ in all {
        second.says("leads under token 2");
    }
    for namespace in all {
        assert!(second.seen.iter().any(|l| l.starts_with(namespace)), "{:?}", second.seen);
    }
}

#[test]
fn a_store_of_ones_own_elects() {
    let place = Place::new();
    moves_on("own_store", &[&place.file()], "leads under token", Signal::INT);
}

#[test]
fn what_is_measured_is_printed() {
    let place = Place::new();
    let mut first = Example::start("metrics", &[&place.url()]);
    first.says("leads measured under token 1: 1 in all");
    first.says("renewed with");
    let mut second = Example::start("metrics", &[&place.url()]);
    first.stop(Signal::INT);
    first.says("leads measured no more");
    second.says("leads measured under token 2: 1 in all");
}
