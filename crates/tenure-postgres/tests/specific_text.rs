//! Texts: of whatever length and from whatever language they come, and in databases
//! of any encoding.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, connect, url};
use tenure_core::{Amend, Namespace, Note, Query};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{ErrorKind, Store};
use tokio_postgres::Client;

/// Calls a verb with two texts of eight megabytes.
async fn call(client: &Client, place: &Place, verb: &str) -> String {
    let text = format!("SELECT outcome FROM {}.{verb}", place.schema);
    let long = "long ".repeat(8 << 18);
    client.query_one(&text, &[&long, &long]).await.unwrap().get(0)
}

/// P8: what a client in another language gives as a reason, or as its name, is cut as
/// every program cuts it, and no verb fails because of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_reason_is_cut_and_fails_no_request() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let client = admin().await;
    let pause = "pause('default', 'e', $1, $2)";
    assert_eq!(call(&client, &place, pause).await, "done");
    let ask = "ask_step_down('default', 'e', NULL, NULL, $1, $2)";
    assert_eq!(call(&client, &place, ask).await, "done");

    let cut = Note::new("long ".repeat(200));
    let query = Query { history: 10, ..Query::everything() };
    let seen = store.read(&ns(), &query).await.unwrap();
    let view = seen.elections.into_iter().next().unwrap();
    let paused = view.paused.unwrap();
    assert_eq!((paused.reason, paused.by), (cut.clone(), cut.clone()));
    let asked = view.step_down.unwrap();
    assert_eq!((asked.reason, asked.by), (cut.clone(), cut));
    let again = "ask_step_down('default', 'e', NULL, NULL, $1, $2)";
    assert_eq!(call(&client, &place, again).await, "unchanged");
    let resume = "resume('default', 'e', left($1, 9999999) || $2)";
    assert_eq!(call(&client, &place, resume).await, "done");
    store.release(&ns(), &release(&term)).await.unwrap();
    assert!(store.read(&ns(), &query).await.unwrap().history.len() >= 5);
    let biggest = format!("SELECT max(pg_column_size(t.*)) FROM {}.told t", place.schema);
    let biggest: i32 = client.query_one(&biggest, &[]).await.unwrap().get(0);
    assert!(biggest < 4_000, "the journal has a row of {biggest} bytes");
}

/// P8: a note is the same text whether it was made here or in the database.
#[tokio::test]
async fn the_database_makes_notes_as_programs_do() {
    let place = Place::new();
    drop(place.open().await);
    let client = admin().await;
    let note = format!("SELECT {}._note($1)", place.schema);
    let ends = ["", " ", "\n", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}\t", "\u{1}\u{7f}"];
    let middles =
        ["", "a", "a b", "a\u{85}b", "a\u{0b}b", "é\u{a0}é", "名\u{2003}前", "😀", "\\x00"];
    let mut texts = Vec::new();
    for (start, end) in ends.iter().flat_map(|start| ends.map(|end| (start, end))) {
        texts.extend(middles.map(|middle| format!("{start}{middle}{end}")));
    }
    for filler in ["x", "é", "名", "😀", "\u{85}", " ", "a "] {
        for count in [123, 166, 249, 250, 499, 500, 501] {
            texts.push(format!("x{}", filler.repeat(count)));
            texts.push(format!("{}x", filler.repeat(count)));
        }
    }
    for text in texts {
        let made: String = client.query_one(&note, &[&text]).await.unwrap().get(0);
        assert_eq!(made, Note::new(&text).as_str(), "{text:?}");
    }
    let none: String = client.query_one(&note, &[&None::<&str>]).await.unwrap().get(0);
    assert_eq!(none, "");
}

/// A database of another encoding, gone at the end of the test if that is reached.
async fn database(encoding: &str) -> (String, String) {
    let name = format!("{}_{}", encoding.to_lowercase(), Place::new().schema);
    let make = format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    admin().await.batch_execute(&make).await.unwrap();
    let (server, _) = url().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    (format!("{server}/{name}"), name)
}

/// P10: it is installed in databases of every encoding, and elects in them.
#[tokio::test(flavor = "multi_thread")]
async fn elections_are_held_in_databases_of_other_encodings() {
    for encoding in ["LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP"] {
        let (its_url, name) = database(encoding).await;
        let store = PostgresStore::open(PostgresOptions::from_url(&its_url).unwrap()).await;
        let store = store.unwrap_or_else(|error| panic!("{encoding}: {error}"));
        assert_eq!(leader(&store, "a", 1, "e").await.number.get(), 1, "{encoding}");
        let reason = Note::new("because of \u{a7} 5");
        let pause =
            Amend::Pause { election: election("e"), reason: reason.clone(), by: Note::default() };
        store.amend(&ns(), &pause).await.unwrap();
        assert_eq!(view(&store, "e").await.paused.unwrap().reason, reason, "{encoding}");
        if encoding == "EUC_JP" {
            assert_eq!(leader(&store, "b", 2, "選挙").await.number.get(), 1);
            drop(store);
            admin()
                .await
                .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
                .await
                .unwrap();
            continue;
        }

        // What SQL lets in, every program can read: lengths are those of UTF-8.
        let client = connect(&its_url).await;
        let join = "SELECT outcome FROM tenure.join('default', $1, gen_random_uuid(), 60000000)";
        let code = |error: tokio_postgres::Error| error.code().unwrap().code().to_owned();
        let longest = "é".repeat(100);
        client.query_one(join, &[&longest]).await.unwrap();
        for refused in [format!("{longest}x"), "x\u{a0}".into(), "x\u{85}x".into()] {
            // An encoding that does not have a character refuses it by itself.
            let code = code(client.query_one(join, &[&refused]).await.unwrap_err());
            assert!(["22023", "22P05"].contains(&code.as_str()), "{encoding}: {code} {refused:?}");
        }
        if encoding == "SQL_ASCII" {
            client.batch_execute("SET client_encoding = 'SQL_ASCII'").await.unwrap();
            let raw = r"SELECT outcome FROM tenure.join('default', E'\xff', gen_random_uuid(), 1)";
            assert_eq!(code(client.batch_execute(raw).await.unwrap_err()), "22021");
            let raw = r"SELECT outcome FROM tenure.pause('default', 'raw', E'it\'s \xff')";
            client.batch_execute(raw).await.unwrap();
            assert_eq!(view(&store, "raw").await.paused.unwrap().reason.as_str(), "it's ?");
        } else {
            let foreign = Amend::Pause {
                election: election("選挙"),
                reason: Note::default(),
                by: Note::default(),
            };
            let refused = store.amend(&ns(), &foreign).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        }
        let members = store.read(&ns(), &Query::everything()).await.unwrap().members;
        assert_eq!(members.len(), 2, "{encoding}: both are read");
        drop(store);
        admin().await.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    }
}

/// P14: a term whose bid had no nonce could not be told again to its winner.
#[tokio::test]
async fn a_bid_without_a_nonce_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    joined(&store, "a", 1).await;
    let client = admin().await;
    for nonces in ["NULL", "'{}'", "'{NULL}'"] {
        let claim = format!(
            "SELECT * FROM {}.claim('default', 'a', '00000000-0000-0000-0000-000000000001', \
             60000000, ARRAY['e'], ARRAY[100], {nonces})",
            place.schema
        );
        let refused = client.batch_execute(&claim).await.expect_err(nonces);
        assert_eq!(refused.code().unwrap().code(), "22023", "{nonces}: {refused}");
    }
    let seen = store.read(&Namespace::default(), &Query::everything()).await.unwrap();
    assert!(seen.elections.is_empty(), "{seen:?}");
}
