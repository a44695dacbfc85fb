//! Starting drivers: a thread, a runtime and a store, shared by the members that one
//! process has in any number of namespaces.
//!
//! The thread ends with the last of its drivers. A member that is to be started takes a
//! [`Share`] first, and none is given out once the last one is gone, so that each of these
//! has one outcome:
//!
//! - **A second namespace is begun while the only member shuts down.** Either its share is
//!   taken first, and the shutdown does not wait for the thread, or the connection is
//!   closed, and the newcomer is told so. One with a share whose plan arrives after the
//!   thread has gone is told the same.
//! - **A member is dropped, not shut down, while another goes on.** Its driver leaves in
//!   the background and its share goes with it; the thread stays for the other.
//! - **The caller stops waiting while the store is opened.** The thread sees it and ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::{Machine, Profile, Settings};
use tenure_store::SharedStore;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::{Board, Command, Driver, waits::Waits};
use crate::client::{Client, Party};
use crate::connect::{self, LivenessLocks, Opened, Opening, Target};
use crate::feed::Feeds;
use crate::metrics::{Hook, Hooks};
use crate::time::{Time, Timer};
use crate::{Error, Result};

/// What a connection is opened with.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) target: Box<dyn Target>,
    pub(crate) time: Time,
    pub(crate) settings: Settings,
    pub(crate) read_only: bool,
    pub(crate) prove_death: bool,
    /// How long a store that cannot be reached is waited for.
    pub(crate) patience: Duration,
}

impl Reach {
    pub(crate) async fn open(&self) -> Result<Opened> {
        let Self { target, time, settings, read_only, prove_death, patience } = self;
        let opening = Opening { time, settings, read_only: *read_only, prove_death: *prove_death };
        connect::open(&**target, &opening, *patience).await
    }
}

/// What a member is started with.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) party: Party,
    pub(crate) profile: Profile,
    pub(crate) metrics: Hook,
}

/// A driver that runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) board: Arc<Board>,
    pub(crate) client: Arc<Client>,
    /// Its sender is gone once the driver has ended.
    pub(crate) ended: watch::Receiver<()>,
}

/// A thread with a runtime and an open store.
#[derive(Debug)]
pub(crate) struct Connection {
    newcomers: mpsc::UnboundedSender<Newcomer>,
    #[cfg_attr(not(unix), allow(dead_code))]
    pub(crate) locks: LivenessLocks,
    pub(crate) hooks: Hooks,
    shares: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Its sender is gone once the thread has nothing left to do.
    ended: watch::Receiver<()>,
}

/// The right to run one driver on a connection.
#[derive(Debug)]
pub(crate) struct Share(Arc<AtomicUsize>);

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A member on its way to the thread.
#[derive(Debug)]
struct Newcomer {
    plan: Plan,
    seed: u128,
    share: Share,
    ready: oneshot::Sender<Result<Started>>,
}

impl Connection {
    /// Starts a thread, and opens the store on it.
    pub(crate) async fn open(reach: Reach) -> Result<(Arc<Self>, Share)> {
        let (newcomers, arrivals) = mpsc::unbounded_channel();
        let (ready, opened) = oneshot::channel();
        let (alive, ended) = watch::channel(());
        let thread = std::thread::Builder::new()
            .name("tenure".into())
            .spawn(move || {
                run_thread(&reach, arrivals, ready);
                drop(alive);
            })
            .map_err(|source| Error::System { what: "starting a thread", source })?;
        let locks = opened.await.map_err(|_| Error::ShutDown)??;
        let shares = Arc::new(AtomicUsize::new(1));
        let share = Share(shares.clone());
        let thread = Mutex::new(Some(thread));
        let hooks = Hooks::default();
        Ok((Arc::new(Self { newcomers, locks, hooks, shares, thread, ended }), share))
    }

