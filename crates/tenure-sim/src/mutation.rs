//! Mutations: rules broken on purpose, each of which the invariants must catch.

use std::fmt;
use std::str::FromStr;

use tenure_cas::CasRule;
use tenure_core::Mutation as Machine;

use crate::scenario::Scenario;

/// One rule broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A rule of the member's side.
    Machine(Machine),
    /// A rule of the store's side.
    Store(StoreRule),
    /// A rule of the compare-and-swap family's.
    Cas(CasRule),
    /// A rule of a store's whose rows lie elsewhere.
    Turns(TurnRule),
    /// A rule of clients behind servers.
    Session(SessionRule),
    /// T2: the members' clocks stop while their hosts are suspended.
    SuspendNotCounted,
}

/// A rule of clients behind servers, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionRule {
    /// W2: an event extends trust.
    EventExtends,
    /// W1: trust is counted from the answer.
    CountedFromAnswer,
    /// W4: a term is given back before the client's trust has ended.
    ReleasedEarly,
    /// W4: a member that leads for clients keeps a lost term for its margin alone.
    MarginOnly,
}

/// A rule of a store's, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRule {
    /// M1: a heartbeat revives a member whose ttl has run out.
    HeartbeatRevives,
    /// M2: a term is taken from a member that is not ended, and goes on beating.
    TakenNotEnded,
    /// M5: a life is ended, one of its terms is not.
    TermOutlivesLife,
    /// M3: the challenger's ttl decides when the holder has expired.
    ChallengersTtl,
    /// M6: a new era lifts the numbers by what the store itself counts, which goes back
    /// with the store.
    EraWithoutClock,
    /// M6: a new era does not go by the number that a member tells.
    ToldNotHeeded,
    /// H5: a number is used again after its term was given back.
    NumbersReused,
    /// E1: a release ends whatever term there is, of any holder.
    ReleaseNotScoped,
    /// E2: a bid that arrives twice counts as two.
    NonceIgnored,
    /// C9, C10: a vacancy is kept for no heir.
    HeirIgnored,
    /// C9: who has priority 0 leads all the same.
    AnyoneLeads,
    /// E6: a pause is written down and not heeded.
    PauseIgnored,
    /// U3: a name is taken from an owner that is not ended, and goes on beating.
    NameOwnerNotEnded,
    /// U2: a token is used again after its name was dropped.
    TokensReused,
    /// U4: a drop ends whatever binding there is, of any owner.
    DropNotScoped,
    /// E2: a take that arrives twice counts as two.
    TakesNotRepeated,
}

/// A guard of a turn, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnRule {
    /// M1: whether the caller still lives is not looked at once more when the turn comes.
    CallerNotChecked,
    /// M2: a member's row is written over although a heartbeat has changed it since.
    MemberGuardDropped,
    /// M1, M2: the service reads its clock before it has the lock, and not after.
    ClockBeforeLock,
}

