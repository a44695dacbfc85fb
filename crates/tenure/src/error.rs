//! What can go wrong between an application and its elections.

use std::time::Duration;

use tenure_core::{BadName, BadSettings, ElectionName, LostReason, TermNumber};
use tenure_store::ErrorKind;

/// What this crate's calls answer with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. A store that cannot be reached never ends a campaign or an
/// observation: those retry, and [`Tenure::status`](crate::Tenure::status) says
/// so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed. Ask [`may_have_applied`](tenure_store::Error::may_have_applied)
    /// before you repeat a write.
    #[error(transparent)]
    Store(#[from] tenure_store::Error),
    /// A name, an endpoint or metadata cannot be used.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The timings cannot hold together.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The store's URL cannot be used.
    #[error("{0}")]
    Url(String),
    /// This member stands for the election already, or leads it.
    #[error(
        "this member stands for election {0} already, or leads it: use the leadership it has, or \
         connect a second member"
    )]
    AlreadyStanding(ElectionName),
    /// This member was not elected within the time given.
    #[error("election {election} was not won within {waited:?}{}", .because.as_deref().map(|b| format!(": {b}")).unwrap_or_default())]
    NotElected {
        /// The election.
        election: ElectionName,
        /// How long it was waited.
        waited: Duration,
        /// What is known of the reason: the store's last error, if any.
        because: Option<String>,
    },
    /// A semaphore cannot have so many places.
    #[error("a semaphore of {count} places cannot be: give it 1 to {most}")]
    Places {
        /// How many were asked for.
        count: usize,
        /// The most there may be.
        most: usize,
    },
    /// The resignation is on its way, but the store has not confirmed it.
    #[error(
        "term {number} of election {election} was given up, but the store has not confirmed it \
         yet: the release is repeated in the background, and the term is over after the ttl at \
         the latest"
    )]
    Unconfirmed {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
    },
    /// The store could not be opened in the time that
    /// [`Builder::wait_for_store`](crate::Builder::wait_for_store) gave it.
    #[error(
        "the store could not be opened within {waited:?}, in {tries} tries; the last one said: \
         {last}. Nothing was written. Check that the store runs, or wait longer"
    )]
    StoreAway {
        /// How long it was waited.
        waited: Duration,
        /// How often it was tried.
        tries: u32,
        /// What the last try said.
        #[source]
        last: Box<Error>,
    },
    /// The member has been shut down.
    #[error("this member has been shut down: connect again")]
    ShutDown,
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether waiting may help: the store is away, busy, or refuses writes for now.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Store(store) => matches!(
                store.kind(),
                ErrorKind::Unreachable
                    | ErrorKind::Timeout
                    | ErrorKind::Busy
                    | ErrorKind::Unwritable
            ),
            Error::StoreAway { .. } => true,
            _ => false,
        }
    }
}

/// How a [`lead`](crate::Election::lead) scope ended other than well.
///
/// The work may fail with any error that can be boxed: one of its own, a boxed one, an
/// `anyhow::Error`, a text. It is the source of this one:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::num::ParseIntError;
/// use tenure::LeadError;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let work = |_| async { "x".parse::<u8>() };
/// match tenure.election("nightly").lead(work).await {
///     Err(LeadError::Work(error)) => assert!(error.is::<ParseIntError>()),
///     other => panic!("{other:?}"),
/// }
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeadError {
    /// There was no leadership to begin with.
    #[error(transparent)]
    Campaign(Error),
    /// The leadership was lost; the work was cancelled before any other member
    /// could be told that the election is free.
    #[error("the leadership was lost ({0}) and the work was cancelled")]
    Lost(LostReason),
    /// The work failed; the term has been released.
    #[error("the work failed: {0}")]
    Work(#[source] WorkError),
    /// The work panicked; the term has been released.
    #[error("the work panicked: {0}")]
    Panicked(String),
}

/// What the work under a leadership failed with.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;