    /// A share for one more member, unless the last one is gone.
    pub(crate) fn share(&self) -> Result<Share> {
        let more = |shares: usize| (shares > 0).then(|| shares + 1);
        let taken = self.shares.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.map(|_| Share(self.shares.clone())).map_err(|_| Error::ShutDown)
    }

    /// Starts a driver on the connection's thread.
    pub(crate) async fn start(&self, plan: Plan, share: Share) -> Result<Started> {
        let seed = u128::from_ne_bytes(random()?);
        let (ready, started) = oneshot::channel();
        let newcomer = Newcomer { plan, seed, share, ready };
        self.newcomers.send(newcomer).map_err(|_| Error::ShutDown)?;
        started.await.map_err(|_| Error::ShutDown)?
    }

    /// Waits for the thread, if no member is left to run on it.
    pub(crate) async fn ended(&self) {
        if self.shares.load(Ordering::Acquire) > 0 {
            return;
        }
        wait_for_end(&self.ended).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It has nothing left to do but return.
            let _ = thread.join();
        }
    }
}

/// Returns once the sender is gone.
pub(crate) async fn wait_for_end(ended: &watch::Receiver<()>) {
    let mut ended = ended.clone();
    while ended.changed().await.is_ok() {}
}

fn run_thread(
    reach: &Reach,
    arrivals: mpsc::UnboundedReceiver<Newcomer>,
    mut ready: oneshot::Sender<Result<LivenessLocks>>,
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
            opened = reach.open() => opened,
            // The caller has stopped waiting.
            () = ready.closed() => return,
        };
        match opened {
            Ok(Opened { store, locks }) => {
                if ready.send(Ok(locks)).is_ok() {
                    run_members(&store, arrivals).await;
                }
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    });
}

/// Runs the drivers of all members until the last one has left.
async fn run_members(store: &SharedStore, mut arrivals: mpsc::UnboundedReceiver<Newcomer>) {
    let mut drivers = JoinSet::new();
    let feeds = Feeds::default();
    loop {
        tokio::select! {
            biased;
            newcomer = arrivals.recv() => match newcomer {
                Some(newcomer) => newcomer.start(store, &feeds, &mut drivers),
                // No handle is left that could start another.
                None => break,
            },
            Some(_) = drivers.join_next() => if drivers.is_empty() {
                return;
            },
        }
    }
    while drivers.join_next().await.is_some() {}
}

impl Newcomer {
    fn start(self, store: &SharedStore, feeds: &Feeds, drivers: &mut JoinSet<()>) {
        let Self { plan: Plan { party, profile, metrics }, seed, share, ready } = self;
        let time = party.time.clone();
        let timer = match Timer::new(time.clone()) {
            Ok(timer) => timer,
            Err(source) => {
                let _ = ready.send(Err(Error::System { what: "making a timer", source }));
                return;
            }
        };
        let (commands, take_commands) = mpsc::unbounded_channel();
        let (replies, take_replies) = mpsc::unbounded_channel();
        let (alive, ended) = watch::channel(());
        let board = Arc::new(Board::new());
        let client = Arc::new(Client::new(store.clone(), party.clone(), feeds.clone()));
        let traits = store.capabilities().traits();
        let started = Started { commands, board: board.clone(), client: client.clone(), ended };
        if ready.send(Ok(started)).is_err() {
            return;
        }
        let driver = Driver {
            machine: Machine::new(party.id, profile, party.settings, traits, seed),
            store: store.clone(),
            ns: party.ns,
            time,
            board,
            client,
            metrics,
            trust: Arc::default(),
            reigns: HashMap::new(),
            waits: Waits::default(),
            names: super::NameWaits::default(),
            leaving: Vec::new(),
            left: None,
            replies,
            hints: None,
        };
        // A task of its own, which wakes without a look at the whole runtime.
        drivers.spawn(async move {
            driver.run(timer, take_commands, take_replies).await;
            // In this order: a caller that sees the end of the driver sees its share free.
            drop(share);
            drop(alive);
        });
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
