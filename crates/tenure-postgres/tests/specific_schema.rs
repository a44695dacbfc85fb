//! The schema: installed by many at once, by hand, not at all; and who may use it.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, connect, url};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{ErrorKind, Store};
use tokio::task::JoinSet;

/// C33: eight processes initialise the schema of an empty database at once.
#[tokio::test(flavor = "multi_thread")]
async fn many_may_install_the_schema_at_once() {
    let place = Place::new();
    let mut openers = JoinSet::new();
    for _ in 0..8 {
        openers.spawn(PostgresStore::open(place.options()));
    }
    let stores = openers.join_all().await;
    for (i, store) in stores.into_iter().enumerate() {
        let store = store.expect("every one of them opens it");
        joined(&store, &format!("m{i}"), i as u128).await;
    }
}

/// A program must not write what it does not understand.
#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    drop(place.open().await);
    place.sql("UPDATE {s}.settings SET version = 9").await;
    let refused = PostgresStore::open(place.options()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Foreign);
    let said = refused.to_string();
    assert!(said.contains("version 9") && said.contains("upgrade this program"), "{said}");
}

#[tokio::test]
async fn a_missing_schema_is_not_installed_against_the_users_will() {
    let place = Place::new();
    let refused = PostgresStore::open(place.options().migrate(false)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Foreign);
    let said = refused.to_string();
    assert!(said.contains("missing") && said.contains("tenure schema postgres"), "{said}");
}

/// By hand, and under a name that has to be quoted.
#[tokio::test]
async fn the_text_of_the_schema_can_be_applied_by_hand() {
    let name = format!("o'clock \"{}\"", Place::new().schema);
    admin().await.batch_execute(&PostgresStore::schema_sql(&name)).await.unwrap();
    let options = PostgresOptions::from_url(&url()).unwrap().schema(&name).migrate(false);
    let store = PostgresStore::open(options).await.unwrap();
    assert_eq!(leader(&store, "a", 1, "e").await.number.get(), 1);
    assert_eq!(store.capabilities().watch, tenure_store::Watch::Native);
}

/// A role that may call the verbs takes part in everything, and reads no table.
#[tokio::test]
async fn a_role_with_execute_alone_takes_part() {
    let place = Place::new();
    let owner = place.open().await;
    let role = format!("r_{}", place.schema);
    place.sql(&format!("CREATE ROLE {role} LOGIN; SELECT {{s}}.grant_to('{role}')")).await;
    let its_url = url().replace("postgres@", &format!("{role}@"));
    let options = PostgresOptions::from_url(&its_url).unwrap().schema(&place.schema);
    let store = PostgresStore::open(options).await.unwrap();
    let term = leader(&store, "a", 1, "e").await;
    let alive = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    assert!(matches!(alive, tenure_core::Beat::Alive { .. }), "{alive:?}");
    assert_eq!(view(&owner, "e").await.number, term.number);
    let own = connect(&its_url).await;
    let call = format!("SELECT {}.fence('default', 'e', 1)", place.schema);
    own.batch_execute(&call).await.unwrap();
    store.release(&ns(), &release(&term)).await.unwrap();
    store.leave(&ns(), &term.member).await.unwrap();

    for denied in [
        "SELECT FROM {s}.members",
        "UPDATE {s}.elections SET number = 0",
        "SELECT {s}._enter('default', 0)",
        "SELECT {s}.grant_to('postgres')",
    ] {
        let text = denied.replace("{s}", &place.schema);
        let code = own.batch_execute(&text).await.unwrap_err().code().unwrap().code().to_owned();
        assert_eq!(code, "42501", "{denied}");
    }
    place.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// An owner that becomes a guest is refused what it did itself until then, once.
#[tokio::test]
async fn an_owner_that_is_one_no_longer_goes_on_as_a_guest() {
    let place = Place::new();
    let role = format!("o_{}", place.schema);
    place.sql(&format!("CREATE ROLE {role} LOGIN")).await;
    place.sql(&format!("GRANT CREATE ON DATABASE postgres TO {role}")).await;
    let its_url = url().replace("postgres@", &format!("{role}@"));
    let options = PostgresOptions::from_url(&its_url).unwrap().schema(&place.schema);
    let store = PostgresStore::open(options).await.unwrap();
    let term = leader(&store, "a", 1, "e").await;
    for _ in 0..2 {
        store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    }
    let given = "REASSIGN OWNED BY {r} TO postgres; SELECT {s}.grant_to('{r}')";
    place.sql(&given.replace("{r}", &role)).await;
    let refused = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    let refused = store.release(&ns(), &release(&term)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    assert!(!refused.may_have_applied(), "{refused}");
    store.release(&ns(), &release(&term)).await.unwrap();
    place.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// A role that was not let in is told how to get in.
#[tokio::test]
async fn a_role_that_was_not_let_in_is_told_what_to_ask_for() {
    let place = Place::new();
    drop(place.open().await);
    let role = format!("x_{}", place.schema);
    place.sql(&format!("CREATE ROLE {role} LOGIN")).await;
    let its_url = url().replace("postgres@", &format!("{role}@"));
    let options = PostgresOptions::from_url(&its_url).unwrap().schema(&place.schema);
    let refused = PostgresStore::open(options).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    assert!(refused.to_string().contains("grant_to"), "{refused}");
    place.sql(&format!("DROP ROLE {role}")).await;
}
