//! Clients behind servers: in these worlds no process leads for itself. Each serves a session
//! for each election, whose client is another process with a clock of its own, reached by
//! messages. Server and client run the real [`Session`] and [`SessionTrust`].
//!
//! A client beats, is stopped for a while, has answers come late or never; a server crashes,
//! pauses between a grant and its answer, is asked to step down, drains, shuts down. What a
//! client trusts is a fact, and one invariant looks at all of them.

use std::collections::BTreeMap;

use tenure_core::{
    ElectionName, Event, Incarnation, Input, Mono, Next, Session, SessionTrust, TermNumber,
};

use super::World;
use super::queue::{Act, Happens};
use crate::clock::{Clock, Nanos};
use crate::config::{Feature, nanos};
use crate::fact::{Fact, Who};
use crate::mutation::{Mutation, SessionRule};

/// Which client: the place of its server, and its election.
pub(crate) type Whose = (usize, ElectionName);

/// A client, and its newest session.
#[derive(Debug)]
pub(crate) struct Client {
    clock: Clock,
    /// Stopped until then.
    frozen_until: Nanos,
    session: u64,
    server: Who,
    trust: SessionTrust,
    /// In which life of its server's member it leads.
    life: Incarnation,
    /// It was told to stop, and has or will.
    stopping: bool,
}

/// A session, as its server has it.
#[derive(Debug)]
pub(crate) struct Served {
    number: u64,
    session: Session,
    term: Option<(TermNumber, Incarnation)>,
    drains: bool,
}

/// What is sent to a client.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// A session has begun.
    Begun(Who),
    /// The answer to a beat that was sent at this moment of the client's clock.
    Answer { sent: Mono, says: Says },
    /// An event: the term is led from now on, or over.
    Event { term: TermNumber, over: bool },
}

/// What a beat is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    Waiting,
    Leads { term: TermNumber, life: Incarnation, remaining: std::time::Duration, stop: bool },
    Lost,
}

/// Something that happens with clients.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A client beats.
    Beat { whose: Whose, session: u64 },
    /// A client has stopped of its own accord, or as it was told.
    Stops { whose: Whose, session: u64 },
    /// A client hears something of a session.
    Hears { whose: Whose, session: u64, word: Word },
}

/// What reaches a server from its client.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Beat {
        sent: Mono,
    },
    Resigns,
    /// Nothing: it is time to look at the session.
    Due,
}

/// A world, for clients and their sessions.
pub(super) struct Clients<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn clients(&mut self) -> Clients<'_> {
        Clients { world: self }
    }

    fn breaks(&self, rule: SessionRule) -> bool {
        self.mutation == Some(Mutation::Session(rule))
    }
}

