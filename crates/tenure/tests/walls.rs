//! Two real processes and a wall of time stamps (`CLOCK_BOOTTIME`, which both read):
//! the next leader begins after the work of the one before has ended.

#![allow(clippy::print_stdout, clippy::unwrap_used)]
#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod common;
#[path = "../examples/cron.rs"]
#[allow(dead_code)]
mod cron;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{secs, within};
use tenure::{Leadership, Tenure};
use tenure_store::BootClock;
use tenure_testkit::process::{Signal, hear, say};
use tenure_testkit::{Process, let_pass, let_pass_blocking, until};

const PART: &str = "TENURE_TEST_PART";
const URL: &str = "TENURE_TEST_URL";
const NAMESPACE: &str = "TENURE_TEST_NAMESPACE";
const ID: &str = "TENURE_TEST_ID";
/// How long the work takes to stop: far longer than a hand-over.
const DRAINS: Duration = Duration::from_millis(800);

fn stamp(words: &str) {
    say(&format!("{} {words}", BootClock::read().as_nanos()));
}

/// Not a test by itself: what a process of the tests below does.
#[test]
fn a_child_plays_its_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let member = Tenure::builder(std::env::var(URL).unwrap())
            .namespace(std::env::var(NAMESPACE).unwrap())
            .id(std::env::var(ID).unwrap());
        // A long drain for a machine with much else to do; none of it is used up.
        let member = match part.as_str() {
            "lost" | "next" => member.ttl(secs(6)).heartbeat(secs(1)).margin(secs(2)),
            _ => member.ttl(secs(10)).drain(secs(60)).cooldown(Duration::from_millis(50)),
        };
        play(&part, member.connect().await.unwrap()).await;
    });
    // Its input ends with the test.
    std::process::exit(0);
}

async fn play(part: &str, tenure: Tenure) {
    let election = tenure.election("e");
    match part {
        "slow" => {
            let callbacks =
                election.on_elected(begins).on_stopping(|leadership, _| ends(leadership));
            let _ = callbacks.stand().await;
        }
        "panics while stopping" => {
            let callbacks =
                election.on_elected(starts).on_stopping(|_, _| async { panic!("while stopping") });
            let _ = callbacks.stand().await;
        }
        "panics when elected" => {
            let callbacks = election.on_elected(|leadership| async {
                starts(leadership).await;
                order().await;
                panic!("when elected")
            });
            let _ = callbacks.stand().await;
        }
        "cancels" => {
            let standing = tokio::spawn(election.on_elected(starts).stand());
            order().await;
            standing.abort();
        }
        "job" | "subscriber" => {
            let holds = election.clone();
            tokio::spawn(async move {
                let held = holds.lead(|leadership| async move {
                    leadership.stopping().await;
                    Ok::<_, Infallible>(())
                });
                held.await
            });
            let mut leaderships = election.subscribe_holding().unwrap();
            let leadership = leaderships.next().await.unwrap();
            if part == "subscriber" {
                starts(leadership).await;
            } else {
                drop(leadership);
                let job = election.run_if_leader(|leadership| async move {
                    begins(leadership.clone()).await;
                    leadership.stopping().await;
                    ends(leadership).await;
                });
                job.await.unwrap();
            }
        }
        "lost" => play_lost(&tenure).await,
        "cron" => {
            let job = |leadership: Leadership| async move {
                begins(leadership.clone()).await;
                let_pass(DRAINS / 4, "the work").await;
                stamp(&format!("ends {}", leadership.is_current()));
            };
            cron::cron(&tenure, Duration::from_millis(10), u64::MAX, job).await.unwrap();
            stamp("gone");
        }
        _ => {
            let leadership = election.campaign().await.unwrap();
            begins(leadership.clone()).await;
            leadership.lost().await;
        }
    }
    std::future::pending().await
}

