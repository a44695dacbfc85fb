//! Stores that only have compare-and-swap: **the observer judges**.
//!
//! Object storage, a key-value bucket, an API server: such a service swaps a
//! record if it is still the one that was seen, and keeps no time for anybody.
//! [`CasStore`] makes a [`Store`](crate::Store) of it, over the small
//! [`Register`] trait.
//!
//! # What is stored
//!
//! - One record for each **election**: the number of its newest term, which life
//!   of which member holds it, the attempt it won with, what operators asked, for
//!   whom a vacancy is kept, and the last 16 terms. It has no heartbeat of its own
//!   and is never removed, so its number never goes back (H5).
//! - One record for each **member**: its life, its **beat**, its ttl, whether that
//!   life has been ended, and the lives before it. Everything a member holds hangs
//!   on this one record, and it is all that a heartbeat writes: one write, whatever
//!   the member holds. There is no second way of beating.
//! - One record of what a member **waits for**, written only when that changes.
//!
//! # The observer's rule
//!
//! The life and the beat of a member's record are its *sign of life*. Whoever
//! wants one of its terms notes when, **on its own clock**, that sign can have
//! begun at the latest, and may end the life once the sign has not changed for the
//! ttl it states, widened by the drift bound. No clock is ever compared with
//! another. A sign that nothing is known of began when it was first seen (H10); one
//! of a member that was seen before began earlier, by what the member's own clock
//! counted between its beats: `anchor.rs` proves that this is safe, and it lets an
//! observer that looks once a ttl take over a ttl and a little after the last beat.
//!
//! Taking over is **two swaps, in this order** (rule M2): the member's record, on
//! the version seen, becomes *ended*; then the election's, on the version seen, gets
//! its next holder. All other terms of that member are free from the first swap on.
//!
//! Why at most one member trusts at a time: the holder counts its trust from before
//! it sent the write that made the sign (T1), and for less than the ttl. The
//! observer counts from a moment that is not before the start of that write, and
//! for more than the ttl. What an operator writes leaves the sign alone.
//!
//! The other half is the holder's (M1, H7, C6): it renews nothing if its last
//! renewal *began* a ttl ago or more by its own clock, even if nobody has ended it.
//!
//! # Interleavings
//!
//! - **A heartbeat and a challenger** swap the same record on the same version. The
//!   heartbeat first, and the challenger's swap conflicts, looks, and finds a new
//!   sign of life. The challenger first, and the heartbeat conflicts, looks, and
//!   finds that its life is over. There is no third case.
//! - **A claim and a challenger.** A looks at its own record and lives; B ends A; A's
//!   swap of the election lands; C sees it held by a life that is over and takes it at
//!   once. If A trusted now, two would. So a claim swaps the elections, **then raises
//!   its member's beat by a swap, and only then answers `Won`**: A's beat conflicts,
//!   and A is told that its life is over. One beat for each request, whatever the
//!   number of bids; it also makes it safe to count trust from the claim's start.
//! - **Two challengers**: the member's record is ended once; the first swap of the
//!   election wins, the second finds a holder and answers `Held`.
//! - **A late claim**, arriving after its caller gave up: it applies only if the
//!   election did not change since. If its caller lives, the next look or bid finds
//!   the term, and its nonce tells whose it is. If its life is over, anybody takes it.
//! - **A claim repeated with its nonce** (E2): the election's record shows it: the
//!   same term again, and a beat of this request, since trust is counted from it.
//! - **A newcomer with the same id** and a claim of the older life: the newcomer looks
//!   at the member's record, then whether that life holds anything, and then swaps the
//!   record it looked at. A win that was complete before is seen; one that completes
//!   in between raised the beat, and the newcomer conflicts; one that is not complete
//!   never will be.
//! - **A release and a step-down request**: the release first, and the request finds a
//!   vacancy; the request first, and the release conflicts, looks, and takes it along.
//! - **A pause and a claim**: the pause first, and the claim conflicts and is `Held`;
//!   the claim first, and the pause lands on a new incumbent, who stays.
//! - **A heartbeat and an eviction** swap the same record: the eviction first, and the
//!   heartbeat is `Ended`; the heartbeat first, and it is the last one.
//!
//! # A life that its record does not show
//!
//! An election may name a life that its member's record does not show. If that record
//! shows the life as ended, or lists it among the last 8 it has replaced, the term is
//! free. Otherwise nothing is known, for instance because somebody removed the record
//! by hand under a live leader. Then a mark is put in its place, so that no late
//! heartbeat of that life can land, and the ttl that the election's record states is
//! waited out from there. If the *election's* record is removed by hand, its holder
//! goes on until it looks, about once in a ttl, and is then told that the term is lost; the next number is
//! higher than any that the winning process has seen. What a process that never saw
//! the number cannot know is what it was: do not remove election records.
//!
//! # What a look costs
//!
//! Whoever gives a term back raises `changes` in its member's record; whoever asks
//! something of a holder raises its `attention`. A follower looks at the holder's
//! record, conditionally, about once in its ttl, and at the election only if one of
//! these rose (or after 32 such looks, for what was done by hand). So a resignation is
//! heard of within about a ttl, unless [`CasOptions::poll_held`] asks for more. A
//! candidate is told to look again a few times sooner when a reign begins, until it
//! knows well enough when the beats are due.
//!
//! # What is weaker than in the stores that judge themselves
//!
//! - A verb about several records is not one atomic step. The order between them is
//!   chosen so that one who is interrupted anywhere can repeat the request, and an
//!   error after the first write says `may_have_applied`. A bid of a claim whose own
//!   requests fail is answered `Unknown`, and is repeated with its nonce; the others
//!   are not held up by it.
//! - A heartbeat does not say how many terms are held: that would be a listing.
//! - A snapshot of several elections is of moments close together; there is no
//!   journal, and `history` is each election's own last terms, without positions.
//! - Candidates wait in the order in which they saw each other stand. The rank a
//!   waiting candidate is told may be as old as [`CasOptions::listing_age`].
//! - A member that holds nothing is granted more than it asks for, and so stays listed
//!   for up to 1.65 times its ttl after it died.
//! - A damaged record, or one of a newer format, stops that election with
//!   [`Foreign`](crate::ErrorKind::Foreign) until somebody repairs it. It is left
//!   out where everything is asked for, and a claim that names it among others
//!   fails before anything is written.

mod amend;
mod anchor;
mod bid;
mod claim;
mod election;
mod format;
mod handle;
mod judging;
mod keys;
mod life;
mod looking;
mod member;
mod members;
mod memory;
mod mutation;
mod options;
mod past;
mod read;
mod record;
mod register;
mod release;
pub mod retrying;
mod seen;
mod standing;
mod store;
mod watch;

pub use member::MAX_CANDIDACIES;
pub use memory::MemoryRegister;
#[cfg(feature = "mutations")]
#[doc(hidden)]
pub use mutation::CasRule;
pub use options::CasOptions;
pub use record::MAX_RECORD;
pub use register::{Expect, Listed, Loaded, Register, Removed, Swapped, Version};
pub use retrying::{Repeats, Retrying};
pub use store::CasStore;

#[cfg(test)]
mod tests;
