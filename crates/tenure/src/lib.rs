#![doc = include_str!("../README.md")]

pub mod blocking;
mod client;
mod connect;
mod error;
mod feed;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "serde")]
pub mod json;
mod member;
mod metrics;
mod stream;
pub mod testing;
mod time;
mod wall;

pub mod journal;
pub mod measures;
pub mod naming;
pub mod session;
pub mod store;
pub mod views;

pub use client::{Operator, OperatorElection};
#[cfg(feature = "postgres")]
pub use connect::postgres_options as postgres;
pub use error::{Error, LeadError, Result, WorkError};
pub use feed::{Observation, Observed, Observer};
pub use member::{
    Attempt, Builder, Callbacks, Campaigns, Cancellation, Change, Election, HoldingSubscription,
    Leadership, Left, Lock, Place, Renewals, Semaphore, Status, Stopping, Subscription, Tenure,
};
pub use tenure_core::{
    ElectionName, ElectionView, Holder, LostReason, MemberId, MemberView, Mono, Namespace, Preset,
    Settings, SettingsBuilder, StopReason, Term, TermNumber, Timestamp,
};
pub use tenure_store::{ErrorKind, FenceError};
pub use wall::ToSystemTime;
