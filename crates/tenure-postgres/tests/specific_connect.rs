//! How a server is found and a role shows who it is, as libpq has it: sockets, the
//! environment, password files, services, certificates. Against servers of the tests'
//! own.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::server::{Server, give_to_server};
use common::tls::sign;
use common::words::*;
use common::{connect, until};
use tenure_core::Query;
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Error, ErrorKind, Store};
use tenure_testkit::Authority;

/// Set for a process that a test starts: the URL it is to open.
const CHILD: &str = "TENURE_TEST_CONNECT_CHILD";

type Variables<'a> = &'a [(&'a str, &'a str)];

async fn open(url: &str, variables: Variables<'_>) -> Result<PostgresStore, Error> {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    let options = PostgresOptions::from_url_with(url, |name| {
        variables.get(name).map(|value| (*value).to_owned())
    })?;
    PostgresStore::open(options).await
}

/// Opens it and takes part.
async fn works(url: &str, variables: Variables<'_>) {
    let store = open(url, variables).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    store.read(&ns(), &Query::nothing()).await.unwrap();
}

async fn refused(url: &str, variables: Variables<'_>) -> String {
    let error = open(url, variables).await.expect_err(url);
    assert_eq!(error.kind(), ErrorKind::Denied, "{url}: {error}");
    assert!(!error.may_have_applied(), "{error}");
    error.to_string()
}

async fn start(prepare: impl FnOnce(&Path) + Send + 'static, settings: &'static [&str]) -> Server {
    let start = move || Server::start_with(prepare, settings);
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Who may come in how, first line first.
fn rules(data: &Path, lines: &str) {
    let rules = data.join("pg_hba.conf");
    std::fs::write(&rules, lines).unwrap();
    give_to_server(&rules);
}

/// A server with a role `app`, whose password is asked for on every connection but
/// those of `postgres`.
async fn with_password(password: &str) -> Server {
    let prepare = |data: &Path| {
        rules(
            data,
            "local all all trust\nhost all postgres all trust\nhost all all all scram-sha-256\n",
        );
    };
    let server = start(prepare, &["unix_socket_directories=."]).await;
    let admin = connect(&server.url()).await;
    let role = format!(
        "CREATE ROLE app LOGIN PASSWORD '{password}'; GRANT CREATE ON DATABASE postgres TO app"
    );
    admin.batch_execute(&role).await.unwrap();
    server
}

/// P9: a socket is found by a path in the URL or in PGHOST, and TLS is not spoken on it,
/// whatever `sslmode` says.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_its_socket() {
    let server = start(|_| {}, &["unix_socket_directories=."]).await;
    let data = server.data();
    let folder = data.to_str().unwrap();
    let port = server.port.to_string();
    let encoded = folder.replace('/', "%2F");
    for url in [
        format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        format!("postgres://postgres@{encoded}:{port}/postgres"),
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=verify-full"),
    ] {
        works(&url, &[]).await;
    }
    let named = [("PGHOST", folder), ("PGPORT", &port), ("PGUSER", "postgres")];
    works("postgres:///postgres", &named).await;
    works("postgres://", &[&named[..], &[("PGDATABASE", "postgres")]].concat()).await;
    let error = open("postgres:///d?host=/nowhere&user=postgres", &[]).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/.s.PGSQL.5432"), "it says where: {error}");
}

