//! Reasons in words, for messages and logs: each is a clause that can stand in brackets.

use core::fmt;

use crate::{EndCause, LostReason, ReleaseCause, StopReason, shown};

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LostReason::Resigned => "the holder resigned",
            LostReason::SteppedDown => "the holder was asked to step down",
            LostReason::DrainTimeout => "the work did not end within the drain",
            LostReason::TrustEnded => "no renewal was confirmed in time",
            LostReason::Superseded => "the store says that the term is over",
            LostReason::RolledBack => "the store was rolled back",
        })
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, by, to) = match self {
            StopReason::Asked { reason, by, to } => (reason, by, to),
            StopReason::Shutdown => return f.write_str("the process shuts down"),
        };
        f.write_str("asked to step down")?;
        if !by.as_str().is_empty() {
            write!(f, " by {}", shown(by.as_str()))?;
        }
        if let Some(to) = to {
            write!(f, " in favour of {to}")?;
        }
        if !reason.as_str().is_empty() {
            write!(f, ": {}", shown(reason.as_str()))?;
        }
        Ok(())
    }
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndCause::Expired => "the member's ttl ran out",
            EndCause::ProvenDead => "the member's process died",
            EndCause::Superseded => "a newer life of the member took its place",
            EndCause::Evicted => "an operator evicted the member",
        })
    }
}

impl fmt::Display for ReleaseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReleaseCause::Resigned => "the holder resigned",
            ReleaseCause::SteppedDown => "the holder was asked to step down",
            ReleaseCause::Abandoned => "the holder no longer trusted the term",
            ReleaseCause::Left => "the holder left",
            ReleaseCause::Ended(cause) => return cause.fmt(f),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::{MemberId, Note};

    /// L16: a reason reads as a clause, and shows no hidden character of another's text.
    #[test]
    fn a_reason_for_stopping_says_who_asked_why_and_for_whom() {
        let asked = |by: &str, reason: &str, to: Option<&str>| StopReason::Asked {
            reason: Note::new(reason),
            by: Note::new(by),
            to: to.map(|id| MemberId::new(id).unwrap()),
        };
        let whole = asked("ops", "new kernel", Some("b")).to_string();
        assert_eq!(whole, "asked to step down by ops in favour of b: new kernel");
        assert_eq!(asked("", "", None).to_string(), "asked to step down");
        let hidden = asked("o\u{202e}ps", "", None).to_string();
        assert!(!hidden.contains('\u{202e}'), "{hidden}");
        assert_eq!(StopReason::Shutdown.to_string(), "the process shuts down");
    }

    #[test]
    fn a_term_that_ended_with_its_holder_says_how() {
        let ended = ReleaseCause::Ended(EndCause::Expired).to_string();
        assert_eq!(ended, EndCause::Expired.to_string());
        assert_ne!(ReleaseCause::Left.to_string(), ReleaseCause::Resigned.to_string());
    }
}
