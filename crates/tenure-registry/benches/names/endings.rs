//! The end of a life that owned very many names.

use std::time::Instant;

use tenure::Namespace;
use tenure_store::Store;
use tokio_postgres::Client;

use crate::report::Report;
use crate::server::{Server, connect};
use crate::words::{self, micros};
use crate::{Outcome, load};

const ROUNDS: usize = 3;

/// The end of one that owned 200,000 names, and of one that owned a single one, in turns.
pub(crate) async fn run(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\nthe end of a life, on disk");
    let store = words::open(&disk.url("tenure")).await?;
    let admin = connect(&disk.url("tenure")).await?;
    let ns = Namespace::new(format!("endings-{run}"))?;
    let mut times = [const { Vec::new() }; 2];
    let mut logs = [const { Vec::new() }; 2];
    for round in 0..ROUNDS {
        for (kind, count) in [1, load::MANY].into_iter().enumerate() {
            let dead = words::join(&store, &ns, &format!("dead-{round}-{count}")).await?;
            load::fill(&store, &ns, &dead, &format!("{round}-{count}-"), count).await?;
            // After one, the first change of a page writes the whole page.
            admin.batch_execute("CHECKPOINT").await?;
            let before = place(&admin).await?;
            let from = Instant::now();
            store.leave(&ns, &dead).await?;
            times[kind].push(micros(from));
            logs[kind].push(place(&admin).await? - before);
        }
    }
    let [one, many] = &mut times;
    let one = report.spread("of one that owned a single name", one, "µs");
    let many = report.spread("of one that owned 200,000", many, "µs");
    report.at_most("end of an owner of 200,000 / of one", many / one, 3.0, "x");
    let [one, many] = &mut logs;
    let one = report.spread("WAL, of one that owned a single name", one, "B");
    let many = report.spread("WAL, of one that owned 200,000", many, "B");
    report.at_most("the same in bytes of WAL", many / one, 3.0, "x");
    Ok(())
}

async fn place(admin: &Client) -> Outcome<f64> {
    let asked = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8";
    Ok(admin.query_one(asked, &[]).await?.get(0))
}
