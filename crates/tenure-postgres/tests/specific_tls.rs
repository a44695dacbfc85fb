//! TLS against a real server: what each `sslmode` accepts and refuses.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::Place;
use common::server::{Server, give_to_server};
use common::tls::sign;
use common::words::*;
use tenure_core::Beat;
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Error, ErrorKind, Store};
use tenure_testkit::Authority;

/// The server's certificate is for this address and that name, not for
/// `localhost`.
const NAMES: &str = "IP:127.0.0.1,DNS:db.example";

/// A server that takes encrypted connections only.
fn start(authority: &Authority) -> Server {
    let prepare = |data: &Path| {
        sign(authority, NAMES, data);
        let rules = data.join("pg_hba.conf");
        std::fs::write(&rules, "hostssl all all all trust\n").unwrap();
        give_to_server(&rules);
    };
    Server::start_with(prepare, &["ssl=on"])
}

async fn open(server: &Server, host: &str, query: &str) -> Result<PostgresStore, Error> {
    let url = format!("postgres://postgres@{host}:{}/postgres?{query}", server.port);
    PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await
}

async fn refused(server: &Server, host: &str, query: &str) -> String {
    let error = open(server, host, query).await.expect_err(query);
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{query}: {error}");
    assert!(!error.may_have_applied(), "{query}: {error}");
    error.to_string()
}

/// Each mode that may connect does, takes part, and is encrypted, which this
/// server insists on; the mode that never encrypts is told so.
#[tokio::test(flavor = "multi_thread")]
async fn every_mode_that_trusts_the_server_takes_part_encrypted() {
    let authority = Authority::new();
    let server = start(&authority);
    let root = authority.root().display().to_string();
    for (life, query) in [
        "sslmode=prefer".to_owned(),
        "sslmode=require".to_owned(),
        format!("sslmode=require&sslrootcert={root}"),
        format!("sslmode=verify-ca&sslrootcert={root}"),
        format!("sslmode=verify-full&sslrootcert={root}"),
    ]
    .iter()
    .enumerate()
    {
        let store = open(&server, "127.0.0.1", query).await.unwrap();
        let me = joined(&store, &format!("m{life}"), life as u128 + 1).await;
        let alive = store.heartbeat(&ns(), &beat(&me)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { .. }), "{query}: {alive:?}");
    }
    let error = open(&server, "127.0.0.1", "sslmode=disable").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("no encryption"), "{error}");
}

/// A certificate for another host is refused where the host is checked, in words
/// that say which; and only there.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_host_is_refused_where_the_host_is_checked() {
    let authority = Authority::new();
    let server = start(&authority);
    let root = authority.root().display().to_string();
    let full = format!("sslmode=verify-full&sslrootcert={root}");
    let said = refused(&server, "localhost", &full).await;
    assert!(said.contains("certificate") && said.contains("localhost"), "{said}");
    for mode in ["require", "verify-ca"] {
        let query = format!("sslmode={mode}&sslrootcert={root}");
        open(&server, "localhost", &query).await.unwrap();
    }
}

/// A certificate that a stranger has signed is refused by every mode that has a
/// root to check it by; without one `require` only encrypts, as libpq has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let server = start(&authority);
    let root = stranger.root().display().to_string();
    for query in [
        format!("sslmode=require&sslrootcert={root}"),
        format!("sslmode=verify-ca&sslrootcert={root}"),
        format!("sslmode=verify-full&sslrootcert={root}"),
    ] {
        let said = refused(&server, "127.0.0.1", &query).await;
        assert!(said.contains("certificate"), "{query}: {said}");
        assert!(said.contains("sslmode"), "it says what to look at: {said}");
    }
    open(&server, "127.0.0.1", "sslmode=require").await.unwrap();
}

/// A root that cannot be used is told by its path.
#[tokio::test]
async fn a_root_that_is_no_certificate_is_told_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("root.pem");
    for text in [None, Some("this is no certificate")] {
        text.inspect(|text| std::fs::write(&file, text).unwrap());
        let path = file.display();
        let url = format!("postgres://postgres@127.0.0.1:1/d?sslmode=verify-ca&sslrootcert={path}");
        let error = PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("root.pem"), "{error}");
    }
}

/// A server without TLS is refused by every mode that insists on it, and not
/// spoken to in the clear; `prefer` takes it as it is.
#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    for mode in ["require", "verify-ca", "verify-full"] {
        let place = Place::new();
        let url = format!("{}?sslmode={mode}", common::url());
        let options = PostgresOptions::from_url(&url).unwrap().schema(&place.schema);
        let error = PostgresStore::open(options).await.expect_err(mode);
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{mode}: {error}");
        assert!(error.to_string().contains("TLS"), "{mode}: {error}");
    }
    let place = Place::new();
    let url = format!("{}?sslmode=prefer", common::url());
    let options = PostgresOptions::from_url(&url).unwrap().schema(&place.schema);
    let store = place.open_with(options).await;
    joined(&store, "m", 1).await;
}
