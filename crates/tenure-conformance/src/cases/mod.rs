//! The cases, one file per topic. Each is named after what holds; the codes in
//! its doc are those of the rules and scenarios it checks.

pub(crate) mod amend;
pub(crate) mod capabilities;
pub(crate) mod claim;
pub(crate) mod contention;
pub(crate) mod ending;
pub(crate) mod faults;
pub(crate) mod follow;
pub(crate) mod handover;
pub(crate) mod heartbeat;
pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod namespaces;
pub(crate) mod purge;
pub(crate) mod read;
pub(crate) mod release;
pub(crate) mod restored;
pub(crate) mod succession;
