//! The application's side of a process: what it does with what the machine
//! tells it, and what it must never see.

use std::sync::Arc;

use tenure_core::{
    ElectionName, Event, Input, LostReason, Outgoing, Output, Priority, Request, Term, TermNumber,
};

use crate::marks::Mark;
use crate::world::{Body, Broken, Letter, Reign, World};

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
    /// stopped, or had the margin to stop in, is no longer among the reigns.
    fn check_release(&mut self, process: usize, request: &Request) {
        let reigns = &self.processes[process].reigns;
        let early = match request {
            Request::Release(release) => release.items.iter().any(|item| {
                let same = |r: &Reign| r.election == item.election && item.number == Some(r.number);
                reigns.iter().any(same)
            }),
            Request::Leave(_) => !reigns.is_empty(),
            _ => false,
        };
        if early {
            self.breaks(Broken::ReleasedEarly);
        }
    }

    fn told(&mut self, process: usize, event: Event) {
        match event {
            Event::Elected { term, trusted_until } => {
                self.elected(&term);
                let Term { election, number, .. } = term;
                let reign = Reign { election, number, trusted_until, stopping: false, lost: false };
                self.processes[process].reigns.push(reign);
            }
            Event::Trusted { until, .. } => {
                for reign in self.processes[process].reigns.iter_mut().filter(|r| !r.lost) {
                    reign.trusted_until = until;
                }
            }
            Event::Stopping { election, number, .. } => {
                self.change(process, &election, number, |reign| reign.stopping = true);
            }
            Event::Lost { election, number, reason } => {
                self.seen_lost(&reason);
                self.change(process, &election, number, |reign| reign.lost = true);
            }
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
        with: impl FnOnce(&mut Reign),
    ) {
        let mut reigns = self.processes[process].reigns.iter_mut();
        if let Some(reign) = reigns.find(|r| r.election == *election && r.number == number) {
            with(reign);
        }
    }

    /// The work under one reign has stopped, and the application says so. Then
    /// it campaigns again, unless it shuts down.
    pub(crate) fn work_stops(&mut self, process: usize, which: impl Fn(&Reign) -> bool) {
        let reigns = &mut self.processes[process].reigns;
        let Some(place) = reigns.iter().position(which) else { return };
        let Reign { election, number, .. } = reigns.remove(place);
        self.feed(process, Input::Resign { election: election.clone(), number, to: None });
        self.stand_again(process, election);
    }

    /// Work that was told of its loss has had the margin, which is less than a
    /// step: it has stopped, whether or not it said so.
    pub(crate) fn margins_pass(&mut self, process: usize) {
        let reigns = std::mem::take(&mut self.processes[process].reigns);
        let (over, going_on): (Vec<_>, Vec<_>) = reigns.into_iter().partition(|r| r.lost);
        self.processes[process].reigns = going_on;
        for reign in over {
            self.stand_again(process, reign.election);
        }
    }

    fn stand_again(&mut self, process: usize, election: ElectionName) {
        if self.processes[process].stands {
            self.feed(process, Input::Stand { election, priority: Priority::default() });
        }
    }
}
