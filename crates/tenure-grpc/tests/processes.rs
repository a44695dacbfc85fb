//! Servers as real processes, which are handed over, killed and stopped under load. What their
//! handlers did is one file, to which each appends a line as it begins: its order is the order in
//! which they ran.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod common;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{Client, Service, listen, serve};
use tenure::{MemberId, Operator, Tenure};
use tenure_grpc::{LeaderChannel, Prewarm};
use tenure_testkit::process::{Signal, hear, say};
use tenure_testkit::proxy::Flow;
use tenure_testkit::{LIMIT, Process, let_pass, until, within};
use tokio::task::JoinSet;
use tonic::{Code, Request, Status};

const ROLE: &str = "TENURE_TEST_SERVER";
/// So many calls are under way at the most.
const UNDER_WAY: usize = 50;
const TTL: Duration = Duration::from_secs(2);

/// Not a test by itself: a server of the others.
#[test]
fn a_server_serves() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [id, url, log] = role.split(' ').collect::<Vec<_>>()[..] else { panic!("{role}") };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let listener = listen("127.0.0.1").await;
        let endpoint = listener.local_addr().unwrap().to_string();
        let cooldown = Duration::from_millis(10);
        let member = Tenure::builder(url).id(id).ttl(TTL).cooldown(cooldown).endpoint(endpoint);
        let tenure = member.connect().await.unwrap();
        let election = tenure.election("texts");
        let service = Service { log: Some(PathBuf::from(log)), ..Service::default() };
        let _server = serve(listener, election.clone(), service);
        let elected = |leadership: tenure::Leadership| async move {
            say(&format!("leads {}", leadership.token()));
        };
        tokio::spawn(election.on_elected(elected).stand());
        tokio::task::spawn_blocking(hear).await.unwrap();
    });
}

/// A file, two servers on it, and an operator.
struct Scene {
    dir: tempfile::TempDir,
    url: String,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("t.db").display());
        Self { dir, url }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn start(&self, id: &str) -> Process {
        let mut command = Process::again("a_server_serves");
        Process::start(command.env(ROLE, format!("{id} {} {}", self.url, self.log().display())))
    }

    async fn operate(&self) -> Operator {
        Tenure::operate(&self.url).await.unwrap()
    }

    /// Waits until this member is a candidate or leads.
    async fn stands(&self, operator: &Operator, id: &str) {
        until("a candidate", async || {
            let view = operator.election("texts").view().await.unwrap();
            view.candidates.iter().any(|candidate| candidate.member.id.as_str() == id)
        })
        .await;
    }

    /// No request was handled twice, and none under an older term after one of a newer. How many
    /// were handled.
    fn check(&self) -> usize {
        let text = std::fs::read_to_string(self.log()).unwrap();
        let mut newest = 0;
        let mut seen = HashMap::new();
        for line in text.lines() {
            let (id, token) = line.split_once(' ').unwrap();
            let token: u64 = token.parse().unwrap();
            assert!(token >= newest, "request {id} was handled under {token} after {newest}");
            newest = token;
            let before = seen.insert(id.to_owned(), token);
            assert_eq!(before, None, "request {id} was handled twice");
        }
        seen.len()
    }
}

fn channel(operator: &Operator) -> Client {
    let channel = LeaderChannel::builder(operator.election("texts"));
    Client::new(channel.wait_for_leader(LIMIT / 2).prewarm(Prewarm::Heir).build().unwrap())
}

/// A thousand calls a second until it is told to stop; the statuses of those that failed.
struct Load {
    stop: Arc<AtomicU64>,
    calls: tokio::task::JoinHandle<(u64, Vec<Status>)>,
}

