//! Any language takes part: the statements of `docs/sql.md`, run by `psql` and by
//! Python, in one election with members in Rust.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};

use common::words::*;
use common::{Place, url};
use tenure_core::{Hint, Profile};
use tenure_store::{Followed, Store};

/// The document that people copy from, with the names of this test put in.
fn document(language: &str, schema: &str) -> String {
    let text = include_str!("../../../docs/sql.md");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    let text = blocks.collect::<Vec<_>>().join("\n");
    let text = text.replace("tenure.", &format!("{schema}."));
    text.replace("\"tenure\"", &format!("\"{schema}\""))
}

fn run(program: &str, args: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(args)
        .env("DATABASE_URL", url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn psql(text: &str) -> String {
    run("psql", &[&url(), "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"], text)
}

/// Everything the document shows for psql, word for word, and a Rust member in
/// the same election at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn psql_leads_and_hands_over_to_rust() {
    let place = Place::new();
    let store = place.open().await;
    let rust = joined(&store, "rust", 1).await;
    let shown = document("sql", &place.schema);
    // Up to where the document resigns: psql leads.
    let (leads, resigns) = shown.split_once("-- Resign.").expect("the document resigns");
    let said = psql(leads);
    assert!(said.contains("won|1"), "{said}");
    let view = held(store.claim(&ns(), &claim(&rust, "nightly-report", 1)).await.unwrap());
    let holder = view.holder.expect("psql leads");
    assert_eq!(holder.member.id.as_str(), "psql-1");
    assert_eq!(holder.profile, Profile::new(["10.0.0.7:8080"], b"").unwrap());
    let mut hints = store.follow(&ns()).await.unwrap();
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(Hint::Anything));
    psql(resigns);
    let vacant = Hint::Vacant { election: election("nightly-report"), heir: None };
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(vacant));
    let term = won(store.claim(&ns(), &claim(&rust, "nightly-report", 2)).await.unwrap());
    assert_eq!(term.number.get(), 2);
}

/// The Python program of the document: it stands by while Rust leads, leads when
/// Rust resigns, and writes fenced.
#[tokio::test(flavor = "multi_thread")]
async fn python_takes_over_from_rust() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "rust", 1, "nightly-report").await;
    let program = document("python", &place.schema);
    let python = tokio::task::spawn_blocking(move || run("/usr/bin/python3", &["-"], &program));
    common::until("python stands", || async {
        let query = tenure_core::Query {
            candidates: true,
            ..tenure_core::Query::elections([election("nightly-report")])
        };
        let seen = store.read(&ns(), &query).await.unwrap();
        seen.elections[0].candidates.iter().any(|c| c.member.id.as_str() == "python-1")
    })
    .await;
    store.release(&ns(), &release(&term)).await.unwrap();
    let said = python.await.unwrap();
    assert!(said.contains("leading term 2"), "{said}");
    assert!(said.contains("term 1 is refused"), "{said}");
    let seen = view(&store, "nightly-report").await;
    assert_eq!((seen.number.get(), seen.holder), (2, None));
}
