//! Stores that only have compare-and-swap: **the observer judges**.
//!
//! Object storage, a key-value bucket, an API server: such a service swaps a
//! record if it is still the one that was seen, and keeps no time for anybody.
//! [`CasStore`] makes a [`Store`](crate::Store) of it, over the small
//! [`Register`] trait.
//!
//! # What is stored
//!
//! One record for each election: the number of its newest term, the holder with
//! the ttl it wrote, the attempt it won with, a counter of **beats**, what
//! operators asked, for whom a vacancy is kept, and the last 16 terms. One
//! record for each member: its life, its own beats, and what it stands for. An
//! election's record is never removed, so its number never goes back (H5); a
//! member's is removed when it leaves, or when it is long dead.
//!
//! # The observer's rule
//!
//! The number and the beat of a record together are its *sign of life*. A holder
//! renews by a swap that raises the beat. Whoever wants the election notes when
//! it first saw the present sign of life **on its own clock**, and may replace
//! the record by a swap on exactly the version it sees now, once that sign has
//! not changed for the ttl the holder wrote, widened by the drift bound. No
//! clock is ever compared with another; a holder seen for the first time has its
//! whole ttl left (rule H10), however long it may have been dead (T5, M3).
//!
//! Why at most one member trusts at a time: the holder counts its trust from
//! before it sent the write that made the sign (T1). The observer counts from
//! after the answer that first showed it. The second moment is never before the
//! first, and the observer waits longer than the holder trusts. What an operator
//! writes leaves the sign alone, so it neither costs the holder anything nor
//! keeps a dead one alive; and because a swap names a version, nothing written
//! in between is ever lost.
//!
//! The other half is the holder's (M1, H7, C6): it renews nothing whose last
//! renewal *began* a ttl ago or more by its own clock, even if nobody replaced
//! it. Such a term is answered `Lost`, such a member `Ended`.
//!
//! # Interleavings
//!
//! Every change of an election is one swap on the version the decision was made
//! on, so two changes made on the same version never both happen. The one that
//! conflicts looks again and decides anew on what it finds:
//!
//! - **Two challengers** of an expired holder, or of a vacancy: the first swap
//!   wins; the second finds a holder it has never seen, and answers `Held`.
//! - **A late heartbeat**, sent before the term was taken and arriving after:
//!   its version is gone, it conflicts, the holder looks and is told `Lost`.
//!   Arriving before, it wins, and the challenger's swap conflicts and finds a
//!   new sign of life: `Held`, with the whole ttl left. There is no third case,
//!   which is rule M2.
//! - **A late claim**, arriving after its caller gave up: it applies only if
//!   nothing changed since the look it was decided on, and then the record shows
//!   the caller's incarnation and nonce. If the caller has bid again meanwhile,
//!   its own later swap changed the version, and the late one conflicts. If it
//!   is gone, the term runs out like any other.
//! - **A claim repeated with its nonce** (E2): the record tells. It shows this
//!   incarnation and this nonce: `Won`, the same term, **and the beat is raised
//!   by a swap of this request**, because trust is counted from this request and
//!   others would go on counting from the older sign. It shows them but the term
//!   was given back, or taken, since: `Held`. It shows an older nonce of ours:
//!   the first attempt was never applied and, its version being gone once we
//!   swap, never will be.
//! - **A release racing a step-down request**: the release first, and the
//!   request finds a vacancy; the request first, and the release conflicts, looks,
//!   is still of the same term, and takes the request away with the term.
//! - **A heartbeat racing a step-down request**: whichever is second carries the
//!   other over; the holder hears of the request with that very renewal.
//! - **A pause racing a claim**: the pause first, and the claim conflicts and
//!   answers `Held`; the claim first, and the pause lands on a new incumbent,
//!   who stays.
//! - **A heartbeat racing an eviction**: both swap the member's record. The
//!   eviction first, and the heartbeat is `Ended` and renews no term; the
//!   heartbeat first, and it is the last one.
//!
//! # What is weaker than in the stores that judge themselves
//!
//! - A verb about several records is not one atomic step. Each election is; the
//!   order between records is chosen so that one who is interrupted anywhere can
//!   repeat the request, and an error after the first write says
//!   `may_have_applied`. If one bid of a claim fails, the claim fails.
//! - Each term is renewed on its own record: the load rises with the number of
//!   terms held. `heartbeat` answers for each.
//! - A member and the terms it holds live side by side: a term that is not
//!   renewed runs out although its member lives. A newcomer that supersedes an
//!   older life of its id looks whether that life holds anything; a claim of the
//!   older one that is under way at that very moment may still win. It is told
//!   `Ended` at its next heartbeat, and the term runs out unused.
//! - A snapshot of several elections is of moments close together; there is no
//!   journal, and `history` is each election's own last terms, without positions.
//! - Candidates wait in the order in which they saw each other stand. The rank a
//!   waiting candidate is told may be as old as [`CasOptions::listing_age`].
//! - A damaged record, or one of a newer format, stops that election with
//!   [`Foreign`](crate::ErrorKind::Foreign) until somebody repairs it. It is left
//!   out where everything is asked for, and a claim that names it among others
//!   fails before anything is written.

mod amend;
mod claim;
mod format;
mod handle;
mod keys;
mod life;
mod members;
mod memory;
mod options;
mod past;
mod read;
mod record;
mod register;
mod release;
mod seen;
mod store;
mod watch;

pub use memory::MemoryRegister;
pub use options::CasOptions;
pub use record::{MAX_CANDIDACIES, MAX_RECORD};
pub use register::{Expect, Listed, Loaded, Register, Removed, Swapped, Version};
pub use store::CasStore;

#[cfg(test)]
mod tests;
