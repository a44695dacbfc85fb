//! PostgreSQL's functions against the specification, by random histories.
//!
//! What a store does is written twice for PostgreSQL: as the rules that
//! `tenure_store::MemoryState` goes by, and as SQL. Both are asked the same, step by step:
//! members join, beat, bid, hand over, bind names and leave, operators interfere, time
//! passes, a store turns out to have forgotten something. Answers, views and journal have to be the same
//! after each step, but for what `compare.rs` lists.
//!
//! A history that fails is made shorter and printed with the command that runs it again.
//! `TENURE_HISTORIES=20000` runs more of them, `TENURE_HISTORY=<seed>` a single one. With
//! `TENURE_HISTORIES_AT=<url>` they run on a server that is there, and the first that fails
//! ends the test as it is: `cargo xtask mutants` asks only whether one does.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod broken;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod names;
mod place;
mod steps;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tenure_postgres::{PostgresOptions, PostgresStore};
use tokio::task::JoinSet;

use common::checks::Spot;
use common::server::Server;
use place::Place;
use steps::Step;
use world::World;

/// How many histories run unless something else is asked for.
const HISTORIES: u64 = 1_000;
/// How many run at once, each in a schema of its own.
const WORKERS: u64 = 3;
/// How often a history that fails is run to make it shorter.
const ATTEMPTS: u32 = 400;

/// How many failed histories end the test, each made shorter.
const ENOUGH: usize = 4;

/// Runs are counted, so that each has namespaces of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);
/// Places are counted, so that each has a schema of its own.
static PLACES: AtomicU64 = AtomicU64::new(0);

/// Where two sides differ.
struct Difference {
    /// After how many steps.
    after: usize,
    how: String,
}

async fn run(place: &Place, seed: u64, steps: &[Step]) -> Result<(), Difference> {
    let store = place.store(seed);
    let mut world = World::new(place, store, RUNS.fetch_add(1, Ordering::Relaxed)).await;
    for (number, step) in steps.iter().enumerate() {
        let after = number + 1;
        world.step(step).await.map_err(|how| Difference { after, how })?;
    }
    world.compare_all().await.map_err(|how| Difference { after: steps.len(), how })
}

/// A history that still fails, with as many steps left out as can be.
async fn shortened(
    place: &Place,
    seed: u64,
    mut steps: Vec<Step>,
    found: Difference,
) -> (Vec<Step>, Difference) {
    let mut found = found;
    let mut attempts = 0;
    let mut chunk = steps.len() / 2;
    steps.truncate(found.after);
    while chunk > 0 {
        let mut from = 0;
        while from < steps.len() && attempts < ATTEMPTS {
            attempts += 1;
            let upto = (from + chunk).min(steps.len());
            let fewer: Vec<_> = steps[..from].iter().chain(&steps[upto..]).cloned().collect();
            match run(place, seed, &fewer).await {
                Ok(()) => from += chunk,
                Err(difference) => {
                    steps = fewer;
                    steps.truncate(difference.after);
                    found = difference;
                }
            }
        }
        chunk /= 2;
    }
    (steps, found)
}

/// Where histories run.
struct Site {
    url: String,
    /// A server of their own, and then time to make a history shorter that fails.
    own: Option<Server>,
}

impl Site {
    fn find() -> Self {
        if let Ok(url) = std::env::var("TENURE_HISTORIES_AT") {
            return Self { url, own: None };
        }
        // What is written need not survive the test: nothing waits for the disk.
        let server = Server::start_with(|_| {}, &["fsync=off", "autovacuum=off"]);
        Self { url: server.url(), own: Some(server) }
    }

    /// How many failed histories end the test.
    fn enough(&self) -> usize {
        if self.own.is_some() { ENOUGH } else { 1 }
    }

    async fn place(&self) -> Place {
        // On a server that is there, another process may have made the tables by other text.
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let schema = format!("t{}_{number}", std::process::id());
        let options = PostgresOptions::from_url(&self.url).unwrap().schema(&schema);
        let owner = PostgresStore::open(options).await.unwrap();
        let admin = common::connect(&self.url).await;
        admin.batch_execute(&common::LET_IN.replace("{s}", &schema)).await.unwrap();
        let url = self.url.replace("postgres@", "tenure_guest@");
        let options = PostgresOptions::from_url(&url).unwrap().schema(&schema).migrate(false);
        let guest = PostgresStore::open(options).await.unwrap();
        let spot = Spot { schema, url: self.url.clone() };
        Place::new(owner, guest, admin, spot).await
    }

    /// What is broken may go on for ever: the server ends it.
    async fn end_what_hangs(&self) {
        let admin = common::connect(&self.url).await;
        let text = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = %L', \
                    current_database(), '20s'); END $$";
        admin.batch_execute(text).await.unwrap();
    }
}

/// Runs one history; what it found, if it failed.
async fn check(site: &Site, place: &Place, seed: u64) -> Option<String> {
    let mut steps = steps::history(seed);
    let mut difference = run(place, seed, &steps).await.err()?;
    if site.own.is_some() {
        (steps, difference) = shortened(place, seed, steps, difference).await;
    }
    let steps: Vec<_> = steps.iter().map(|step| format!("  {step:?}\n")).collect();
    Some(format!(
        "history {seed} differs; run it again by\n  TENURE_HISTORY={seed} cargo xtask test -p \
         tenure-postgres random_histories\nafter\n{}{}\n",
        steps.concat(),
        difference.how
    ))
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// The SQL twin of the rules does what they do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_histories_go_by_the_rules() {
    let site = Arc::new(Site::find());
    let seeds = match setting("TENURE_HISTORY") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + setting("TENURE_HISTORIES").unwrap_or(HISTORIES),
    };
    let seeds = Arc::new(Mutex::new(seeds));
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let site = Arc::clone(&site);
        let seeds = Arc::clone(&seeds);
        let found = Arc::clone(&found);
        workers.spawn(async move {
            let place = site.place().await;
            while found.lock().unwrap().len() < site.enough() {
                let Some(seed) = seeds.lock().unwrap().next() else { break };
                let failed = check(&site, &place, seed).await;
                found.lock().unwrap().extend(failed);
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    let found = found.lock().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
