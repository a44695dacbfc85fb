//! Campaigns of processes in other languages: each a member of its own, led here, trusted there.
//!
//! A session is a campaign that a client keeps up by *beats*: requests that wait for news and
//! prove that the client lives. Each client id is a member of the store, so that the candidates
//! and the leader have the client's name and address, not the server's.
//!
//! What the client may trust is decided in [`tenure::session`]; [`task`] carries a session from
//! the campaign to the release. A session has at most one term: after a loss the client begins
//! another, so that no loss goes unseen.

mod table;
mod task;

pub(crate) use table::{Entry, NewSession, Sessions};
pub(crate) use task::{State, View};
