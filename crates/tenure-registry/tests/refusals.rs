//! Bad input: each is refused with an error that says what, why and what to do, and delays
//! no other name.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure::Tenure;
use tenure::naming::Value;
use tenure::testing::Stage;
use tenure_cas::{CasOptions, CasStore, MemoryRegister};
use tenure_registry::{RegisterError, Registry};
use tenure_testkit::within;

async fn registry() -> (Stage, Registry) {
    let stage = Stage::new();
    let names = Registry::open(&stage.connect("a").await.unwrap(), "orders").unwrap();
    within(names.ready()).await.unwrap();
    (stage, names)
}

fn cas() -> tenure::store::SharedStore {
    let clock = Arc::new(tenure::store::BootClock);
    let register = Arc::new(MemoryRegister::new());
    Arc::new(CasStore::new(register, clock, CasOptions::default()).unwrap())
}

#[tokio::test]
async fn a_scope_that_cannot_be_used_is_refused() {
    let (stage, names) = registry().await;
    let tenure = stage.connect("b").await.unwrap();
    for bad in ["", "a:b", ":", "tenure-left", " a", "a\n"] {
        for refused in [names.scope(bad).unwrap_err(), Registry::open(&tenure, bad).unwrap_err()] {
            let said = refused.to_string();
            let named = matches!(refused, RegisterError::Scope(_)) || said.contains("name");
            assert!(named, "{bad:?}: {said}");
        }
    }
}

#[tokio::test]
async fn a_name_out_of_bounds_is_refused() {
    let (_stage, names) = registry().await;
    let long = "x".repeat(tenure::views::MAX_NAME);
    for (bad, why) in
        [("", "empty"), (" a", "space"), ("a ", "space"), ("a\nb", "control"), (&*long, "bytes")]
    {
        let refused = within(names.register(bad, Value::empty())).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{bad:?}: {refused}");
        assert!(names.lookup(bad).is_none());
        assert!(names.lookup_consistent(bad).await.is_err());
        assert!(names.keep(bad, Value::empty()).is_err());
    }
    let all = names.register_all([("good", Value::empty()), ("", Value::empty())]).await;
    assert!(all.is_err() && names.lookup("good").is_none(), "all or none");
}

/// The store would refuse it each time that it is repeated, and other names would wait behind.
#[tokio::test]
async fn a_value_over_the_limit_is_refused_and_holds_no_other_name_up() {
    let (_stage, names) = registry().await;
    let big = Value::empty().with_data(vec![0; 4_097]).unwrap();
    let refused = within(names.register("n", big.clone())).await.unwrap_err().to_string();
    assert!(refused.contains("4097 bytes") && refused.contains("4096"), "{refused}");
    let mine = within(names.register("n", Value::empty())).await.unwrap();
    assert!(within(mine.set(big.clone())).await.is_err());
    assert!(mine.is_current());
    let refused = names.keep("m", big).unwrap_err().to_string();
    assert!(refused.contains("4097 bytes"), "it is not repeated for ever: {refused}");
    let most = Value::empty().with_data(vec![0; 4_096]).unwrap();
    within(names.register("o", most)).await.unwrap().release().await.unwrap();
}

/// A store of the compare-and-swap family has no fence for names, and says so.
#[tokio::test]
async fn what_needs_a_fence_is_refused_where_there_is_none() {
    let tenure = Tenure::with_store(cas()).id("a").connect().await.unwrap();
    let names = Registry::open(&tenure, "s").unwrap();
    let work = |_| async {};
    let refused = within(names.singleton("n", Value::empty(), work)).await.unwrap_err();
    assert!(refused.to_string().contains("no fence for names"), "{refused}");
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    let asked = within(leadership.inherited()).await.unwrap_err();
    assert!(asked.to_string().contains("no fence for names"), "{asked}");
    let left = within(leadership.leave_behind(b"x")).await.unwrap_err();
    assert!(left.to_string().contains("no fence for names"), "{left}");
    // Nothing of it is in the way of a name.
    within(names.register("n", Value::empty())).await.unwrap().release().await.unwrap();
}

/// U4: a token of another name, or of another time, changes nothing.
#[tokio::test]
async fn a_token_of_another_name_has_no_effect() {
    let (stage, names) = registry().await;
    let one = names.register("one", Value::empty()).await.unwrap();
    let two = names.register("two", Value::empty()).await.unwrap();
    let foreign = one.token();
    let full = tenure::naming::Name::new("orders:two").unwrap();
    let operator = stage.connect("b").await.unwrap();
    // Of another life, and of another name.
    operator.names().forgotten(vec![(full, foreign)]).unwrap();
    stage.settle().await;
    assert!(one.is_current() && two.is_current());
    assert!(names.lookup_consistent("two").await.unwrap().is_some());
}

/// A leader cannot leave more than a name may hold, nor in an election with a name that
/// leaves no room for it; nothing is left half done.
#[tokio::test]
async fn what_cannot_be_left_behind_is_refused() {
    let (stage, _) = registry().await;
    let tenure = stage.connect("b").await.unwrap();
    let election = tenure.election("e");
    let big = within(election.campaign()).await.unwrap().leave_behind(vec![0; 65_537]).await;
    assert!(big.unwrap_err().to_string().contains("65537 bytes"));
    let long = tenure.election("x".repeat(195));
    let refused = within(long.campaign()).await.unwrap().leave_behind(b"x").await.unwrap_err();
    assert!(refused.to_string().contains("shorter name"), "{refused}");
}
