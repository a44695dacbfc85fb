#![doc = include_str!("../README.md")]

/// The repository's front page: what it shows compiles (L3).
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../../README.md")]
pub struct FrontPage;

mod builder;
mod callbacks;
mod campaigns;
mod client;
mod connect;
mod driver;
mod election;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod journal;
mod lead;
mod leadership;
mod member;
mod metrics;
mod observe;
mod reign;
mod subscription;
pub mod testing;
mod time;

pub use builder::Builder;
pub use callbacks::Callbacks;
pub use campaigns::Campaigns;
pub use client::{Operator, OperatorElection, PastTerm};
pub use connect::schema;
#[cfg(feature = "sqlite")]
pub use connect::sqlite_url;
pub use election::Election;
pub use error::{Error, LeadError, Result};
pub use journal::{JournalStream, Journalled};
pub use leadership::{Leadership, Stopping};
pub use member::{Status, Tenure};
#[cfg(feature = "metrics")]
pub use metrics::MetricsRecorder;
pub use metrics::{Metric, Metrics, Verb};
pub use observe::{Observation, Observed, Observer};
pub use subscription::{Change, HoldingSubscription, Subscription};
pub use tenure_core::{
    Amended, BadName, BadSettings, Candidate, ElectionName, ElectionView, EndCause, Entry,
    Happening, Holder, Incarnation, LostReason, MemberId, MemberRef, MemberView, Mono, Namespace,
    Note, Pause, Preset, Priority, Profile, ReleaseCause, Reservation, Seq, Settings,
    SettingsBuilder, StepDown, StopReason, Term, TermNumber, Timestamp, is_hidden, shown,
};
pub use tenure_store::{
    Capabilities, Error as StoreError, ErrorKind, FenceBlocking, FenceError, FenceIn, FencedTerm,
    Identity, Judge, SharedStore, Store, StoreId, Watch,
};
