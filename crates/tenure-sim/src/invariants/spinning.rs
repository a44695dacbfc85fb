//! H11: the machine does not ask to be woken again and again at one moment.

use std::collections::BTreeMap;

use tenure_core::Input;

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

/// How often a machine may want to be woken at one moment.
const AT_ONCE: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct Spinning {
    woken: BTreeMap<Who, (Nanos, u32)>,
}

impl Invariant for Spinning {
    fn name(&self) -> &'static str {
        "the machine does not spin"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Fed { who, input: Input::Wake, .. } = fact else { return Ok(()) };
        let (at, count) = self.woken.entry(*who).or_default();
        if *at == now {
            *count += 1;
        } else {
            (*at, *count) = (now, 0);
        }
        if *count > AT_ONCE {
            return Err(format!("{who} was woken {count} times at one moment"));
        }
        Ok(())
    }
}
