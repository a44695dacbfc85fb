//! Callbacks are told in order, awaited, and told the end, however it comes.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::{let_pass_blocking, secs, within};
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{LeadError, Leadership, Left, Tenure};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

type Heard = mpsc::UnboundedReceiver<String>;
type Stood = JoinHandle<Result<(), LeadError>>;

/// What the callbacks of a test do when they are told.
#[derive(Default)]
struct Play {
    /// What they wait for, each once.
    elected: Option<oneshot::Receiver<()>>,
    stopping: Option<oneshot::Receiver<()>>,
    /// Which of them panics.
    panics: &'static str,
}

/// Says how a callback ended: by itself, or dropped.
struct Ends(mpsc::UnboundedSender<String>, &'static str, bool);

impl Drop for Ends {
    fn drop(&mut self) {
        let how = if self.2 { "done" } else { "dropped" };
        let _ = self.0.send(format!("{} {how}", self.1));
    }
}

fn stand(tenure: &Tenure, play: Play) -> (Heard, Stood) {
    let (say, heard) = mpsc::unbounded_channel();
    let Play { elected, stopping, panics } = play;
    let waits = Arc::new(Mutex::new((elected, stopping)));
    let first = waits.clone();
    let second = waits;
    let s1 = say.clone();
    let s2 = say.clone();
    let s3 = say;
    let callbacks = tenure
        .election("e")
        .on_elected(move |leadership: Leadership| {
            s1.send(format!("elected {}", leadership.token())).unwrap();
            let wait = first.lock().unwrap().0.take();
            let say = s1.clone();
            async move {
                let mut ends = Ends(say, "elected", false);
                if let Some(wait) = wait {
                    wait.await.unwrap();
                }
                assert_ne!(panics, "elected", "as the test wants");
                ends.2 = true;
            }
        })
        .on_stopping(move |_, why| {
            s2.send(format!("stopping {why:?}")).unwrap();
            let wait = second.lock().unwrap().1.take();
            let say = s2.clone();
            async move {
                let mut ends = Ends(say, "stopping", false);
                if let Some(wait) = wait {
                    wait.await.unwrap();
                }
                assert_ne!(panics, "stopping", "as the test wants");
                ends.2 = true;
            }
        })
        .on_lost(move |term, why| {
            let _ = s3.send(format!("lost {} {why:?}", term.number));
            assert_ne!(panics, "lost", "as the test wants");
        });
    (heard, tokio::spawn(callbacks.stand()))
}

async fn hear(heard: &mut Heard) -> String {
    within(heard.recv()).await.unwrap()
}

/// L2: elected is awaited before stopping is told, stopping is awaited before the term
/// is released, and lost is told in between.
#[tokio::test]
async fn callbacks_are_awaited_one_by_one_before_the_release() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let (start, elected) = oneshot::channel();
    let (stop, stopping) = oneshot::channel();
    let play = Play { elected: Some(elected), stopping: Some(stopping), panics: "" };
    let (mut heard, stood) = stand(&a, play);
    assert_eq!(hear(&mut heard).await, "elected 1");
    let next = common::stands(&stage, &b, 100).await;
    stage.ask_to_step_down("e", "deploying").await.unwrap();
    stage.advance(secs(2)).await;
    assert!(heard.try_recv().is_err(), "elected has not returned");
    start.send(()).unwrap();
    assert_eq!(hear(&mut heard).await, "elected done");
    assert!(hear(&mut heard).await.starts_with("stopping Asked"));
    stage.advance(secs(6)).await;
    assert!(!next.is_finished() && a.election("e").is_led_here());
    stop.send(()).unwrap();
    assert_eq!(hear(&mut heard).await, "stopping done");
    assert_eq!(hear(&mut heard).await, "lost 1 SteppedDown");
    let next = within(next).await.unwrap();
    assert_eq!(next.token(), 2);
    // It stands again by itself, after its cooldown.
    stage.advance(secs(11)).await;
    next.resign().await.unwrap();
    assert_eq!(hear(&mut heard).await, "elected 3");
    assert_eq!(hear(&mut heard).await, "elected done");
    // A shutdown ends it in order.
    let shut = tokio::spawn(async move { a.shutdown().await });
    assert_eq!(hear(&mut heard).await, "stopping Shutdown");
    assert_eq!(hear(&mut heard).await, "stopping done");
    assert_eq!(hear(&mut heard).await, "lost 3 Resigned");
    within(stood).await.unwrap().unwrap();
    assert_eq!(within(shut).await.unwrap().unwrap(), Left::Confirmed);
    assert!(heard.recv().await.is_none());
}

