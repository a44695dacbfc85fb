//! What the tests of this crate share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod checks;
pub mod relay;
pub mod server;
pub mod sound;
pub mod tls;
pub mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tenure_conformance::Harness;
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{BootClock, Clock, SharedStore};
pub use tenure_testkit::until;
use tenure_testkit::{fresh_name, let_pass};
use tokio_postgres::{Client, NoTls};

/// Few enough that the case which overruns the journal is quick.
pub const KEPT: usize = 100;

/// Where the server is. `cargo xtask test` starts one.
pub fn url() -> String {
    std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`")
}

/// A role that may call the verbs and nothing else. Many tests make it at once.
pub const LET_IN: &str = "
    DO $$ BEGIN
        CREATE ROLE tenure_guest LOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$;
    SELECT {s}.grant_to('tenure_guest')";

/// A schema of its own on the shared server, gone when this is.
pub struct Place {
    pub schema: String,
    url: String,
    made: AtomicBool,
}

impl Place {
    pub fn new() -> Self {
        Self::on(url())
    }

    pub fn on(url: String) -> Self {
        Self { schema: fresh_name("t"), url, made: AtomicBool::new(false) }
    }

    pub fn options(&self) -> PostgresOptions {
        let url = format!("{}?application_name={}", self.url, self.schema);
        PostgresOptions::from_url(&url).unwrap().schema(&self.schema)
    }

    pub async fn open(&self) -> PostgresStore {
        self.open_with(self.options()).await
    }

    pub async fn open_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::open(options).await.expect("the store opens")
    }

    /// Ends every session of this place's stores.
    pub async fn terminate(&self) {
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE application_name = $1";
        let ended = connect(&self.url).await.execute(kill, &[&self.schema]).await.unwrap();
        assert!(ended > 0, "there were sessions to end");
    }

    pub async fn sql(&self, text: &str) {
        let client = connect(&self.url).await;
        client.batch_execute(&text.replace("{s}", &self.schema)).await.unwrap();
    }
}

/// Waits until some session of the server waits for a lock with such a query.
pub async fn waits_for_a_lock(client: &Client, query: &str) {
    let asked = "SELECT count(*) FROM pg_stat_activity \
                 WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'";
    until("a session waits for a lock", || async {
        client.query_one(asked, &[&query]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
}

/// The server as any other program sees it.
pub async fn admin() -> Client {
    connect(&url()).await
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

#[async_trait]
impl Harness for Place {
    async fn open(&self) -> SharedStore {
        let store = Place::open(self).await.shared();
        if !self.made.swap(true, Ordering::AcqRel) {
            self.sql(&format!("UPDATE {{s}}.settings SET journal_keep = {KEPT}")).await;
        }
        store
    }

    async fn pass(&self, time: Duration) {
        let_pass(time, "the store counts on a clock of its own").await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(BootClock)
    }

    fn unit(&self) -> Duration {
        Duration::from_millis(400)
    }

    fn journal_bound(&self) -> Option<usize> {
        Some(KEPT)
    }
}
