//! Reading and steering without being a member.

#![allow(clippy::unwrap_used)]

mod common;

use common::{secs, within};
use tenure::journal::{Happening, Journalled, Seq};
use tenure::testing::{FaultyStore, ManualClock, StoreVerb};
use tenure::views::Amended;
use tenure::{Error, Observed, Tenure};
use tenure_store::MemoryStore;

/// One test at a time: one of them counts the threads of the process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// An operator sees and steers what a member does, and leaves no trace of its own but
/// what it asked for.
#[tokio::test]
async fn an_operator_reads_and_steers_and_is_no_member() {
    let _alone = ALONE.lock().await;
    let url = "memory:operator-steers";
    let tenure = Tenure::builder(url).id("web-1").ttl(secs(3)).connect().await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    let operator = Tenure::builder(url).id("ann").operate().await.unwrap();
    let election = operator.election("e");
    assert_eq!(operator.id().as_str(), "ann");
    assert_eq!(within(operator.members()).await.unwrap().len(), 1);
    assert_eq!(within(operator.elections()).await.unwrap().len(), 1);
    let leader = within(election.leader()).await.unwrap().unwrap();
    assert_eq!(leader.member.id, *tenure.id());
    assert_eq!(within(election.history(5)).await.unwrap().len(), 1);
    let mut observer = election.observe().unwrap();
    let seen = within(observer.next()).await.unwrap().observed;
    assert!(matches!(seen, Observed::Leads { .. }), "{seen:?}");

    let paused = within(election.pause("new disks")).await.unwrap();
    assert!(matches!(paused, Amended::Done { .. }), "{paused:?}");
    within(election.ask_to_step_down("new disks")).await.unwrap();
    within(leadership.stopping()).await;
    within(leadership.resign()).await.unwrap();
    while !matches!(within(observer.next()).await.unwrap().observed, Observed::Vacant { .. }) {}
    within(election.resume()).await.unwrap();
    within(operator.evict_now(tenure.id())).await.unwrap();

    let (_, entries) = within(operator.journal(100)).await.unwrap();
    let asked_by_ann = entries.iter().filter(|entry| match &entry.what {
        Happening::Paused { by, .. }
        | Happening::Resumed { by, .. }
        | Happening::StepDownAsked { by, .. } => by.as_str() == "ann",
        _ => false,
    });
    assert_eq!(asked_by_ann.count(), 3, "{entries:?}");
    let joined = entries.iter().filter(|entry| matches!(entry.what, Happening::Joined { .. }));
    assert_eq!(joined.count(), 1, "the operator joined nothing");
}

/// Opening an operator, asking, observing and following the journal start no thread.
#[tokio::test]
async fn an_operator_starts_no_thread() {
    let _alone = ALONE.lock().await;
    let before = threads();
    let operator = Tenure::operate("memory:").await.unwrap();
    within(operator.members()).await.unwrap();
    let mut observer = operator.election("e").observe().unwrap();
    within(observer.next()).await.unwrap();
    let mut journal = operator.follow(Some(Seq::START)).unwrap();
    within(operator.election("e").pause("")).await.unwrap();
    within(journal.next()).await.unwrap();
    assert_eq!(threads(), before);
}

/// Outside of a tokio runtime there is nothing that could carry the connections.
#[test]
fn an_operator_without_a_runtime_is_refused() {
    let mut operate = Box::pin(Tenure::operate("memory:"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(operator) = operate.as_mut().poll(&mut context) else {
        panic!("it waits for something")
    };
    let error = operator.unwrap_err();
    assert!(matches!(error, Error::System { .. }), "{error}");
    assert!(error.to_string().contains("runtime"), "{error}");
}

/// What is made from an operator keeps the connection, and ends with it.
#[tokio::test]
async fn streams_outlive_the_handle_that_made_them() {
    let _alone = ALONE.lock().await;
    let url = "memory:operator-streams";
    let operator = Tenure::operate(url).await.unwrap();
    let mut journal = operator.follow(Some(Seq::START)).unwrap();
    let mut observer = operator.in_namespace("other").unwrap().election("e").observe().unwrap();
    drop(operator);
    let seen = within(observer.next()).await.unwrap().observed;
    assert!(matches!(seen, Observed::Vacant { .. }), "{seen:?}");
    let other = Tenure::operate(url).await.unwrap();
    within(other.election("e").pause("")).await.unwrap();
    let news = within(journal.next()).await;
    assert!(matches!(&news, Some(Journalled::Entries(entries)) if entries.len() == 1), "{news:?}");
    within(other.in_namespace("other").unwrap().election("e").pause("")).await.unwrap();
    let seen = within(observer.next()).await.unwrap().observed;
    assert!(matches!(seen, Observed::Paused(_)), "{seen:?}");
}

/// A request to a store that hangs is given up at its deadline, and the error of a write
/// says that it may have been applied.
#[tokio::test]
async fn a_request_of_an_operator_ends_at_its_deadline() {
    let _alone = ALONE.lock().await;
    let clock = std::sync::Arc::new(ManualClock::new());
    let memory = MemoryStore::with_clock(clock.clone()).shared();
    let faults = FaultyStore::new(memory);
    let builder = Tenure::with_store(faults.shared()).manual_clock(clock.clone()).ttl(secs(8));
    let operator = builder.operate().await.unwrap();
    for (verb, writes) in [(StoreVerb::Read, false), (StoreVerb::Amend, true)] {
        faults.script(verb, [tenure::testing::Fault::Hold]);
        let election = operator.election("e");
        let mut asked = tokio::spawn(async move {
            match writes {
                true => election.pause("").await.map(drop),
                false => election.view().await.map(drop),
            }
        });
        let asked = within(async {
            loop {
                tokio::select! {
                    biased;
                    asked = &mut asked => return asked.unwrap(),
                    () = tokio::task::yield_now() => clock.advance(secs(1)),
                }
            }
        });
        let Err(Error::Store(error)) = asked.await else { panic!("{verb:?} was answered") };
        assert_eq!(error.kind(), tenure::ErrorKind::Timeout, "{error}");
        assert_eq!(error.may_have_applied(), writes, "{error}");
    }
}
