//! Whether a call is repeated (G2). Pure: [`fault`](crate::fault) says what is known of the
//! request, [`body`](crate::body) what was taken of its body.

use crate::body::Taken;
use crate::fault::Fate;

/// What to do with a call that has no answer of its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send it again, as it was.
    Repeat,
    /// It may have been handled: the caller decides.
    MayHaveRun,
    /// It was not handled, and cannot be sent again: part of it is gone.
    Gone,
}

pub(crate) fn judge(fate: Fate, taken: Taken) -> Verdict {
    match (fate, taken) {
        (Fate::Unknown, _) => Verdict::MayHaveRun,
        (Fate::NotConnected | Fate::NotHandled, Taken::Nothing | Taken::Whole) => Verdict::Repeat,
        (Fate::NotConnected | Fate::NotHandled, Taken::Part | Taken::TooMuch) => Verdict::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case: only what provably did not run is repeated, and only whole.
    #[test]
    fn a_call_is_repeated_only_if_it_did_not_run_and_is_whole() {
        for taken in [Taken::Nothing, Taken::Whole, Taken::Part, Taken::TooMuch] {
            assert_eq!(judge(Fate::Unknown, taken), Verdict::MayHaveRun);
            for fate in [Fate::NotConnected, Fate::NotHandled] {
                let whole = matches!(taken, Taken::Nothing | Taken::Whole);
                let verdict = if whole { Verdict::Repeat } else { Verdict::Gone };
                assert_eq!(judge(fate, taken), verdict);
            }
        }
    }
}
