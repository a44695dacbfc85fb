//! What can be set.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::MAX_DRIFT_PPM;
use tenure_store::url::check_interval;
use tenure_store::{BootClock, Clock, Error, ErrorKind, Result};

use crate::BootKey;

/// The longest wait or pause: a day. SQLite counts milliseconds in 31 bits.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// More entries than any disk holds.
const MOST_KEPT: u64 = 1_000_000_000_000;

/// How a [`SqliteStore`](crate::SqliteStore) is opened. The defaults are meant
/// to be left alone.
///
/// ```
/// use std::time::Duration;
/// use tenure_sqlite::SqliteOptions;
///
/// let options = SqliteOptions::new().journal_keep(1_000).busy_timeout(Duration::from_secs(2));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SqliteOptions {
    pub(crate) drift_ppm: u32,
    pub(crate) journal_keep: u64,
    pub(crate) busy_timeout: Duration,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) poll: Duration,
    pub(crate) native_watch: bool,
    pub(crate) share_file: bool,
    pub(crate) read_only: bool,
    pub(crate) prove_death: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) boot_key: Option<BootKey>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl SqliteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            drift_ppm: 1_000,
            journal_keep: 10_000,
            busy_timeout: Duration::from_secs(10),
            request_timeout: None,
            poll: Duration::from_millis(500),
            native_watch: true,
            share_file: false,
            read_only: false,
            prove_death: true,
            clock: Arc::new(BootClock),
            boot_key: None,
        }
    }

    /// By how many millionths a clock may run fast or slow. It widens the wait
    /// for members of another boot. Default: 1,000.
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.drift_ppm = ppm;
        self
    }

    /// How many journal entries of each namespace are kept, at least. Default:
    /// 10,000.
    pub fn journal_keep(mut self, entries: u64) -> Self {
        self.journal_keep = entries;
        self
    }

    /// How long to wait for the holder of the write lock. Default: 10 s. It
    /// begins anew whenever a process commits: it is meant for a transaction
    /// left open, not for a long line that moves. A caller with less patience
    /// gives up on its own.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// After how long the caller of a request gives up. Waiting for the write
    /// lock then ends well before that, so that the error says who holds it
    /// instead of that there was no answer. Default: never.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// How often to look where the kernel sends no notifications. Default:
    /// 500 ms. Where it does, a look four times rarer backs them up.
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// Whether to use the kernel's notifications (inotify). Default: yes.
    /// Without them the file is looked at every [`poll`](Self::poll).
    pub fn native_watch(mut self, native: bool) -> Self {
        self.native_watch = native;
        self
    }

    /// Whether Tenure's tables may be created in a file that already holds
    /// tables of the application's own, so that a fenced transaction covers
    /// both. Default: no, since a path given by mistake should be refused.
    pub fn share_file(mut self, share: bool) -> Self {
        self.share_file = share;
        self
    }

    /// Whether to look only. Default: no. Then nothing is made, not even the
    /// file, no right to write is needed as long as some process of Tenure has
    /// the file open, and every request that would write is refused.
    pub fn read_only(mut self, only: bool) -> Self {
        self.read_only = only;
        self
    }

    /// Whether the end of this process proves that its members are dead (rule M4). Default:
    /// yes. Without it they hold no lock, and are waited for until their ttl has run out: for
    /// a process whose members stand for work that outlives it.
    pub fn prove_death(mut self, prove: bool) -> Self {
        self.prove_death = prove;
        self
    }

    /// The clock to go by. It must count suspended time. For tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The boot to belong to, instead of the one this process runs in. For
    /// tests that play a reboot or a second host.
    pub fn boot_key(mut self, key: BootKey) -> Self {
        self.boot_key = Some(key);
        self
    }

    /// How long a request waits for the holder of the lock.
    pub(crate) fn lock_wait(&self) -> Duration {
        let most = self.request_timeout.map_or(Duration::MAX, |limit| limit / 4 * 3);
        self.busy_timeout.min(most)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message: String, remedy: &str| {
            Err(Error::new(ErrorKind::Invalid, message).remedy(remedy))
        };
        if self.drift_ppm > MAX_DRIFT_PPM {
            let message = format!("the drift bound of the SQLite store is {} ppm", self.drift_ppm);
            return refuse(message, &format!("it must be at most {MAX_DRIFT_PPM} ppm"));
        }
        if self.journal_keep == 0 {
            let message = "the journal of the SQLite store is to keep no entries".into();
            return refuse(message, "keep at least one: followers read it");
        }
        if self.journal_keep > MOST_KEPT {
            let kept = self.journal_keep;
            let message = format!("the journal of the SQLite store is to keep {kept} entries");
            return refuse(message, &format!("let it be at most {MOST_KEPT}"));
        }
        if self.busy_timeout > LONGEST {
            let asked = self.busy_timeout.as_millis();
            let message = format!("the busy timeout of the SQLite store is {asked} ms");
            return refuse(message, &format!("let it be at most {} ms", LONGEST.as_millis()));
        }
        check_interval("poll interval of the SQLite store", self.poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F3 for this store's own settings.
    #[test]
    fn options_are_checked_at_below_and_above_their_bounds() {
        assert!(SqliteOptions::new().check().is_ok());
        assert!(SqliteOptions::new().drift_ppm(MAX_DRIFT_PPM).check().is_ok());
        let drift = SqliteOptions::new().drift_ppm(MAX_DRIFT_PPM + 1).check().unwrap_err();
        assert!(drift.to_string().contains("100001 ppm"), "{drift}");
        assert!(SqliteOptions::new().journal_keep(1).check().is_ok());
        assert!(SqliteOptions::new().journal_keep(0).check().is_err());
        assert!(SqliteOptions::new().poll(Duration::from_millis(10)).check().is_ok());
        assert!(SqliteOptions::new().poll(Duration::from_millis(9)).check().is_err());
        assert!(SqliteOptions::new().poll(LONGEST).busy_timeout(LONGEST).check().is_ok());
        let over = LONGEST + Duration::from_millis(1);
        assert!(SqliteOptions::new().poll(over).check().is_err());
        assert!(SqliteOptions::new().busy_timeout(over).check().is_err());
        assert!(SqliteOptions::new().journal_keep(MOST_KEPT).check().is_ok());
        assert!(SqliteOptions::new().journal_keep(MOST_KEPT + 1).check().is_err());
    }
}
