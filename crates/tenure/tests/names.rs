//! Names of a member: taken once, renewed, lost on time, given back (U1, U4, U6, U7).

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{secs, within};
use tenure::naming::{Name, NameError, Value, WhichNames};
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{Left, LostReason, Tenure};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

async fn owners(tenure: &Tenure) -> Vec<(String, String)> {
    let view = tenure.names().read(WhichNames::Prefix(String::new())).await.unwrap();
    let owner =
        |b: &tenure::naming::Binding| b.owner.as_ref().map_or(String::new(), |o| o.id.to_string());
    view.bindings.iter().map(|b| (b.name.to_string(), owner(b))).collect()
}

async fn until_bound(tenure: &Tenure, name: &str) {
    while owners(tenure).await.iter().all(|(bound, _)| bound != name) {
        tokio::task::yield_now().await;
    }
}

/// U1, U7: one of two gets it; the other is told by whom, where and under which token.
#[tokio::test]
async fn a_name_is_taken_once_and_the_refusal_says_by_whom() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let mine = a.names().take(name("user/42"), Value::at("10.0.0.7:9000").unwrap()).await.unwrap();
    assert!(mine.is_current());
    let refused = b.names().take(name("user/42"), Value::empty()).await.unwrap_err();
    let NameError::Taken(binding) = &refused else { panic!("{refused}") };
    assert_eq!(binding.token, mine.token());
    let said = refused.to_string();
    assert!(said.contains("by member a at 10.0.0.7:9000"), "{said}");
}

/// Q5, U6: an hour of heartbeats renews a name; an outage costs it on time, without a word
/// from the store.
#[tokio::test]
async fn a_name_is_renewed_and_lost_on_time() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let mine = tenure.names().take(name("n"), Value::empty()).await.unwrap();
    stage.advance(Duration::from_secs(3_600)).await;
    assert!(mine.is_current());
    stage.outage(true);
    stage.advance(secs(5)).await;
    assert!(mine.is_current(), "a short outage costs nothing");
    stage.advance(secs(5)).await;
    assert!(!mine.is_current());
    assert_eq!(within(mine.lost()).await, LostReason::TrustEnded);
    assert_eq!(mine.remaining(), Duration::ZERO);
}

/// U4, U8: the name of a life that was ended is free; the old owner has lost it, and its late
/// drop touches nothing.
#[tokio::test]
async fn the_name_of_an_ended_owner_is_free_again() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let mine = a.names().take(name("n"), Value::empty()).await.unwrap();
    b.evict_now(a.id()).await.unwrap();
    let theirs = b.names().take(name("n"), Value::empty()).await.unwrap();
    assert!(theirs.token() > mine.token(), "U2");
    stage.advance(secs(5)).await;
    assert_eq!(within(mine.lost()).await, LostReason::Superseded);
    assert!(mine.set(Value::empty()).await.is_err());
    drop(mine);
    stage.advance(secs(5)).await;
    assert!(theirs.is_current());
    assert_eq!(owners(&b).await, [("n".to_owned(), "b".to_owned())]);
}

/// A handle that is dropped gives its name back, and so does a caller that stops waiting.
#[tokio::test]
async fn what_no_caller_holds_is_given_back() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    drop(a.names().take(name("n"), Value::empty()).await.unwrap());
    stage.settle().await;
    let mine = b.names().take(name("n"), Value::empty()).await.unwrap();
    mine.release().await.unwrap();
    assert!(owners(&b).await.is_empty());

    // It is done, the answer is lost, and on a clock that stands it is not asked for again.
    stage.faults().script(StoreVerb::Bind, [Fault::FailAfter]);
    let names = a.names();
    let take = names.take(name("m"), Value::empty());
    tokio::select! {
        biased;
        taken = take => panic!("{taken:?}"),
        () = until_bound(&b, "m") => {}
    }
    stage.advance(secs(1)).await;
    assert!(owners(&b).await.is_empty());
}

