//! A process: the machine, its clock, its application, and what befalls it.

use std::collections::BTreeMap;

use tenure_core::{
    ElectionName, Incarnation, Machine, MemberId, Mono, Name, Priority, Settings, TermNumber, Token,
};

use super::clients::Served;
use super::naming::Asked;
use super::queue::Happens;
use crate::clock::{Clock, Nanos};
use crate::fact::Who;

/// One place in the world where a process runs, crashes and is started again.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) who: Who,
    pub(crate) id: MemberId,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    /// `None` while nothing runs here.
    pub(crate) machine: Option<Machine>,
    pub(crate) frozen: Option<Frozen>,
    /// Whether the store cannot be reached from here.
    pub(crate) cut: bool,
    /// The newest wish to be woken.
    pub(crate) wish: u64,
    /// Whether it shuts down, and is not to be told anything new.
    pub(crate) leaving: bool,
    pub(crate) app: App,
}

/// Stopped or suspended.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) since: Nanos,
    pub(crate) suspended: bool,
    /// What came meanwhile.
    pub(crate) inbox: Vec<Happens>,
}

/// The application of one start of a process: what it was told, and what it
/// does about it.
#[derive(Debug, Default)]
pub(crate) struct App {
    pub(crate) stances: BTreeMap<ElectionName, Stance>,
    pub(crate) habits: Habits,
    pub(crate) priority: BTreeMap<ElectionName, Priority>,
    pub(crate) names: BTreeMap<Name, NameStance>,
    /// The sessions that it serves, in a world of clients.
    pub(crate) served: BTreeMap<ElectionName, Served>,
    /// What is asked for and not answered, by ticket.
    pub(crate) asked: BTreeMap<u64, (Name, Asked)>,
    /// The last ticket.
    pub(crate) tickets: u64,
}

/// Where an application is with one name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameStance {
    /// The take that it waits for.
    pub(crate) asked: Option<u64>,
    /// What it owns, until it is told that it is lost.
    pub(crate) owned: Option<OwnedName>,
}

/// A name, as the application owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedName {
    pub(crate) token: Token,
    pub(crate) life: Incarnation,
    /// What `is_current()` compares the clock with.
    pub(crate) until: Mono,
}

/// How an application behaves, in thousandths of the time it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// How much of the drain time it takes; above 1000: until it is told that
    /// the term is lost.
    pub(crate) drain: u64,
    /// How much of the margin its work takes to stop once it is lost.
    pub(crate) stop: u64,
    /// Whether it says so when its work has stopped after a loss.
    pub(crate) confirms: bool,
}

/// Where an application is with one election.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stance {
    /// Whether it waits to be elected.
    pub(crate) standing: bool,
    /// What it leads with, until it is told that it is lost.
    pub(crate) leadership: Option<Leadership>,
}

/// A leadership, as the application holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leadership {
    pub(crate) number: TermNumber,
    pub(crate) incarnation: Incarnation,
    /// What `is_current()` compares the clock with.
    pub(crate) until: Mono,
}

impl Process {
    pub(crate) fn local(&self, now: Nanos) -> Mono {
        self.clock.at(now)
    }

    /// Whether this very start of the process is there to be reached.
    pub(crate) fn is(&self, who: Who) -> bool {
        self.who == who && self.machine.is_some()
    }

    pub(crate) fn stance(&mut self, election: &ElectionName) -> &mut Stance {
        self.app.stances.entry(election.clone()).or_default()
    }

    pub(crate) fn name(&mut self, name: &Name) -> &mut NameStance {
        self.app.names.entry(name.clone()).or_default()
    }

    /// The term that the application leads `election` with and may still act
    /// on: `is_current()`.
    pub(crate) fn current(&self, now: Nanos, election: &ElectionName) -> Option<Leadership> {
        self.machine.as_ref()?;
        let leadership = self.app.stances.get(election)?.leadership?;
        (self.local(now) < leadership.until).then_some(leadership)
    }
}
