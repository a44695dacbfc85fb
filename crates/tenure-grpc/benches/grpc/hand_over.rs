//! Hand-overs on one file: how long they take, when the first call is answered after them, and
//! what a thousand calls a second notice of fifty.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure::store::BootClock;
use tenure::{Election, Leadership, Tenure};
use tenure_grpc::{LeaderChannel, Prewarm};
use tokio::task::JoinSet;

use crate::common::{Bars, median};
use crate::legrpc;
use crate::texts::{self, Client, Service};

/// A file, two members that serve, and a client that only follows.
struct Scene {
    _dir: tempfile::TempDir,
    members: [Tenure; 2],
    _servers: [texts::Running; 2],
    client: Client,
    service: Service,
}

async fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("t.db").display());
    let service = Service::default();
    let member = async |id: &str| {
        let listener = texts::listen("127.0.0.1").await;
        let endpoint = listener.local_addr().unwrap().to_string();
        let tenure = Tenure::builder(&url).id(id).endpoint(endpoint).connect().await.unwrap();
        let server = texts::serve(listener, tenure.election("texts"), service.clone());
        (tenure, server)
    };
    let (a, of_a) = member("a").await;
    let (b, of_b) = member("b").await;
    let operator = Tenure::operate(&url).await.unwrap();
    let channel = LeaderChannel::builder(operator.election("texts"));
    let client = Client::new(channel.prewarm(Prewarm::Heir).build().unwrap());
    Scene { _dir: dir, members: [a, b], _servers: [of_a, of_b], client, service }
}

fn now() -> f64 {
    BootClock::read().as_nanos() as f64 / 1e6
}

/// Stands in the background, and says when it was elected.
fn stands(election: Election) -> tokio::task::JoinHandle<(Leadership, f64)> {
    tokio::spawn(async move {
        let leadership = election.campaign().await.unwrap();
        let elected = now();
        (leadership, elected)
    })
}

async fn until_stands(tenure: &Tenure) {
    loop {
        let view = tenure.election("texts").view().await.unwrap();
        if view.candidates.iter().any(|candidate| candidate.member.id == *tenure.id()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) async fn run(bars: &mut Bars) {
    let Scene { members, client, _servers, _dir, .. } = scene().await;
    let mut leadership = members[0].election("texts").campaign().await.unwrap();
    let mut bare = Vec::new();
    let mut answered = Vec::new();
    for round in 1..=100_usize {
        let heir = &members[round % 2];
        let standing = stands(heir.election("texts"));
        until_stands(heir).await;
        client.clone().say("warm").await.unwrap();
        // The channel has looked, and is connected to the heir.
        tokio::time::sleep(Duration::from_millis(60)).await;
        // In turns: without a call under way, the hand-over alone; with, until the first answer.
        let from = now();
        let resigned = tokio::spawn(leadership.resign());
        if round % 2 == 0 {
            let (elected, at) = standing.await.unwrap();
            bare.push(at - from);
            leadership = elected;
        } else {
            let number = format!(" under {}", round + 1);
            loop {
                let answer = client.clone().say("x").await.unwrap();
                if answer.ends_with(&number) {
                    break;
                }
            }
            answered.push(now() - from);
            leadership = standing.await.unwrap().0;
        }
        resigned.await.unwrap().unwrap();
    }
    let (first, low, high) = median(&mut answered);
    println!("first answered call after a hand-over: {first:.2} ms ({low:.2} to {high:.2})");
    let (hand_over, low, high) = median(&mut bare);
    println!("the hand-over itself: {hand_over:.2} ms ({low:.2} to {high:.2})");
    let legrpc = legrpc::median_ms();
    println!("legrpc's poll at a term of 10 s looks after {legrpc:.0} ms");
    bars.at_most("first answered call / the hand-over itself", first / hand_over, 1.3, "x");
    bars.at_most("first answered call / legrpc's poll", first / legrpc, 0.01, "x");
}

/// A thousand calls a second over fifty hand-overs.
pub(crate) async fn load(bars: &mut Bars) {
    let Scene { members, client, service, _servers, _dir } = scene().await;
    let mut leadership = members[0].election("texts").campaign().await.unwrap();
    client.clone().say("first").await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let done = over.clone();
    let calls = tokio::spawn(async move {
        let mut running: JoinSet<bool> = JoinSet::new();
        let mut failed = 0;
        let mut sent = 0_u32;
        let mut every = tokio::time::interval(Duration::from_millis(1));
        while !done.load(Ordering::Acquire) {
            every.tick().await;
            let mut client = client.clone();
            let text = format!("r{sent}");
            running.spawn(async move { client.say(&text).await.is_err() });
            sent += 1;
            while let Some(answer) = running.try_join_next() {
                failed += u32::from(answer.unwrap());
            }
        }
        while let Some(answer) = running.join_next().await {
            failed += u32::from(answer.unwrap());
        }
        (sent, failed)
    });
    let began = Instant::now();
    for round in 1..=50_usize {
        let heir = &members[round % 2];
        let standing = stands(heir.election("texts"));
        until_stands(heir).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        leadership.resign().await.unwrap();
        leadership = standing.await.unwrap().0;
    }
    over.store(true, Ordering::Release);
    let took = began.elapsed().as_secs_f64();
    let (sent, failed) = calls.await.unwrap();
    println!(
        "{sent} calls in {took:.1} s, {:.0} a second, over 50 hand-overs",
        f64::from(sent) / took
    );
    let handled = service.handled.lock().unwrap();
    let mut times: HashMap<&str, u32> = HashMap::new();
    let mut newest = 0;
    let mut older = 0_u32;
    for (text, token) in handled.iter() {
        *times.entry(text).or_default() += 1;
        older += u32::from(*token < newest);
        newest = newest.max(*token);
    }
    let twice = times.values().filter(|times| **times > 1).count();
    bars.at_most("calls that failed", f64::from(failed), 0.0, "");
    bars.at_most("calls handled twice", twice as f64, 0.0, "");
    bars.at_most("handled under an older term after a newer", f64::from(older), 0.0, "");
    drop(leadership);
}
