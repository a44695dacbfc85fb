//! Searching a world to the end, and what came of it.

use stateright::{Checker, HasDiscoveries, Model};

use crate::{Config, Game};

/// What a search found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Distinct states.
    pub states: usize,
    /// The longest way from the beginning to any of them.
    pub depth: usize,
    /// Rules that are broken, each with the way there.
    pub violations: Vec<String>,
    /// Situations that were never met.
    pub missed: Vec<&'static str>,
}

impl Verdict {
    /// Whether every rule holds and every situation was met.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.missed.is_empty()
    }
}

/// Searches every state of a world.
#[must_use]
pub fn check(config: Config, threads: usize) -> Verdict {
    let checker = Game { config }.checker().threads(threads).spawn_bfs().join();
    verdict(&checker)
}

/// Searches a world until a rule is seen broken, if one ever is.
#[must_use]
pub fn first_violation(config: Config, threads: usize) -> Verdict {
    let checker = Game { config }.checker().threads(threads);
    verdict(&checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join())
}

fn verdict(checker: &impl Checker<Game>) -> Verdict {
    use stateright::Expectation::{Always, Eventually, Sometimes};
    let mut verdict = Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        violations: Vec::new(),
        missed: Vec::new(),
    };
    for property in checker.model().properties() {
        match (property.expectation, checker.discovery(property.name)) {
            (Always | Eventually, Some(path)) => {
                let steps: Vec<String> =
                    path.into_actions().iter().map(|action| format!("{action:?}")).collect();
                verdict.violations.push(format!("{}: {}", property.name, steps.join(", ")));
            }
            (Sometimes, None) => verdict.missed.push(property.name),
            _ => {}
        }
    }
    verdict
}
