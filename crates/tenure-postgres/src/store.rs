//! The store: the contract's verbs, carried to the server.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef,
    NamesView, Namespace, Query, Release, Seq, Snapshot, WhichNames,
};
use tenure_store::{
    BootClock, Capabilities, Clock, Error, ErrorKind, Following, Identity, NameTraits, Page,
    Result, SharedStore, Store, Watch,
};
use tokio_postgres::types::Type;

use crate::beat::Known;
use crate::error::Effect;
use crate::follow::Follower;
use crate::keeper;
use crate::link::{Link, Purpose};
use crate::names::Untold;
use crate::options::PostgresOptions;
use crate::rows::JournalPage;
use crate::schema;
use crate::spare::{Line, Spare};
use crate::texts::Texts;
use crate::verbs::{Bids, Verbs};
use crate::watch::{Notifications, Place};

/// The most journal entries in one answer.
pub(crate) const PAGE: i64 = 500;
/// The most bids or releases in one request.
const BATCH: usize = 1_000;
/// How long to leave a fenced transaction alone before a claim is repeated.
const FENCE_LOOK: std::time::Duration = std::time::Duration::from_millis(25);

/// Elections in a PostgreSQL database.
///
/// Clones share two connections: one for heartbeats, one for everything else and
/// for notifications; and a third while a heartbeat waits for a lock and others come
/// after it. They are this store's own, never the application's pool.
///
/// ```no_run
/// # async fn example() -> Result<(), tenure_store::Error> {
/// use tenure_postgres::{PostgresOptions, PostgresStore};
///
/// let options = PostgresOptions::from_url("postgres://app@db.example/app?sslmode=verify-full")?;
/// let store = PostgresStore::open(options).await?;
/// # let _ = store;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Arc<PostgresOptions>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) beats: Link,
    /// Who beats on `beats` right now.
    line: Line,
    /// For heartbeats behind one that waits; closed while there is none.
    pub(crate) spare: Arc<Spare>,
    pub(crate) requests: Link,
    pub(crate) texts: Arc<Texts>,
    pub(crate) known: Known,
    pub(crate) untold: Untold,
    /// Set when it is opened.
    identity: OnceLock<Identity>,
}

impl PostgresStore {
    /// Connects, and installs or checks the schema. Any number of programs may
    /// do so at once.
    ///
    /// Must be called within a tokio runtime, which carries the connections from
    /// then on. Later failures are ridden out; this first one is told, so that a
    /// wrong URL is noticed.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let options = Arc::new(options.checked()?);
        let notifications = Arc::new(Notifications::new(&options.schema));
        let link = |purpose| Link::new(purpose, Arc::clone(&options), Arc::clone(&notifications));
        let texts = Arc::new(Texts::new(&options.schema));
        let spare = link(Purpose::Heartbeats);
        let inner = Arc::new(Inner {
            beats: link(Purpose::Heartbeats),
            line: Line::default(),
            spare: Spare::new(spare, Arc::clone(&texts), options.lock_wait()),
            requests: link(Purpose::Requests),
            texts,
            options,
            notifications,
            known: Known::default(),
            untold: Untold::default(),
            identity: OnceLock::new(),
        });
        let session = inner.requests.session().await?;
        schema::ensure(&session.client, &inner.options).await?;
        let identity = schema::identity(&session.client, &inner.options.schema).await?;
        inner.identity.get_or_init(|| identity);
        inner.beats.session().await?;
        keeper::probe(&inner).await;
        inner.own_sessions().await;
        let weak = Arc::downgrade(&inner);
        let notifications = Arc::clone(&inner.notifications);
        tokio::spawn(keeper::keep(weak, notifications));
        Ok(Self { inner })
    }

    /// This store, as most functions take one.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        Arc::new(self)
    }

    /// The text that installs the schema under this name, for those who apply
    /// such things by hand.
    ///
    /// ```
    /// let text = tenure_postgres::PostgresStore::schema_sql("tenure");
    /// assert!(text.contains("CREATE SCHEMA \"tenure\""));
    /// ```
    #[must_use]
    pub fn schema_sql(schema: &str) -> String {
        schema::whole(schema)
    }

    fn verbs(&self) -> Verbs<'_> {
        self.inner.verbs(&self.inner.requests)
    }
}

impl Inner {
    pub(crate) fn verbs<'a>(&'a self, link: &'a Link) -> Verbs<'a> {
        Verbs { link, texts: &self.texts, lock_wait: self.options.lock_wait() }
    }