/// Says when it is told that the term is lost, and until when it was trusted.
async fn play_lost(tenure: &Tenure) {
    let until = Arc::new(AtomicU64::new(0));
    let seen = until.clone();
    let callbacks = tenure
        .election("e")
        .on_elected(move |leadership| {
            let seen = seen.clone();
            std::thread::spawn(move || {
                while leadership.trusted_until().as_nanos() > 0 {
                    seen.fetch_max(leadership.trusted_until().as_nanos(), Ordering::SeqCst);
                    let_pass_blocking(Duration::from_millis(1), "the pace of looks at the trust");
                }
            });
            stamp("begins 1");
            // One that never returns is cancelled.
            std::future::pending()
        })
        .on_lost(move |_, why| {
            stamp(&format!("lost {why:?} {}", until.load(Ordering::SeqCst)));
        });
    let _ = callbacks.stand().await;
}

/// Waits for a word of the test; the process ends with the test.
async fn order() {
    tokio::task::spawn_blocking(hear).await.unwrap();
}

async fn begins(leadership: Leadership) {
    stamp(&format!("begins {}", leadership.token()));
}

/// Takes its time to stop, and says whether it led to the end.
async fn ends(leadership: Leadership) {
    let_pass(DRAINS, "the end of the work").await;
    stamp(&format!("ends {}", leadership.is_current()));
}

/// Starts work that stops when its leadership says so.
async fn starts(leadership: Leadership) {
    begins(leadership.clone()).await;
    tokio::spawn(async move {
        leadership.stopping().await;
        ends(leadership).await;
    });
}

/// A process that plays a part.
struct Player(Process);

impl Player {
    fn start(id: &str, part: &str, url: &str, namespace: &str) -> Self {
        let mut command = Process::again("a_child_plays_its_part");
        command.env(PART, part).env(URL, url).env(NAMESPACE, namespace).env(ID, id);
        Self(Process::start(&mut command))
    }

    async fn hears(&mut self) -> (u64, String) {
        let said = self.0.says().await;
        let (at, words) = said.split_once(' ').unwrap();
        (at.parse().unwrap(), words.to_owned())
    }

    /// When it said this next.
    async fn says(&mut self, words: &str) -> u64 {
        let (at, said) = self.hears().await;
        assert_eq!(said, words);
        at
    }

    fn order(&mut self) {
        self.0.tell("go on");
    }

    fn signal(&self, signal: Signal) {
        self.0.signal(signal);
    }
}

/// Until the store knows of this candidate.
async fn stands(tenure: &Tenure, id: &str) {
    let election = tenure.election("e");
    until("the candidate", || async {
        election.view().await.unwrap().candidates.iter().any(|c| c.member.id.as_str() == id)
    })
    .await;
}

/// One process leads and plays its part until `ends`; the other stands, and must not
/// begin before the first has ended, nor be kept waiting for the drain.
async fn second_begins_after_first(part: &str, end: impl AsyncFnOnce(&Tenure, &mut Player)) {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let tenure = Tenure::builder(&url).namespace("n").id("test").connect().await.unwrap();
    let mut first = Player::start("a", part, &url, "n");
    first.says("begins 1").await;
    let mut second = Player::start("b", "plain", &url, "n");
    stands(&tenure, "b").await;
    let asked = BootClock::read().as_nanos();
    end(&tenure, &mut first).await;
    let ended = first.says("ends true").await;
    let began = second.says("begins 2").await;
    assert!(ended - asked >= u64::try_from(DRAINS.as_nanos()).unwrap(), "{part}: it drained");
    assert!(began > ended, "{part}: began {began}, {} ns before the end", ended - began);
}

async fn ask(tenure: &Tenure, _: &mut Player) {
    tenure.election("e").ask_to_step_down("the test").await.unwrap();
}

async fn order_it(_: &Tenure, first: &mut Player) {
    first.order();
}

/// L2: a stopping callback that takes its time.
#[tokio::test]
async fn the_next_leader_begins_after_a_slow_stopping_callback() {
    second_begins_after_first("slow", ask).await;
}

