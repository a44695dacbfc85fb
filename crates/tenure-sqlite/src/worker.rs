//! A connection at work on a thread of its own, and the transactions it runs.
//!
//! SQLite blocks: on the disk, and on others who write. None of that happens on
//! the caller's thread. A store has two workers, one that writes and one
//! that only reads, so that a long look never delays a heartbeat.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::Namespace;
use tenure_store::{BootClock, Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::era::Beside;
use crate::error::{Fault, Outcome};
use crate::judge::Judge;
use crate::shared::Shared;
use crate::turn::{Line, Patience, Place};
use crate::txn::{Txn, nothing_probed};

/// What a commit must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power cut: the log is synced before the answer. Term numbers must
    /// never go back.
    PowerCut,
    /// A crash of this process. A join, a heartbeat or a leave that is lost in a
    /// power cut costs nothing: the member is gone anyway.
    Crash,
}

impl Durability {
    fn pragma(self) -> &'static str {
        match self {
            Self::PowerCut => "FULL",
            Self::Crash => "NORMAL",
        }
    }
}

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// What requests are sent to a worker by. The worker ends when its last handle is gone.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    jobs: mpsc::Sender<Job>,
}

impl WorkerHandle {
    /// Puts a connection to work on a new thread.
    pub(crate) fn open(name: &str, mut worker: Worker) -> Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let work = move || {
            for job in inbox {
                // A defect in one request must not silence all later ones; the
                // caller is told, and whatever it had begun is rolled back.
                if catch_unwind(AssertUnwindSafe(|| job(&mut worker))).is_err() {
                    worker.tidy();
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        thread.map_err(|error| {
            Error::new(ErrorKind::Internal, "starting a thread for the SQLite store failed")
                .caused_by(error)
                .remedy("raise the limit on threads")
        })?;
        Ok(Self { jobs })
    }

    /// Has the worker do something, and waits for the answer. A caller that gave
    /// up before its turn came is passed over; later, the work is done all the
    /// same and only the answer is lost.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Worker) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |worker| {
            if !reply.is_closed() {
                drop(reply.send(work(worker)));
            }
        });
        let gone = || Error::new(ErrorKind::Internal, "the SQLite store's thread is gone");
        self.jobs.send(job).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| {
            let remedy = "please report this, with the panic message on standard error";
            Err(gone().remedy(remedy).maybe_applied())
        })
    }
}

/// A connection, and what its transactions need to know.
#[derive(Debug)]
pub(crate) struct Worker {
    db: Connection,
    shared: Arc<Shared>,
    line: Line,
    durability: Option<Durability>,
}

