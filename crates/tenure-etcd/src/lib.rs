#![doc = include_str!("../README.md")]

mod fence;
mod messages;
mod options;
mod register;
mod store;
mod watch;
mod wire;

pub use fence::Fence;
pub use options::EtcdOptions;
pub use store::EtcdStore;
