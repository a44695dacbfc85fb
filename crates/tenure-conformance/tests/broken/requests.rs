//! Defects in how a store takes what it is asked: the request is changed before
//! it reaches a sound store.

use std::time::Duration;

use tenure_core::{
    Amend, Claim, ElectionName, Heartbeat, Join, MemberId, Namespace, Note, Priority, Profile,
    Query, Release, ReleaseCause, Seq, TermNumber, Told, Which,
};

use crate::defect::Defect;

const AGES: Duration = Duration::from_secs(1_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

impl Defect {
    fn name(self, name: &ElectionName) -> ElectionName {
        let text = match self {
            Defect::FoldsCase => name.as_str().to_lowercase(),
            Defect::CutsNames => cut(name.as_str(), 64),
            _ => return name.clone(),
        };
        ElectionName::new(text).expect("a shorter good name is good")
    }

    pub(crate) fn namespace(self, ns: &Namespace) -> Namespace {
        if self == Defect::SharesNamespaces { Namespace::default() } else { ns.clone() }
    }

    fn ttl(self, ttl: Duration) -> Duration {
        if self == Defect::CutsTtl { ttl.min(HOUR) } else { ttl }
    }

    pub(crate) fn join(self, join: &Join) -> Join {
        let mut join = join.clone();
        join.ttl = self.ttl(join.ttl);
        match self {
            Defect::TextMetadata => {
                let text = String::from_utf8_lossy(join.profile.metadata()).into_owned();
                let text = cut(&text, tenure_core::MAX_METADATA);
                join.profile =
                    Profile::new(join.profile.endpoints(), text).expect("within the limit");
            }
            Defect::NeverSupersedes => join.supersede = false,
            Defect::HandsOverToAll => join.inherits = true,
            Defect::ForgetsWhatJoinsSaw => join.seen = Told::NOTHING,
            Defect::ForgetsWhatJoinsTell => join.seen.number = TermNumber::NONE,
            _ => {}
        }
        join
    }

    pub(crate) fn heartbeat(self, beat: &Heartbeat) -> Heartbeat {
        let mut beat = beat.clone();
        beat.ttl = self.ttl(beat.ttl);
        if self == Defect::IgnoresStatedTtl {
            beat.ttl = AGES;
        }
        beat
    }

    pub(crate) fn claim(self, claim: &Claim) -> Claim {
        let mut claim = claim.clone();
        claim.ttl = self.ttl(claim.ttl);
        claim.heir_grace = self.grace(claim.heir_grace);
        match self {
            Defect::ForgetsWhatBidsSaw => claim.seen = Told::NOTHING,
            Defect::ForgetsWhatBidsTell => claim.seen.number = TermNumber::NONE,
            Defect::BelievesAbsurdNumbers => {
                let most = TermNumber::new(tenure_core::Era::HEEDED - 1);
                claim.seen.number = claim.seen.number.min(most);
            }
            Defect::BelievesAnyNumber if claim.seen.number > TermNumber::NONE => {
                claim.seen.place = Seq::new(claim.seen.place.get().max(1 << 30) + 1);
            }
            Defect::JumpsEachTime if claim.seen.place > Seq::START => {
                let nonces = claim.bids.iter().map(|bid| bid.nonce.get()).sum::<u64>();
                claim.seen.place = Seq::new(claim.seen.place.get() + nonces * 1_000);
            }
            _ => {}
        }
        for bid in &mut claim.bids {
            bid.election = self.name(&bid.election);
            if self == Defect::IgnoresPriorities {
                bid.priority = Priority::default();
            }
        }
        claim
    }

    fn grace(self, grace: Duration) -> Duration {
        match self {
            Defect::KeepsNoVacancy => Duration::ZERO,
            Defect::KeepsVacancyForEver => AGES,
            _ => grace,
        }
    }

    pub(crate) fn release(self, release: &Release) -> Release {
        let mut release = release.clone();
        release.heir_grace = self.grace(release.heir_grace);
        match self {
            Defect::NeverHandsOver => release.confirm_within = Duration::ZERO,
            Defect::HandsOverInTwoSteps => {
                (release.heir_grace, release.confirm_within) = (Duration::ZERO, Duration::ZERO);
            }
            Defect::HandsOverUnasked => release.confirm_within = release.heir_grace,
            _ => {}
        }
        let mut withdrawals = Vec::new();
        for item in &mut release.items {
            item.election = self.name(&item.election);
            match self {
                Defect::KeepsNoVacancy => item.successor = None,
                Defect::OneTimeForAll => {
                    item.successor.iter_mut().for_each(|(_, time)| *time = release.confirm_within);
                }
                Defect::HandsOverForNoTime => {
                    let named = item.successor.iter_mut();
                    named.filter(|(_, time)| time.is_zero()).for_each(|(_, time)| {
                        *time = release.confirm_within;
                    });
                }
                Defect::OneCause => item.cause = ReleaseCause::Resigned,
                Defect::LateReleaseWithdraws => {
                    let mut withdrawal = item.clone();
                    withdrawal.number = None;
                    withdrawals.push(withdrawal);
                }
                _ => {}
            }
        }
        release.items.extend(withdrawals);
        release
    }

    pub(crate) fn amend(self, amend: &Amend) -> Amend {
        let mut amend = amend.clone();
        match (self, &mut amend) {
            (Defect::StepsDownAnyTerm, Amend::StepDown { number, .. }) => *number = None,
            (Defect::TakesAnySuccessor, Amend::StepDown { to, .. }) => *to = None,
            (Defect::EvictsAtOnce, Amend::Evict { now, .. }) => *now = true,
            (Defect::NeverEvicts, Amend::Evict { member, .. }) => {
                *member = MemberId::new("another").expect("good");
            }
            (Defect::CutsNotes, Amend::Pause { reason, by, .. }) => {
                *reason = Note::new(cut(reason.as_str(), 10));
                *by = Note::new(cut(by.as_str(), 10));
            }
            _ => {}
        }
        amend
    }

    pub(crate) fn query(self, query: &Query) -> Query {
        let mut query = query.clone();
        match (self, &mut query.which) {
            (Defect::HeldByAll, which @ Which::HeldBy(_)) => *which = Which::All,
            (_, Which::Named(names)) => {
                for name in names {
                    *name = self.name(name);
                }
            }
            _ => {}
        }
        query
    }
}

/// The first characters that fit into `limit` bytes.
fn cut(text: &str, limit: usize) -> String {
    let mut short = String::new();
    for c in text.chars() {
        if short.len() + c.len_utf8() > limit {
            break;
        }
        short.push(c);
    }
    short.trim().to_owned()
}
