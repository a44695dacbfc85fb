//! The store: the contract's verbs, carried to the workers.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Incarnation, Join, Joined,
    MemberRef, NamesView, Namespace, Query, Release, Seq, Snapshot, WhichNames,
};
use tenure_store::{
    Capabilities, Error, ErrorKind, Following, NameTraits, Page, Result, SharedStore, Store, Watch,
};
use tokio::sync::{oneshot, watch};

use crate::era::Beside;
use crate::error::Outcome;
use crate::examine::examine;
use crate::follow::{self, Follower};
use crate::identity::{FileId, Identity};
use crate::judge::Sightings;
use crate::lives::Lives;
use crate::shared::{Gone, Shared};
use crate::txn::Txn;
use crate::watch::Watcher;
use crate::worker::{Durability, Worker, WorkerHandle};
use crate::{BootKey, KIND, SqliteOptions, filesystem, schema};

/// The most bids, releases or changes of names in one request.
const BATCH: usize = 1_000;

/// Elections in an SQLite file, for processes of one host.
///
/// Clones share the connections; every process opens its own.
///
/// ```
/// # use tenure_core::{ElectionName, Namespace, Query, TermNumber};
/// # use tenure_sqlite::{SqliteOptions, SqliteStore};
/// # use tenure_store::Store;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("tenure.db");
/// # runtime.block_on(async {
/// let store = SqliteStore::open(&path, SqliteOptions::new()).await?;
/// let name = ElectionName::new("nightly-report").unwrap();
/// let seen = store.read(&Namespace::default(), &Query::elections([name])).await?;
/// assert_eq!(seen.elections[0].number, TermNumber::NONE);
/// # Ok::<(), tenure_store::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    writer: WorkerHandle,
    reader: WorkerHandle,
    watcher: Watcher,
}

impl SqliteStore {
    /// Opens the file, and makes it if there is none. Any number of processes
    /// may do so at once.
    ///
    /// Fails if the path cannot be written, names a directory, lies on a network
    /// file system, or holds something that is not Tenure's or is newer than
    /// this program; each error says what to do.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let (reply, opened) = oneshot::channel();
        // Opening reads, writes and locks the file: not on the caller's thread.
        let opening = move || drop(reply.send(Self::open_blocking(path, options)));
        let thread = std::thread::Builder::new().name("tenure-open".into()).spawn(opening);
        thread.map_err(|error| {
            Error::new(ErrorKind::Internal, "starting a thread to open the SQLite store failed")
                .caused_by(error)
                .remedy("raise the limit on threads")
        })?;
        let gone = |_| Error::new(ErrorKind::Internal, "opening the SQLite store panicked");
        opened.await.map_err(gone)?
    }

    /// [`open`](Self::open) for callers that may block.
    pub fn open_blocking(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        options.check()?;
        let boot = match &options.boot_key {
            Some(key) => key.clone(),
            None => BootKey::of_this_process()?,
        };
        let full = schema::check_path(path.as_ref(), &options)?;
        if FileId::at(&full).is_none() {
            // Made first and opened then, so that what is open is known to be
            // what lies there.
            drop(schema::connect(&full, &options)?);
        }
        let before = FileId::at(&full);
        let writer = schema::connect(&full, &options)?;
        // Only now is there a file to resolve: all processes must agree on what lies
        // beside it, whatever links they came by.
        let path = full.canonicalize().unwrap_or(full);
        filesystem::check(&path)?;
        let reader = schema::connect(&path, &options)?;
        let identity = Identity::of(&path, before)?;
        let id = schema::store_id(&reader, &path)?;
        let lives = if options.read_only { Lives::look(&path) } else { Lives::open(&path)? };
        let sightings = Sightings::default();
        let gone = Gone::default();
        let stirred = watch::Sender::new(0);
        let shared = Shared { path, id, options, boot, sightings, lives, stirred, gone, identity };
        let shared = Arc::new(shared);
        let reader = Worker::new(reader, Arc::clone(&shared));
        reader.wait_less()?;
        let mut writer = Worker::new(writer, Arc::clone(&shared));
        writer.take_stock()?;
        // From here on the worker does its own waiting for the write lock.
        writer.wait_no_more()?;
        Ok(Self {
            inner: Arc::new(Inner {
                watcher: Watcher::start(Arc::clone(&shared))?,
                writer: WorkerHandle::open("tenure-write", writer)?,
                reader: WorkerHandle::open("tenure-read", reader)?,
                shared,
            }),
        })
    }

    /// This store, as most functions take one.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        Arc::new(self)
    }

    /// The file, with all links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.shared.path
    }

    /// A kernel lock for one more process that works under a member that joined
    /// through this handle: each call gives another. As long as any process has any of
    /// them open, the member is not ended by others, neither by proof of death nor when
    /// its ttl has run out: what it holds goes to no other, unless it is given up or the
    /// member is evicted at once.
    #[must_use]
    pub fn liveness_lock(&self, life: Incarnation) -> Option<OwnedFd> {
        self.inner.shared.lives.work(life)
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        ns: &Namespace,
        durability: Durability,
        step: impl FnOnce(&mut Txn<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let ns = ns.clone();
        let shared = Arc::clone(&self.inner.shared);
        let step = move |txn: &mut Txn<'_>| {
            shared.compare(txn)?;
            step(txn)
        };
        self.inner.writer.ask(move |worker| worker.write(doing, &ns, durability, step)).await
    }

    fn lives(&self) -> &Lives {
        &self.inner.shared.lives
    }
}

