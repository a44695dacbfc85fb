//! In which state an election is: the one word that its row, its page and the counts go by.

use std::fmt;
use std::time::Duration;

use tenure::ElectionView;

/// The state of an election, as far as this server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No member leads, and no vacancy is kept.
    Vacant,
    /// No member leads, and something keeps candidates from winning.
    HeldUp,
    /// The vacancy is kept for one candidate for a while.
    Kept,
    /// The ttl of the leader that was read last is over, and nothing was read since.
    Silent,
    /// The leader was asked to step down, and has not yet.
    Stopping,
    /// It has a leader.
    Led,
}

impl State {
    /// The state of a view that was read so long ago.
    pub(crate) fn of(view: &ElectionView, age: Duration) -> Self {
        match &view.holder {
            Some(holder) if age >= holder.remaining => Self::Silent,
            Some(_) if view.step_down.is_some() => Self::Stopping,
            Some(_) => Self::Led,
            None if view.held_up.is_some() => Self::HeldUp,
            None if view.reserved.is_some() => Self::Kept,
            None => Self::Vacant,
        }
    }

    /// The word that people read.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Vacant => "vacant",
            Self::HeldUp => "held up",
            Self::Kept => "kept",
            Self::Silent => "silent",
            Self::Stopping => "stepping down",
            Self::Led => "led",
        }
    }

    /// The word that the script and the stylesheet go by, and the name of its symbol.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Vacant => "vacant",
            Self::HeldUp => "held-up",
            Self::Kept => "kept",
            Self::Silent => "silent",
            Self::Stopping => "stopping",
            Self::Led => "led",
        }
    }

    /// Whether no leader is known now.
    pub(crate) fn is_vacant(self) -> bool {
        !matches!(self, Self::Led | Self::Stopping)
    }

    /// What it means, in a sentence.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Vacant => "No member leads.",
            Self::HeldUp => "No member leads, and something keeps candidates from winning.",
            Self::Kept => "No member leads yet: the vacancy is kept for one candidate.",
            Self::Silent => {
                "The leader's ttl is over as far as this server knows, and the store \
                             has not said who leads now."
            }
            Self::Stopping => "The leader was asked to step down, and is finishing its work.",
            Self::Led => "One member leads.",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Which elections are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Show {
    #[default]
    All,
    Vacant,
    Paused,
    Flapping,
    Led,
}

impl Show {
    pub(crate) const ALL: [Self; 5] =
        [Self::All, Self::Vacant, Self::Paused, Self::Flapping, Self::Led];

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Vacant => "vacant",
            Self::Paused => "paused",
            Self::Flapping => "flapping",
            Self::Led => "led",
        }
    }

    pub(crate) fn of(key: &str) -> Self {
        Self::ALL.into_iter().find(|show| show.key() == key).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::ElectionName;

    /// What the script and the stylesheet go by has one word for each state.
    #[test]
    fn every_state_has_a_word_in_the_script_and_in_the_stylesheet() {
        let all =
            [State::Vacant, State::HeldUp, State::Kept, State::Silent, State::Stopping, State::Led];
        for state in all {
            let key = format!("\"{}\"", state.key());
            assert!(include_str!("assets/tenure.js").contains(&key), "{key}");
            assert!(include_str!("assets/tenure.css").contains(&format!("={key}")), "{key}");
        }
        assert!(Show::ALL.into_iter().all(|show| Show::of(show.key()) == show));
    }

    #[test]
    fn without_a_leader_it_is_vacant() {
        let view = ElectionView::vacant(ElectionName::new("nightly").unwrap());
        assert_eq!(State::of(&view, Duration::ZERO), State::Vacant);
    }
}
