//! What can be chosen about a [`CasStore`](crate::CasStore).

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tenure_core::MAX_DRIFT_PPM;

use tenure_store::{Error, ErrorKind, Result};

/// What can be chosen about a [`CasStore`](crate::CasStore).
///
/// ```
/// use tenure_cas::CasOptions;
/// let options = CasOptions { drift_ppm: 500, ..CasOptions::default() };
/// assert!(options.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasOptions {
    /// The store's name, as in its URL.
    pub name: &'static str,
    /// What every key begins with.
    pub prefix: String,
    /// How fast or slow the clocks involved may run, in millionths. An unchanged
    /// record is waited out for its ttl widened by this. Every member must
    /// state the same bound, or a greater one.
    pub drift_ppm: u32,
    /// How often [`follow`](tenure_store::Store::follow) looks at what is vacant or
    /// paused, and, for a follower that asked for no election by name, at everything;
    /// shortened at random by up to a quarter.
    pub poll: Duration,
    /// How often it looks at an election that is held and was asked for by name.
    /// `None`: about once in its holder's ttl, which is when those who wait for
    /// it look anyway, and so costs nothing. A shorter time makes a resignation
    /// heard sooner, for one more request each.
    pub poll_held: Option<Duration>,
    /// How old the list of members may be from which the rank of a candidate
    /// that waits ([`ahead`](tenure_core::ElectionView::ahead)) is told, and
    /// what is known of its own record, where a bid is lost and nothing is
    /// written. A decision about a vacancy always takes new ones.
    pub listing_age: Duration,
    /// Whether the service may answer a look from a copy that lags. Then what is older than
    /// what is known of the same cell and life is passed over, until a swap of what is known
    /// conflicts. A look of a [`Register`](crate::Register) that keeps its contract is the
    /// truth, and shows a record that was put back by hand. What a listing or a watch gives
    /// may lag in any case.
    pub looks_lag: bool,
    /// The most requests to the register at once for one verb.
    pub concurrency: usize,
    /// The most bids or releases in one request.
    pub batch: usize,
    /// Where the jitter of polling begins.
    pub seed: u64,
}

impl Default for CasOptions {
    fn default() -> Self {
        Self {
            name: "cas",
            prefix: "tenure".to_owned(),
            drift_ppm: 1_000,
            poll: Duration::from_secs(1),
            poll_held: None,
            listing_age: Duration::from_secs(600),
            looks_lag: false,
            concurrency: 16,
            batch: 100,
            seed: RandomState::new().hash_one(0u8),
        }
    }
}

impl CasOptions {
    /// Refuses what cannot work, and says why (rule F3).
    pub fn check(&self) -> Result<()> {
        let problem = if self.drift_ppm > MAX_DRIFT_PPM {
            let ppm = self.drift_ppm;
            format!("the drift bound is {ppm} ppm: it must be at most {MAX_DRIFT_PPM} ppm")
        } else if self.poll < Duration::from_millis(1) {
            format!("the polling pace is {:?}: it must be at least 1 ms", self.poll)
        } else if self.concurrency == 0 || self.batch == 0 {
            "concurrency and batch must be at least 1".to_owned()
        } else if let Some(odd) = self.prefix.chars().find(|c| !allowed(*c)) {
            format!(
                "the prefix {:?} has a {odd:?}: use ASCII letters, digits, '-', '_', '=' and '/'",
                self.prefix
            )
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Invalid, problem))
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F3: at, below and above each bound.
    #[test]
    fn options_that_cannot_work_are_refused_with_the_reason() {
        let good = CasOptions { drift_ppm: MAX_DRIFT_PPM, ..CasOptions::default() };
        assert!(good.check().is_ok());
        let poll = CasOptions { poll: Duration::from_millis(1), ..good.clone() };
        assert!(poll.check().is_ok());
        let refused = |options: CasOptions| options.check().unwrap_err().to_string();
        let drift = CasOptions { drift_ppm: MAX_DRIFT_PPM + 1, ..good.clone() };
        assert!(refused(drift).contains("drift bound"));
        let poll = CasOptions { poll: Duration::from_micros(999), ..good.clone() };
        assert!(refused(poll).contains("at least 1 ms"));
        assert!(refused(CasOptions { batch: 0, ..good.clone() }).contains("batch"));
        assert!(refused(CasOptions { concurrency: 0, ..good.clone() }).contains("concurrency"));
        assert!(refused(CasOptions { prefix: "a b".to_owned(), ..good }).contains("' '"));
    }
}
