#![doc = include_str!("../README.md")]

mod client;
mod connect;
mod error;
mod feed;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod member;
mod metrics;
mod stream;
pub mod testing;
mod time;

pub use client::{Operator, OperatorElection, PastTerm};
pub use connect::schema;
#[cfg(feature = "sqlite")]
pub use connect::sqlite_url;
pub use error::{Error, LeadError, Result, WorkError};
pub use feed::{JournalStream, Journalled, Observation, Observed, Observer};
pub use member::{
    Attempt, Builder, Callbacks, Campaigns, Change, Election, HoldingSubscription, Leadership,
    Left, NameError, NameHints, Names, Registration, Renewals, Status, Stopping, Subscription,
    Tenure,
};
#[cfg(feature = "metrics")]
pub use metrics::MetricsRecorder;
pub use metrics::{Metric, Metrics, Verb};
pub use tenure_core::{
    Amended, BadName, BadSettings, Binding, Candidate, ElectionName, ElectionView, EndCause, Entry,
    Era, EraView, Examined, Finding, Happening, HeldUp, Holder, Incarnation, LostReason, MAX_NAME,
    MemberId, MemberRef, MemberView, Mono, Name, NamesView, Namespace, Note, Pause, Preset,
    Priority, Profile, Purge, Purged, Raised, ReleaseCause, Reservation, Rev, Seq, Settings,
    SettingsBuilder, StepDown, StopReason, Term, TermNumber, Timestamp, Token, Value, Verdict,
    WhichNames, is_hidden, shown,
};
pub use tenure_store::{
    Backoff, BootClock, Capabilities, Error as StoreError, ErrorKind, FenceBlocking, FenceError,
    FenceIn, Fenced, FencedName, FencedTerm, Identity, Judge, SharedStore, Store, StoreId, Watch,
    nearest,
};
