//! What Tenure costs on PostgreSQL, beside what its peers do on the same server
//! in the same run: slices of each contender in turn, medians and spread, each
//! line a ratio.
//!
//! The peers' statements are written afresh from their documented protocols: a
//! lease row for each election, renewed by name (River), and the plpgsql recipe
//! `leader_heartbeat`.

#![allow(missing_docs, clippy::print_stdout)]

use std::time::{Duration, Instant};

use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, Heartbeat, Incarnation, Join, MemberId, MemberRef,
    Namespace, Nonce, Priority, Profile, Release, ReleaseCause, ReleaseItem,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Followed, From, Store};
use tokio_postgres::{AsyncMessage, Client, NoTls};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const TTL: Duration = Duration::from_secs(600);
const SLICES: usize = 20;
const SLICE: usize = 50;
const MANY: usize = 10_000;

/// The peers' tables and functions, durable and not.
const PEERS: &str = "
    DROP SCHEMA IF EXISTS tenure_bench_peers CASCADE;
    CREATE SCHEMA tenure_bench_peers;
    SET search_path = tenure_bench_peers;
    CREATE TABLE floor (id bigint PRIMARY KEY, at timestamptz, note text) WITH (fillfactor = 50);
    INSERT INTO floor VALUES (1, now(), 'x');
    CREATE TABLE river (name text PRIMARY KEY, leader_id text, elected_at timestamptz,
        expires_at timestamptz);
    CREATE UNLOGGED TABLE river_unlogged (LIKE river INCLUDING ALL);
    INSERT INTO river VALUES ('default', 'me', now(), now() + interval '1 hour');
    INSERT INTO river_unlogged SELECT * FROM river;
    CREATE TABLE recipe (name text PRIMARY KEY, leader text, term bigint, heartbeat timestamptz);
    INSERT INTO recipe VALUES ('default', 'me', 1, now());
    CREATE FUNCTION leader_heartbeat(n text, me text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE tenure_bench_peers.recipe SET heartbeat = clock_timestamp()
            WHERE name = n AND leader = me;
        RETURN FOUND;
    END $$;
    RESET search_path;
";

#[tokio::main]
async fn main() -> Outcome {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .map_err(|_| "start a server by `cargo xtask serve postgres` and export its URL")?;
    let schema = format!("tenure_bench_{}", std::process::id());
    let options = PostgresOptions::from_url(&url)?.schema(&schema);
    let options = options.request_timeout(Duration::from_secs(30));
    let store = PostgresStore::open(options).await?;
    let client = connect(&url).await?;
    client.batch_execute(PEERS).await?;
    settings(&client).await?;
    println!("{:<58} {:>9} {:>9} {:>9}  ratio", "µs", "p25", "p50", "p75");
    let me = join(&store, "bench", 1).await?;
    heartbeats(&store, &client, &me).await?;
    traffic(&store, &client, &me).await?;
    claims(&store, &me).await?;
    many(&store, &me).await?;
    hand_over(&store, &url).await?;
    let drop = format!("DROP SCHEMA {schema} CASCADE; DROP SCHEMA tenure_bench_peers CASCADE");
    client.batch_execute(&drop).await?;
    Ok(())
}

async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn settings(client: &Client) -> Outcome {
    let names = ["server_version", "fsync", "synchronous_commit", "wal_sync_method"];
    for name in names {
        let row = client.query_one(&format!("SHOW {name}"), &[]).await?;
        println!("{name} = {}", row.get::<_, String>(0));
    }
    Ok(())
}

async fn join(store: &PostgresStore, id: &str, life: u128) -> Outcome<MemberRef> {
    let member = MemberRef::new(MemberId::new(id)?, Incarnation::from_u128(life));
    let (profile, supersede) = (Profile::default(), true);
    let join = Join { member: member.clone(), ttl: TTL, profile, supersede };
    store.join(&Namespace::default(), &join).await?;
    Ok(member)
}

/// The spread of one contender's times.
struct Line {
    name: &'static str,
    micros: Vec<f64>,
}

impl Line {
    fn new(name: &'static str) -> Self {
        Self { name, micros: Vec::new() }
    }

    fn took(&mut self, from: Instant) {
        self.micros.push(from.elapsed().as_secs_f64() * 1e6);
    }

    fn part(&mut self, part: f64) -> f64 {
        self.micros.sort_by(f64::total_cmp);
        let last = self.micros.len().saturating_sub(1);
        self.micros.get((last as f64 * part) as usize).copied().unwrap_or(f64::NAN)
    }

    /// Prints the line, with its median as a ratio to another's.
    fn print(&mut self, to: f64) -> f64 {
        let (low, mid, high) = (self.part(0.25), self.part(0.5), self.part(0.75));
        println!("{:<58} {low:>9.1} {mid:>9.1} {high:>9.1}  {:.2}", self.name, mid / to);
        mid
    }
}

/// One heartbeat against one bare update, and against the peers' renewals.
async fn heartbeats(store: &PostgresStore, client: &Client, me: &MemberRef) -> Outcome {
    let ns = Namespace::default();
    let beat = Heartbeat { member: me.clone(), ttl: TTL, held: vec![] };
    let statements = [
        (
            "bare prepared update of one row by its key",
            "UPDATE tenure_bench_peers.floor SET at = clock_timestamp() WHERE id = 1",
        ),
        (
            "the recipe's leader_heartbeat()",
            "SELECT tenure_bench_peers.leader_heartbeat('default', 'me')",
        ),
        (
            "River's renewal, unlogged as it is (a crash empties it)",
            "UPDATE tenure_bench_peers.river_unlogged SET expires_at = now() + interval '15 s' WHERE name = 'default' AND leader_id = 'me' AND expires_at >= now() RETURNING *",
        ),
        (
            "River's renewal on a durable table",
            "UPDATE tenure_bench_peers.river SET expires_at = now() + interval '15 s' WHERE name = 'default' AND leader_id = 'me' AND expires_at >= now() RETURNING *",
        ),
    ];
    let mut prepared = Vec::new();
    for (name, text) in statements {
        prepared.push((Line::new(name), client.prepare(text).await?));
    }
    let mut ours = Line::new("a heartbeat of Tenure's, whatever the member holds");
    for _ in 0..SLICES {
        for (line, statement) in &mut prepared {
            for _ in 0..SLICE {
                let from = Instant::now();
                client.query(statement, &[]).await?;
                line.took(from);
            }
        }
        for _ in 0..SLICE {
            let from = Instant::now();
            store.heartbeat(&ns, &beat).await?;
            ours.took(from);
        }
    }
    let floor = prepared[0].0.part(0.5);
    for (line, _) in &mut prepared {
        line.print(floor);
    }
    ours.print(floor);
    Ok(())
}

/// How much log a heartbeat writes.
async fn traffic(store: &PostgresStore, client: &Client, me: &MemberRef) -> Outcome {
    let beat = Heartbeat { member: me.clone(), ttl: TTL, held: vec![] };
    let place = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let here = async || -> Outcome<f64> {
        let row = client.query_one(&format!("SELECT ({place})::float8"), &[]).await?;
        Ok(row.get(0))
    };
    // Right after a checkpoint pages are written whole; not in the long run.
    let from = here().await?;
    for _ in 0..2_000 {
        store.heartbeat(&Namespace::default(), &beat).await?;
    }
    println!("bytes of WAL for each heartbeat: {:.0}", (here().await? - from) / 2_000.0);
    Ok(())
}

fn bids(prefix: &str, range: std::ops::Range<usize>) -> Outcome<Vec<Bid>> {
    let bid = |i| -> Outcome<Bid> {
        let election = ElectionName::new(format!("{prefix}-{i}"))?;
        Ok(Bid { election, priority: Priority::default(), nonce: Nonce::new(i as u64 + 1) })
    };
    range.map(bid).collect()
}

async fn claim(store: &PostgresStore, me: &MemberRef, bids: Vec<Bid>) -> Outcome {
    let claim = Claim { member: me.clone(), ttl: TTL, bids, heir_grace: Duration::ZERO };
    match store.claim(&Namespace::default(), &claim).await? {
        Claims::Answered(all) if all.iter().all(|a| matches!(a, Claimed::Won(_))) => Ok(()),
        other => Err(format!("not won: {other:?}").into()),
    }
}

/// Claiming many at once against one by one.
async fn claims(store: &PostgresStore, me: &MemberRef) -> Outcome {
    let single = 500;
    let from = Instant::now();
    for i in 0..single {
        claim(store, me, bids("single", i..i + 1)?).await?;
    }
    let one = from.elapsed().as_secs_f64() / single as f64;
    let from = Instant::now();
    for start in (0..MANY).step_by(1_000) {
        claim(store, me, bids("batch", start..start + 1_000)?).await?;
    }
    let batched = from.elapsed().as_secs_f64() / MANY as f64;
    println!(
        "claiming {MANY} elections: {:.1} µs each in batches, {:.1} µs one by one: {:.0} times faster",
        batched * 1e6,
        one * 1e6,
        one / batched
    );
    Ok(())
}

/// A heartbeat of a member that holds ten thousand, against one that holds one.
async fn many(store: &PostgresStore, holder: &MemberRef) -> Outcome {
    let one = join(store, "one", 2).await?;
    claim(store, &one, bids("alone", 0..1)?).await?;
    let (mut first, mut second) =
        (Line::new("heartbeat, 1 election held"), Line::new("heartbeat, 10,000 elections held"));
    for _ in 0..SLICES {
        for (line, member) in [(&mut first, &one), (&mut second, holder)] {
            let beat = Heartbeat { member: member.clone(), ttl: TTL, held: vec![] };
            for _ in 0..SLICE {
                let from = Instant::now();
                store.heartbeat(&Namespace::default(), &beat).await?;
                line.took(from);
            }
        }
    }
    let base = first.part(0.5);
    first.print(base);
    second.print(base);
    Ok(())
}

/// From the release to the follower's win, against a bare NOTIFY round trip.
async fn hand_over(store: &PostgresStore, url: &str) -> Outcome {
    let notify = connect(url).await?;
    let (listening, mut arriving) = tokio_postgres::connect(url, NoTls).await?;
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| arriving.poll_message(cx)).await {
            if matches!(message, AsyncMessage::Notification(_)) && heard.send(()).is_err() {
                return;
            }
        }
    });
    listening.batch_execute("LISTEN bench").await?;
    let mut bare = Line::new("bare NOTIFY, until it is heard");
    for _ in 0..200 {
        let from = Instant::now();
        notify.batch_execute("NOTIFY bench").await?;
        hears.recv().await;
        bare.took(from);
    }
    let ns = Namespace::default();
    let members = [join(store, "left", 3).await?, join(store, "right", 4).await?];
    let mut following = store.follow(&ns, From::Hints).await?;
    let mut ours = Line::new("release, until the follower leads");
    let mut number = 0;
    for round in 0..200_u64 {
        let (holder, next) = (&members[round as usize % 2], &members[(round as usize + 1) % 2]);
        let election = ElectionName::new("hand-over")?;
        let bid = |nonce| Bid {
            election: election.clone(),
            priority: Priority::default(),
            nonce: Nonce::new(nonce),
        };
        if round == 0 {
            claim(store, holder, vec![bid(1)]).await?;
            number = 1;
        }
        while tokio::time::timeout(Duration::from_millis(5), following.next()).await.is_ok() {}
        let item = ReleaseItem {
            election: election.clone(),
            number: Some(tenure_core::TermNumber::new(number)),
            cause: ReleaseCause::Resigned,
            successor: None,
        };
        let release =
            Release { member: holder.clone(), items: vec![item], heir_grace: Duration::ZERO };
        let from = Instant::now();
        let heard = async {
            loop {
                if let Ok(Followed::Hint(tenure_core::Hint::Vacant { .. })) = following.next().await
                {
                    return;
                }
            }
        };
        let (released, ()) = tokio::join!(store.release(&ns, &release), heard);
        released?;
        claim(store, next, vec![bid(round + 2)]).await?;
        ours.took(from);
        number += 1;
    }
    let base = bare.part(0.5);
    bare.print(base);
    ours.print(base);
    Ok(())
}
