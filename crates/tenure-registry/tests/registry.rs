//! Registries of several members on one store: uniqueness, copies, watches, take-over.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use tenure::naming::{Name, Rev, Value, WhichNames};
use tenure::store::Store;
use tenure::testing::{Fault, HintFault, Stage, StoreVerb};
use tenure::{Namespace, Tenure};
use tenure_core::{Bind, BindAnswer, BindOp, Bindings, Nonce};
use tenure_registry::{Change, Got, RegisterError, Registry};
use tenure_store::{Clock, MemoryStore};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it does not come to its end")
}

async fn two() -> (Stage, Registry, Registry) {
    let stage = Stage::new();
    let a = Registry::open(&stage.connect("a").await.unwrap(), "orders").unwrap();
    let b = Registry::open(&stage.connect("b").await.unwrap(), "orders").unwrap();
    within(a.ready()).await.unwrap();
    within(b.ready()).await.unwrap();
    (stage, a, b)
}

/// Read-after-register (Horde #267, #223, #247): the process that registers finds it at once;
/// any other that was told the revision finds it after `reached`, and in the store at once.
#[tokio::test]
async fn what_was_registered_is_found() {
    let (_stage, a, b) = two().await;
    for n in 0..100 {
        let name = format!("user/{n}");
        let mine = a.register(&name, Value::at("10.0.0.7:9000").unwrap()).await.unwrap();
        let found = a.lookup(&name).unwrap();
        assert_eq!((found.token(), found.as_str()), (mine.token(), &*name));
        assert!(b.lookup_consistent(&name).await.unwrap().is_some());
        within(b.reached(mine.rev())).await.unwrap();
        assert_eq!(b.lookup(&name).unwrap().token(), mine.token());
        mine.release().await.unwrap();
        assert!(a.lookup(&name).is_none());
    }
}

/// A value that was set is never lost (Horde #258), and a refusal says by whom (U7).
#[tokio::test]
async fn a_value_is_kept_and_a_refusal_says_by_whom() {
    let (_stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    mine.set(Value::at("h:1").unwrap().with_index([("role", "worker")]).unwrap()).await.unwrap();
    within(b.reached(mine.rev())).await.unwrap();
    assert_eq!(b.lookup("n").unwrap().value().endpoint(), Some("h:1"));
    assert_eq!(b.query([("role", "worker")]).len(), 1);
    assert!(b.query([("role", "cook")]).is_empty());
    let refused = b.register("n", Value::empty()).await.unwrap_err();
    let RegisterError::Taken(binding) = &refused else { panic!("{refused}") };
    assert_eq!(binding.owner.as_ref().unwrap().id.as_str(), "a");
    assert!(refused.to_string().contains("by member a at h:1"), "{refused}");
}

/// Scopes are apart, and a name of one is not seen in another.
#[tokio::test]
async fn scopes_are_apart() {
    let (_stage, a, _) = two().await;
    let other = a.scope("users").unwrap();
    let _one = a.register("n", Value::empty()).await.unwrap();
    assert!(other.lookup("n").is_none());
    let _two = other.register("n", Value::empty()).await.unwrap();
    assert_eq!((a.all().len(), other.all().len()), (1, 1));
    for bad in ["", "a:b"] {
        let refused = a.scope(bad).unwrap_err().to_string();
        assert!(refused.contains("cannot be used"), "{refused}");
    }
    assert!(a.register(&"x".repeat(300), Value::empty()).await.is_err());
    assert!(a.lookup(&"x".repeat(3_000)).is_none());
}

/// Of many who ask at once, one registers and the others find it.
#[tokio::test]
async fn one_of_many_registers() {
    let (_stage, a, b) = two().await;
    let asks = (0..20).map(|n| {
        let registry = if n % 2 == 0 { a.clone() } else { b.clone() };
        tokio::spawn(async move { registry.get_or_register("n", Value::empty).await.unwrap() })
    });
    let asks: Vec<_> = asks.collect();
    let mut registered = Vec::new();
    let mut tokens = Vec::new();
    for ask in asks {
        match within(ask).await.unwrap() {
            Got::Registered(mine) => {
                tokens.push(mine.token());
                registered.push(mine);
            }
            Got::Found(binding) => tokens.push(binding.token),
        }
    }
    assert_eq!(registered.len(), 1);
    assert!(tokens.iter().all(|token| *token == registered[0].token()));
}

/// A watch begins with the present state, tells every change, and resumes from a revision.
#[tokio::test]
async fn a_watch_tells_every_change_and_resumes() {
    let (_stage, a, b) = two().await;
    let first = a.register("user/1", Value::empty()).await.unwrap();
    within(b.reached(first.rev())).await.unwrap();
    let mut watch = b.watch("user/");
    let Change::Resynced { names, rev } = within(watch.next()).await.unwrap() else { panic!() };
    assert_eq!(names.len(), 1);
    let second = a.register("user/2", Value::empty()).await.unwrap();
    let _other = a.register("shard/1", Value::empty()).await.unwrap();
    let Change::Registered(found) = within(watch.next()).await.unwrap() else { panic!() };
    assert_eq!((found.as_str(), found.token()), ("user/2", second.token()));
    second.set(Value::at("h:1").unwrap()).await.unwrap();
    assert!(
        matches!(within(watch.next()).await.unwrap(), Change::Changed(found) if found.as_str() == "user/2")
    );
    let token = first.token();
    first.release().await.unwrap();
    let Change::Released { name, token: of, .. } = within(watch.next()).await.unwrap() else {
        panic!()
    };
    assert_eq!((name.as_str(), of), ("user/1", Some(token)));

    let mut resumed = b.watch("user/").from(rev);
    let Change::Lives { lives, .. } = within(resumed.next()).await.unwrap() else { panic!() };
    assert_eq!(lives.len(), 1);
    assert!(
        matches!(within(resumed.next()).await.unwrap(), Change::Released { name, .. } if name == "user/1")
    );
    assert!(
        matches!(within(resumed.next()).await.unwrap(), Change::Registered(found) if found.as_str() == "user/2")
    );
    let mut unknown = b.watch("user/").from(Rev::START);
    assert!(matches!(within(unknown.next()).await.unwrap(), Change::Resynced { .. }));
}

/// R4, R5, U8: the names of a process that was ended vanish everywhere, and `keep` of another
/// takes them over; a name is always freed (gproc #30).
#[tokio::test]
async fn a_kept_name_moves_when_its_owner_is_gone() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    let mut kept = b.keep("n", Value::empty()).unwrap();
    stage.settle().await;
    assert!(kept.token().is_none());
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&tenure::MemberId::new("a").unwrap()).await.unwrap();
    let moved = async {
        loop {
            if let Some(token) = kept.token() {
                break token;
            }
            stage.advance(Duration::from_secs(1)).await;
        }
    };
    let token = within(moved).await;
    assert!(token > mine.token());
    assert_eq!(within(kept.held()).await, Some(token));
    // The old owner is told by the answer to its next heartbeat.
    stage.advance(Duration::from_secs(5)).await;
    within(mine.lost()).await;
}

