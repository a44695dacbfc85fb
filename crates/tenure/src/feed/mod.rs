//! What happens in a namespace, as it happens: the journal as a stream, and elections
//! observed without standing for them.
//!
//! Nothing here extends trust. What is followed is read by tasks beside the driver, which
//! keep their own place, retry by themselves, and never wait for a slow reader.

mod journal;
mod observe;

pub use journal::{JournalStream, Journalled};
pub(crate) use observe::Observations;
pub use observe::{Observation, Observed, Observer};