/// L2: callbacks that panic while what they started goes on.
#[tokio::test]
async fn the_next_leader_begins_after_the_work_of_a_callback_that_panicked() {
    second_begins_after_first("panics while stopping", ask).await;
    second_begins_after_first("panics when elected", order_it).await;
}

/// L2: callbacks that are cancelled while what they started goes on.
#[tokio::test]
async fn the_next_leader_begins_after_the_work_of_cancelled_callbacks() {
    second_begins_after_first("cancels", order_it).await;
}

/// L2: a job of `run_if_leader`, and a subscriber that asked for the term, beside a
/// holder that lets go at once.
#[tokio::test]
async fn the_next_leader_begins_after_jobs_and_subscribers() {
    second_begins_after_first("job", ask).await;
    second_begins_after_first("subscriber", ask).await;
}

/// L2: the example. Two processes tick every ten milliseconds while the leader is asked
/// to step down, and ended by a signal, in the middle of a job: each job runs to its
/// end, and none begins before the one before has ended.
#[tokio::test]
async fn the_jobs_of_the_cron_example_do_not_overlap_at_planned_stops() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let tenure = Tenure::builder(&url).namespace("n").id("test").connect().await.unwrap();
    let election = tenure.election("cron");
    let mut players =
        [Player::start("a", "cron", &url, "n"), Player::start("b", "cron", &url, "n")];
    let mut wall = Vec::new();
    let mut leads = None;
    for round in 0..6 {
        // The other one begins a job.
        let [a, b] = &mut players;
        let (player, at, said) = within(async {
            loop {
                let (player, (at, said)) = tokio::select! {
                    said = a.hears() => (0, said),
                    said = b.hears() => (1, said),
                };
                if leads != Some(player) && said.starts_with("begins") {
                    break (player, at, said);
                }
                wall.push((at, player, said));
            }
        })
        .await;
        wall.push((at, player, said));
        leads = Some(player);
        if round < 4 {
            within(election.ask_to_step_down("the test")).await.unwrap();
        } else {
            players[player].signal(Signal::TERM);
        }
    }
    let gone =
        |wall: &[(u64, usize, String)], n| wall.iter().any(|(_, p, s)| *p == n && s == "gone");
    for (number, player) in players.iter_mut().enumerate() {
        while !gone(&wall, number) {
            let (at, said) = player.hears().await;
            wall.push((at, number, said));
        }
    }
    wall.retain(|(_, _, said)| said != "gone");
    wall.sort();
    for pair in wall.chunks(2) {
        let [(_, begun, begins), (_, ended, ends)] = pair else { panic!("cut short: {wall:?}") };
        assert!(begins.starts_with("begins") && ends == "ends true", "{pair:?} in {wall:?}");
        assert_eq!(begun, ended, "{pair:?} in {wall:?}");
    }
}

/// L2, T3: cut off from the store, a leader whose callback never returns hears at the
/// end of its trust that the term is lost, in time for the next leader.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn lost_is_told_at_the_end_of_trust_to_a_process_that_is_cut_off() {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`");
    let namespace = format!("walls-{}-{:x}", std::process::id(), BootClock::read().as_nanos());
    let tenure = Tenure::builder(&url).namespace(&namespace).id("test").connect().await.unwrap();
    let (proxy, through) = tenure_testkit::Proxy::before(&url);
    let mut first = Player::start("a", "lost", &through, &namespace);
    first.says("begins 1").await;
    let mut second = Player::start("b", "next", &url, &namespace);
    stands(&tenure, "b").await;
    proxy.set_flow(tenure_testkit::proxy::Flow::Hold);
    let (lost, said) = first.hears().await;
    let until: u64 = said.strip_prefix("lost TrustEnded ").unwrap().parse().unwrap();
    let began = second.says("begins 2").await;
    let margin = secs(2).as_nanos() as u64;
    assert!(lost >= until, "told {} ns before the end of trust", until - lost);
    assert!(lost < until + margin, "told {} ns after the end of trust", lost - until);
    assert!(began > lost, "another process began {} ns before", lost - began);
}