/// P9: nothing of the connection needs to be in the URL, and what is goes first.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_url_leaves_open_is_in_the_environment() {
    let server = with_password("hunter2").await;
    let port = server.port.to_string();
    let all = [
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", &port),
        ("PGUSER", "app"),
        ("PGDATABASE", "postgres"),
        ("PGPASSWORD", "hunter2"),
        ("PGSSLMODE", "prefer"),
        ("PGAPPNAME", "by name"),
        ("PGCONNECT_TIMEOUT", "30"),
    ];
    let store = open("postgres://", &all).await.unwrap();
    let admin = connect(&server.url()).await;
    let named = "SELECT count(*) FROM pg_stat_activity \
                 WHERE application_name = 'by name' AND usename = 'app'";
    assert_eq!(admin.query_one(named, &[]).await.unwrap().get::<_, i64>(0), 2);
    drop(store);

    // Each of them is heard: with another value it does not come to that.
    let with = |name: &'static str, value: &'static str| {
        let rest = all.iter().filter(move |(other, _)| *other != name).copied();
        rest.chain([(name, value)]).collect::<Vec<_>>()
    };
    assert!(refused("postgres://", &with("PGPASSWORD", "wrong")).await.contains("password"));
    assert!(refused("postgres://", &with("PGUSER", "stranger")).await.contains("stranger"));
    assert!(refused("postgres://", &with("PGDATABASE", "none")).await.contains("none"));
    let missing = refused("postgres://", &with("PGPASSWORD", "")).await;
    assert!(missing.contains("PGPASSWORD") && missing.contains(".pgpass"), "{missing}");
    for (name, value) in [("PGHOST", "/nowhere"), ("PGPORT", "1"), ("PGSSLMODE", "require")] {
        let error = open("postgres://", &with(name, value)).await.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}: {error}");
    }
    let read_only = with("PGOPTIONS", "-c default_transaction_read_only=on");
    let error = open("postgres://", &read_only).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unwritable, "{error}");
    let url = format!("postgres://app:hunter2@127.0.0.1:{port}/postgres?sslmode=disable");
    works(&url, &[("PGPASSWORD", "wrong"), ("PGSSLMODE", "verify-full"), ("PGPORT", "1")]).await;
}

/// P9: a password lies in a file that no other user may read, and a new one is used from
/// the next connection on.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_file_is_read_if_no_other_user_may_read_it() {
    let server = with_password("hunter2").await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    let port = server.port;
    let write = |password: &str| {
        let text = format!("# ours\nother:*:*:*:no\n127.0.0.1:{port}:postgres:app:{password}\n");
        std::fs::write(&file, text).unwrap();
    };
    let allow =
        |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let url = format!("postgres://app@127.0.0.1:{port}/postgres");
    let at_home = [("HOME", home.path().to_str().unwrap())];
    assert!(refused(&url, &at_home).await.contains(".pgpass"));
    write("hunter2");
    allow(0o640);
    let open_to_all = refused(&url, &at_home).await;
    assert!(open_to_all.contains("chmod 600") && !open_to_all.contains("hunter2"), "{open_to_all}");
    allow(0o600);
    let store = open(&url, &at_home).await.unwrap();
    works(&url, &[("PGPASSFILE", file.to_str().unwrap())]).await;
    works(&format!("{url}?passfile={}", file.display()), &[]).await;

    let admin = connect(&server.url()).await;
    admin.batch_execute("ALTER ROLE app PASSWORD 'rotated'").await.unwrap();
    write("rotated");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
    admin.batch_execute(end).await.unwrap();
    until("the store is back with the new password", || async {
        store.read(&ns(), &Query::nothing()).await.is_ok()
    })
    .await;
}

/// L22: a source of passwords is asked at every connection, comes before a password in the
/// URL, and one that fails is asked again: so a store opens, and comes back, with passwords
/// that are valid for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_of_passwords_is_asked_at_every_connection() {
    let server = with_password("first").await;
    let password = Arc::new(Mutex::new(None));
    let asked = Arc::new(AtomicUsize::new(0));
    let options = {
        let url = format!("postgres://app:stale@127.0.0.1:{}/postgres", server.port);
        let password = password.clone();
        let asked = asked.clone();
        let ask = move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let password = password.lock().unwrap().clone();
            async move { password.ok_or("no token yet") }
        };
        PostgresOptions::from_url(&url).unwrap().password_from(ask)
    };
    let error = PostgresStore::open(options.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "a builder that waits goes on: {error}");
    assert!(error.to_string().contains("no token yet") && !error.may_have_applied(), "{error}");

    *password.lock().unwrap() = Some("first".to_owned());
    let store = PostgresStore::open(options).await.unwrap();
    store.read(&ns(), &Query::nothing()).await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    let admin = connect(&server.url()).await;
    admin.batch_execute("ALTER ROLE app PASSWORD 'second'").await.unwrap();
    *password.lock().unwrap() = Some("second".to_owned());
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
    admin.batch_execute(end).await.unwrap();
    until("the store is back with the new password", || async {
        store.read(&ns(), &Query::nothing()).await.is_ok()
    })
    .await;
    assert!(asked.load(Ordering::SeqCst) > before);
}

