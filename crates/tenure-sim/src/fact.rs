//! Facts: what happens in a world, as its invariants see it.

use tenure_core::{
    Amend, Amended, Binding, ElectionName, Entry, Event, Failed, Incarnation, Input, Mono, Name,
    Reply, Request, TermNumber, Token,
};

use crate::clock::Nanos;
use crate::store::Step;

/// One run of one process: the place it has in the world, and how often it
/// was started there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    /// Its place.
    pub process: usize,
    /// Which start of it.
    pub start: u32,
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}.{}", self.process, self.start)
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// A process was started.
    Started {
        /// Which.
        who: Who,
    },
    /// A process is gone, without a word.
    Crashed {
        /// Which.
        who: Who,
    },
    /// A process was stopped, suspended or continued.
    Froze {
        /// Which.
        who: Who,
        /// Until when.
        until: Nanos,
        /// Whether what is sent to it meanwhile is lost.
        suspended: bool,
    },
    /// A process is about to handle an input.
    Fed {
        /// Which.
        who: Who,
        /// By its own clock.
        local: Mono,
        /// What.
        input: &'a Input,
    },
    /// A process sent a request.
    Sent {
        /// Which.
        who: Who,
        /// By its own clock.
        local: Mono,
        /// The request's number.
        id: u64,
        /// What it asks.
        request: &'a Request,
    },
    /// A process told its application something.
    Told {
        /// Which.
        who: Who,
        /// By its own clock.
        local: Mono,
        /// What.
        event: &'a Event,
        /// Until when the application may trust it, in true time, if it is told
        /// such a thing.
        until: Option<Nanos>,
    },
    /// A clock changed its rate, and with it the true moment at which trust that
    /// was given out before comes to its end.
    Retrusted {
        /// Whose.
        who: Who,
        /// In which election.
        election: &'a ElectionName,
        /// Until when, in true time.
        until: Nanos,
    },
    /// A client of a server trusts that it leads.
    ClientTrusts {
        /// Which, by its server's place.
        client: usize,
        /// In which election.
        election: &'a ElectionName,
        /// The term.
        number: TermNumber,
        /// The life of the member that leads for it.
        life: Incarnation,
        /// Until when, in true time.
        until: Nanos,
    },
    /// A client of a server trusts nothing.
    ClientLost {
        /// Which, by its server's place.
        client: usize,
        /// In which election.
        election: &'a ElectionName,
    },
    /// A clock changed its rate while a name was trusted.
    NameRetrusted {
        /// Whose.
        who: Who,
        /// Which name.
        name: &'a Name,
        /// Until when, in true time.
        until: Nanos,
    },
    /// The work under a name has stopped, and the machine may be told so next.
    NameWorkStopped {
        /// Whose.
        who: Who,
        /// Which name.
        name: &'a Name,
        /// The binding.
        token: Token,
    },
    /// What a consistent read of all names shows at this moment.
    Bindings {
        /// By the store's clock.
        store: Mono,
        /// The bindings whose owners are live.
        live: &'a [Binding],
    },
    /// The names were looked over after the world had time to come right.
    NamesSurveyed {
        /// Each name.
        names: &'a [SurveyedName],
    },
    /// A process has handled an input and given out all there was.
    Settled {
        /// Which.
        who: Who,
        /// By its own clock.
        local: Mono,
    },
    /// The work of a term has stopped, and the machine is told so next.
    WorkStopped {
        /// Whose.
        who: Who,
        /// The election.
        election: &'a ElectionName,
        /// The term.
        number: TermNumber,
    },
    /// The store carried out a request.
    Applied {
        /// Whose.
        who: Who,
        /// By the store's clock.
        store: Mono,
        /// What was asked.
        request: &'a Request,
        /// What was answered.
        reply: &'a Result<Reply, Failed>,
        /// What it wrote into the journal.
        entries: &'a [Entry],
    },
    /// The service of a store whose rows lie elsewhere carried out a step: a look, a turn or
    /// a heartbeat.
    Stepped {
        /// Whose request it belongs to; `None` for an operator's.
        by: Option<Who>,
        /// By the service's clock, at the moment of the step.
        store: Mono,
        /// What it changed.
        step: &'a Step,
    },
    /// The store carried out an operator's request.
    Amended {
        /// By the store's clock.
        store: Mono,
        /// What was asked.
        amend: &'a Amend,
        /// What was answered.
        answer: &'a Amended,
        /// What it wrote into the journal.
        entries: &'a [Entry],
    },
    /// A write with a fencing token reached what it writes to.
    Wrote {
        /// Whose.
        who: Who,
        /// In which life.
        incarnation: Incarnation,
        /// To what.
        election: &'a ElectionName,
        /// With which token.
        token: TermNumber,
        /// Whether it was accepted.
        accepted: bool,
    },
    /// The store's copy took over.
    Promoted {
        /// How many of the last writes it had not received.
        lost: usize,
    },
    /// No more faults are made from here on.
    Healed,
    /// The leader of an election was taken away on purpose, in a world without
    /// other faults.
    Bereaved {
        /// Who led it.
        who: Who,
        /// The election.
        election: &'a ElectionName,
        /// Whether it went without a word.
        crashed: bool,
    },
    /// The world was looked over after it had time to come right.
    Surveyed {
        /// What the store and the applications say of each election.
        elections: &'a [Surveyed],
    },
    /// The run is over.
    Over,
}

/// One name, as it stands in a survey.
#[derive(Clone, Debug)]
pub struct SurveyedName {
    /// Which.
    pub name: Name,
    /// Who owns it, by the store, under which token.
    pub bound: Option<(Incarnation, Token)>,
    /// Which applications believe that they own it, with which token.
    pub owned: Vec<(Who, Incarnation, Token)>,
    /// Whether a member wants it or owns it.
    pub wanted: bool,
}

/// One election, as it stands in a survey.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// Which.
    pub election: ElectionName,
    /// Who holds it, by the store, under which number.
    pub held: Option<(tenure_core::MemberRef, TermNumber)>,
    /// Which applications believe that they lead it, with which number.
    pub led: Vec<(Who, Incarnation, TermNumber)>,
    /// Whether a member that may lead stands for it or leads it.
    pub wanted: bool,
}
