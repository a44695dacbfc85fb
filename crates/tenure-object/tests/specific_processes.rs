//! Real processes on a real server: sixteen of them, killed with -9 in a loop,
//! and a counter that must lose nothing when it is fenced.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use common::{BUCKET, SEAWEEDFS, Server, fresh_prefix};
use tenure::Tenure;
use tenure_cas::{Expect, Loaded, Register, Swapped};
use tenure_object::{BucketOptions, BucketStore};
use tenure_testkit::process::{self, Signal};
use tenure_testkit::{Process, let_pass, until};

const PLACE: &str = "TENURE_TEST_PLACE";
const FOLDER: &str = "TENURE_TEST_FOLDER";
const PROCESSES: usize = 16;
/// Leaders that are killed or stopped; each costs a ttl.
const KILLS: usize = 8;
const TTL: Duration = Duration::from_millis(1_500);

/// The counter as it lies in the bucket: how many steps were made under each
/// term. Its value is their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counter(BTreeMap<u64, u64>);

impl Counter {
    fn value(&self) -> u64 {
        self.0.values().sum()
    }

    fn newest(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(0)
    }

    fn bytes(&self) -> Vec<u8> {
        let lines: Vec<String> = self.0.iter().map(|(term, n)| format!("{term} {n}")).collect();
        lines.join("\n").into_bytes()
    }

    fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        let pair = |line: &str| {
            let (term, n) = line.split_once(' ').unwrap();
            (term.parse().unwrap(), n.parse().unwrap())
        };
        Self(text.lines().map(pair).collect())
    }
}

async fn look(register: &Arc<dyn Register>, key: &str) -> (Counter, Expect) {
    loop {
        match register.load(key, None).await {
            Ok(Loaded::Absent) => return (Counter::default(), Expect::Absent),
            Ok(Loaded::Found { bytes, version }) => {
                return (Counter::read(&bytes), Expect::Version(version));
            }
            other => eprintln!("a look at the counter came to {other:?}"),
        }
        let_pass(Duration::from_millis(20), "the pace of attempts").await;
    }
}

/// The fence of a store without transactions: what is written carries the term,
/// refuses an older one, and is swapped on the version that was read.
async fn count(register: &Arc<dyn Register>, key: &str, term: u64) -> Option<u64> {
    let (mut counter, seen) = look(register, key).await;
    if counter.newest() > term {
        return None;
    }
    let_pass(Duration::from_millis(10), "time for another to come in between").await;
    *counter.0.entry(term).or_default() += 1;
    match register.swap(key, seen, counter.bytes()).await {
        Ok(Swapped::Stored(_)) => Some(counter.value()),
        // Lost, or not known: it is not counted as made.
        _ => None,
    }
}

/// A candidate: stands through the library, and counts while it leads.
async fn stand_and_count(prefix: &str) {
    let url = format!("s3://{BUCKET}/{prefix}?endpoint={}", Server::SeaweedFs.endpoint());
    let options = BucketOptions::from_url(&url).unwrap().at(format!("{prefix}-counter"));
    let register = BucketStore::open(options).await.unwrap().register();
    let key = format!("{prefix}-counter/value");
    let id = format!("p{}", std::process::id());
    let tenure = Tenure::builder(&url).id(&id).ttl(TTL).connect().await.unwrap();
    let folder = std::env::var(FOLDER).unwrap();
    let mut made = std::fs::File::create(format!("{folder}/{id}")).unwrap();
    loop {
        let leadership = tenure.election("e").campaign().await.unwrap();
        while leadership.is_current() {
            let token = leadership.token();
            if let Some(value) = count(&register, &key, token).await {
                // One write for each line: what is there is whole.
                made.write_all(format!("{value} {token}\n").as_bytes()).unwrap();
            }
        }
    }
}

