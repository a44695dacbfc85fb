//! Real processes on a real file.

#![allow(clippy::unwrap_used)]
#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{secs, within};
use rustix::process::{Pid, Signal, kill_process};
use tenure::Tenure;

const ROLE: &str = "TENURE_TEST_URL";

/// Killed when the test ends, however it ends.
struct Role(Child);

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Role {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

/// Not a test by itself: the leader that the next test stops and continues. It
/// asks all the time, and says what it was told around the longest gap.
#[test]
fn a_child_plays_the_leader() {
    let Ok(url) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tenure = Tenure::builder(url).ttl(secs(2)).connect().await.unwrap();
        let leadership = tenure.election("e").campaign().await.unwrap();
        println!("@leads");
        std::io::stdout().flush().unwrap();
        // No await from here on: whatever is right is right without help.
        let stopped = |gap: Duration| gap > secs(3);
        let mut last = Instant::now();
        loop {
            let asked = Instant::now();
            let current = leadership.is_current();
            // Stopped before the question, or on the way to it.
            if stopped(asked - last) || (!current && stopped(asked.elapsed())) {
                println!("@after the stop: {current}");
                std::process::exit(0);
            }
            if !current {
                println!("@lost without a stop");
                std::process::exit(1);
            }
            last = asked;
        }
    });
}

/// H4, T4: stopped for longer than the ttl and continued, a leader's very first
/// question is answered no; meanwhile somebody else leads.
#[tokio::test]
async fn a_stopped_and_continued_leader_knows_with_its_first_question() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["a_child_plays_the_leader", "--exact", "--nocapture"])
        .env(ROLE, &url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Role(child);
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut lines = lines
        .map_while(Result::ok)
        .filter_map(|line| line.find('@').map(|at| line[at + 1..].to_owned()));
    assert_eq!(lines.next().as_deref(), Some("leads"));

    let successor = Tenure::builder(&url).ttl(secs(2)).connect().await.unwrap();
    child.signal(Signal::STOP);
    let stopped = Instant::now();
    let leadership = within(successor.election("e").campaign()).await.unwrap();
    assert_eq!(leadership.token(), 2);
    tokio::time::sleep((secs(4)).saturating_sub(stopped.elapsed())).await;
    child.signal(Signal::CONT);
    assert_eq!(lines.next().as_deref(), Some("after the stop: false"));
}

/// C1, and the bar: 100 candidates on one SQLite election, each with a
/// connection of its own: no error, one leader, and all agree who.
#[tokio::test]
async fn a_hundred_candidates_on_one_file_elect_one_leader() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let mut members = Vec::new();
    for n in 0..100 {
        let member = Tenure::builder(&url).id(format!("m{n}")).ttl(secs(240));
        members.push(within(member.connect()).await.unwrap());
    }
    let (won, mut wins) = tokio::sync::mpsc::unbounded_channel();
    let mut campaigns = tokio::task::JoinSet::new();
    for member in &members {
        let (election, won) = (member.election("e"), won.clone());
        campaigns.spawn(async move {
            let leadership = election.campaign().await.unwrap();
            won.send(leadership.clone()).unwrap();
            leadership.lost().await;
        });
    }
    let leadership = within(wins.recv()).await.unwrap();
    assert_eq!(leadership.token(), 1);
    // Until the store knows all hundred candidates.
    let election = members[0].election("e");
    within(async {
        while election.view().await.unwrap().candidates.len() < 100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(leadership.is_current());
    assert!(wins.try_recv().is_err(), "one leader");
    for member in &members {
        let status = member.status();
        assert_eq!((status.failures, status.last_error), (0, None), "no error");
        let holder = within(member.election("e").leader()).await.unwrap().unwrap();
        assert_eq!(holder.member, leadership.term().member, "all agree");
    }
}
