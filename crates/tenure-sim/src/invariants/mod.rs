//! What must hold, one file each. Every fact of a world is shown to every one of
//! them; the first that objects ends the run.
//!
//! # Which of them are off, and when
//!
//! - **A clock beyond the drift bound** takes promise 2 away, and nothing else:
//!   [`one_trusts`] is off, and so is the half of [`trust_within_grant`] that
//!   compares trust with the store's clock. Trust is still counted from before
//!   the request (T1), and the fence holds.
//! - **A forced eviction** (`now: true`) gives away what a member may still
//!   believe in for the rest of its ttl: [`one_trusts`] does not count the life
//!   that was evicted, from then on. Nobody else is excused.
//! - [`fence`] is never off.

mod bids;
mod cooldown;
mod fence;
mod giving_up;
mod heirs;
mod journal;
mod loss;
mod losses;
mod members;
mod numbers;
mod observers;
mod one_holder;
mod one_term_a_bid;
mod one_trusts;
mod orphans;
mod pauses;
mod somebody_leads;
mod spinning;
mod trust_within_grant;
mod work;

use std::fmt;

use tenure_core::Settings;

use crate::clock::{Clock, Nanos, SECOND};
use crate::config::Config;
use crate::fact::Fact;

pub(crate) use somebody_leads::settling_time;

/// One thing that must hold.
pub(crate) trait Invariant: fmt::Debug {
    /// What holds, in a few words.
    fn name(&self) -> &'static str;

    /// Looks at a fact; objects with the reason.
    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String>;
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub invariant: &'static str,
    /// When.
    pub at: Nanos,
    /// Why.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.at / SECOND, self.at % SECOND / 1_000);
        write!(f, "{} does not hold at {whole}.{part:06}: {}", self.invariant, self.text)
    }
}

/// All invariants of one world.
#[derive(Debug)]
pub(crate) struct Checks {
    all: Vec<Box<dyn Invariant>>,
    violation: Option<Violation>,
}

/// What invariants know of a world beforehand.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) settings: Vec<Settings>,
    pub(crate) store_clock: Clock,
}

impl Checks {
    pub(crate) fn new(config: &Config, settings: Vec<Settings>, store_clock: Clock) -> Self {
        let setup = Setup { config: config.clone(), settings, store_clock };
        let all: Vec<Box<dyn Invariant>> = vec![
            Box::new(one_holder::OneHolder::default()),
            Box::new(numbers::NumbersRise::default()),
            Box::new(one_trusts::OneTrusts::new(&setup)),
            Box::new(trust_within_grant::TrustWithinGrant::new(&setup)),
            Box::new(loss::LossInTime::default()),
            Box::new(losses::Losses::new(&setup)),
            Box::new(fence::Fence::default()),
            Box::new(observers::NeverBack::default()),
            Box::new(members::Members::default()),
            Box::new(journal::Journal::default()),
            Box::new(giving_up::GivingUp),
            Box::new(one_term_a_bid::OneTermABid::default()),
            Box::new(work::ReleaseAfterWork::new(&setup)),
            Box::new(cooldown::Cooldown::new(&setup)),
            Box::new(heirs::Heirs::default()),
            Box::new(pauses::Pauses::default()),
            Box::new(bids::BoundedBids::new(&setup)),
            Box::new(orphans::Orphans),
            Box::new(somebody_leads::SomebodyLeads::new(&setup)),
            Box::new(spinning::Spinning::default()),
        ];
        Self { all, violation: None }
    }

    pub(crate) fn see(&mut self, now: Nanos, fact: &Fact<'_>) {
        if self.violation.is_some() {
            return;
        }
        for invariant in &mut self.all {
            if let Err(text) = invariant.see(now, fact) {
                self.violation = Some(Violation { invariant: invariant.name(), at: now, text });
                return;
            }
        }
    }

    /// Reports what the world itself saw go wrong.
    pub(crate) fn report(&mut self, invariant: &'static str, at: Nanos, text: String) {
        self.violation.get_or_insert(Violation { invariant, at, text });
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn take_violation(self) -> Option<Violation> {
        self.violation
    }
}

/// The journal entries that a fact brought.
fn entries<'a>(fact: &Fact<'a>) -> &'a [tenure_core::Entry] {
    match fact {
        Fact::Applied { entries, .. } | Fact::Amended { entries, .. } => entries,
        _ => &[],
    }
}