/// A value changes under the same token; a release is confirmed.
#[tokio::test]
async fn a_value_changes_under_its_token() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let mine = tenure.names().take(name("n"), Value::empty()).await.unwrap();
    let changed = mine.set(Value::at("h:1").unwrap()).await.unwrap();
    assert_eq!((changed.token, mine.binding()), (mine.token(), changed.clone()));
    let there = tenure.names().read(WhichNames::Named(vec![name("n")])).await.unwrap();
    assert_eq!(there.bindings[0].value.endpoint(), Some("h:1"));
}

/// A thousand names go in a few requests, each with its own answer.
#[tokio::test]
async fn many_names_are_taken_together() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let _seven = b.names().take(name("n7"), Value::empty()).await.unwrap();
    let all = (0..1_000).map(|n| (name(&format!("n{n}")), Value::empty()));
    let answers = a.names().take_all(all).await.unwrap();
    let refused: Vec<_> = answers.iter().enumerate().filter(|(_, a)| a.is_err()).collect();
    assert!(matches!(refused[..], [(7, Err(NameError::Taken(_)))]), "{refused:?}");
    assert_eq!(owners(&a).await.len(), 1_000);
}

/// A store that does not answer is *unknown*, which is another answer than *taken*, and what
/// it did meanwhile is undone.
#[tokio::test]
async fn no_answer_is_another_answer_than_taken() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let _first = tenure.names().take(name("first"), Value::empty()).await.unwrap();
    stage.outage(true);
    let names = tenure.names();
    let asked = tokio::spawn(async move { names.take(name("n"), Value::empty()).await });
    stage.settle().await;
    stage.advance(secs(11)).await;
    let said = within(asked).await.unwrap().unwrap_err();
    assert!(matches!(said, NameError::Unknown { .. }), "{said}");
    stage.outage(false);
    stage.advance(secs(5)).await;
    assert!(owners(&tenure).await.iter().all(|(n, _)| n != "n"));
}

/// However many names are taken together, their caller waits for as long as for one.
#[tokio::test]
async fn many_names_are_waited_for_no_longer_than_one() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let _first = tenure.names().take(name("first"), Value::empty()).await.unwrap();
    stage.outage(true);
    let names = tenure.names();
    let all = (0..50).map(|n| (name(&format!("n{n}")), Value::empty()));
    let asked = tokio::spawn(async move { names.take_all(all).await });
    stage.settle().await;
    // The clock moves twice: who begins to wait for the next one then would wait for ever.
    for _ in 0..2 {
        stage.advance(secs(6)).await;
    }
    let answers = within(asked).await.unwrap().unwrap();
    assert_eq!(answers.len(), 50);
    assert!(answers.iter().all(|answer| matches!(answer, Err(NameError::Unknown { .. }))));
}

/// A member that shuts down has lost its names, and the store has none of them.
#[tokio::test]
async fn a_shutdown_gives_every_name_back() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let mine = a.names().take(name("n"), Value::empty()).await.unwrap();
    let ends = tokio::spawn(async move { a.shutdown().await });
    assert_eq!(within(mine.lost()).await, LostReason::Resigned);
    drop(mine);
    assert_eq!(within(ends).await.unwrap().unwrap(), Left::Confirmed);
    assert!(owners(&b).await.is_empty());
}

/// M6: what a read does not show any more is lost at once.
#[tokio::test]
async fn a_forgotten_name_is_lost() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let mine = tenure.names().take(name("n"), Value::empty()).await.unwrap();
    tenure.names().forgotten(vec![(name("n"), mine.token())]).unwrap();
    assert_eq!(within(mine.lost()).await, LostReason::Superseded);
}

/// The answer is waited for on Tenure's own runtime: the application's may have no timer.
#[test]
fn names_need_no_timer_of_the_applications_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let tenure = Tenure::connect("memory:").await.unwrap();
        let mine = tenure.names().take(name("user/42"), Value::empty()).await.unwrap();
        tenure.sleep_until(tenure.now() + Duration::from_millis(1)).await;
        assert!(mine.is_current());
        mine.release().await.unwrap();
    });
}