/// A lock is handed to who waits for it, one at a time.
#[tokio::test]
async fn a_lock_waits_for_its_turn() {
    let (stage, a, b) = two().await;
    let held = a.lock("job", Value::empty()).await.unwrap();
    let waits = tokio::spawn(async move { b.lock("job", Value::empty()).await.unwrap() });
    stage.settle().await;
    assert!(!waits.is_finished());
    let first = held.token();
    held.release().await.unwrap();
    let next = async {
        while !waits.is_finished() {
            stage.advance(Duration::from_millis(100)).await;
        }
    };
    within(next).await;
    assert!(within(waits).await.unwrap().token() > first);
}

/// R6: a copy that hears no hints converges within one heartbeat.
#[tokio::test]
async fn lost_hints_cost_time_and_nothing_else() {
    let (stage, a, b) = two().await;
    let first = a.register("first", Value::empty()).await.unwrap();
    within(b.reached(first.rev())).await.unwrap();
    stage.faults().hints(HintFault::Drop);
    let step = Duration::from_millis(100);
    for n in 0..10 {
        // At another moment between two looks each time.
        stage.advance(Duration::from_millis(730)).await;
        let name = format!("n{n}");
        let mine = a.register(&name, Value::empty()).await.unwrap();
        let registered = stage.clock().now();
        while b.lookup(&name).is_none() {
            let waited = stage.clock().now().since(registered);
            assert!(waited <= Duration::from_millis(2_500) + step, "{waited:?} for {name}");
            stage.advance(step).await;
        }
        mine.release().await.unwrap();
    }
    assert!(first.is_current());
}

/// A singleton runs in one process, is found under its name, and ends with its work.
#[tokio::test]
async fn a_singleton_is_found_under_its_name() {
    let (_stage, a, b) = two().await;
    let value = Value::at("h:1").unwrap();
    let inside = a.clone();
    let done = a.singleton("billing", value, |leadership| {
        let registry = inside.clone();
        async move {
            let found = registry.lookup("billing").unwrap();
            assert!(leadership.is_current());
            found.value().endpoint().map(String::from)
        }
    });
    assert_eq!(within(done).await.unwrap().as_deref(), Some("h:1"));
    assert!(b.lookup_consistent("billing").await.unwrap().is_none());
    assert_eq!(a.leader_key(), "registry:orders");
    assert!(a.leader().await.unwrap().is_none());
}

