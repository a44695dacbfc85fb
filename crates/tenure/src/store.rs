//! Stores: what they can do, what an operator asks of them, and what it takes to bring one of
//! one's own ([`Tenure::with_store`](crate::Tenure::with_store)).

pub use tenure_core::{Era, EraView, Examined, Finding, Purge, Purged, Raised, Verdict};
pub use tenure_store::{
    Backoff, BootClock, Capabilities, Error as StoreError, ErrorKind, FenceBlocking, FenceIn,
    Fenced, FencedName, FencedTerm, Identity, Judge, SharedStore, Store, StoreId, Watch, nearest,
};

pub use crate::connect::schema;
#[cfg(all(feature = "sqlite", target_os = "linux"))]
pub use crate::connect::sqlite_url;