impl Worker {
    pub(crate) fn new(db: Connection, shared: Arc<Shared>) -> Self {
        let line = Line::new(shared.lives.line());
        Self { db, shared, line, durability: None }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Turns off SQLite's own waiting for locks: see [`begin`](Self::begin).
    pub(crate) fn wait_no_more(&self) -> Result<()> {
        let off = self.db.busy_timeout(Duration::ZERO);
        off.map_err(|error| Fault::from(error).told("setting up", &self.shared.path))
    }

    /// Lets SQLite wait for locks no longer than a request may.
    pub(crate) fn wait_less(&self) -> Result<()> {
        let set = self.db.busy_timeout(self.shared.options.lock_wait());
        set.map_err(|error| Fault::from(error).told("setting up", &self.shared.path))
    }

    /// Runs one atomic step that may write.
    pub(crate) fn write<T>(
        &mut self,
        doing: &str,
        ns: &Namespace,
        durability: Durability,
        step: impl FnOnce(&mut Txn<'_>) -> Outcome<T>,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let told = |fault: Fault| fault.told(doing, &shared.path);
        shared.may_write(doing)?;
        self.tidy();
        self.set(durability).map_err(told)?;
        // Held until the step is committed: then it is the next one's turn.
        let _place = self.begin().map_err(told)?;
        let done = self.step(ns, step);
        let (answer, held, over) = done.map_err(|fault| {
            self.tidy();
            told(fault)
        })?;
        if let Err(error) = self.db.execute_batch("COMMIT") {
            self.tidy();
            let fault = Fault::from(error);
            // A full disk leaves the commit record unwritten. Any other failure
            // may have come after it, and a recovery could find it.
            let full = fault.is_full();
            let error = told(fault);
            return Err(if full { error } else { error.maybe_applied() });
        }
        shared.settle(held.is_some(), &over);
        if let Some(held) = held.filter(|_| durability == Durability::PowerCut) {
            held.note(shared.lives.directory());
        }
        Ok(answer)
    }

    /// Takes the write lock, in turn. Waits as long as the options say for one
    /// who holds it, and for as many as there are.
    fn begin(&self) -> Outcome<Place> {
        let limit = self.shared.options.lock_wait();
        let mut patience = Patience::new(BootClock::read(), limit, self.version()?);
        let mut place = self.line.stand();
        for tries in 0.. {
            place.wait(tries, patience.left(BootClock::read()));
            let Err(error) = self.db.execute_batch("BEGIN IMMEDIATE") else { break };
            let fault = Fault::from(error);
            if !fault.is_busy() || patience.is_over(BootClock::read(), self.version()?) {
                return Err(fault);
            }
        }
        Ok(place)
    }

    /// Changes whenever another connection commits.
    fn version(&self) -> Outcome<i64> {
        Ok(self.db.pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    /// The step itself, with the clock read after the lock is held: a verb that
    /// waited must not act on a time that has passed (rule M2).
    fn step<T>(
        &self,
        ns: &Namespace,
        step: impl FnOnce(&mut Txn<'_>) -> Outcome<T>,
    ) -> Outcome<(T, Option<Beside>, Vec<tenure_core::Incarnation>)> {
        self.shared.identity.check()?;
        let judge = self.judge(true);
        let wall = self.shared.options.clock.wall();
        let mut txn = Txn::begin(&self.db, ns.as_str(), judge, wall)?;
        let answer = step(&mut txn)?;
        txn.finish(self.shared.options.journal_keep)?;
        let held = match txn.is_news() {
            true => Some(txn.held()?),
            false => None,
        };
        Ok((answer, held, txn.over))
    }

    /// Copies what is in the log into the file itself, as far as no reader is in the way,
    /// so that a copy of the file alone has everything.
    pub(crate) fn checkpoint(&mut self) {
        let moved = self.db.pragma_query(None, "wal_checkpoint", |_| Ok(()));
        if let Err(error) = moved {
            tracing::debug!(%error, path = %self.shared.path.display(), "the log is not moved");
        }
    }

    /// Looks at one consistent moment.
    pub(crate) fn look<T>(
        &mut self,
        doing: &str,
        ns: &Namespace,
        look: impl FnOnce(&Txn<'_>) -> Outcome<T>,
    ) -> Result<T> {
        self.tidy();
        let found = self.snapshot(ns, look);
        self.tidy();
        found.map_err(|fault| fault.told(doing, &self.shared.path))
    }

    fn snapshot<T>(&self, ns: &Namespace, look: impl FnOnce(&Txn<'_>) -> Outcome<T>) -> Outcome<T> {
        self.shared.identity.check()?;
        self.db.execute_batch("BEGIN")?;
        // The snapshot is taken by the first read, and the clock is read after
        // it: a row of another boot must not seem older than it is.
        crate::txn::place(&self.db, ns.as_str())?;
        let wall = self.shared.options.clock.wall();
        look(&Txn::begin(&self.db, ns.as_str(), self.judge(false), wall)?)
    }

    fn judge(&self, by_proof: bool) -> Judge<'_> {
        Judge {
            now: self.shared.options.clock.now(),
            boot: self.shared.boot.as_str(),
            drift_ppm: self.shared.options.drift_ppm,
            sightings: &self.shared.sightings,
            lives: &self.shared.lives,
            by_proof,
            probed: nothing_probed(),
            worked: nothing_probed(),
        }
    }

    /// The pragma takes effect between transactions only.
    fn set(&mut self, durability: Durability) -> Outcome<()> {
        if self.durability != Some(durability) {
            self.durability = None;
            self.db.pragma_update(None, "synchronous", durability.pragma())?;
            self.durability = Some(durability);
        }
        Ok(())
    }

    /// Ends a transaction that was left open.
    fn tidy(&mut self) {
        if self.db.is_autocommit() {
            return;
        }
        if let Err(error) = self.db.execute_batch("ROLLBACK") {
            tracing::warn!(%error, path = %self.shared.path.display(), "rolling back failed");
        }
    }

    /// The connection itself, for tests.
    #[cfg(test)]
    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }
}
