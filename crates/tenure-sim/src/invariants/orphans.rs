//! B18, B25: once the world has come right, what the store says is what
//! all members believe: no term without a leader who knows of it, no leader
//! without a term.

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Surveyed};

#[derive(Debug)]
pub(super) struct Orphans;

impl Invariant for Orphans {
    fn name(&self) -> &'static str {
        "no term is an orphan"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Surveyed { elections } = fact else { return Ok(()) };
        for Surveyed { election, held, led, .. } in *elections {
            let held = held.as_ref().map(|(member, number)| (member.incarnation, *number));
            let led: Vec<_> = led.iter().map(|(_, life, number)| (*life, *number)).collect();
            if held.into_iter().collect::<Vec<_>>() != led {
                return Err(format!("{election} is held by {held:?} and led by {led:?}"));
            }
        }
        Ok(())
    }
}
