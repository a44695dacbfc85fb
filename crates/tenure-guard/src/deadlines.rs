//! When a command is told to stop, and when it is killed.

use std::time::Duration;

use tenure_core::Mono;

/// Two moments on the clock that [`now`](crate::now) reads. They move with every
/// renewal of the term; a guardian acts on them if they are not moved in time.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::Mono;
/// use tenure_guard::Deadlines;
///
/// let deadlines = Deadlines::new(Mono::from_millis(9_000), Duration::from_secs(3));
/// assert_eq!(deadlines.term_at, Mono::from_millis(6_000));
/// assert_eq!(deadlines.kill_at, Mono::from_millis(9_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// When the command gets TERM.
    pub term_at: Mono,
    /// When everything of the command gets KILL: the end of trust.
    pub kill_at: Mono,
}

impl Deadlines {
    /// KILL at the end of trust, and TERM a grace before it.
    #[must_use]
    pub fn new(trusted_until: Mono, grace: Duration) -> Self {
        Self { term_at: trusted_until - grace, kill_at: trusted_until }
    }
}
