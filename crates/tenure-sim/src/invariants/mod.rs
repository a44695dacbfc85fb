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
//!   that was evicted, from then on. No other is excused.
//! - **A copy that forgot** and was promoted takes away what [`replication`]
//!   says.
//! - [`fence`] is never off otherwise.

mod bids;
mod cooldown;
mod fence;
mod giving_up;
mod heirs;
mod journal;
mod leads_in_time;
mod loss;
mod losses;
mod lost_wins;
mod members;
mod name_beats;
mod name_ops;
mod name_tokens;
mod name_work;
mod names_answered;
mod names_come_right;
mod names_read;
mod numbers;
mod observers;
mod one_client_trusts;
mod one_holder;
mod one_owner_trusts;
mod one_term_a_bid;
mod one_trusts;
mod orphans;
mod pauses;
mod replication;
mod rollbacks;
mod rows;
mod spinning;
mod strays;
mod trust_within_grant;
mod work;

use std::fmt;

use tenure_core::{
    Amend, Amended, BindAnswer, Bindings, EndCause, Happening, Incarnation, MemberRef, Settings,
};

use crate::clock::{Clock, Nanos, SECOND};
use crate::config::{Config, StoreKind};
use crate::coverage::Situation;
use crate::fact::Fact;
use replication::{After, unless_jumping};

pub(crate) use leads_in_time::settling_time;

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
        let whole = self.at / SECOND;
        let part = self.at % SECOND / 1_000;
        write!(f, "{} does not hold at {whole}.{part:06}: {}", self.invariant, self.text)
    }
}

