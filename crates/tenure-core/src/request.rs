//! What the machine asks of a store, and what a store answers. The store
//! contract in `tenure-store` says what must hold for each.

mod amend;
mod bind;
mod claim;
mod life;
mod purge;
mod release;
mod told;

pub use amend::{Amend, Amended};
pub use bind::{BadBind, Bind, BindAnswer, BindOp, Bindings, To, What};
pub use claim::{Bid, Claim, Claimed, Claims};
pub use life::{Beat, Heartbeat, Join, Joined, TermBeat, TermOutcome};
pub use purge::{Purge, Purged};
pub use release::{Release, ReleaseItem, TermRef};
pub use told::Told;

use crate::{MemberRef, Query, Snapshot};

/// A request of the machine's, to be carried to the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Become a member.
    Join(Join),
    /// Say that the member lives.
    Heartbeat(Heartbeat),
    /// Stop being a member; releases everything held.
    Leave(MemberRef),
    /// Stand for elections, and win those that are free.
    Claim(Claim),
    /// Give terms back, or stop standing.
    Release(Release),
    /// Take, change and drop names.
    Bind(Bind),
    /// Look.
    Read(Query),
}

/// A store's answer to the [`Request`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To [`Request::Join`].
    Join(Joined),
    /// To [`Request::Heartbeat`].
    Heartbeat(Beat),
    /// To [`Request::Leave`].
    Leave,
    /// To [`Request::Claim`].
    Claim(Claims),
    /// To [`Request::Release`].
    Release,
    /// To [`Request::Bind`].
    Bind(Bindings),
    /// To [`Request::Read`].
    Read(Snapshot),
}

/// The request failed. What the machine needs to know of it is one thing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failed {
    /// Whether the write may have been applied all the same (rule E2).
    pub may_have_applied: bool,
}
