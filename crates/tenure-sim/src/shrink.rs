//! Shrinking: the smallest world that still fails in the same way.

use crate::config::{Config, Feature};
use crate::mutation::Mutation;
use crate::world::run;

/// Turns features off one by one, takes members and elections away and shortens
/// the time of faults, as long as the same invariant still fails.
#[must_use]
pub fn shrink(failing: &Config, mutation: Option<Mutation>) -> Config {
    let fails = |config: &Config| run(config, mutation, false).violation.map(|v| v.invariant);
    let Some(invariant) = fails(failing) else { return failing.clone() };
    let mut smallest = failing.clone();
    loop {
        let smaller = steps(&smallest).into_iter().find(|c| fails(c) == Some(invariant));
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

/// Every world that is one step smaller.
fn steps(config: &Config) -> Vec<Config> {
    let mut smaller = Vec::new();
    if config.members > 1 {
        smaller.push(Config { members: config.members - 1, ..config.clone() });
    }
    if config.elections > 1 {
        smaller.push(Config { elections: config.elections - 1, ..config.clone() });
    }
    if config.names > 0 {
        smaller.push(Config { names: config.names - 1, ..config.clone() });
    }
    let shorter = config.chaos * 3 / 4;
    if shorter > crate::config::nanos(config.ttl) {
        smaller.push(Config { chaos: shorter, ..config.clone() });
    }
    for feature in Feature::ALL.into_iter().filter(|f| config.features.has(*f)) {
        // A world within the bounds must not fail only because one beyond them does.
        let features = config.features.with(feature, false);
        smaller.push(Config { features, ..config.clone() });
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, Suite};

    /// A world that fails is made smaller and fails in the same way.
    #[test]
    fn a_failing_world_shrinks_to_one_that_still_fails() {
        let mutation = Some(Mutation::Machine(tenure_core::Mutation::NoMargin));
        let suite =
            Suite { mutation, scenario: Some(Scenario::Swarm), patience: 1, ..Suite::of(200) };
        let failure = suite.run().failures.remove(0);
        let small = shrink(&failure.config, mutation);
        let again = run(&small, mutation, false).violation.expect("it fails");
        assert_eq!(again.invariant, failure.violation.invariant);
        assert!(small.features.iter().count() < failure.config.features.iter().count());
        assert!(steps(&small).iter().all(|c| {
            run(c, mutation, false).violation.is_none_or(|v| v.invariant != again.invariant)
        }));
    }
}
