//! Campaigns of processes in other languages: each a member of its own, led here, trusted there.
//!
//! A session is a campaign that a client keeps up by *beats*: requests that wait for news and
//! prove that the client lives. Each client id is a member of the store, so that the candidates
//! and the leader have the client's name and address, not the server's.
//!
//! What the client may trust is decided in [`tenure::session`]; [`task`] carries a session from
//! the campaign to the release. A session has at most one term: after a loss the client begins
//! another, so that no loss goes unseen.

mod begin;
mod entry;
mod index;
mod table;
mod task;

pub(crate) use begin::NewSession;
pub(crate) use entry::Entry;
pub(crate) use table::Sessions;
pub(crate) use task::{State, View};

/// What cannot be guessed: a client that has it speaks for the session.
pub(crate) fn key() -> crate::problem::Answer<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| tenure::Error::System {
        what: "reading random bytes from the operating system",
        source: error.into(),
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
