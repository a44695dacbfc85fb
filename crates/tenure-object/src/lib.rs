#![doc = include_str!("../README.md")]

mod answer;
mod aws;
mod azure;
mod cloud;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod gcs;
mod http;
mod names;
mod objects;
mod options;
mod pace;
mod probe;
mod store;
mod tombstones;

pub use cloud::Cloud;
pub use options::BucketOptions;
pub use store::BucketStore;
