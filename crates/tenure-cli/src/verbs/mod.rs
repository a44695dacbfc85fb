//! One verb, one file.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod evict;
pub(crate) mod history;
pub(crate) mod lists;
pub(crate) mod names;
pub(crate) mod papers;
pub(crate) mod pause;
pub(crate) mod resign;
pub(crate) mod restored;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod timing;
pub(crate) mod watch;