impl Load {
    fn begin(client: Client, limit: Option<Duration>) -> Self {
        let stop = Arc::new(AtomicU64::new(0));
        let stopped = stop.clone();
        let calls = tokio::spawn(async move {
            let mut running: JoinSet<Result<String, Status>> = JoinSet::new();
            let mut failed = Vec::new();
            let mut sent = 0;
            let mut every = tokio::time::interval(Duration::from_millis(1));
            every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while stopped.load(Ordering::Acquire) == 0 {
                every.tick().await;
                // A machine that is too slow for a thousand a second sends fewer.
                if running.len() >= UNDER_WAY {
                    failed.extend(running.join_next().await.unwrap().unwrap().err());
                }
                let mut client = client.clone();
                let mut request = Request::new(format!("r{sent}"));
                limit.into_iter().for_each(|limit| request.set_timeout(limit));
                running.spawn(async move { client.unary_with("Say", request).await });
                sent += 1;
                while let Some(done) = running.try_join_next() {
                    failed.extend(done.unwrap().err());
                }
            }
            while let Some(done) = running.join_next().await {
                failed.extend(done.unwrap().err());
            }
            (sent, failed)
        });
        Self { stop, calls }
    }

    async fn end(self) -> (u64, Vec<Status>) {
        self.stop.store(1, Ordering::Release);
        within(self.calls).await.unwrap()
    }
}

/// G2, G3: a thousand calls a second, fifty hand-overs: none fails, none is handled twice, none
/// under an older term after a newer one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_hand_overs_cost_no_call() {
    let scene = Scene::new();
    let operator = scene.operate().await;
    let mut servers = [scene.start("a"), scene.start("b")];
    for id in ["a", "b"] {
        scene.stands(&operator, id).await;
    }
    let mut client = channel(&operator);
    within(client.say("first")).await.unwrap();
    let load = Load::begin(client, None);
    let election = operator.election("texts");
    let mut number = 0;
    for _ in 0..50 {
        let view = election.view().await.unwrap();
        number = view.number.get();
        let leads = view.holder.map(|holder| holder.member.id.as_str().to_owned());
        let to = if leads.as_deref() == Some("a") { "b" } else { "a" };
        scene.stands(&operator, to).await;
        election.ask_to_hand_over(&MemberId::new(to).unwrap(), "test").await.unwrap();
        until("the next term", async || {
            let view = election.view().await.unwrap();
            view.number.get() > number && view.holder.is_some()
        })
        .await;
        let_pass(Duration::from_millis(20), "calls go on under each term").await;
    }
    let (sent, failed) = load.end().await;
    assert!(failed.is_empty(), "{} of {sent} failed: {:?}", failed.len(), failed[0]);
    assert_eq!(scene.check() as u64, sent + 1);
    assert!(number >= 50, "{number}");
    servers.iter_mut().for_each(Process::kill);
}

/// kill -9: what was under way may fail and says so, nothing is handled twice, and the calls
/// after it go to the successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_is_followed_by_the_next() {
    let scene = Scene::new();
    let operator = scene.operate().await;
    let mut first = scene.start("a");
    assert_eq!(first.says().await, "leads 1");
    let mut second = scene.start("b");
    scene.stands(&operator, "b").await;
    let mut client = channel(&operator);
    within(client.say("first")).await.unwrap();
    let load = Load::begin(client.clone(), None);
    until("calls are handled", async || scene.check() > 50).await;
    first.kill();
    assert_eq!(second.says().await, "leads 2");
    assert_eq!(within(client.say("last")).await.unwrap(), "last under 2");
    let (sent, failed) = load.end().await;
    for status in &failed {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("may have been handled"), "{status:?}");
    }
    let handled = scene.check() as u64;
    assert!(handled + failed.len() as u64 >= sent + 2, "{handled} of {sent}, {}", failed.len());
    second.kill();
}