/// A process that stands. Dropped, it is killed, and gives nothing back.
fn start(prefix: &str, folder: &str) -> Process {
    let mut command = Process::again("a_fenced_counter_loses_nothing_while_leaders_are_killed");
    command.env(PLACE, prefix).env(FOLDER, folder);
    command.env("AWS_ACCESS_KEY_ID", SEAWEEDFS.0).env("AWS_SECRET_ACCESS_KEY", SEAWEEDFS.1);
    Process::start(command.stderr(Stdio::null()))
}

/// The steps that processes know they made: value and term.
fn known(folder: &std::path::Path) -> Vec<(u64, u64)> {
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let all: Vec<String> = texts.collect();
    let lines = all.iter().flat_map(|text| text.lines());
    lines
        .filter_map(|line| {
            let (value, term) = line.split_once(' ')?;
            Some((value.parse().unwrap(), term.parse().unwrap()))
        })
        .collect()
}

/// C3, H4, H18: sixteen processes, leaders killed with -9, or stopped and continued
/// when another leads, again and again. Every step that was answered for is in the counter, none twice, and terms never go
/// back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_counter_loses_nothing_while_leaders_are_killed() {
    if let Ok(prefix) = std::env::var(PLACE) {
        return stand_and_count(&prefix).await;
    }
    let server = Server::SeaweedFs;
    server.make_bucket().await;
    let prefix = fresh_prefix();
    let scratch = std::env::temp_dir().join(format!("tenure-{prefix}"));
    std::fs::create_dir(&scratch).unwrap();
    let folder = scratch.to_str().unwrap().to_owned();
    let options = server.options(BUCKET, &format!("{prefix}-counter"));
    let register = BucketStore::open(options).await.unwrap().register();
    let key = format!("{prefix}-counter/value");
    let observer = BucketStore::open(server.options(BUCKET, &prefix)).await.unwrap();
    let observer = Tenure::with_store(observer.shared()).connect().await.unwrap();

    let mut candidates: Vec<_> = (0..PROCESSES).map(|_| start(&prefix, &folder)).collect();
    let mut last = 0;
    let mut stopped = None;
    for kill in 0..KILLS {
        // A process leads a newer term, and has counted under it.
        until("a newer leader counts", || async { look(&register, &key).await.0.newest() > last })
            .await;
        last = look(&register, &key).await.0.newest();
        // One that was stopped goes on where it was, in the middle of a step.
        if let Some(pid) = stopped.take() {
            process::signal(pid, Signal::CONT);
        }
        let holder = observer.election("e").leader().await.unwrap();
        let pid = holder.map(|h| h.member.id.as_str()[1..].parse::<u32>().unwrap());
        let Some(leader) = candidates.iter_mut().find(|c| Some(c.id()) == pid) else { continue };
        if kill % 2 == 0 {
            *leader = start(&prefix, &folder);
        } else {
            leader.signal(Signal::STOP);
            stopped = Some(leader.id());
        }
    }
    drop(candidates);
    let (counter, _) = look(&register, &key).await;
    let known = known(&scratch);
    std::fs::remove_dir_all(&scratch).unwrap();

    assert!(counter.0.len() >= KILLS, "it was put to the test: {counter:?}");
    let values: BTreeSet<u64> = known.iter().map(|(value, _)| *value).collect();
    assert_eq!(values.len(), known.len(), "a step that was made twice lost another");
    assert!(values.last() <= Some(&counter.value()), "a step that was made is lost");
    // Each value under the term that the counter says it was made under.
    let mut reached = 0;
    let ends: Vec<(u64, u64)> = counter
        .0
        .iter()
        .map(|(term, n)| {
            reached += n;
            (reached, *term)
        })
        .collect();
    for (value, term) in &known {
        let under = ends.iter().find(|(end, _)| value <= end).map(|(_, term)| *term);
        assert_eq!(under, Some(*term), "step {value}: a newer term is never followed by an older");
    }
    // What is in the counter and was not answered for: a death between the write
    // and the note, or a lost answer.
    let unknown = counter.value() - known.len() as u64;
    assert!(unknown <= 2 * KILLS as u64 + PROCESSES as u64, "{unknown} steps are unaccounted for");
}
