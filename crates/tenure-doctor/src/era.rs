//! Where the term numbers of the store stand (rule M6).

use std::time::Duration;

use tenure::store::{Era, EraView, Finding};
use tenure_api::{Moment, span};

/// When and why the era of numbers began, and whether numbers are ahead of the clock. Of a
/// store that says itself that it `was_rolled_back` the first era is nothing to be glad of.
pub(crate) fn look(view: &EraView, was_rolled_back: bool) -> Vec<Finding> {
    let count = view.era.count();
    let era = match &view.raised {
        None if was_rolled_back => Finding::note(
            "era",
            "era",
            format!("{count}: the store was rolled back, and no era has begun since"),
            "see what the store says of itself, below",
        ),
        None => Finding::fine(
            "era",
            "era",
            format!("{count}: the store has not been found restored, promoted or rolled back"),
        ),
        Some(raised) => {
            let at = Moment::from(raised.at).short();
            let found = format!("{count}, since {at} UTC: {}", raised.why);
            let remedy = "if the store was restored or rolled back after that, run `tenure \
                          restored`, so that no number which it forgot is given out again";
            Finding::note("era", "era", found, remedy)
        }
    };
    // Raising an era may carry numbers past the clock by one jump, for as long as that
    // is worth.
    let jump = Duration::from_micros(Era::JUMP);
    let ahead = view.ahead().filter(|ahead| *ahead > jump).map(|ahead| {
        let found = format!(
            "the highest term number, {}, is ahead of the store's wall clock by {}",
            view.highest,
            span::roughly(ahead)
        );
        let remedy = "the clock was set back, or was ahead when an era began: set it right, and \
                      run `tenure restored` after every restore from a backup until the clock \
                      has caught up; without it a restored store could give a number out again";
        Finding::wrong("numbers-ahead", "numbers", found, remedy)
    });
    [era].into_iter().chain(ahead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::store::{Raised, Verdict};
    use tenure::{TermNumber, Timestamp};

    fn codes(view: &EraView) -> Vec<(&'static str, Verdict)> {
        look(view, false).iter().map(|finding| (finding.code, finding.verdict)).collect()
    }

    /// M6: the first era is as it should be, a later one is worth knowing.
    #[test]
    fn an_era_that_began_is_told_with_when_and_why() {
        assert_eq!(codes(&EraView::default()), [("era", Verdict::Fine)]);
        assert_eq!(look(&EraView::default(), true)[0].verdict, Verdict::Note);
        let at = Timestamp::from_unix_millis(1_794_780_503_000);
        let raised = Some(Raised { at, why: "it was said to be restored, by ann".into() });
        let view = EraView { raised, ..EraView::default() };
        assert_eq!(codes(&view), [("era", Verdict::Note)]);
        let found = &look(&view, false)[0].found;
        assert!(found.contains("2026-11-15 22:08:23 UTC: it was said"), "{found}");
    }

    /// M6: on the clock, ahead of it by what an era may do, and by more.
    #[test]
    fn numbers_ahead_of_the_clock_are_wrong() {
        for (ahead, expected) in [(0, 1), (Era::JUMP, 1), (Era::JUMP + 1, 2)] {
            let highest = TermNumber::new(7_000_000 + ahead);
            let view = EraView { highest, clock: 7_000_000, ..EraView::default() };
            assert_eq!(codes(&view).len(), expected, "{highest}");
        }
        let highest = TermNumber::new(9_500_000);
        let view = EraView { highest, clock: 7_000_000, ..EraView::default() };
        let ahead = look(&view, false).pop().expect("a finding");
        assert_eq!((ahead.code, ahead.verdict), ("numbers-ahead", Verdict::Wrong));
        assert!(ahead.found.contains("by 2.5s"), "{}", ahead.found);
    }
}
