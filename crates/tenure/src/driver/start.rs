//! Starting the driver: a thread, a runtime, a store, a loop.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::{Machine, MemberId, Namespace, Profile, Settings};
use tenure_store::{Backoff, Capabilities, Store};
use tokio::sync::{mpsc, oneshot};

use super::{Board, Command, Driver, hints::Hints, waits::Waits};
use crate::connect::{LivenessLocks, Opened, Opening, Target};
use crate::metrics::Hook;
use crate::time::{Time, Timer};
use crate::{Error, Result};

/// The pauses before a store that cannot be reached is tried again.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// All that a driver is started with.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: Box<dyn Target>,
    pub(crate) ns: Namespace,
    pub(crate) id: MemberId,
    pub(crate) profile: Profile,
    pub(crate) settings: Settings,
    /// How long a store that is away is waited for.
    pub(crate) patience: Duration,
    pub(crate) time: Time,
    pub(crate) read_only: bool,
    pub(crate) metrics: Hook,
}

/// A driver that runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) board: Arc<Board>,
    pub(crate) capabilities: Capabilities,
    pub(crate) store: Weak<dyn Store>,
    pub(crate) locks: LivenessLocks,
    pub(crate) thread: JoinHandle<()>,
}

/// What the thread says once the store is connected.
type Connected = (Capabilities, Weak<dyn Store>, LivenessLocks);

/// Starts the thread, connects the store on it, and lets the loop run.
pub(crate) async fn start(plan: Plan) -> Result<Started> {
    let seed = u128::from_ne_bytes(random()?);
    let (commands, take_commands) = mpsc::unbounded_channel();
    let board = Arc::new(Board::new());
    let (ready, connected) = oneshot::channel();
    let for_thread = board.clone();
    let thread = std::thread::Builder::new()
        .name("tenure".into())
        .spawn(move || run_thread(plan, seed, for_thread, take_commands, ready))
        .map_err(|source| Error::System { what: "starting a thread", source })?;
    match connected.await {
        Ok(Ok((capabilities, store, locks))) => {
            Ok(Started { commands, board, capabilities, store, locks, thread })
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::ShutDown),
    }
}

fn run_thread(
    plan: Plan,
    seed: u128,
    board: Arc<Board>,
    commands: mpsc::UnboundedReceiver<Command>,
    mut ready: oneshot::Sender<Result<Connected>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => {
            let _ = ready.send(Err(Error::System { what: "starting a runtime", source }));
            return;
        }
    };
    runtime.block_on(async move {
        let opened = tokio::select! {
            opened = open(&plan) => opened,
            // Nobody waits for it any more.
            () = ready.closed() => return,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let (Opened { store, locks }, timer) = opened;
        let capabilities = store.capabilities();
        let traits = capabilities.traits();
        if ready.send(Ok((capabilities, Arc::downgrade(&store), locks))).is_err() {
            return;
        }
        let Plan { ns, id, profile, settings, time, metrics, .. } = plan;
        let machine = Machine::new(id, profile, settings, traits, seed);
        let (replies, take_replies) = mpsc::unbounded_channel();
        let driver = Driver {
            machine,
            store,
            ns,
            time,
            board,
            metrics,
            trust: Arc::default(),
            reigns: HashMap::new(),
            waits: Waits::default(),
            leaving: Vec::new(),
            left: None,
            replies,
            hints: Hints::new(),
        };
        // As a task of its own, which wakes without a look at the whole runtime.
        drop(tokio::spawn(driver.run(timer, commands, take_replies)).await);
    });
}

async fn open(plan: &Plan) -> Result<(Opened, Timer)> {
    let opened = open_patiently(plan).await?;
    let timer = Timer::new(plan.time.clone())
        .map_err(|source| Error::System { what: "making a timer", source })?;
    Ok((opened, timer))
}

/// Opens the store. One that is away is tried again until the patience is over.
async fn open_patiently(plan: &Plan) -> Result<Opened> {
    let began = plan.time.now();
    let mut pauses = PAUSES;
    let mut tries = 0;
    let Plan { time, settings, read_only, .. } = plan;
    let opening = Opening { time, settings, read_only: *read_only };
    loop {
        let error = match plan.target.open(&opening).await {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        tries += 1;
        if plan.patience.is_zero() || !error.may_pass() {
            return Err(error);
        }
        let waited = plan.time.now().since(began);
        let left = plan.patience.saturating_sub(waited);
        if left.is_zero() {
            return Err(Error::StoreAway { waited, tries, last: Box::new(error) });
        }
        tracing::warn!(target: "tenure", %error, "the store cannot be reached; trying again");
        plan.time.sleep(pauses.pause().min(left)).await;
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::System {
        what: "reading random bytes from the operating system",
        source: error.into(),
    })?;
    Ok(bytes)
}