/// P9: a service has all of it under one name.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_names_a_connection() {
    let server = with_password("hunter2").await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pg_service.conf");
    let text = format!(
        "[shop]\nhost=127.0.0.1\nport={}\ndbname=postgres\nuser=app\npassword=hunter2\n",
        server.port
    );
    std::fs::write(&file, text).unwrap();
    let at_home = ("HOME", home.path().to_str().unwrap());
    works("postgres://?service=shop", &[at_home]).await;
    works("postgres://", &[at_home, ("PGSERVICE", "shop"), ("PGUSER", "stranger")]).await;
    let named = ("PGSERVICEFILE", file.to_str().unwrap());
    works("postgres://", &[named, ("PGSERVICE", "shop")]).await;
    refused("postgres://stranger@/?service=shop", &[at_home]).await;
    let error = open("postgres://?service=none", &[at_home]).await.unwrap_err();
    assert!(error.to_string().contains("\"none\""), "{error}");
}

/// A server that takes encrypted connections only: by certificate for `app`, by password
/// for `scram`.
async fn with_tls(authority: &Authority) -> Server {
    let root = std::fs::read(authority.root()).unwrap();
    let signed = tempfile::tempdir().unwrap();
    sign(authority, "IP:127.0.0.1", signed.path());
    let prepare = move |data: &Path| {
        for file in ["server.key", "server.crt"] {
            std::fs::copy(signed.path().join(file), data.join(file)).unwrap();
            give_to_server(&data.join(file));
        }
        std::fs::write(data.join("root.crt"), root).unwrap();
        give_to_server(&data.join("root.crt"));
        rules(
            data,
            "hostssl all app all cert\nhostssl all scram all scram-sha-256\n\
                     host all postgres all trust\nhost all scram all scram-sha-256\n",
        );
    };
    let server = start(prepare, &["ssl=on", "ssl_ca_file=root.crt"]).await;
    let admin = connect(&format!("{}?sslmode=disable", server.url())).await;
    admin
        .batch_execute(
            "CREATE ROLE app LOGIN; CREATE ROLE scram LOGIN PASSWORD 'hunter2'; \
             GRANT CREATE ON DATABASE postgres TO app, scram",
        )
        .await
        .unwrap();
    server
}

/// P9: a role shows who it is by a certificate, whose key no other user may read.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_shows_who_it_is_by_a_certificate() {
    let authority = Authority::new();
    let server = with_tls(&authority).await;
    let (cert, key) = authority.identity("app");
    let cert = cert.to_str().unwrap();
    let key = key.to_str().unwrap();
    let root = authority.root().display().to_string();
    let url = format!("postgres://app@127.0.0.1:{}/postgres?sslmode=verify-full", server.port);
    let url = format!("{url}&sslrootcert={root}");
    works(&format!("{url}&sslcert={cert}&sslkey={key}"), &[]).await;
    works(&url, &[("PGSSLCERT", cert), ("PGSSLKEY", key)]).await;
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".postgresql");
    std::fs::create_dir(&own).unwrap();
    std::fs::copy(cert, own.join("postgresql.crt")).unwrap();
    std::fs::copy(key, own.join("postgresql.key")).unwrap();
    std::fs::copy(&root, own.join("root.crt")).unwrap();
    let at_home = [("HOME", home.path().to_str().unwrap())];
    works(
        &format!("postgres://app@127.0.0.1:{}/postgres?sslmode=verify-ca", server.port),
        &at_home,
    )
    .await;
    refused(&url, &[]).await;
    let (other, its_key) = authority.identity("other");
    let other = format!("{url}&sslcert={}&sslkey={}", other.display(), its_key.display());
    refused(&other, &[]).await;

    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = open(&url, &[("PGSSLCERT", cert), ("PGSSLKEY", key)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("chmod 600"), "{error}");
    let error = open(&format!("{url}&sslcert=/nowhere&sslkey={key}"), &[]).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
}

