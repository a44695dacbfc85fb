//! How to become a member.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{MemberId, Namespace, Preset, Profile, SettingsBuilder};
use tenure_store::{ManualClock, SharedStore};

use crate::client::{Client, Party};
use crate::connect::{self, Target};
use crate::feed::Feeds;
use crate::member::driver::{Connection, Plan, Reach, random};
use crate::metrics::Metrics;
use crate::time::Time;
use crate::{Error, Operator, Result, Tenure};

/// Options of a member, made by [`Tenure::builder`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Preset, Tenure};
///
/// let tenure = Tenure::builder("memory:")
///     .namespace("billing")
///     .id("web-1")
///     .endpoint("10.0.0.7:8080")
///     .preset(Preset::Fast)
///     .connect()
///     .await?;
/// assert_eq!(tenure.id().as_str(), "web-1");
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Builder {
    source: Result<Source>,
    namespace: Option<String>,
    id: Option<String>,
    endpoints: Vec<String>,
    metadata: Vec<u8>,
    settings: SettingsBuilder,
    metrics: Option<Arc<dyn Metrics>>,
    patience: Duration,
    time: Time,
    read_only: bool,
    prove_death: bool,
}

/// Where the store comes from.
#[derive(Debug)]
enum Source {
    /// It is opened.
    Target(Box<dyn Target>),
    /// A member of this process has it open.
    Open(Arc<Connection>),
}

impl Builder {
    pub(crate) fn url(url: &str) -> Self {
        Self::source(connect::parse(url).map(Source::Target))
    }

    pub(crate) fn store(store: SharedStore) -> Self {
        Self::source(Ok(Source::Target(connect::given(store))))
    }

    /// A member beside one that runs, on its connection.
    pub(crate) fn beside(connection: Arc<Connection>, time: Time) -> Self {
        Self { time, ..Self::source(Ok(Source::Open(connection))) }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn target(target: Box<dyn Target>) -> Self {
        Self::source(Ok(Source::Target(target)))
    }

    fn source(source: Result<Source>) -> Self {
        Self {
            source,
            namespace: None,
            id: None,
            endpoints: Vec::new(),
            metadata: Vec::new(),
            settings: SettingsBuilder::preset(Preset::Normal),
            metrics: None,
            patience: Duration::ZERO,
            time: Time::Boot,
            read_only: false,
            prove_death: true,
        }
    }

    /// The namespace; `default` if none is named.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The member's id; host, process and a random part if none is given.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a `host:port` at which this member can be reached.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoints.push(endpoint.into());
        self
    }

    /// Bytes that observers get back as they are, up to 4 KiB.
    pub fn metadata(mut self, metadata: impl Into<Vec<u8>>) -> Self {
        self.metadata = metadata.into();
        self
    }