impl Clients<'_> {
    /// A process begins to stand: for a client that has asked it to.
    pub(super) fn begin(&mut self, who: Who, election: &ElectionName) {
        self.world.sessions += 1;
        let number = self.world.sessions;
        let process = &mut self.world.processes[who.process];
        let local = process.clock.at(self.world.now);
        let settings = &process.settings;
        let session = Session::new(local, settings.ttl(), settings.drift_ppm());
        let served = Served { number, session, term: None, drains: false };
        process.app.served.insert(election.clone(), served);
        self.tell(who, election, number, Word::Begun(who));
        self.look_later(who, election, number);
    }

    /// The server's application is told something by its member.
    pub(super) fn react(&mut self, who: Who, event: &Event) {
        let name = match event {
            Event::Elected { term, .. } => &term.election,
            Event::Stopping { election, .. }
            | Event::Lost { election, .. }
            | Event::Withdrawn { election } => election,
            _ => return,
        };
        let election = name.clone();
        let Some(served) = self.world.processes[who.process].app.served.get_mut(&election) else {
            return;
        };
        let number = served.number;
        match event {
            Event::Elected { term, .. } => {
                served.session.won();
                served.term = Some((term.number, term.member.incarnation));
                let word = Word::Event { term: term.number, over: false };
                self.tell(who, &election, number, word);
            }
            Event::Stopping { drain_until, .. } => {
                served.session.asked_to_stop(*drain_until);
                served.drains = true;
            }
            Event::Lost { number: term, .. } => {
                served.session.end();
                let word = Word::Event { term: *term, over: true };
                self.tell(who, &election, number, word);
                self.serve(who, &election, number, &Said::Due);
            }
            _ => drop(self.world.processes[who.process].app.served.remove(&election)),
        }
    }

    /// Something reaches the server of a session.
    pub(super) fn serve(&mut self, who: Who, election: &ElectionName, number: u64, said: &Said) {
        let process = &mut self.world.processes[who.process];
        let local = process.clock.at(self.world.now);
        let until = process.stance(election).leadership.map(|leadership| leadership.until);
        let served = process.app.served.get_mut(election);
        let Some(served) = served.filter(|served| served.number == number) else {
            // It is over and forgotten.
            if let Said::Beat { sent } = said {
                let word = Word::Answer { sent: *sent, says: Says::Lost };
                self.tell(who, election, number, word);
            }
            return;
        };
        match said {
            Said::Beat { sent } => {
                let lives = served.session.heard(local);
                let says = match (served.term, until) {
                    (Some((term, life)), Some(until)) if lives => {
                        let remaining = served.session.grant(local, until);
                        Says::Leads { term, life, remaining, stop: served.drains }
                    }
                    (None, _) if lives => Says::Waiting,
                    _ => Says::Lost,
                };
                let word = Word::Answer { sent: *sent, says };
                return self.tell(who, election, number, word);
            }
            Said::Resigns => served.session.stopped(),
            Said::Due => {}
        }
        let over = served.session.is_over(local);
        if over && self.world.breaks(SessionRule::ReleasedEarly) {
            let served = self.world.processes[who.process].app.served.get_mut(election);
            served.into_iter().for_each(|served| served.session.stopped());
        }
        self.look(who, election);
    }

    /// Gives the term of a session back when it may be.
    fn look(&mut self, who: Who, election: &ElectionName) {
        let process = &mut self.world.processes[who.process];
        let local = process.clock.at(self.world.now);
        let Some(served) = process.app.served.get_mut(election) else { return };
        let number = served.number;
        if let Next::Wait(_) = served.session.next(local) {
            return self.look_later(who, election, number);
        }
        let term = served.term;
        process.app.served.remove(election);
        match term {
            Some((number, _)) => {
                self.world.see(Fact::WorkStopped { who, election, number });
                let resign = Input::Resign { election: election.clone(), number, to: None };
                self.world.feed(who, resign);
                self.world.apps().stand_again(who, election.clone());
            }
            None => self.world.feed(who, Input::Withdraw { election: election.clone() }),
        }
    }

    /// Looks again when the session says.
    fn look_later(&mut self, who: Who, election: &ElectionName, number: u64) {
        let process = &mut self.world.processes[who.process];
        let local = process.clock.at(self.world.now);
        let Some(served) = process.app.served.get_mut(election) else { return };
        let Next::Wait(at) = served.session.next(local) else { return };
        let at = process.clock.reaches(at).max(self.world.now + 1);
        let act = Act::Session(election.clone(), number, Said::Due);
        self.world.queue.push(at, Happens::App { who, act });
    }

    /// The client of a process says at once that it has stopped, and is heard.
    pub(super) fn stop_at_once(&mut self, who: Who, election: &ElectionName) {
        let whose = (who.process, election.clone());
        if let Some(client) = self.world.clients.get_mut(&whose) {
            client.trust.lost(client.clock.at(self.world.now));
            client.stopping = true;
            let session = client.session;
            self.world.see(Fact::ClientLost { client: who.process, election });
            self.serve(who, election, session, &Said::Resigns);
        }
    }

    /// Stops a client for a while.
    pub(super) fn freeze(&mut self, index: usize, span: Nanos) {
        let until = self.world.now + span;
        for ((process, _), client) in &mut self.world.clients {
            if *process == index {
                client.frozen_until = client.frozen_until.max(until);
            }
        }
        self.world.coverage.mark("a client was stopped");
    }

    /// All go on.
    pub(super) fn thaw(&mut self) {
        for client in self.world.clients.values_mut() {
            client.frozen_until = 0;
        }
    }

    /// A client's turn comes, unless it is stopped.
    pub(super) fn turn(&mut self, turn: Turn) {
        let (Turn::Beat { whose, session }
        | Turn::Stops { whose, session }
        | Turn::Hears { whose, session, .. }) = &turn;
        let whose = whose.clone();
        let session = *session;
        if let Some(client) = self.world.clients.get(&whose)
            && client.frozen_until > self.world.now
        {
            let at = client.frozen_until;
            return self.world.queue.push(at, Happens::Client(turn));
        }
        if let Turn::Hears { word: Word::Begun(server), .. } = turn {
            return self.begun(whose, session, server);
        }
        let Some(client) = self.world.clients.get_mut(&whose) else { return };
        if client.session != session {
            return;
        }
        match turn {
            Turn::Beat { .. } => self.beat(whose, session),
            Turn::Stops { .. } => {
                let server = client.server;
                client.trust.lost(client.clock.at(self.world.now));
                client.stopping = true;
                let (client, election) = &whose;
                self.world.see(Fact::ClientLost { client: *client, election });
                self.say(server, election, session, Said::Resigns);
            }
            Turn::Hears { word, .. } => self.hears(&whose, &word),
        }
    }

    fn begun(&mut self, whose: Whose, session: u64, server: Who) {
        let settings = self.world.processes[whose.0].settings.clone();
        let clock = match self.world.clients.get(&whose) {
            Some(client) if client.session >= session => return,
            Some(client) => client.clock,
            None => super::new_clock(&self.world.config, &mut self.world.serving),
        };
        let trust = SessionTrust::new(settings.ttl());
        let life = Incarnation::from_u128(0);
        let client =
            Client { clock, frozen_until: 0, session, server, trust, life, stopping: false };
        self.world.clients.insert(whose.clone(), client);
        self.world.see(Fact::ClientLost { client: whose.0, election: &whose.1 });
        self.beat(whose, session);
    }

    /// Beats, and thinks of the next beat.
    fn beat(&mut self, whose: Whose, session: u64) {
        let Some(client) = self.world.clients.get(&whose) else { return };
        let server = client.server;
        let clock = client.clock;
        let sent = clock.at(self.world.now);
        let pause = self.world.processes[whose.0].settings.ttl() / 4;
        let at = clock.reaches(sent + pause);
        let (_, election) = &whose;
        self.say(server, election, session, Said::Beat { sent });
        self.world.queue.push(at, Happens::Client(Turn::Beat { whose, session }));
    }

    fn hears(&mut self, whose: &Whose, word: &Word) {
        let extends = self.world.breaks(SessionRule::EventExtends);
        let from_answer = self.world.breaks(SessionRule::CountedFromAnswer);
        let ttl = self.world.processes[whose.0].settings.ttl();
        let Some(client) = self.world.clients.get_mut(whose) else { return };
        let local = client.clock.at(self.world.now);
        let was_stopping = client.stopping;
        match word {
            Word::Answer { sent, says: Says::Leads { term, life, remaining, stop } } => {
                let from = if from_answer { local } else { *sent };
                client.life = *life;
                client.trust.leads(from, *term, *remaining);
                client.stopping |= stop;
            }
            Word::Answer { says: Says::Lost, .. } | Word::Event { over: true, .. } => {
                client.trust.lost(local);
            }
            Word::Event { term, over: false } if extends => client.trust.leads(local, *term, ttl),
            _ => {}
        }
        let session = client.session;
        let stops = client.stopping && !was_stopping;
        self.trusted(whose);
        if stops {
            self.drain(whose, session);
        }
    }

    /// Tells the invariants until when a client trusts.
    fn trusted(&mut self, whose: &Whose) {
        let Some(client) = self.world.clients.get(whose) else { return };
        let (process, election) = whose;
        let local = client.clock.at(self.world.now);
        if !client.trust.is_current(local) {
            return self.world.see(Fact::ClientLost { client: *process, election });
        }
        let until = client.clock.reaches(client.trust.until());
        let number = client.trust.term();
        let life = client.life;
        self.world.coverage.mark("a client of a server led");
        self.world.see(Fact::ClientTrusts { client: *process, election, number, life, until });
    }

    /// The client was asked to stop, and does so in a while; or does not.
    fn drain(&mut self, whose: &Whose, session: u64) {
        let process = &self.world.processes[whose.0];
        let habit = if self.world.healed { 1 } else { process.app.habits.drain };
        if habit <= 1_000 {
            let span = process.settings.drain() / 1_000 * u32::try_from(habit).unwrap_or(1);
            self.stop_in(whose, session, nanos(span));
        }
    }

    fn stop_in(&mut self, whose: &Whose, session: u64, span: Nanos) {
        let turn = Turn::Stops { whose: whose.clone(), session };
        self.world.queue.push(self.world.now + span, Happens::Client(turn));
    }

    /// The client of a leader tires of it.
    pub(super) fn tire(&mut self, who: Who, election: &ElectionName, after: Nanos) {
        let whose = (who.process, election.clone());
        if let Some(client) = self.world.clients.get(&whose) {
            let session = client.session;
            self.stop_in(&whose, session, after);
        }
    }

    /// A client says something to its server.
    fn say(&mut self, server: Who, election: &ElectionName, number: u64, said: Said) {
        if self.loses() {
            return;
        }
        let at = self.world.now + self.delay();
        let act = Act::Session(election.clone(), number, said);
        self.world.queue.push(at, Happens::App { who: server, act });
    }

    /// A server says something to its client.
    fn tell(&mut self, who: Who, election: &ElectionName, session: u64, word: Word) {
        if self.loses() {
            return;
        }
        let at = self.world.now + self.delay();
        let whose = (who.process, election.clone());
        self.world.queue.push(at, Happens::Client(Turn::Hears { whose, session, word }));
    }

    fn loses(&mut self) -> bool {
        let lost = self.world.serving.chance(80);
        self.world.on(Feature::Drops) && lost
    }

    /// Mostly short, now and then in another age.
    fn delay(&mut self) -> Nanos {
        let usual = self.world.serving.between(100_000, 2_000_000);
        let late = self.world.serving.chance(100);
        let how_late = self.world.serving.below(nanos(self.world.config.ttl) * 2);
        if self.world.on(Feature::Stragglers) && late { how_late } else { usual }
    }
}

/// The clients of a world.
pub(crate) type ClientMap = BTreeMap<Whose, Client>;
