//! A queue that one process consumes, by callbacks: a task is started when this process is
//! elected, finishes its message when it is asked to stop, and is aborted if the leadership
//! is lost. The queue is a table beside the elections, so that each message is taken off it
//! under the fence: a deposed leader takes none.
//!
//! ```sh
//! cargo run --example queue_consumer -- /tmp/queue.db     # in two terminals; stop one
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tenure::store::sqlite_url;
use tenure::{Leadership, Tenure, WorkError};
use tokio::task::JoinHandle;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let default = std::env::temp_dir().join("tenure-queue.db").display().to_string();
    let file = std::env::args().nth(1).unwrap_or(default);
    // The application's own tables in the file of the elections: that has to be asked for.
    let tenure = Tenure::connect(format!("{}?share_file=true", sqlite_url(file.as_ref()))).await?;
    let queue = Connection::open(&file)?;
    queue.execute_batch(
        "CREATE TABLE IF NOT EXISTS queue (id INTEGER PRIMARY KEY, message TEXT NOT NULL);
         INSERT INTO queue (message) VALUES ('first'), ('second'), ('third');",
    )?;

    let started: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
    let stopped = Arc::clone(&started);
    let aborted = Arc::clone(&started);
    let callbacks = tenure
        .election("queue-consumer")
        .on_elected(move |leadership| {
            println!("consumes under token {}", leadership.token());
            *started.lock().unwrap() = Some(tokio::spawn(consume(leadership, file.clone())));
            async {}
        })
        .on_stopping(move |_, why| {
            println!("asked to stop ({why})");
            let task = stopped.lock().unwrap().take();
            async move { drop(task.unwrap().await) } // the message in hand is finished
        })
        .on_lost(move |term, why| {
            println!("consumes no more: term {} ({why})", term.number);
            if let Some(task) = aborted.lock().unwrap().take() {
                task.abort();
            }
        });
    let standing = tokio::spawn(callbacks.stand());
    tokio::signal::ctrl_c().await?;
    tenure.shutdown().await?;
    Ok(standing.await??)
}

async fn consume(leadership: Leadership, file: String) {
    while !leadership.is_stopping() {
        match take(&leadership, &file) {
            Ok(Some(message)) => println!("{message} under token {}", leadership.token()),
            Ok(None) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => return println!("not taken: {error}"),
        }
    }
}

fn take(leadership: &Leadership, file: &str) -> Result<Option<String>, WorkError> {
    let mut queue = Connection::open(file)?;
    let tx = queue.transaction_with_behavior(TransactionBehavior::Immediate)?;
    leadership.fence_blocking(&tx)?; // no newer term, until commit
    let oldest = "DELETE FROM queue WHERE id = (SELECT min(id) FROM queue) RETURNING message";
    let message = tx.prepare(oldest)?.query_map([], |row| row.get(0))?.next().transpose()?;
    tx.commit()?;
    Ok(message)
}