    /// Named timings; replaces all timings set before.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.settings = SettingsBuilder::preset(preset);
        self
    }

    /// The ttl, from which the other timings follow; replaces all set before.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings = SettingsBuilder::ttl(ttl);
        self
    }

    /// How often to renew while leading; a quarter of the ttl if not set.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.settings = self.settings.heartbeat(every);
        self
    }

    /// How long a request to the store may take before it counts as failed; the heartbeat's
    /// interval if not set. Twice the heartbeat and this must fit into the trust, so that a
    /// second try is in time.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use std::time::Duration;
    ///
    /// let limit = Duration::from_millis(800);
    /// let tenure = tenure::Tenure::builder("memory:").request_timeout(limit).connect().await?;
    /// assert_eq!(tenure.settings().request_timeout(), limit);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.settings = self.settings.request_timeout(limit);
        self
    }

    /// By how many millionths any clock involved may run fast or slow; 1,000
    /// if not set.
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.settings = self.settings.drift_ppm(ppm);
        self
    }

    /// How long before a grant's end it is no longer trusted: the time the
    /// work has to stop in; a tenth of the ttl if not set.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.settings = self.settings.margin(margin);
        self
    }

    /// How long the work may take to stop when it is asked to; the ttl if not
    /// set.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.settings = self.settings.drain(drain);
        self
    }

    /// How long a member that stepped down does not stand again; the ttl if not set.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.settings = self.settings.cooldown(cooldown);
        self
    }

    /// Says that other processes work under this member's terms and trust what they were told:
    /// see [`SettingsBuilder::trusted_elsewhere`]. To be said after the other timings.
    pub fn trusted_elsewhere(mut self) -> Self {
        self.settings = self.settings.trusted_elsewhere();
        self
    }

    /// All timings at once; replaces all set before.
    pub fn settings(mut self, settings: SettingsBuilder) -> Self {
        self.settings = settings;
        self
    }

    /// Whether to look only, without a right to write. An SQLite file is then not
    /// made if it is not there ([`ErrorKind::Absent`](crate::ErrorKind::Absent)),
    /// and standing, joining and steering fail. Other stores are opened as
    /// always.
    pub fn read_only(mut self, only: bool) -> Self {
        self.read_only = only;
        self
    }

    /// Whether the store may end the members of this process at once when it can prove that
    /// the process has died (rule M4; SQLite does). Yes if not set. Set it to `false` if work
    /// under a term goes on without this process: a server whose clients trust in what it told
    /// them. Then its members are waited for until their ttl has run out, and
    /// [`Leadership::liveness_lock`](crate::Leadership::liveness_lock) is `None`.
    pub fn prove_death(mut self, prove: bool) -> Self {
        self.prove_death = prove;
        self
    }

    /// Where measurements go.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Waits for a store that is away when the program starts: `connect` tries again,
    /// with growing pauses of at most two seconds, and fails with
    /// [`Error::StoreAway`] when this time is over. Not at all if not set: then the first
    /// failure is the answer. What waiting cannot mend (a password, a URL, the tables
    /// of another owner) is answered at once in any case. Drop the future to give up.
    ///
    /// Once it is connected, a store that goes away is waited for without a limit.
    pub fn wait_for_store(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// A clock that moves only when a test says so. A store that is given must
    /// be on the same clock.
    pub fn manual_clock(mut self, clock: Arc<ManualClock>) -> Self {
        self.time = Time::Manual(clock);
        self
    }

    /// Checks everything, opens the store, and starts the member's own thread.
    /// The member appears in the store with its first candidacy, or with
    /// [`Tenure::join`].
    pub async fn connect(self) -> Result<Tenure> {
        let source = self.source?;
        let party = party(self.namespace, self.id, self.settings, &self.time)?;
        let profile = Profile::new(self.endpoints, self.metadata)?;
        let (connection, share) = match source {
            Source::Open(connection) => {
                let share = connection.share()?;
                (connection, share)
            }
            Source::Target(target) => {
                Connection::open(Reach {
                    target,
                    time: self.time,
                    settings: party.settings.clone(),
                    read_only: self.read_only,
                    prove_death: self.prove_death,
                    patience: self.patience,
                })
                .await?
            }
        };
        let metrics = connection
            .hooks
            .of(self.metrics, party.ns.clone())
            .map_err(|source| Error::System { what: "starting a thread", source })?;
        let started = connection.start(Plan { party, profile, metrics }, share).await?;
        Ok(Tenure::new(started, connection))
    }

    /// Opens the store to read and steer, and joins nothing. [`id`](Self::id) is the name
    /// under which the journal has what is asked for; endpoints, metadata and metrics are
    /// of no use here.
    ///
    /// Must be called inside a tokio runtime with I/O and time enabled, which carries the
    /// store's connections from then on. A builder from
    /// [`Tenure::member_in`](crate::Tenure::member_in) is refused.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    ///
    /// let operator = Tenure::builder("memory:").id("ann").namespace("billing").operate().await?;
    /// assert!(operator.elections().await?.is_empty());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn operate(self) -> Result<Operator> {
        let party = party(self.namespace, self.id, self.settings, &self.time)?;
        let Source::Target(target) = self.source? else {
            let message = "an operator opens a store of its own: give its URL to Tenure::builder";
            return Err(Error::Url(message.into()));
        };
        if let Err(error) = tokio::runtime::Handle::try_current() {
            let source = std::io::Error::other(error);
            return Err(Error::System { what: "finding the tokio runtime", source });
        }
        let reach = Reach {
            target,
            time: self.time,
            settings: party.settings.clone(),
            read_only: self.read_only,
            prove_death: self.prove_death,
            patience: self.patience,
        };
        let opened = reach.open().await?;
        Ok(Operator::new(Arc::new(Client::new(opened.store, party, Feeds::default()))))
    }
}

fn party(
    namespace: Option<String>,
    id: Option<String>,
    settings: SettingsBuilder,
    time: &Time,
) -> Result<Party> {
    Ok(Party {
        ns: namespace.map_or_else(|| Ok(Namespace::default()), Namespace::new)?,
        id: id.map_or_else(default_id, |id| Ok(MemberId::new(id)?))?,
        settings: settings.build()?,
        time: time.clone(),
    })
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Host, process, and a random part: in containers host and process alone are
/// not unique (B3).
fn default_id() -> Result<MemberId> {
    let host = host_name();
    let host: String = host.chars().filter(|c| !c.is_control()).take(60).collect();
    let host = if host.trim().is_empty() { "host" } else { host.trim() };
    let random = u32::from_ne_bytes(random()?);
    Ok(MemberId::new(format!("{host}-{}-{random:08x}", std::process::id()))?)
}