    pub(crate) async fn journal(&self, ns: &Namespace, after: Seq) -> Result<JournalPage> {
        self.verbs(&self.requests).journal(ns, after).await
    }

    pub(crate) async fn positions(&self, names: &[String]) -> Result<Vec<Place>> {
        self.verbs(&self.requests).positions(names).await
    }

    /// How full the server's queue of notifications is.
    pub(crate) async fn queue_usage(&self) -> Result<f64> {
        self.verbs(&self.requests).queue_usage().await
    }

    /// Sends a notification from the session that does not listen.
    pub(crate) async fn notify(&self, payload: &str) -> Result<()> {
        let params = [(&payload as _, Type::TEXT)];
        let asked = self.beats.ask("notifying", Effect::None, &self.texts.notify, &params);
        asked.await.map(drop)
    }

    /// Listens on the session that stands, which may have been told not to.
    pub(crate) async fn listen(&self) -> Result<()> {
        let session = self.requests.session().await?;
        self.requests.listen(&session).await
    }

    /// Takes back a LISTEN that is of no use. Behind a pooler it sits on a session
    /// that others will be given; the one given to us now is most likely that.
    pub(crate) async fn unlisten(&self) {
        let text = format!("UNLISTEN {}", schema::quoted(&self.options.schema));
        if let Ok(session) = self.requests.session().await {
            drop(session.client.batch_execute(&text).await);
        }
    }

    /// Once it is known that the sessions are ours alone, sets them up so.
    pub(crate) async fn own_sessions(&self) {
        if !self.notifications.is_native() {
            return;
        }
        for link in [&self.requests, &self.beats] {
            let set = async { link.set_up(&*link.session().await?).await };
            if let Err(error) = set.await {
                tracing::debug!(%error, "a session keeps its settings");
            }
        }
    }

    /// Claims, and while open transactions fence what could be won, again for a
    /// bounded time (C42). Repeating a claim is harmless: its nonces are known.
    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        let verbs = self.verbs(&self.requests);
        let clock = BootClock;
        let from = clock.now();
        loop {
            let Bids { claims, fenced } = verbs.claim(ns, claim).await?;
            if fenced == 0 {
                return Ok(claims);
            }
            if clock.now().since(from) >= self.options.fence_wait {
                tracing::warn!(
                    member = %claim.member,
                    elections = fenced,
                    waited = ?self.options.fence_wait,
                    "an open transaction has fenced the last term, so that no other can be elected: \
                     look in pg_stat_activity for one that is idle in transaction, and set \
                     idle_in_transaction_session_timeout"
                );
                return Ok(claims);
            }
            tokio::time::sleep(FENCE_LOOK).await;
        }
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
impl Store for PostgresStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        self.verbs().join(ns, join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let turn = self.inner.line.enter();
        if turn.is_behind() {
            return Box::pin(self.inner.beat_behind(turn, ns, beat)).await;
        }
        let answer = self.inner.heartbeat(ns, beat).await;
        turn.answered();
        answer
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.verbs().leave(ns, member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        within_batch("bids", claim.bids.len())?;
        self.inner.claim(ns, claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        within_batch("releases", release.items.len())?;
        self.verbs().release(ns, release).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.capabilities().accepts(bind)?;
        let (bindings, told) = self.verbs().bind(ns, bind).await?;
        if !told {
            self.inner.tell_later(ns);
        }
        Ok(bindings)
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.verbs().names(ns, which).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        self.verbs().amend(ns, amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.verbs().read(ns, query).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        let page = self.inner.journal(ns, after).await?;
        Ok(match page.place_to_go_on_from(after) {
            Some(place) => Page::Trimmed(place),
            None => Page::Entries(page.entries),
        })
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        Ok(Box::new(Follower::new(Arc::clone(&self.inner), ns).await?))
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::judging(crate::KIND);
        if let Some(identity) = self.inner.identity.get() {
            capabilities.identity = identity.clone();
        }
        capabilities.polled_because = self.inner.notifications.hearing().why();
        if capabilities.polled_because.is_some() {
            capabilities.watch = Watch::Polled(self.inner.options.poll);
        }
        capabilities.transactional_fence = true;
        capabilities.elects_heirs = true;
        capabilities.batch = BATCH;
        capabilities.names = Some(NameTraits::ALL);
        capabilities
    }
}
