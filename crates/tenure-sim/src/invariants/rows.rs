//! M1, M2, where rows are reached by looks and turns: what a step writes is judged by the
//! service's clock **at that step**, whatever the rules saw when they looked.
//!
//! - Nothing renews a life whose ttl has run out (M1).
//! - A renewal is taken back by the member itself alone, and no member ends a life as expired
//!   that a heartbeat has renewed since the look (M2).

use std::collections::BTreeMap;

use tenure_core::{EndCause, Event, Happening, Incarnation, Mono};
use tenure_rules::MemberRow;

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};
use crate::store::Step;

#[derive(Debug, Default)]
pub(super) struct GuardedRows {
    lives: BTreeMap<Who, Incarnation>,
}

impl GuardedRows {
    fn step(&self, by: Option<Who>, store: Mono, step: &Step) -> Result<(), String> {
        let own = by.and_then(|who| self.lives.get(&who));
        for before in &step.before {
            let life = &before.member;
            let same = |row: &&MemberRow| row.member == *life;
            let expired = |what: &Happening| matches!(what, Happening::Ended { member, cause: EndCause::Expired, .. } if member == life);
            match step.after.iter().find(same) {
                Some(after) if after.until > before.until && !before.is_live(store) => {
                    return Err(format!("{life} was renewed after its ttl had run out"));
                }
                Some(after) if after.until < before.until && own != Some(&life.incarnation) => {
                    return Err(format!("a heartbeat of {life} was taken back"));
                }
                None if before.is_live(store)
                    && step.entries.iter().any(|entry| expired(&entry.what)) =>
                {
                    return Err(format!("{life} was ended as expired, and lived"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Invariant for GuardedRows {
    fn name(&self) -> &'static str {
        "a turn neither revives a member nor takes a heartbeat back"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Told { who, event: Event::Joined { member }, .. } => {
                self.lives.insert(*who, member.incarnation);
                Ok(())
            }
            Fact::Stepped { by, store, step } => self.step(*by, *store, step),
            _ => Ok(()),
        }
    }
}
