//! Names in a world: what a process does with them, and what it must never see.
//!
//! Every process wants every name for as long as it runs: it asks when it starts, and again
//! in each step in which it neither owns the name nor waits for an answer.

use tenure_core::{
    BindAnswer, Bindings, Input, LostReason, Mono, Name, NameAnswer, NameOp, NameWish, Request,
    Rev, Token, Value, What, WhichNames,
};

use crate::Config;
use crate::marks::Mark;
use crate::world::{Broken, Process, World, member_id};

/// A name that a process works under.
#[derive(Clone, Debug, Hash)]
pub struct Owned {
    /// Which.
    pub name: Name,
    /// Under which token.
    pub token: Token,
    /// Until when `is_current()` says yes, on the process's own clock.
    pub trusted_until: Mono,
    /// The work was told that the name is lost, and has the margin to stop in.
    pub lost: bool,
}

/// The names of a world.
pub(crate) fn names(config: &Config) -> impl Iterator<Item = Name> + use<> {
    (0..config.names).filter_map(|n| Name::new(format!("n{n}")).ok())
}

impl Process {
    /// Whether it would ask for this name now.
    fn wants(&self, name: &Name) -> bool {
        self.machine.is_some()
            && self.stands
            && self.owned.iter().all(|owned| owned.name != *name)
            && !self.asks.values().any(|asked| asked == name)
    }
}

impl World {
    /// A process asks for each name that it wants and has not asked for.
    pub(crate) fn ask_for_names(&mut self, config: &Config, process: usize) {
        for name in names(config) {
            if self.processes[process].wants(&name) {
                self.wish(process, name, NameWish::Take { value: Value::empty() });
            }
        }
    }

    fn wish(&mut self, process: usize, name: Name, wish: NameWish) {
        let p = &mut self.processes[process];
        p.tickets += 1;
        let ticket = p.tickets;
        // Known before the machine is asked: it may answer at once.
        if matches!(wish, NameWish::Take { .. }) {
            p.asks.insert(ticket, name.clone());
        }
        let op = NameOp { ticket, name, wish, fence: None };
        self.feed(process, Input::Bind { ops: vec![op] });
    }

    /// The application gives back a name that it owns: its work has stopped already.
    pub(crate) fn drop_name(&mut self, process: usize) {
        let owned = &mut self.processes[process].owned;
        let Some(place) = owned.iter().position(|owned| !owned.lost) else { return };
        let Owned { name, token, .. } = owned.remove(place);
        self.wish(process, name, NameWish::Drop { token });
    }

    /// The work under a name that was lost has stopped, and the application says so.
    pub(crate) fn let_go(&mut self, process: usize) {
        let owned = &mut self.processes[process].owned;
        let Some(place) = owned.iter().position(|owned| owned.lost) else { return };
        let Owned { name, token, .. } = owned.remove(place);
        self.feed(process, Input::LetGoOfName { name, token });
    }

    pub(crate) fn name_answered(&mut self, process: usize, ticket: u64, answer: NameAnswer) {
        let Some(name) = self.processes[process].asks.remove(&ticket) else { return };
        match answer {
            NameAnswer::Bound { binding, trusted_until } => {
                let token = binding.token;
                self.seen.set(Mark::NameOwned);
                if let Some((newest, owner)) = self.owners.get(&name) {
                    if *newest >= token {
                        self.breaks(Broken::TokenWentBack);
                    } else if *owner != process {
                        self.seen.set(Mark::NameMoved);
                    }
                }
                self.owners.insert(name.clone(), (token, process));
                let owned = Owned { name, token, trusted_until, lost: false };
                self.processes[process].owned.push(owned);
            }
            NameAnswer::Taken(_) => self.seen.set(Mark::NameRefused),
            _ => {}
        }
    }

    pub(crate) fn names_lost(
        &mut self,
        process: usize,
        names: &[(Name, Token)],
        reason: &LostReason,
    ) {
        if *reason == LostReason::TrustEnded {
            self.seen.set(Mark::NameLost);
        }
        for owned in &mut self.processes[process].owned {
            if names.iter().any(|(name, token)| *name == owned.name && *token == owned.token) {
                owned.lost = true;
            }
        }
    }

    /// E4: whether a request gives a name back under which the work may still run.
    pub(crate) fn drops_early(&self, process: usize, request: &Request) -> bool {
        let owned = &self.processes[process].owned;
        match request {
            Request::Bind(bind) => bind.ops.iter().any(|op| match op.what {
                What::Drop { token } => {
                    owned.iter().any(|owned| owned.name == op.name && owned.token == token)
                }
                _ => false,
            }),
            Request::Leave(_) => !owned.is_empty(),
            _ => false,
        }
    }

    /// The processes that trust, by their own clocks, that they own this name.
    pub(crate) fn owning<'w>(&'w self, name: &'w Name) -> impl Iterator<Item = (usize, &'w Owned)> {
        self.processes.iter().enumerate().flat_map(move |(process, p)| {
            let now = self.clock(process);
            let own = p.owned.iter();
            let own = own.filter(move |o| o.name == *name && !o.lost && now < o.trusted_until);
            own.map(move |owned| (process, owned))
        })
    }

    /// The revision that the store's names have.
    pub(crate) fn names_rev(&self) -> Rev {
        self.store.names(self.store_clock(), &WhichNames::Named(Vec::new())).rev
    }

    pub(crate) fn mark_bind(&mut self, before: Rev, answers: &Bindings) {
        let unchanged = self.names_rev() == before;
        let Bindings::Answered(answers) = answers else { return };
        for answer in answers {
            match answer {
                BindAnswer::Bound(_) if unchanged => self.seen.set(Mark::NameAdopted),
                BindAnswer::Gone(_) if unchanged => self.seen.set(Mark::LateDrop),
                _ => {}
            }
        }
    }
}

/// U1, U6: a member that trusts a name owns it: the store has it under that token, of that member's
/// live life. This is stronger than that no two trust. U2: its token never goes back.
pub(crate) fn check(config: &Config, world: &mut World) {
    for name in names(config) {
        let which = WhichNames::Named(vec![name.clone()]);
        let view = world.store.names(world.store_clock(), &which);
        let there = view.bindings.first();
        let granted = world.owning(&name).all(|(process, owned)| {
            there.is_some_and(|binding| {
                let owner = binding.owner.as_ref().map(|owner| &owner.id);
                binding.token == owned.token && owner == member_id(process).as_ref()
            })
        });
        if !granted {
            return world.breaks(Broken::OwnedBeyondGrant);
        }
        let Some(token) = there.map(|binding| binding.token) else { continue };
        let newest = world.tokens.entry(name).or_insert(token);
        if *newest > token {
            return world.breaks(Broken::TokenWentBack);
        }
        *newest = token;
    }
}