/// A thousand names go together, and are found together (R3).
#[tokio::test]
async fn many_names_are_registered_together() {
    let (_stage, a, b) = two().await;
    let batch = (0..1_000).map(|n| (format!("n{n}"), Value::empty()));
    let all = a.register_all(batch).await.unwrap();
    let newest = all.iter().map(|each| each.as_ref().unwrap().rev()).max().unwrap();
    within(b.reached(newest)).await.unwrap();
    assert_eq!(b.all().len(), 1_000);
}

/// Where the store cannot tell what changed, the copy reads every name.
#[tokio::test]
async fn a_registry_works_over_compare_and_swap() {
    use std::sync::Arc;
    use tenure_cas::{CasOptions, CasStore, MemoryRegister};

    let register = Arc::new(MemoryRegister::new());
    let clock = Arc::new(tenure::store::BootClock);
    let store = || {
        let store = CasStore::new(register.clone(), clock.clone(), CasOptions::default());
        Arc::new(store.unwrap())
    };
    let a = tenure::Tenure::with_store(store()).id("a").connect().await.unwrap();
    let b = tenure::Tenure::with_store(store()).id("b").connect().await.unwrap();
    let a = Registry::open(&a, "s").unwrap();
    let b = Registry::open(&b, "s").unwrap();
    within(a.ready()).await.unwrap();
    let mine = within(a.register("n", Value::empty())).await.unwrap();
    assert_eq!(a.lookup("n").unwrap().token(), mine.token());
    within(b.reached(mine.rev())).await.unwrap();
    assert_eq!(b.lookup("n").unwrap().token(), mine.token());
    let refused = within(b.register("n", Value::empty())).await.unwrap_err();
    assert!(matches!(refused, RegisterError::Taken(_)), "{refused}");
    within(mine.release()).await.unwrap();
    within(b.reached(Rev::START)).await.unwrap();
    assert!(b.lookup("n").is_none());
}

/// All registries of one member share one copy: what one registers, another finds at once.
#[tokio::test]
async fn registries_of_one_member_share_one_copy() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let one = Registry::open(&tenure, "orders").unwrap();
    within(one.ready()).await.unwrap();
    stage.outage(true);
    let two = Registry::open(&tenure.clone(), "orders").unwrap();
    within(two.ready()).await.expect("it needs no store");
    stage.outage(false);
    let mine = one.register("n", Value::empty()).await.unwrap();
    assert_eq!(two.lookup("n").unwrap().token(), mine.token());
}

/// R5: a copy that cannot reach the store drops the names of owners whose ttl has run out as
/// far as it knows, and has them again once it can: they were not changed meanwhile, so that the
/// store does not tell of them by itself.
#[tokio::test]
async fn names_come_back_after_an_outage_that_their_owner_survived() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    within(b.reached(mine.rev())).await.unwrap();
    // Names cannot be read for more than a ttl, and heartbeats go through.
    stage.faults().script(StoreVerb::Names, [Fault::FailBefore; 18]);
    within(passes(&stage, || b.lookup("n").is_none())).await;
    assert!(mine.is_current());
    within(passes(&stage, || b.lookup("n").is_some())).await;
    assert_eq!(b.lookup("n").unwrap().token(), mine.token());
}

/// A registration is answered while names cannot be read: it does not wait for the pause between
/// two attempts.
#[tokio::test]
async fn a_registration_waits_for_no_reading() {
    let (stage, a, _b) = two().await;
    stage.faults().script(StoreVerb::Names, [Fault::FailBefore; 1_000]);
    // The looks fail, and the task pauses longer and longer.
    stage.advance(Duration::from_secs(20)).await;
    let mine = within(a.register("n", Value::empty())).await.unwrap();
    assert_eq!(a.lookup("n").unwrap().token(), mine.token());
}

/// A watch that resumes after an owner has died is told which lives there are: no request wrote
/// down that the dead one's names are gone.
#[tokio::test]
async fn a_resumed_watch_is_told_of_owners_that_died_meanwhile() {
    let (stage, a, b) = two().await;
    let of_a = a.register("user/1", Value::empty()).await.unwrap();
    let of_b = b.register("user/2", Value::empty()).await.unwrap();
    let from = of_b.rev();
    within(b.reached(from)).await.unwrap();
    let dead = b.lookup("user/1").unwrap().owner().unwrap().clone();
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&dead.id).await.unwrap();
    within(passes(&stage, || b.lookup("user/1").is_none())).await;
    let mut resumed = b.watch("user/").from(from);
    let Some(Change::Lives { lives, .. }) = within(resumed.next()).await else { panic!() };
    assert!(!lives.contains(&dead) && lives.len() == 1, "{lives:?}");
    drop((of_a, of_b));
}

