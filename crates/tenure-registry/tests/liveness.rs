//! R5 and R1 where answers hang or are late: owners whose ttl has run out, and names that a
//! caller stopped waiting for.

#![allow(clippy::unwrap_used)]

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tenure::naming::{Name, Value};
use tenure::store::Store;
use tenure::testing::{Fault, HintFault, Stage, StoreVerb};
use tenure::views::MemberRef;
use tenure_core::{Bind, BindOp, Nonce};
use tenure_registry::Registry;
use tenure_testkit::{requests, within};

/// An owner without a process: it beats when it is told to.
async fn owner(stage: &Stage, id: &str, life: u128, name: &str) -> MemberRef {
    let member = requests::member(id, life);
    stage.faults().join(&requests::ns(), &requests::join(&member)).await.unwrap();
    let take = BindOp::take(Name::new(format!("s:{name}")).unwrap(), Nonce::new(1), Value::empty());
    let bind = Bind::new(member.clone(), Duration::from_secs(10), [take]);
    stage.faults().bind(&requests::ns(), &bind).await.unwrap();
    member
}

async fn reader() -> (Stage, Registry) {
    let stage = Stage::new();
    let reader = stage.connect_with(|m| m.id("reader")).await.unwrap();
    let names = Registry::open(&reader, "s").unwrap();
    within(names.ready()).await.unwrap();
    (stage, names)
}

async fn sees(stage: &Stage, names: &Registry, count: usize) {
    let seen = async {
        while names.all().len() != count {
            stage.advance(Duration::from_millis(50)).await;
        }
    };
    within(seen).await;
}

/// R5: a question that is asked when the ttl of one owner has run out already, and that hangs,
/// keeps neither that owner's names nor those of another whose ttl runs out meanwhile.
#[tokio::test]
async fn owners_expire_while_a_question_hangs() {
    let (stage, names) = reader().await;
    owner(&stage, "a", 1, "first").await;
    stage.advance(Duration::from_millis(400)).await;
    owner(&stage, "b", 2, "second").await;
    sees(&stage, &names, 2).await;
    stage.faults().script(StoreVerb::Names, [Fault::Hang; 100]);
    // A process that was stopped: the first ttl is over, the second nearly.
    stage.jump(Duration::from_millis(9_700));
    stage.settle().await;
    stage.advance(Duration::from_millis(1_200)).await;
    let left: Vec<_> = names.all().iter().map(|found| found.as_str().to_owned()).collect();
    assert!(left.is_empty(), "a request may take 2.5 s, and it is {left:?} after 1.2 s");
}

/// R1, R5: names that vanished here while an answer was on its way, because their owner's ttl
/// seemed to have run out, are back with the next answer.
#[tokio::test]
async fn names_that_vanished_during_a_question_come_back() {
    let (stage, names) = reader().await;
    let a = owner(&stage, "a", 1, "n").await;
    sees(&stage, &names, 1).await;
    let beats = || async {
        stage.faults().heartbeat(&requests::ns(), &requests::beat(&a)).await.unwrap();
    };
    // The copy was told that the ttl runs out at ten seconds; the owner beats after that, and
    // the next answer, which knows, is on its way until then.
    stage.advance(Duration::from_millis(8_900)).await;
    beats().await;
    stage.faults().script(StoreVerb::Names, [Fault::HoldReply]);
    let vanished = async {
        while !names.all().is_empty() {
            stage.advance(Duration::from_millis(50)).await;
        }
    };
    within(vanished).await;
    stage.faults().let_go();
    sees(&stage, &names, 1).await;
}

/// A caller that stops waiting between the store's answer and its place in the copy leaves
/// nothing behind: neither the name in the store, nor its trace in the copy.
#[tokio::test]
async fn a_registration_that_is_given_up_leaves_no_trace() {
    for many in [false, true] {
        let (stage, names) = reader().await;
        // No answer of the store's clears anything away here.
        stage.faults().hints(HintFault::Drop);
        stage.settle().await;
        let full = Name::new("s:n").unwrap();
        let registers = async {
            match many {
                true => drop(names.register_all([("n", Value::empty())]).await),
                false => drop(names.register("n", Value::empty()).await),
            }
        };
        let mut registers = Box::pin(registers);
        // The task that keeps the copy shares this thread, and does not run meanwhile: so the
        // call goes as far as its last wait.
        let mut is_bound_since = None;
        while is_bound_since.is_none_or(|at: Instant| at.elapsed() < Duration::from_millis(200)) {
            let polled = registers.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending), "the copy's task has not run");
            if stage.faults().counts().calls(StoreVerb::Bind) > 0 {
                is_bound_since.get_or_insert_with(Instant::now);
            }
            std::thread::yield_now();
        }
        drop(registers);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(names.lookup("n").is_none(), "many: {many}");
        let which = tenure::naming::WhichNames::Named(vec![full]);
        let freed = async {
            while !stage.faults().names(&requests::ns(), &which).await.unwrap().bindings.is_empty()
            {
                stage.settle().await;
            }
        };
        within(freed).await;
    }
}
