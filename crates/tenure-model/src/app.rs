//! The application's side of a process: what it does with what the machine
//! tells it, and what it must never see.

use std::sync::Arc;

use tenure_core::{
    ElectionName, Event, Input, LostReason, Outgoing, Output, Priority, Request, Term, TermNumber,
};

use crate::marks::Mark;
use crate::world::{Body, Broken, Leadership, Letter, World};

impl World {
    /// Runs a process's machine on one input and takes everything it gives out.
    pub(crate) fn feed(&mut self, process: usize, input: Input) {
        let now = self.clock(process);
        let Some(machine) = &mut self.processes[process].machine else { return };
        let machine = Arc::make_mut(machine);
        machine.handle(now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| machine.poll()).collect();
        for output in outputs {
            match output {
                Output::Send(outgoing) => self.send(process, outgoing),
                Output::Event(event) => self.told(process, event),
            }
        }
    }

    fn send(&mut self, process: usize, outgoing: Outgoing) {
        self.check_release(process, &outgoing.request);
        let life = self.processes[process].life;
        let body = Body::Request(outgoing.request);
        self.post(Letter { process, life, id: outgoing.id, body, late: false });
    }

    /// E4: a term is given back only once its work has stopped. Work that has
    /// stopped, or had the margin to stop in, is no longer among the leaderships.
    fn check_release(&mut self, process: usize, request: &Request) {
        let leaderships = &self.processes[process].leaderships;
        let early = match request {
            Request::Release(release) => release.items.iter().any(|item| {
                let same =
                    |r: &Leadership| r.election == item.election && item.number == Some(r.number);
                leaderships.iter().any(same)
            }),
            Request::Leave(_) => !leaderships.is_empty(),
            _ => false,
        };
        if early || self.drops_early(process, request) {
            self.breaks(Broken::ReleasedEarly);
        }
    }

    fn told(&mut self, process: usize, event: Event) {
        match event {
            Event::Elected { term, trusted_until } => {
                self.elected(&term);
                let Term { election, number, .. } = term;
                let leadership =
                    Leadership { election, number, trusted_until, stopping: false, lost: false };
                self.processes[process].leaderships.push(leadership);
            }
            Event::Trusted { until, .. } => {
                for leadership in self.processes[process].leaderships.iter_mut().filter(|r| !r.lost)
                {
                    leadership.trusted_until = until;
                }
                for owned in self.processes[process].owned.iter_mut().filter(|o| !o.lost) {
                    owned.trusted_until = until;
                }
            }
            Event::Stopping { election, number, .. } => {
                self.change(process, &election, number, |leadership| leadership.stopping = true);
            }
            Event::Lost { election, number, reason } => {
                self.seen_lost(&reason);
                self.change(process, &election, number, |leadership| leadership.lost = true);
            }
            Event::NameAnswered { ticket, answer } => self.name_answered(process, ticket, answer),
            Event::NamesLost { names, reason } => self.names_lost(process, &names, &reason),
            Event::IdTaken { .. } => self.seen.set(Mark::IdTaken),
            _ => {}
        }
    }

    fn elected(&mut self, term: &Term) {
        self.seen.set(Mark::Elected);
        let key = (term.election.clone(), term.number);
        let mut heard = self.heard.range(..).filter(|((e, _), _)| *e == term.election);
        if let Some(((_, number), winner)) = heard.next_back() {
            if *number == term.number && *winner != term.member.incarnation {
                self.breaks(Broken::TwoHolders);
            } else if *number >= term.number {
                self.breaks(Broken::NumberWentBack);
            } else if *winner != term.member.incarnation {
                self.seen.set(Mark::TakenOver);
            }
        }
        self.heard.insert(key, term.member.incarnation);
    }

    fn seen_lost(&mut self, reason: &LostReason) {
        match reason {
            LostReason::TrustEnded => self.seen.set(Mark::TrustEnded),
            LostReason::Superseded => self.seen.set(Mark::Superseded),
            LostReason::SteppedDown => self.seen.set(Mark::SteppedDown),
            LostReason::DrainTimeout => self.seen.set(Mark::DrainTimeout),
            _ => {}
        }
    }

    pub(crate) fn breaks(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }

    fn change(
        &mut self,
        process: usize,
        election: &ElectionName,
        number: TermNumber,
        with: impl FnOnce(&mut Leadership),
    ) {
        let mut leaderships = self.processes[process].leaderships.iter_mut();
        if let Some(leadership) =
            leaderships.find(|r| r.election == *election && r.number == number)
        {
            with(leadership);
        }
    }

    /// The work under one leadership has stopped, and the application says so. Then
    /// it campaigns again, unless it shuts down.
    pub(crate) fn work_stops(&mut self, process: usize, which: impl Fn(&Leadership) -> bool) {
        let leaderships = &mut self.processes[process].leaderships;
        let Some(place) = leaderships.iter().position(which) else { return };
        let Leadership { election, number, .. } = leaderships.remove(place);
        self.feed(process, Input::Resign { election: election.clone(), number, to: None });
        self.stand_again(process, election);
    }

    /// Work that was told of its loss has had the margin, which is less than a
    /// step: it has stopped, whether or not it said so.
    pub(crate) fn margins_pass(&mut self, process: usize) {
        self.processes[process].owned.retain(|owned| !owned.lost);
        let leaderships = std::mem::take(&mut self.processes[process].leaderships);
        let (over, going_on): (Vec<_>, Vec<_>) = leaderships.into_iter().partition(|r| r.lost);
        self.processes[process].leaderships = going_on;
        for leadership in over {
            self.stand_again(process, leadership.election);
        }
    }

    fn stand_again(&mut self, process: usize, election: ElectionName) {
        if self.processes[process].stands {
            self.feed(process, Input::Stand { election, priority: Priority::default() });
        }
    }
}
