//! What is answered is durable: on this server's disk, and on the standbys it waits for.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::server::Server;
use common::words::*;
use common::{Place, admin, connect, until};
use tenure_core::{Amend, Beat, Note};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Error, Store};
use tokio_postgres::Client;

/// A server that waits for a standby that never comes, with a store that was opened
/// before it did, and one that watches.
struct Waiting {
    server: Server,
    store: PostgresStore,
    admin: Client,
}

impl Waiting {
    /// `role` is how the role of the store is set.
    async fn start(role: &str) -> Self {
        let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
        let admin = connect(&server.url()).await;
        admin.batch_execute("CREATE ROLE app LOGIN SUPERUSER").await.unwrap();
        if !role.is_empty() {
            admin.batch_execute(&format!("ALTER ROLE app SET {role}")).await.unwrap();
        }
        let its_url = server.url().replace("postgres@", "app@");
        // Nothing here is to be given up for want of time.
        let options = PostgresOptions::from_url(&its_url).unwrap();
        let options = options.request_timeout(Duration::from_secs(600));
        let store = PostgresStore::open(options).await.unwrap();
        Self { server, store, admin }
    }

    /// From here on every commit waits, and no standby acknowledges it.
    ///
    /// The setting is no proof: commits wait from when the server's checkpointer has read
    /// it, which may be after every session has. So a commit of another role is sent until
    /// one waits.
    async fn lose_the_standby(&self) {
        let set = "ALTER SYSTEM SET synchronous_standby_names = 'absent'";
        self.admin.batch_execute(set).await.unwrap();
        self.admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        let probe = connect(&self.server.url()).await;
        let commits = async {
            while probe.batch_execute("SELECT pg_logical_emit_message(true, '', '')").await.is_ok()
            {
            }
        };
        let waits = until("a commit waits for a standby", || async {
            let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                         WHERE wait_event = 'SyncRep' AND usename <> 'app'";
            self.admin.query_one(ended, &[]).await.unwrap().get::<_, i64>(0) > 0
        });
        tokio::join!(commits, waits);
    }

    /// Waits until the request waits for the standby, and cancels that wait.
    async fn cancelled<T: std::fmt::Debug>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) {
        let cancel = async {
            until(what, || async {
                let waits = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                             WHERE wait_event = 'SyncRep' AND usename = 'app'";
                self.admin.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0
            })
            .await;
        };
        let (answer, ()) = tokio::join!(request, cancel);
        let error = answer.expect_err(what);
        assert!(error.may_have_applied(), "{what}: {error}");
        assert!(error.to_string().contains("standby"), "{what}: {error}");
    }
}

/// P11: a wait for a standby that is cancelled is no success. The server answers as if
/// it were, and warns; a failover would forget the term.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_wait_for_a_standby_wins_nothing() {
    let waiting = Waiting::start("").await;
    let store = &waiting.store;
    let other = member("b", 2);
    let term = leader(store, "a", 1, "first").await;
    let me = &term.member;
    for _ in 0..2 {
        let alive = store.heartbeat(&ns(), &beat(me)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    }
    waiting.lose_the_standby().await;
    waiting.cancelled("a claim", store.claim(&ns(), &claim(me, "e", 1))).await;
    waiting.cancelled("a join", store.join(&ns(), &join(&other))).await;
    waiting.cancelled("a heartbeat", store.heartbeat(&ns(), &beat(me))).await;
    let reason = Note::default();
    let by = Note::default();
    let pause = Amend::Pause { election: election("e"), reason, by };
    let evict = Amend::Evict { member: other.id.clone(), now: false, by: Note::default() };
    // What is repeated changes nothing and waits again: it is answered once the standby
    // has what the first attempt wrote.
    for time in ["first", "second"] {
        let what = |what: &str| format!("{what}, the {time} time");
        waiting.cancelled(&what("pausing"), store.amend(&ns(), &pause)).await;
        waiting.cancelled(&what("evicting"), store.amend(&ns(), &evict)).await;
        waiting.cancelled(&what("a release"), store.release(&ns(), &release(&term))).await;
        waiting.cancelled(&what("leaving"), store.leave(&ns(), &other)).await;
        waiting.cancelled(&what("a claim"), store.claim(&ns(), &claim(me, "e", 1))).await;
    }
    waiting.admin.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").await.unwrap();
    waiting.admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let won = won(store.claim(&ns(), &claim(me, "e", 1)).await.unwrap());
    assert_eq!(won.number.get(), 1);
}

/// P11: however a role is set, what it claims waits for the standbys, and a warning is
/// heard.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_set_to_wait_for_less_waits_all_the_same() {
    for role in [
        "synchronous_commit = off",
        "synchronous_commit = local",
        "synchronous_commit = remote_write",
        "synchronous_commit = remote_apply",
        "client_min_messages = error",
    ] {
        let waiting = Waiting::start(role).await;
        let me = joined(&waiting.store, "a", 1).await;
        for _ in 0..2 {
            waiting.store.heartbeat(&ns(), &beat(&me)).await.unwrap();
        }
        // What is told of a claim by a client of another language, in the same words.
        let sql = connect(&waiting.server.url().replace("postgres@", "app@")).await;
        let fresh = "SELECT outcome FROM tenure.claim('default', 'a', \
                     '00000000-0000-0000-0000-000000000001', 60000000, '{f}', '{100}', '{1}'); \
                     SELECT current_setting('synchronous_commit'), \
                     current_setting('client_min_messages')";
        let inside = sql.simple_query(&format!("BEGIN; {fresh}; COMMIT")).await.unwrap();
        let rows: Vec<_> = inside
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            })
            .collect();
        let committed = rows[1].get(0).unwrap();
        assert!(["on", "remote_apply"].contains(&committed), "{role}: {committed}");
        assert_eq!(committed == "remote_apply", role.ends_with("remote_apply"), "{role}");
        assert_ne!(rows[1].get(1), Some("error"), "{role}");

        waiting.lose_the_standby().await;
        waiting.cancelled(role, waiting.store.claim(&ns(), &claim(&me, "e", 1))).await;
        waiting.cancelled(role, waiting.store.heartbeat(&ns(), &beat(&me))).await;
    }
}

/// H18: whatever a session says, what changes terms is committed synchronously.
/// And a release that names fewer numbers than elections ends those candidacies.
#[tokio::test]
async fn every_role_commits_durably_and_may_leave_numbers_out() {
    let place = Place::new();
    let client = admin().await;
    let _store = place.open().await;
    let s = &place.schema;
    let life = "'00000000-0000-0000-0000-000000000001'";
    let me = format!("'default', 'm', {life}");
    let calls = [
        format!("{s}.join({me}, 60000000)"),
        format!("{s}.claim({me}, 60000000, ARRAY['e', 'f'], ARRAY[1, 0], ARRAY[1, 1])"),
        format!("{s}.heartbeat({me}, 60000000)"),
        format!("{s}.release({me}, ARRAY['e', 'f'], ARRAY[1])"),
        format!("{s}.pause('default', 'e')"),
    ];
    for call in calls {
        let text = format!("BEGIN; SET LOCAL synchronous_commit = off; SELECT {call}");
        client.batch_execute(&text).await.unwrap();
        let row = client.query_one("SELECT current_setting('synchronous_commit')", &[]).await;
        assert_eq!(row.unwrap().get::<_, String>(0), "on", "{call}");
        client.batch_execute("COMMIT").await.unwrap();
    }
    let stand = client.query(&format!("SELECT FROM {s}.candidates"), &[]).await.unwrap();
    assert!(stand.is_empty());
}
