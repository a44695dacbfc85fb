//! Keeping many elections, claiming them, and standing idle: what the server is
//! asked to do, by its own count.

use std::time::{Duration, Instant};

use tenure::Namespace;
use tokio_postgres::Client;

use crate::actor::{Actor, Part};
use crate::report::Report;
use crate::server::{Server, backends_cpu, connect, statements};
use crate::{Outcome, words};

const MANY: usize = 10_000;
const BATCH: usize = 1_000;
const ALONE: usize = 500;
/// Heartbeats come every quarter of it.
const TTL: Duration = Duration::from_secs(4);
const INTERVALS: u32 = 12;
const HOLDERS: [(usize, &str); 3] = [(1, "holds_1"), (100, "holds_100"), (MANY, "holds_10000")];

/// Ten thousand in batches, and some one by one, in turns.
pub(crate) async fn claiming(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\nclaiming {MANY} elections on disk");
    let store = words::open(&disk.url("tenure")).await?;
    let ns = Namespace::new(format!("claims-{run}"))?;
    let me = words::join(&store, &ns, "me").await?;
    let mut batched = Vec::new();
    let mut single = Vec::new();
    for batch in 0..MANY / BATCH {
        let from = Instant::now();
        let names = (0..BATCH).map(|n| format!("batch-{batch}-{n}"));
        words::claim(&store, &ns, &me, names, 1).await?;
        batched.push(from.elapsed().as_secs_f64() * 1e6 / BATCH as f64);
        for n in 0..ALONE * BATCH / MANY {
            let from = Instant::now();
            let names = std::iter::once(format!("alone-{batch}-{n}"));
            words::claim(&store, &ns, &me, names, 1).await?;
            single.push(from.elapsed().as_secs_f64() * 1e6);
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let ratio = mean(&single) / mean(&batched);
    report.spread("one election, claimed alone", &mut single, "µs");
    report.spread("one election of a thousand claimed at once", &mut batched, "µs");
    report.at_least("claimed at once, times faster", ratio, 50.0, "x");
    Ok(())
}

struct Seen {
    statements: f64,
    cpu: f64,
}

async fn seen(admin: &Client, role: &str) -> Outcome<Seen> {
    let statements = statements(admin, role).await?;
    Ok(Seen { statements, cpu: backends_cpu(admin, role).await? })
}

/// Holders of 1, 100 and 10,000 elections, and idle followers, side by side.
pub(crate) async fn keeping(report: &mut Report, run: usize, memory: &Server) -> Outcome {
    println!("\nkeeping elections and standing by, ttl {TTL:?}, {INTERVALS} intervals");
    let admin = connect(&memory.url("tenure")).await?;
    let mut holders = Vec::new();
    for (count, role) in HOLDERS {
        let url = memory.url_as(role, "tenure");
        let mut holder = Actor::start(Part::Holder(count), &url, &format!("{role}-{run}"), TTL)?;
        holder.hear("holding")?;
        holders.push(holder);
    }
    let mut idle = Vec::new();
    for (part, role, database) in
        [(Part::Tenure, "idle_tenure", "tenure"), (Part::River, "idle_river", "peers")]
    {
        let place = format!("idle-{run}");
        let mut leader = Actor::start(part, &memory.url(database), &place, TTL)?;
        leader.hear("elected")?;
        let mut follower = Actor::start(part, &memory.url_as(role, database), &place, TTL)?;
        follower.hear("standing")?;
        idle.extend([leader, follower]);
    }
    settle(&admin).await?;
    let roles = HOLDERS.map(|(_, role)| role).into_iter().chain(["idle_tenure", "idle_river"]);
    let mut before = Vec::new();
    let mut after = Vec::new();
    // A quarter of an interval after a heartbeat of each: whole intervals are
    // counted, none cut in two.
    let interval = TTL / 4;
    for role in roles.clone() {
        if role.starts_with("holds") {
            let first = statements(&admin, role).await?;
            while statements(&admin, role).await? <= first {
                tokio::time::sleep(interval / 50).await;
            }
        }
        before.push((seen(&admin, role).await?, Instant::now()));
    }
    for (role, (_, from)) in roles.clone().zip(&before) {
        let until = *from + interval * INTERVALS + interval / 4;
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
        after.push((seen(&admin, role).await?, Instant::now()));
    }
    let done: Vec<Seen> = (before.iter().zip(&after))
        .map(|((b, _), (a, _))| Seen {
            statements: a.statements - b.statements,
            cpu: a.cpu - b.cpu,
        })
        .collect();
    let each = f64::from(INTERVALS);
    for ((count, _), done) in HOLDERS.iter().zip(&done) {
        let what = format!("statements per interval, holding {count}");
        report.at_most(&what, done.statements / each, 1.0, "");
        report.shown("  server's processor time per interval", done.cpu / each / 1e3, "µs");
    }
    let one = &done[0];
    let many = &done[2];
    report.at_most("server's processor time, 10,000 / 1", many.cpu / one.cpu, 1.5, "x");
    let peer = per_election(&admin, memory).await?;
    let fewer = peer / (many.statements / each);
    report.at_least("times fewer statements than the recipe for 10,000", fewer, 1_000.0, "x");
    let ttls = |at: usize| (after[at].1 - before[at].1).as_secs_f64() / TTL.as_secs_f64();
    report.at_most("idle follower: statements per ttl", done[3].statements / ttls(3), 2.5, "");
    report.shown("  the same by River's protocol", done[4].statements / ttls(4), "");
    drop(idle);
    holding(report, &admin, &mut holders).await
}

/// Waits until what came of the claims is over, such as a look at all that was
/// won: until a whole interval brings nothing but its heartbeat.
async fn settle(admin: &Client) -> Outcome {
    for _ in 0..20 {
        let before = statements(admin, "holds_10000").await?;
        tokio::time::sleep(TTL / 4).await;
        if statements(admin, "holds_10000").await? - before <= 1.0 {
            return Ok(());
        }
    }
    Err("a holder of 10,000 elections does not come to rest".into())
}

/// One interval of a peer that renews each election by itself.
async fn per_election(admin: &Client, memory: &Server) -> Outcome<f64> {
    let client = connect(&memory.url_as("holds_recipe", "peers")).await?;
    let make = "INSERT INTO recipe SELECT 'shard-' || n, 'me', 1, now() \
                FROM generate_series(1, $1::bigint) n ON CONFLICT (service) DO NOTHING";
    let count = i64::try_from(MANY)?;
    client.execute(make, &[&count]).await?;
    let renew = client.prepare("SELECT leader_heartbeat($1, 'me')").await?;
    let before = statements(admin, "holds_recipe").await?;
    for n in 1..=count {
        client.query_one(&renew, &[&format!("shard-{n}")]).await?;
    }
    Ok(statements(admin, "holds_recipe").await? - before)
}

/// Connections and memory of the holders, all of which must still hold.
async fn holding(report: &mut Report, admin: &Client, holders: &mut [Actor]) -> Outcome {
    let mut memory = Vec::new();
    let mut connections = Vec::new();
    for ((count, role), holder) in HOLDERS.iter().zip(holders) {
        holder.order("tell")?;
        memory.push(holder.hear("memory")? as f64);
        let current = holder.hear("current")?;
        if current != u64::try_from(*count)? {
            return Err(format!("{role} holds only {current}").into());
        }
        let asked = "SELECT count(*)::float8 FROM pg_stat_activity WHERE usename = $1";
        connections.push(admin.query_one(asked, &[role]).await?.get::<_, f64>(0));
    }
    let further = (MANY - 1) as f64;
    report.at_most(
        "connections for 9,999 further elections",
        connections[2] - connections[0],
        0.0,
        "",
    );
    let each = (memory[2] - memory[0]) / further / 1024.0;
    report.at_most("client memory for each further election", each, 2.0, "KiB");
    Ok(())
}