impl Inner {
    /// Looks at one moment of a namespace.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        ns: &Namespace,
        look: impl FnOnce(&Txn<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let ns = ns.clone();
        self.reader.ask(move |worker| worker.look(doing, &ns, look)).await
    }
}

impl Worker {
    /// Once, at opening: starts to count for the members of other boots, and
    /// removes the lock files without a member.
    fn take_stock(&mut self) -> Result<()> {
        let nowhere = Namespace::default();
        let shared = self.shared();
        let boot = shared.boot.clone();
        self.look("taking stock", &nowhere, |txn| {
            let sql = include_str!("sql/member_elsewhere.sql");
            txn.all(sql, params![boot.as_str()], |row| txn.read_member(row)).map(drop)
        })?;
        if shared.options.read_only {
            return Ok(());
        }
        // What cannot be looked up is left where it is.
        shared.lives.sweep(|life| {
            let sql = include_str!("sql/member_exists.sql");
            let known = |txn: &Txn<'_>| txn.one(sql, params![life.to_string()], |_| Ok(()));
            self.look("looking for a member", &nowhere, known).map_or(true, |row| row.is_some())
        });
        Ok(())
    }
}

fn within_batch(what: &str, count: usize) -> Result<()> {
    if count <= BATCH {
        return Ok(());
    }
    let message = format!("{count} {what} in one request are more than the limit of {BATCH}");
    Err(Error::new(ErrorKind::Invalid, message).remedy("split the request"))
}

