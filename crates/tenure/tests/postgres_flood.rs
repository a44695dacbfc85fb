//! A candidate on PostgreSQL under a flood of notifications that strangers send.

#![cfg(feature = "postgres")]
#![allow(clippy::cast_precision_loss, clippy::print_stdout, clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{let_pass, secs, until, within};
use server::Server;
use tenure::measures::{Metric, Metrics, Verb};
use tenure::{Namespace, Tenure};
use tokio_postgres::{Client, NoTls};

const TTL: Duration = Duration::from_secs(3);

/// Counts what a member asks the store for.
#[derive(Debug, Default)]
struct Counted {
    looks: AtomicU64,
    claims: AtomicU64,
}

impl Metrics for Counted {
    fn record(&self, _: &Namespace, metric: &Metric) {
        let Metric::Request { verb, .. } = metric else { return };
        match verb {
            Verb::Read => self.looks.fetch_add(1, Ordering::Relaxed),
            Verb::Claim => self.claims.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}

impl Counted {
    fn asked(&self) -> u64 {
        self.looks.load(Ordering::Relaxed) + self.claims.load(Ordering::Relaxed)
    }
}

/// Sends 8 kB notifications, one after the other, until it is told to stop: hints forged to
/// the worst effect on Tenure's channel, and others on a channel of a stranger's.
async fn flood(url: String, stop: Arc<AtomicBool>) -> u64 {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let text =
        "SELECT pg_notify('tenure', rpad(E'n\n' || g || E'\nv\te\tb\nh\te\tb', 7900, E'\ne\te')),
                       pg_notify('tenure', E'n\n' || g || E'\nv\te\tb'),
                       pg_notify('strangers', rpad(g::text, 7900, 'x'))
                FROM generate_series(1, 100) g";
    let statement = client.prepare(text).await.unwrap();
    let mut sent = 0;
    while !stop.load(Ordering::Acquire) {
        client.execute(&statement, &[]).await.unwrap();
        sent += 300;
    }
    sent
}

/// A leader that any process might be: it beats by itself, until it does so no more.
const LIFE: &str = "6c1f6b52-28a3-4d6e-9a57-0f3c7c1b8a11";

async fn leads(client: &Client) {
    let ttl = TTL.as_micros();
    let join = format!("SELECT outcome FROM tenure.join('n', 'a', '{LIFE}', {ttl})");
    client.query_one(&join, &[]).await.unwrap();
    let claim = format!(
        "SELECT number FROM tenure.claim('n', 'a', '{LIFE}', {ttl}, ARRAY['e'], ARRAY[9], ARRAY[1])"
    );
    let number: i64 = client.query_one(&claim, &[]).await.unwrap().get(0);
    assert_eq!(number, 1, "it leads");
}

async fn beats(client: &Client) {
    let ttl = TTL.as_micros();
    let beat = format!("SELECT outcome FROM tenure.heartbeat('n', 'a', '{LIFE}', {ttl})");
    let outcome: String = client.query_one(&beat, &[]).await.unwrap().get(0);
    assert_eq!(outcome, "alive");
}

/// P12: under a flood of forged and of foreign notifications, as many as the server takes,
/// a candidate makes a bounded number of looks and bids, and takes over from a leader that
/// vanished about as soon as without.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_notifications_neither_floods_the_store_nor_delays_a_take_over() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let counted = Arc::new(Counted::default());
    let metrics: Arc<Counted> = Arc::clone(&counted);
    let b = Tenure::builder(server.url()).namespace("n").id("b").ttl(TTL).metrics(metrics);
    let b = within(b.connect()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    leads(&client).await;
    let standing = b.election("e");
    let waiting = tokio::spawn(async move { standing.campaign().await });
    until("two candidates", || async {
        b.election("e").view().await.unwrap().candidates.len() >= 2
    })
    .await;

    let stop = Arc::new(AtomicBool::new(false));
    let flooding = tokio::spawn(flood(server.url(), Arc::clone(&stop)));
    let before = counted.asked();
    let from = Instant::now();
    while from.elapsed() < TTL * 2 {
        beats(&client).await;
        let_pass(TTL / 6, "the pace of heartbeats").await;
    }
    let more = counted.asked() - before;
    // A ttl has 32 intervals; one row of them for looks, one for bids, and one for what
    // names this member, each with a few at first.
    let ttls = from.elapsed().as_millis() / TTL.as_millis() + 1;
    let most = 3 * (8 + 32 * u64::try_from(ttls).unwrap());
    assert!(more <= most, "{more} looks and bids in {ttls} ttls, of at most {most}");

    // It vanishes without a word, as a process that is killed.
    beats(&client).await;
    let gone = Instant::now();
    let next = within(waiting).await.unwrap().unwrap();
    let took = gone.elapsed();
    assert!(next.is_current());
    stop.store(true, Ordering::Release);
    let sent = within(flooding).await.unwrap();
    let each = Duration::from_secs_f64(from.elapsed().as_secs_f64() / (sent as f64));
    println!("{sent} notifications, one in {each:?}; {more} looks and bids; {took:?}");
    assert!(took <= TTL + secs(1), "taken over after {took:?} under {sent} notifications");
}