/// R2: a watch from a revision of which the store knows nothing begins with all names.
#[tokio::test]
async fn a_watch_from_a_revision_that_is_gone_is_told_all_names() {
    let (_stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    within(b.reached(mine.rev())).await.unwrap();
    for gone in [Rev::START, Rev::new(1 << 40)] {
        let mut watch = b.watch("").from(gone);
        let Some(Change::Resynced { names, .. }) = within(watch.next()).await else { panic!() };
        assert_eq!(names.len(), 1);
    }
}

/// What waits for a member ends when the member is shut down, each in its own words: a stream
/// by its end, a wait by an error, a kept name by being kept no more.
#[tokio::test]
async fn everything_ends_with_the_member() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let names = Registry::open(&tenure, "s").unwrap();
    within(names.ready()).await.unwrap();
    let mut watch = names.watch("");
    assert!(matches!(within(watch.next()).await, Some(Change::Resynced { .. })));
    let mut kept = names.keep("n", Value::empty()).unwrap();
    assert!(within(kept.held()).await.is_some());
    tenure.shutdown().await.unwrap();
    while within(watch.next()).await.is_some() {}
    assert!(within(kept.held()).await.is_none());
    assert!(within(names.reached(Rev::new(1 << 40))).await.is_err());
    let refused = within(names.register("m", Value::empty())).await.unwrap_err();
    assert!(refused.to_string().contains("shut down"), "{refused}");
    let refused = Registry::open(&tenure, "s").unwrap_err();
    assert!(refused.to_string().contains("shut down"), "{refused}");
    assert!(names.lookup("m").is_none());
}

/// Two tasks of one process that share a name do not overwrite each other's value unseen.
#[tokio::test]
async fn a_value_is_set_only_at_the_revision_that_was_expected() {
    let (_stage, a, _) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    let first = mine.rev();
    mine.set_if(first, Value::at("h:1").unwrap()).await.unwrap();
    let refused = mine.set_if(first, Value::at("h:2").unwrap()).await.unwrap_err();
    assert!(matches!(&refused, RegisterError::Changed(there) if there.rev == mine.rev()));
    assert!(refused.to_string().contains("nothing was changed now"), "{refused}");
    assert_eq!(a.lookup("n").unwrap().value().endpoint(), Some("h:1"));
    assert!(mine.is_current());
}

/// The leader of a scope, and the members, both without a request and
/// with one.
#[tokio::test]
async fn a_scope_has_a_leader_for_who_stands() {
    let (stage, a, b) = two().await;
    assert!(a.leader().await.unwrap().is_none(), "no member stands unasked");
    let standing = a.stand().unwrap();
    stage.until_led(a.leader_key()).await.unwrap();
    assert_eq!(b.leader().await.unwrap().unwrap().member.id.as_str(), "a");
    let first = b.epoch().await.unwrap();
    let also = b.stand().unwrap();
    drop(standing);
    let moved = async {
        while b.leader().await.unwrap().is_none_or(|leader| leader.member.id.as_str() != "b") {
            stage.advance(Duration::from_millis(500)).await;
        }
    };
    within(moved).await;
    assert!(b.epoch().await.unwrap() > first);
    let ids = |views: Vec<tenure::MemberView>| {
        let mut ids: Vec<_> = views.iter().map(|view| view.member.id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(a.members_consistent().await.unwrap()), ["a", "b"]);
    within(passes(&stage, || ids(a.members()) == ["a", "b"])).await;
    drop(also);
}

/// Lets time pass until something holds.
async fn passes(stage: &Stage, holds: impl Fn() -> bool) {
    while !holds() {
        stage.advance(Duration::from_millis(500)).await;
    }
}

/// U4: a copy of a request that arrives when the name is free again binds it to a process
/// that does not know of it. The copy of names shows it, and it is given back.
#[tokio::test]
async fn a_name_that_a_late_request_bound_is_given_back() {
    let store = Arc::new(MemoryStore::new());
    let tenure = Tenure::with_store(store.clone()).id("a").connect().await.unwrap();
    let names = Registry::open(&tenure, "orders").unwrap();
    within(names.ready()).await.unwrap();
    let mine = within(names.register("kept", Value::empty())).await.unwrap();
    let owner = tenure.members().await.unwrap()[0].member.clone();

    let late = Name::new("orders:late").unwrap();
    let take = BindOp::take(late.clone(), Nonce::new(1), Value::empty());
    let bind = Bind::new(owner, Duration::from_secs(10), vec![take]);
    let ns = Namespace::default();
    let bound = store.bind(&ns, &bind).await.unwrap();
    assert!(matches!(&bound, Bindings::Answered(a) if matches!(a[0], BindAnswer::Bound(_))));

    let is_free = || async {
        let which = WhichNames::Named(vec![late.clone()]);
        store.names(&ns, &which).await.unwrap().bindings.is_empty()
    };
    tenure_testkit::until("the name is free", is_free).await;
    assert!(mine.is_current(), "what was registered stays");
}
