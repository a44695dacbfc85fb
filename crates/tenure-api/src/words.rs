//! The words for what happened and why: one place, for people and for JSON.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_core::{EndCause, LostReason, ReleaseCause};

/// Who asked for something, and why: `by ann: draining the node`.
///
/// ```
/// assert_eq!(tenure_api::because("draining the node", "ann"), "by ann: draining the node");
/// assert_eq!(tenure_api::because("", ""), "no reason given");
/// ```
#[must_use]
pub fn because(reason: &str, by: &str) -> String {
    match (by.is_empty(), reason.is_empty()) {
        (false, false) => format!("by {by}: {reason}"),
        (false, true) => format!("by {by}"),
        (true, false) => reason.to_owned(),
        (true, true) => "no reason given".to_owned(),
    }
}

/// A text that is none of the words of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    kind: &'static str,
    given: String,
    known: &'static [&'static str],
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, given, known } = self;
        write!(f, "{given:?} is not a {kind}: write one of {}", known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// An enum whose variants are words: printed, parsed and serialised as them.
macro_rules! words {
    (
        $(#[$about:meta])* $name:ident is a $kind:literal:
        $($(#[$doc:meta])* $variant:ident = $word:literal,)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word).ok_or_else(|| {
                    UnknownWord { kind: $kind, given: word.into(), known: Self::WORDS }
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = String::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

words! {
    /// Why a term or the life of a member came to its end.
    ///
    /// ```
    /// use tenure_api::Cause;
    /// use tenure_core::{EndCause, ReleaseCause};
    ///
    /// assert_eq!(Cause::from(EndCause::ProvenDead).to_string(), "its process died");
    /// assert_eq!("expired".parse(), Ok(Cause::Expired));
    /// assert_eq!(ReleaseCause::from(Cause::Expired), ReleaseCause::Ended(EndCause::Expired));
    /// ```
    Cause is a "cause":
    /// The leader gave the term up.
    Resigned = "resigned",
    /// The leader was asked to step down, and did.
    SteppedDown = "stepped down as asked",
    /// The leader gave up a term that it no longer trusted.
    Abandoned = "given up, no longer trusted",
    /// The member left.
    Left = "left",
    /// The member's ttl ran out.
    Expired = "expired",
    /// The member's process is known to be dead.
    ProvenDead = "its process died",
    /// A newer process joined under the same id.
    Superseded = "replaced by a newer process of the same id",
    /// An operator ended the member.
    Evicted = "evicted",
}

impl From<EndCause> for Cause {
    fn from(cause: EndCause) -> Self {
        match cause {
            EndCause::Expired => Self::Expired,
            EndCause::ProvenDead => Self::ProvenDead,
            EndCause::Superseded => Self::Superseded,
            EndCause::Evicted => Self::Evicted,
        }
    }
}

impl From<ReleaseCause> for Cause {
    fn from(cause: ReleaseCause) -> Self {
        match cause {
            ReleaseCause::Resigned => Self::Resigned,
            ReleaseCause::SteppedDown => Self::SteppedDown,
            ReleaseCause::Abandoned => Self::Abandoned,
            ReleaseCause::Left => Self::Left,
            ReleaseCause::Ended(cause) => cause.into(),
        }
    }
}

impl From<Cause> for ReleaseCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Resigned => Self::Resigned,
            Cause::SteppedDown => Self::SteppedDown,
            Cause::Abandoned => Self::Abandoned,
            Cause::Left => Self::Left,
            Cause::Expired => Self::Ended(EndCause::Expired),
            Cause::ProvenDead => Self::Ended(EndCause::ProvenDead),
            Cause::Superseded => Self::Ended(EndCause::Superseded),
            Cause::Evicted => Self::Ended(EndCause::Evicted),
        }
    }
}

words! {
    /// What a journal entry is about.
    Event is a "event":
    /// A member joined.
    Joined = "joined",
    /// A member left.
    Left = "left",
    /// A member was ended.
    Ended = "ended",
    /// A member began to stand for an election, or changed its priority.
    Stood = "stood",
    /// A term was won.
    Elected = "elected",
    /// A term came to its end.
    Released = "released",
    /// The leader was asked to step down.
    StepDownAsked = "step_down_asked",
    /// The election was paused.
    Paused = "paused",
    /// The pause was lifted.
    Resumed = "resumed",
    /// Not an entry of the journal: who leads when a watch begins.
    Leads = "leads",
}

words! {
    /// Why a leadership was lost.
    Loss is a "loss":
    /// Given up by the leader.
    Resigned = "resigned",
    /// The leader was asked to step down, and did.
    SteppedDown = "stepped down as asked",
    /// Asked to step down, the work did not stop in time.
    DrainTimeout = "did not stop in time",
    /// The store confirmed no renewal in time.
    TrustEnded = "not renewed in time",
    /// The store ended the member or its term.
    Superseded = "ended by the store",
    /// The store forgot what it told before.
    RolledBack = "the store was rolled back",
    /// For a reason that this version has no word for.
    Over = "over",
}

impl From<LostReason> for Loss {
    fn from(reason: LostReason) -> Self {
        match reason {
            LostReason::Resigned => Self::Resigned,
            LostReason::SteppedDown => Self::SteppedDown,
            LostReason::DrainTimeout => Self::DrainTimeout,
            LostReason::TrustEnded => Self::TrustEnded,
            LostReason::Superseded => Self::Superseded,
            LostReason::RolledBack => Self::RolledBack,
            _ => Self::Over,
        }
    }
}

words! {
    /// How a finding of the doctor is meant.
    Verdict is a "verdict":
    /// As it should be.
    Fine = "fine",
    /// Worth knowing.
    Note = "note",
    /// To be put right.
    Wrong = "wrong",
}

impl From<tenure_core::Verdict> for Verdict {
    fn from(verdict: tenure_core::Verdict) -> Self {
        match verdict {
            tenure_core::Verdict::Fine => Self::Fine,
            tenure_core::Verdict::Note => Self::Note,
            tenure_core::Verdict::Wrong => Self::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_back<T>(all: &[T])
    where
        T: Copy + PartialEq + fmt::Debug + fmt::Display + FromStr<Err = UnknownWord>,
        T: Serialize + for<'de> Deserialize<'de>,
    {
        for word in all {
            assert_eq!(word.to_string().parse::<T>().unwrap(), *word);
            let json = serde_json::to_string(word).unwrap();
            assert_eq!(json, format!("{:?}", word.to_string()));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *word);
        }
    }

    #[test]
    fn every_word_reads_back() {
        reads_back(Cause::ALL);
        reads_back(Event::ALL);
        reads_back(Loss::ALL);
        reads_back(Verdict::ALL);
    }

    #[test]
    fn every_cause_is_one_of_core_and_comes_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from(ReleaseCause::from(*cause)), *cause);
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_known_ones() {
        let refused = "fien".parse::<Verdict>().unwrap_err().to_string();
        assert_eq!(refused, "\"fien\" is not a verdict: write one of fine, note, wrong");
        assert!(serde_json::from_str::<Cause>("\"Expired\"").is_err());
    }
}