#[async_trait]
impl Store for SqliteStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let asked = join.clone();
        let shared = Arc::clone(&self.inner.shared);
        let namespace = ns.clone();
        let joined = move |worker: &mut Worker| {
            // The lock comes before the row, so that a row of this boot without
            // a held lock is always one whose process is gone.
            shared.may_write("joining")?;
            let life = asked.member.incarnation;
            let prove = shared.options.prove_death;
            let fresh = prove && shared.lives.hold(life, asked.ttl)?;
            let answer = worker.write("joining", &namespace, Durability::Crash, |txn| {
                shared.compare(txn)?;
                txn.join(&asked)
            });
            let refused = match &answer {
                Ok(Joined::In { .. }) => false,
                // This very life is over, or never began.
                Ok(Joined::Taken { by, .. }) => fresh || *by == life,
                Err(error) => fresh && !error.may_have_applied(),
            };
            if refused {
                shared.lives.let_go(life);
            }
            answer
        };
        self.inner.writer.ask(joined).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let asked = beat.clone();
        let shared = Arc::clone(&self.inner.shared);
        let namespace = ns.clone();
        let life = beat.member.incarnation;
        self.lives().granted(life, beat.ttl);
        let beaten = move |worker: &mut Worker| {
            if let Err(error) = shared.is_itself(life) {
                // Said once as an error, so that an operator can read it, and then as
                // the end of this life: a leader gives up at once.
                if shared.lives.doubt(life) {
                    return Err(error);
                }
                shared.lives.let_go(life);
                return Ok(Beat::Ended { superseded: false });
            }
            let step = |txn: &mut Txn<'_>| txn.heartbeat(&asked);
            worker.write("beating", &namespace, Durability::Crash, step)
        };
        self.inner.writer.ask(beaten).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let asked = member.clone();
        let namespace = ns.clone();
        let shared = Arc::clone(&self.inner.shared);
        let left = move |worker: &mut Worker| {
            let step = |txn: &mut Txn<'_>| {
                shared.compare(txn)?;
                txn.leave(&asked)
            };
            let left = worker.write("leaving", &namespace, Durability::Crash, step);
            // A copy of the file that is made after a clean exit has all of it (R6).
            worker.checkpoint();
            left
        };
        self.inner.writer.ask(left).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        within_batch("bids", claim.bids.len())?;
        let asked = claim.clone();
        self.lives().granted(claim.member.incarnation, claim.ttl);
        let step = move |txn: &mut Txn<'_>| txn.claim(&asked);
        self.write("claiming", ns, Durability::PowerCut, step).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        within_batch("releases", release.items.len())?;
        let asked = release.clone();
        let step = move |txn: &mut Txn<'_>| txn.release(&asked);
        self.write("releasing", ns, Durability::PowerCut, step).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.capabilities().accepts(bind)?;
        let asked = bind.clone();
        if let Some(member) = &bind.member {
            self.lives().granted(member.incarnation, bind.ttl);
        }
        let step = move |txn: &mut Txn<'_>| txn.bind(&asked);
        self.write("binding names", ns, Durability::PowerCut, step).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        let asked = which.clone();
        self.inner.look("reading names", ns, move |txn| txn.look_up(&asked)).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        let asked = amend.clone();
        let step = move |txn: &mut Txn<'_>| txn.amend(&asked);
        self.write("amending", ns, Durability::PowerCut, step).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        let asked = query.clone();
        let ns = ns.clone();
        let shared = Arc::clone(&self.inner.shared);
        let read = move |worker: &mut Worker| {
            // Before the file is looked at: see `examine`.
            let beside = asked.examine.then(|| Beside::read(shared.lives.directory()));
            worker.look("reading", &ns, |txn| {
                let mut snapshot = txn.read(&asked)?;
                snapshot.examined = beside.map(|beside| examine(txn, beside)).transpose()?;
                Ok(snapshot)
            })
        };
        self.inner.reader.ask(read).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.inner.look("reading the journal", ns, move |txn| follow::page(txn, after)).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        Ok(Box::new(Follower::new(Arc::clone(&self.inner), ns).await?))
    }

    fn capabilities(&self) -> Capabilities {
        let native = self.inner.watcher.is_native();
        let poll = self.inner.shared.options.poll;
        let place = self.inner.shared.path.display().to_string();
        let mut capabilities = Capabilities::judging(KIND);
        capabilities.identity = tenure_store::Identity::new(KIND, self.inner.shared.id, place);
        capabilities.watch = if native { Watch::Native } else { Watch::Polled(poll) };
        capabilities.transactional_fence = true;
        capabilities.proof_of_death = self.inner.shared.options.prove_death;
        capabilities.elects_heirs = true;
        capabilities.batch = BATCH;
        capabilities.names = Some(NameTraits::ALL);
        capabilities
    }
}

#[cfg(test)]
mod tests;