/// All invariants of one world.
#[derive(Debug)]
pub(crate) struct Checks {
    all: Vec<(Box<dyn Invariant>, After)>,
    violation: Option<Violation>,
    /// Whether a copy that forgot has taken over.
    promoted: bool,
    /// What broke since, and may.
    broken: Vec<Situation>,
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
        let store = config.store;
        let twice = unless_jumping(store, "a promoted copy gave a number twice");
        let back = unless_jumping(store, "a promoted copy went back in its numbers");
        let fence = unless_jumping(store, "a promoted copy took a deposed leader's write");
        let two = After::MayBreak("two trusted after a copy was promoted");
        let older = After::MayBreak("a promoted copy showed an older term");
        let token = unless_jumping(store, "a promoted copy gave a token twice");
        let owners = After::MayBreak("two trusted in a name after a copy was promoted");
        // A copy whose numbers do not jump tells no member that it forgot a name.
        let jumps = store == StoreKind::Jumping;
        let still_one = if jumps { After::Holds } else { After::NotJudged };
        let all: Vec<(Box<dyn Invariant>, After)> = vec![
            (Box::new(one_holder::OneHolder::default()), twice),
            (Box::new(numbers::NumbersRise::default()), back),
            (Box::new(one_trusts::OneTrusts::new(&setup)), two),
            (Box::new(one_trusts::OneTrusts::again(&setup)), After::Holds),
            (Box::new(one_client_trusts::OneClientTrusts::new(&setup)), After::Holds),
            (Box::new(trust_within_grant::TrustWithinGrant::new(&setup)), After::Holds),
            (Box::new(loss::LossInTime::default()), After::Holds),
            (Box::new(losses::Losses::new(&setup)), After::NotJudged),
            (Box::new(rollbacks::Rollbacks::new(&setup)), After::Holds),
            (Box::new(fence::Fence::default()), fence),
            (Box::new(observers::NeverBack::new(&setup)), older),
            (Box::new(members::Members::default()), After::NotJudged),
            (Box::new(rows::GuardedRows::default()), After::NotJudged),
            (Box::new(journal::Journal::default()), After::NotJudged),
            (Box::new(giving_up::GivingUp::default()), After::Holds),
            (Box::new(one_term_a_bid::OneTermABid::default()), After::NotJudged),
            (Box::new(lost_wins::LostWins::default()), After::NotJudged),
            (Box::new(strays::Strays::new(&setup)), After::Holds),
            (Box::new(work::ReleaseAfterWork::new(&setup)), After::Holds),
            (Box::new(cooldown::Cooldown::new(&setup)), After::Holds),
            (Box::new(heirs::Heirs::default()), After::NotJudged),
            (Box::new(pauses::Pauses::default()), After::NotJudged),
            (Box::new(bids::BoundedBids::new(&setup)), After::Holds),
            (Box::new(orphans::Orphans), After::Holds),
            (Box::new(leads_in_time::LeadsInTime::new(&setup)), After::Holds),
            (Box::new(spinning::Spinning::default()), After::Holds),
            (Box::new(names_answered::NamesAnswered::default()), After::NotJudged),
            (Box::new(name_tokens::NameTokens::default()), token),
            (Box::new(names_read::NamesRead::new(&setup)), After::NotJudged),
            (Box::new(one_owner_trusts::OneOwnerTrusts::new(&setup)), owners),
            (Box::new(one_owner_trusts::OneOwnerTrusts::again(&setup)), still_one),
            (Box::new(name_work::DropAfterWork::new(&setup)), After::Holds),
            (Box::new(name_ops::RepeatedOperations::default()), After::Holds),
            (Box::new(names_come_right::NamesComeRight::new(&setup)), After::Holds),
            (Box::new(name_beats::NoMoreBeats::new(&setup)), After::Holds),
        ];
        Self { all, violation: None, promoted: false, broken: Vec::new() }
    }

    pub(crate) fn see(&mut self, now: Nanos, fact: &Fact<'_>) {
        if self.violation.is_some() {
            return;
        }
        if let Fact::Promoted { .. } = fact {
            self.promoted = true;
            self.all.retain(|(_, after)| *after != After::NotJudged);
        }
        let mut spent = None;
        for (index, (invariant, after)) in self.all.iter_mut().enumerate() {
            let Err(text) = invariant.see(now, fact) else { continue };
            match after {
                After::MayBreak(situation) if self.promoted => {
                    self.broken.push(situation);
                    spent = Some(index);
                }
                _ => {
                    self.violation = Some(Violation { invariant: invariant.name(), at: now, text });
                    return;
                }
            }
        }
        // Broken once, it has nothing more to say.
        if let Some(index) = spent {
            self.all.remove(index);
        }
    }

    /// What broke that may break since a copy was promoted, since last asked.
    pub(crate) fn take_broken(&mut self) -> Vec<Situation> {
        std::mem::take(&mut self.broken)
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

/// Whether a bind was answered with a name that this life owns, which counts as a heartbeat.
fn binds(bindings: &Bindings, member: &MemberRef) -> bool {
    let Bindings::Answered(answers) = bindings else { return false };
    answers.iter().any(|answer| match answer {
        BindAnswer::Bound(binding) => binding.owner.as_ref() == Some(member),
        _ => false,
    })
}

/// The lives that an operator evicted at once: they may believe for the rest of their ttl.
fn evicted(fact: &Fact<'_>) -> Vec<Incarnation> {
    match fact {
        Fact::Amended {
            amend: Amend::Evict { now: true, .. },
            answer: Amended::Done { member: Some(member), .. },
            ..
        } => vec![member.incarnation],
        // In two steps: the entry tells. One that was condemned before is waited out.
        Fact::Stepped { by: None, step, .. } => {
            let ended = step.entries.iter().filter_map(|entry| match &entry.what {
                Happening::Ended { member, cause: EndCause::Evicted, .. } => {
                    Some(member.incarnation)
                }
                _ => None,
            });
            ended.collect()
        }
        _ => Vec::new(),
    }
}

/// The journal entries that a fact brought.
fn entries<'a>(fact: &Fact<'a>) -> &'a [tenure_core::Entry] {
    match fact {
        Fact::Applied { entries, .. } | Fact::Amended { entries, .. } => entries,
        Fact::Stepped { step, .. } => &step.entries,
        _ => &[],
    }
}