/// P9: a password's proof is tied to the server's certificate where that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_bound_to_the_channel() {
    let authority = Authority::new();
    let server = with_tls(&authority).await;
    let url = format!("postgres://scram:hunter2@127.0.0.1:{}/postgres", server.port);
    for binding in ["require", "prefer", "disable"] {
        works(&format!("{url}?sslmode=require&channel_binding={binding}"), &[]).await;
    }
    works(&format!("{url}?sslmode=require"), &[("PGCHANNELBINDING", "require")]).await;
    let clear = refused(&format!("{url}?sslmode=disable&channel_binding=require"), &[]).await;
    assert!(clear.contains("channel binding") && !clear.contains("hunter2"), "{clear}");
    works(&format!("{url}?sslmode=disable"), &[]).await;
}

/// Runs a test of this program in a process of its own, which is to open a URL.
fn in_a_process(test: &str, url: &str, variables: Variables<'_>) -> Result<(), String> {
    let mut line = Command::new(std::env::current_exe().unwrap());
    line.args(["--exact", test, "--nocapture"]).env(CHILD, url);
    let done = line.envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    if done.status.success() { Ok(()) } else { Err(said) }
}

/// What such a process does; whether this is one.
async fn is_child() -> bool {
    let Ok(url) = std::env::var(CHILD) else { return false };
    let store = PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await;
    let store = store.unwrap_or_else(|error| panic!("refused: {error}"));
    store.read(&ns(), &Query::nothing()).await.unwrap();
    true
}

/// P9: it is the process's own environment, and so no password is in its arguments.
#[tokio::test(flavor = "multi_thread")]
async fn no_password_needs_to_be_among_the_arguments() {
    if is_child().await {
        return;
    }
    let server = with_password("hunter2").await;
    let port = server.port.to_string();
    let test = "no_password_needs_to_be_among_the_arguments";
    let named = [("PGHOST", "127.0.0.1"), ("PGPORT", &port), ("PGUSER", "app")];
    let right = [&named[..], &[("PGPASSWORD", "hunter2")]].concat();
    in_a_process(test, "postgres:///postgres", &right).unwrap();
    let wrong = [&named[..], &[("PGPASSWORD", "hunter3")]].concat();
    let said = in_a_process(test, "postgres:///postgres", &wrong).unwrap_err();
    assert!(said.contains("refused:") && !said.contains("hunter3"), "{said}");
}

/// P5: the system's own roots, which make the whole check, and not those of the web.
#[tokio::test(flavor = "multi_thread")]
async fn the_systems_roots_are_the_systems() {
    if is_child().await {
        return;
    }
    let authority = Authority::new();
    let stranger = Authority::new();
    let server = with_tls(&authority).await;
    let test = "the_systems_roots_are_the_systems";
    let url = |host: &str, query: &str| {
        format!("postgres://scram:hunter2@{host}:{}/postgres?{query}", server.port)
    };
    let [known, unknown] = [&authority, &stranger].map(|one| one.root().display().to_string());
    let home = tempfile::tempdir().unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let system = "sslrootcert=system";
    in_a_process(test, &url("127.0.0.1", system), &[home, ("SSL_CERT_FILE", &known)]).unwrap();
    let full = "sslmode=verify-full";
    in_a_process(test, &url("127.0.0.1", full), &[home, ("SSL_CERT_FILE", &known)]).unwrap();
    for (host, root) in [("127.0.0.1", &unknown), ("localhost", &known)] {
        let said = in_a_process(test, &url(host, system), &[home, ("SSL_CERT_FILE", root)]);
        let said = said.expect_err(host);
        assert!(said.contains("refused:") && said.contains("certificate"), "{host}: {said}");
    }
}

/// P14: the server's list of sessions says which program each is of, which process of it,
/// and what for.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_told_apart_by_their_names() {
    let server = start(|_| {}, &[]).await;
    let store = open(&server.url(), &[]).await.unwrap();
    let admin = connect(&server.url()).await;
    let names = "SELECT application_name FROM pg_stat_activity \
                 WHERE application_name LIKE 'tenure %' ORDER BY 1";
    let names = admin.query(names, &[]).await.unwrap();
    let names: Vec<String> = names.iter().map(|row| row.get(0)).collect();
    let process = format!(" {}@", std::process::id());
    assert!(names.iter().all(|name| name.contains(&process)), "{names:?}");
    assert!(names[0].starts_with("tenure heartbeats: specific_connect"), "{names:?}");
    assert!(names[1].starts_with("tenure requests: specific_connect"), "{names:?}");
    drop(store);
}
