//! Elections by one call: `try_lead` and `step_down`, beside members in Rust (L23).

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, one_call as checks};
use common::words::*;
use common::{Place, admin, until};
use tenure_core::{Amend, Happening, Note, ReleaseCause, Seq};
use tenure_store::{Page, Store};
use tokio_postgres::Client;

/// What `try_lead` answers.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    leads: bool,
    term: Option<i64>,
    leader: Option<String>,
    asked: bool,
}

struct Caller {
    client: Client,
    schema: String,
}

impl Caller {
    async fn of(place: &Place) -> Self {
        Self { client: admin().await, schema: place.schema.clone() }
    }

    async fn try_lead(&self, id: &str, ttl: &str) -> Answer {
        let sql = format!(
            "SELECT leads, term, leader, asked, remaining > interval '0' AND remaining <= \
             '{ttl}'::interval OR leader IS NULL OR NOT leads \
             FROM {}.try_lead('default', 'e', '{id}', '{ttl}')",
            self.schema
        );
        let row = self.client.query_one(&sql, &[]).await.unwrap();
        assert!(row.get::<_, bool>(4), "what remains is within the ttl");
        Answer { leads: row.get(0), term: row.get(1), leader: row.get(2), asked: row.get(3) }
    }

    async fn step_down(&self, id: &str) -> bool {
        let sql = format!("SELECT {}.step_down('default', 'e', '{id}')", self.schema);
        self.client.query_one(&sql, &[]).await.unwrap().get(0)
    }
}

fn leads(id: &str, term: i64) -> Answer {
    Answer { leads: true, term: Some(term), leader: Some(id.into()), asked: false }
}

fn follows(id: &str, term: i64) -> Answer {
    Answer { leads: false, ..leads(id, term) }
}

/// One id leads under one number for as long as it calls, the others are told who leads,
/// and stepping down answers and leaves nothing behind.
#[tokio::test]
async fn one_call_leads_renews_and_tells_the_others_who_leads() {
    let place = Place::new();
    let store = place.open().await;
    let sql = Caller::of(&place).await;
    assert_eq!(sql.try_lead("a", "30 s").await, leads("a", 1));
    assert_eq!(sql.try_lead("a", "30 s").await, leads("a", 1));
    assert_eq!(sql.try_lead("b", "30 s").await, follows("a", 1));
    assert!(!sql.step_down("c").await, "it never stood");
    assert!(sql.step_down("a").await);
    assert!(!sql.step_down("a").await, "it is given up already");
    assert_eq!(sql.try_lead("b", "30 s").await, leads("b", 2));
    assert!(sql.step_down("b").await);
    let seen = store.read(&ns(), &tenure_core::Query::everything()).await.unwrap();
    assert!(seen.members.is_empty(), "{seen:?}");
}

/// M1, H6: a caller that was away for its ttl leads anew under a new number.
#[tokio::test]
async fn an_expired_caller_begins_a_new_life_and_a_new_term() {
    let place = Place::new();
    let store = place.open().await;
    let sql = Caller::of(&place).await;
    assert_eq!(sql.try_lead("a", "50 ms").await, leads("a", 1));
    until("the ttl has run out", || async { view(&store, "e").await.holder.is_none() }).await;
    assert_eq!(sql.try_lead("a", "30 s").await, leads("a", 2));
}

/// B3: an id under which another client joined is not taken for the caller's own, whichever
/// of the two was first.
#[tokio::test]
async fn the_id_of_another_client_is_not_adopted() {
    let place = Place::new();
    let store = place.open().await;
    let sql = Caller::of(&place).await;
    let term = leader(&store, "rust", 1, "e").await;
    assert_eq!(sql.try_lead("rust", "30 s").await, follows("rust", 1));
    assert!(!sql.step_down("rust").await);
    assert_eq!(view(&store, "e").await.number, term.number);
    assert!(view(&store, "e").await.holder.is_some(), "the other client leads on");
}

/// E5: a caller that is asked to step down is told, leads until it does, and the journal has
/// the cause.
#[tokio::test]
async fn a_caller_is_told_that_it_is_asked_to_step_down() {
    let place = Place::new();
    let store = place.open().await;
    let sql = Caller::of(&place).await;
    assert_eq!(sql.try_lead("a", "30 s").await, leads("a", 1));
    let reason = Note::new("maintenance");
    let by = Note::new("ops");
    let asked = Amend::StepDown { election: election("e"), number: None, to: None, reason, by };
    store.amend(&ns(), &asked).await.unwrap();
    assert_eq!(sql.try_lead("a", "30 s").await, Answer { asked: true, ..leads("a", 1) });
    assert_eq!(sql.try_lead("b", "30 s").await, follows("a", 1), "b is asked for nothing");
    assert!(sql.step_down("a").await);
    let Page::Entries(told) = store.journal(&ns(), Seq::START).await.unwrap() else { panic!() };
    let cause = told.into_iter().find_map(|entry| match entry.what {
        Happening::Released { cause, .. } => Some(cause),
        _ => None,
    });
    assert_eq!(cause, Some(ReleaseCause::SteppedDown));
}

/// Two elections of one id are given up one by one, and a fence holds under the term.
#[tokio::test]
async fn stepping_down_from_one_election_keeps_the_other() {
    let place = Place::new();
    let _store = place.open().await;
    let sql = Caller::of(&place).await;
    let s = &place.schema;
    let two = format!("SELECT term FROM {s}.try_lead('default', 'f', 'a', '30 s')");
    let number: i64 = sql.client.query_one(&two, &[]).await.unwrap().get(0);
    assert_eq!(sql.try_lead("a", "30 s").await, leads("a", 1));
    assert!(sql.step_down("a").await);
    let fence = format!("SELECT {s}.fence('default', 'f', {number})");
    sql.client.query_one(&fence, &[]).await.unwrap();
    assert_eq!(sql.client.query_one(&two, &[]).await.unwrap().get::<_, i64>(0), number);
}

/// What one caller does is of its own id, in its own namespace, for its own election.
#[tokio::test]
async fn one_call_is_of_one_namespace_one_election_and_one_id() {
    alone(checks::one_call_is_of_one_namespace_one_election_and_one_id).await;
}

/// M1: a caller that was evicted does not lead, although its ttl has not run out; nor does
/// one whose member's row is another's.
#[tokio::test]
async fn an_evicted_caller_does_not_lead() {
    alone(checks::an_evicted_caller_does_not_lead).await;
}
