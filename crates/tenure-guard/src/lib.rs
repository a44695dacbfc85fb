#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("tenure-guard needs Linux: subreapers, pidfds, signalfd, timerfd and /proc");

mod auxiliary;
mod cgroup;
mod clock;
mod deadlines;
mod group;
mod guarded;
mod guardian;
mod processes;
mod signals;
mod stage;
mod terminal;
mod wire;

pub use auxiliary::{AuxiliaryEnd, auxiliary};
pub use clock::now;
pub use deadlines::Deadlines;
pub use group::adopt_orphans;
pub use guarded::{CommandEnd, CommandSpec, Guarded};
pub use processes::{Unsupported, check_processes};
pub use signals::{Signals, is_ending};
pub use terminal::Terminal;
pub use wire::Report;
