//! What the program says of a store that sends no notifications.

#![allow(clippy::unwrap_used)]

mod common;

use common::{World, stdout};
use tokio_postgres::NoTls;

/// Runs statements on the server, as any client might.
fn sql(url: &str, text: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(text).await.unwrap();
    });
}

/// P3: while the server's queue of notifications fills, status and doctor say that the
/// store is looked at instead, why, and what to do.
#[test]
fn status_and_doctor_say_that_no_notifications_are_sent() {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`");
    let schema = format!("cli_notifications_{}", std::process::id());
    let world = World::on(format!("{url}?schema={schema}"));
    let native = world.text(&["status"]);
    assert!(native.contains("notifications native"), "{native}");
    sql(
        &url,
        &format!(
            "CREATE OR REPLACE FUNCTION {schema}._queue_usage() RETURNS double precision \
             LANGUAGE sql AS 'SELECT 0.7::double precision'"
        ),
    );
    let status = world.text(&["status"]);
    let doctor = stdout(&world.ask(&["doctor"]));
    sql(&url, &format!("DROP SCHEMA {schema} CASCADE"));
    for said in [status, doctor] {
        for word in ["polled every", "half full", "idle in transaction"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

/// P3: with a queue that is full, for real, a command runs as ever, and status and doctor
/// say what is wrong.
#[test]
fn programs_go_on_and_say_so_while_the_queue_is_full() {
    let url = std::env::var("TENURE_TEST_POSTGRES_18_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`");
    let schema = format!("cli_queue_{}", std::process::id());
    let world = World::on(format!("{url}?schema={schema}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    };
    let listener = runtime.block_on(async {
        let listener = connect().await;
        listener.batch_execute("LISTEN cli_queue").await.unwrap();
        listener.batch_execute("BEGIN; SELECT 1").await.unwrap();
        let send = "SELECT pg_notify('cli_queue', repeat(md5(random()::text), 240))";
        let sender = connect().await;
        while sender.batch_execute(send).await.is_ok() {}
        listener
    });
    let ran = world.text(&["run", "-q", "-e", "x", "--", "echo", "ran"]);
    assert_eq!(ran, "ran\n");
    for said in [world.text(&["status"]), stdout(&world.ask(&["doctor"]))] {
        for word in ["polled every", "half full", "idle in transaction"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    drop(listener);
    runtime.shutdown_timeout(common::LIMIT);
    common::wait_for("notifications to come back", || {
        world.text(&["status"]).contains("notifications native").then_some(())
    });
    sql(&url, &format!("DROP SCHEMA {schema} CASCADE"));
}