/// L2, T3: at the end of trust lost is told without the store, and the callback that
/// runs is cancelled, whichever it is.
#[tokio::test]
async fn a_callback_is_cancelled_and_lost_is_told_at_the_end_of_trust() {
    for runs in ["elected", "stopping"] {
        let stage = Stage::new();
        let a = stage.connect("a").await.unwrap();
        let (_never, waits) = oneshot::channel();
        let mut play = Play::default();
        if runs == "elected" {
            play.elected = Some(waits);
        } else {
            play.stopping = Some(waits);
        }
        let (mut heard, stood) = stand(&a, play);
        assert_eq!(hear(&mut heard).await, "elected 1");
        if runs == "stopping" {
            assert_eq!(hear(&mut heard).await, "elected done");
            stage.ask_to_step_down("e", "").await.unwrap();
            assert!(hear(&mut heard).await.starts_with("stopping"));
        }
        stage.faults().script(StoreVerb::Heartbeat, [Fault::FailBefore; 200]);
        stage.advance(secs(9)).await;
        assert_eq!(hear(&mut heard).await, format!("{runs} dropped"));
        assert_eq!(hear(&mut heard).await, "lost 1 TrustEnded");
        stood.abort();
    }
}

/// L2: a stopping callback that is too slow is cancelled when the drain is over.
#[tokio::test]
async fn a_stopping_callback_is_bounded_by_the_drain() {
    let stage = Stage::new();
    let a = stage.connect_with(|m| m.id("a").drain(secs(4))).await.unwrap();
    let (_never, waits) = oneshot::channel();
    let (mut heard, _stood) = stand(&a, Play { stopping: Some(waits), ..Play::default() });
    assert_eq!(hear(&mut heard).await, "elected 1");
    assert_eq!(hear(&mut heard).await, "elected done");
    stage.ask_to_step_down("e", "").await.unwrap();
    assert!(hear(&mut heard).await.starts_with("stopping"));
    stage.advance(secs(4)).await;
    assert_eq!(hear(&mut heard).await, "stopping dropped");
    assert_eq!(hear(&mut heard).await, "lost 1 DrainTimeout");
}

/// L2: a panic in any callback: those that are still due are told, the term is
/// released, and the panic is reported.
#[tokio::test]
async fn a_panic_in_a_callback_ends_the_reign_in_order() {
    for panics in ["elected", "stopping", "lost"] {
        let stage = Stage::new();
        let a = stage.connect("a").await.unwrap();
        let (mut heard, stood) = stand(&a, Play { panics, ..Play::default() });
        assert_eq!(hear(&mut heard).await, "elected 1");
        let how = |of| if of == panics { "dropped" } else { "done" };
        assert_eq!(hear(&mut heard).await, format!("elected {}", how("elected")));
        if panics != "elected" {
            stage.ask_to_step_down("e", "").await.unwrap();
        }
        assert!(hear(&mut heard).await.starts_with("stopping"));
        assert_eq!(hear(&mut heard).await, format!("stopping {}", how("stopping")));
        assert!(hear(&mut heard).await.starts_with("lost 1"));
        let outcome = within(stood).await.unwrap();
        let Err(LeadError::Panicked(said)) = outcome else { panic!("{outcome:?}") };
        assert!(said.contains("as the test wants"), "{said}");
        assert!(a.election("e").leader().await.unwrap().is_none(), "released when reported");
    }
}

/// L2: dropped half-way, the callback that runs is cancelled, lost is told, and the
/// term is released when what still has the leadership has stopped.
#[tokio::test]
async fn dropped_callbacks_are_told_lost_and_what_they_started_keeps_the_term() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let (give, mut given) = mpsc::unbounded_channel();
    let (say, mut heard) = mpsc::unbounded_channel();
    let callbacks = a
        .election("e")
        .on_elected(move |leadership| {
            give.send(leadership).unwrap();
            async {}
        })
        .on_lost(move |_, why| say.send(format!("lost {why:?}")).unwrap());
    let stood = tokio::spawn(callbacks.stand());
    let leadership = within(given.recv()).await.unwrap();
    stood.abort();
    within(stood).await.unwrap_err();
    assert_eq!(hear(&mut heard).await, "lost Resigned");
    within(leadership.stopping()).await;
    stage.settle().await;
    assert!(leadership.is_current());
    assert_eq!(stage.faults().counts().calls(StoreVerb::Release), 0);
    drop(leadership);
    stage.settle().await;
    assert_eq!(stage.faults().counts().calls(StoreVerb::Release), 1);
}

/// L2, F2: callbacks that block their runtime cost neither the heartbeat nor the term.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_blocks_its_thread_costs_no_heartbeat() {
    let tenure = Tenure::builder("memory:blocking").ttl(secs(2)).connect().await.unwrap();
    let (say, mut heard) = mpsc::unbounded_channel();
    let callbacks = tenure.election("e").on_elected(move |leadership| {
        let_pass_blocking(secs(4), "far longer than trust lasts without a renewal");
        say.send(leadership.is_current()).unwrap();
        async {}
    });
    let stood = tokio::spawn(callbacks.stand());
    assert!(within(heard.recv()).await.unwrap(), "renewed all the while");
    tenure.shutdown().await.unwrap();
    within(stood).await.unwrap().unwrap();
}

/// A name that cannot be used is an error of `stand`, and so is a second campaign.
#[tokio::test]
async fn callbacks_that_cannot_stand_say_why() {
    let (_stage, tenure, _leadership) = common::leader().await;
    for name in ["", "e"] {
        let stood = within(tenure.election(name).on_elected(|_| async {}).stand()).await;
        assert!(matches!(stood, Err(LeadError::Campaign(_))), "{stood:?}");
    }
}
