#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;

mod binding;
mod entropy;
mod era;
mod examine;
mod happening;
mod journal;
mod machine;
mod member;
mod names;
mod reasons;
mod request;
mod session;
mod settings;
mod shown;
mod term;
mod time;
mod view;

pub use binding::{
    Binding, MAX_INDEX, MAX_INDEX_TEXT, MAX_NOTICE, MAX_VALUE, NamesView, Rev, Token, Value,
    WhichNames,
};
pub use era::Era;
pub use examine::{EraView, Examined, Finding, Raised, Verdict};
pub use happening::{Columns, EndCause, Happening, ReleaseCause};
pub use journal::{Entry, Hint, Seq};
#[cfg(feature = "__lab")]
#[doc(hidden)]
pub use machine::Mutation;
pub use machine::{
    Event, Input, LostReason, Machine, NameAnswer, NameOp, NameWish, Outgoing, Output, RequestId,
    StopReason, StoreTraits,
};
pub use member::{Incarnation, MemberRef, MemberView};
pub use names::{
    BadName, ElectionName, MAX_ENDPOINT, MAX_ENDPOINTS, MAX_METADATA, MAX_NAME, MAX_NOTE, MemberId,
    Name, Namespace, Note, Profile,
};
pub use request::{
    Amend, Amended, BadBind, Beat, Bid, Bind, BindAnswer, BindOp, Bindings, Claim, Claimed, Claims,
    Failed, Heartbeat, Join, Joined, Purge, Purged, Release, ReleaseItem, Reply, Request, TermBeat,
    TermOutcome, TermRef, To, Told, What,
};
pub use session::{Grants, Next, Session, SessionTrust};
pub use settings::{
    BadSettings, MAX_DRAIN, MAX_DRIFT_PPM, MAX_TTL, MIN_INTERVAL, MIN_TTL, Preset, Settings,
    SettingsBuilder, widened,
};
pub use shown::{is_hidden, shown};
pub use term::{Nonce, Priority, Term, TermNumber};
pub use time::{Mono, Timestamp};
pub use view::{
    Candidate, ElectionView, HeldUp, Holder, Pause, Query, Reservation, Snapshot, StepDown, Which,
};