impl Mutation {
    /// All of them.
    pub const ALL: &[Mutation] = &[
        Mutation::Machine(Machine::TrustFromReply),
        Mutation::Machine(Machine::TrustIgnoresDrift),
        Mutation::Machine(Machine::ExpireLast),
        Mutation::Machine(Machine::StaleReplies),
        Mutation::Machine(Machine::LateWins),
        Mutation::Machine(Machine::ReleaseFirst),
        Mutation::Machine(Machine::NoMargin),
        Mutation::Machine(Machine::LeaveEarly),
        Mutation::Machine(Machine::NoCooldown),
        Mutation::Machine(Machine::BidAtOnce),
        Mutation::Machine(Machine::NoBackOff),
        Mutation::Machine(Machine::ForgetBids),
        Mutation::Machine(Machine::KeepOrphans),
        Mutation::Machine(Machine::OldLooks),
        Mutation::Machine(Machine::TrustHints),
        Mutation::Machine(Machine::EndedGoesOn),
        Mutation::Machine(Machine::BelieveRollbacks),
        Mutation::Machine(Machine::NumbersUntold),
        Mutation::Machine(Machine::TakeOverForTtl),
        Mutation::Machine(Machine::TakenForGranted),
        Mutation::Machine(Machine::AnyBeatTakesOn),
        Mutation::Machine(Machine::HintsNotPaced),
        Mutation::Machine(Machine::NamePastGrant),
        Mutation::Machine(Machine::NameDroppedEarly),
        Mutation::Machine(Machine::NameForgetsNonce),
        Mutation::Machine(Machine::WithdrawnNameKept),
        Mutation::Machine(Machine::NamesNotDoubted),
        Mutation::SuspendNotCounted,
        Mutation::Store(StoreRule::HeartbeatRevives),
        Mutation::Store(StoreRule::TakenNotEnded),
        Mutation::Store(StoreRule::TermOutlivesLife),
        Mutation::Store(StoreRule::ChallengersTtl),
        Mutation::Store(StoreRule::EraWithoutClock),
        Mutation::Store(StoreRule::ToldNotHeeded),
        Mutation::Store(StoreRule::NumbersReused),
        Mutation::Store(StoreRule::ReleaseNotScoped),
        Mutation::Store(StoreRule::NonceIgnored),
        Mutation::Store(StoreRule::HeirIgnored),
        Mutation::Store(StoreRule::AnyoneLeads),
        Mutation::Store(StoreRule::PauseIgnored),
        Mutation::Store(StoreRule::NameOwnerNotEnded),
        Mutation::Store(StoreRule::DropNotScoped),
        Mutation::Store(StoreRule::TakesNotRepeated),
        Mutation::Cas(CasRule::TakenNotEnded),
        Mutation::Cas(CasRule::NoBeatAfterClaim),
        Mutation::Cas(CasRule::MissingIsOver),
        Mutation::Cas(CasRule::AnchorIgnoresDrift),
        Mutation::Cas(CasRule::JoinTrustsListing),
        Mutation::Cas(CasRule::NameTakenNotEnded),
        Mutation::Cas(CasRule::NoBeatAfterBind),
        Mutation::Cas(CasRule::NoSecondLook),
        Mutation::Turns(TurnRule::CallerNotChecked),
        Mutation::Turns(TurnRule::MemberGuardDropped),
        Mutation::Turns(TurnRule::ClockBeforeLock),
        Mutation::Session(SessionRule::EventExtends),
        Mutation::Session(SessionRule::CountedFromAnswer),
        Mutation::Session(SessionRule::ReleasedEarly),
        Mutation::Session(SessionRule::MarginOnly),
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Mutation::Machine(rule) => format!("{rule:?}"),
            Mutation::Store(rule) => format!("{rule:?}"),
            Mutation::Cas(rule) => format!("Cas{rule:?}"),
            Mutation::Turns(rule) => format!("Turns{rule:?}"),
            Mutation::Session(rule) => format!("Session{rule:?}"),
            Mutation::SuspendNotCounted => "SuspendNotCounted".to_owned(),
        }
    }

    /// The kind of world it is looked for in, if only one kind has the rule.
    #[must_use]
    pub fn scenario(self) -> Option<Scenario> {
        match self {
            Mutation::Cas(_) => Some(Scenario::Cas),
            Mutation::Turns(_) => Some(Scenario::Turns),
            Mutation::Session(_) => Some(Scenario::Clients),
            Mutation::Machine(Machine::BelieveRollbacks | Machine::NamesNotDoubted)
            | Mutation::Store(StoreRule::EraWithoutClock) => Some(Scenario::Jump),
            Mutation::Machine(Machine::NumbersUntold)
            | Mutation::Store(StoreRule::ToldNotHeeded) => Some(Scenario::Replica),
            _ => None,
        }
    }

    /// Whether clocks stop while their hosts are suspended.
    pub(crate) fn clock_misses_suspends(self) -> bool {
        self == Mutation::SuspendNotCounted
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for Mutation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|mutation| mutation.name() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|m| m.name()).collect();
            format!("no mutation `{text}`; there are: {}", known.join(", "))
        })
    }
}