/// SIGSTOP: the deadlines of calls that were sent end them, the others go to the successor. The
/// old leader, when it goes on, handles nothing of what it was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_stopped_handles_nothing_afterwards() {
    let scene = Scene::new();
    let operator = scene.operate().await;
    let mut first = scene.start("a");
    assert_eq!(first.says().await, "leads 1");
    let mut second = scene.start("b");
    scene.stands(&operator, "b").await;
    let mut client = channel(&operator);
    within(client.say("first")).await.unwrap();
    let load = Load::begin(client.clone(), Some(Duration::from_secs(1)));
    until("calls are handled", async || scene.check() > 50).await;
    first.signal(Signal::STOP);
    assert_eq!(second.says().await, "leads 2");
    assert_eq!(within(client.say("last")).await.unwrap(), "last under 2");
    first.signal(Signal::CONT);
    // It has taken notice: what it was sent before is decided.
    until("the old leader stands again", async || {
        let view = operator.election("texts").view().await.unwrap();
        view.candidates.iter().any(|candidate| candidate.member.id.as_str() == "a")
    })
    .await;
    let (sent, failed) = load.end().await;
    for status in &failed {
        let code = status.code();
        let expected = [Code::DeadlineExceeded, Code::Unavailable].contains(&code);
        assert!(expected, "{status:?}");
    }
    let handled = scene.check() as u64;
    assert!(handled <= sent + 2 && handled > 50, "{handled} of {sent}");
    first.kill();
    second.kill();
}

/// G4, with a real store: the client is cut off from it and the leader is not. Calls go on for what
/// is left of the leader's ttl, and then the election is vacant for this client alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_cut_off_from_the_store_stops_in_time() {
    let direct = std::env::var("TENURE_TEST_POSTGRES_URL").expect("run `cargo xtask test`");
    let (proxy, through) = tenure_testkit::Proxy::before(&direct);
    let namespace = tenure_testkit::fresh_name("grpc");
    let listener = listen("127.0.0.1").await;
    let endpoint = listener.local_addr().unwrap().to_string();
    let member = Tenure::builder(&direct).namespace(&namespace).ttl(TTL).endpoint(endpoint);
    let tenure = member.connect().await.unwrap();
    let election = tenure.election("texts");
    let _server = serve(listener, election.clone(), Service::default());
    let leadership = election.campaign().await.unwrap();
    let operator = Tenure::builder(&through).namespace(&namespace).operate().await.unwrap();
    let channel = LeaderChannel::builder(operator.election("texts"));
    let limit = Duration::from_millis(20);
    let mut client = Client::new(channel.wait_for_leader(limit).build().unwrap());
    until("it is called", async || client.say("x").await.is_ok()).await;
    proxy.set_flow(Flow::Hold);
    assert!(client.say("y").await.is_ok(), "the route stands");
    let began = std::time::Instant::now();
    until("it is vacant", async || {
        client.say("z").await.is_err_and(|s| s.metadata().contains_key(tenure_grpc::VACANT))
    })
    .await;
    assert!(began.elapsed() <= TTL + Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(leadership.is_current(), "the leader noticed nothing");
    proxy.set_flow(Flow::Pass);
    until("it is called again", async || client.say("x").await.is_ok()).await;
}

/// An example that runs. It is killed with the test.
struct Example(Child, std::sync::mpsc::Receiver<String>);

impl Example {
    fn start(name: &str, args: &[&str]) -> Self {
        let test = std::env::current_exe().unwrap();
        let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
        let mut child = Command::new(program).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (say, said) = std::sync::mpsc::channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| say.send(l)));
        Self(child, said)
    }

    /// Waits for a line that contains this, and gives those before it.
    fn says(&self, what: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.1.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what:?}: {seen:?}"));
            let found = line.contains(what);
            seen.push(line);
            if found {
                return seen;
            }
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The two programs of the page: the client does not notice that the greeter is another.
#[test]
fn the_client_does_not_notice_that_another_greeter_leads() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("greet.db").display());
    let [one, two] = [(); 2].map(|()| format!("127.0.0.1:{}", tenure_testkit::free_port()));
    let mut first = Example::start("greeter", &[&url, &one]);
    first.says("leads: term 1");
    let second = Example::start("greeter", &[&url, &two]);
    second.says("listens on");
    let client = Example::start("greeting", &[&url]);
    let mut said = client.says("hello no. 3");
    tenure_testkit::process::signal(first.0.id(), Signal::INT);
    second.says("leads: term 2");
    assert!(first.0.wait().unwrap().success());
    let at: usize = 3 + said.len();
    said.extend(client.says(&format!("hello no. {}", at + 10)));
    assert!(said.iter().all(|line| !line.contains("FAILED")), "{said:?}");
    std::io::stdout().flush().unwrap();
}
