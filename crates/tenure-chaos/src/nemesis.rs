//! The nemesis: carries the schedule out, one action at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_testkit::proxy::{Flow, Proxy, Side};
use tokio::task::JoinHandle;

use crate::books;
use crate::clock::{self, Nanos};
use crate::crew::Crew;
use crate::failure::{Failure, Outcome};
use crate::guarded::Blow;
use crate::keeper::Keeper;
use crate::rollback::Past;
use crate::schedule::{Aim, Fault, Planned};
use crate::succession::Succession;

/// The store, as far as it can be hurt.
pub(crate) enum Victim {
    /// A file: its path.
    Sqlite(String),
    /// A server, with a proxy for each place of a worker, and after them for each program.
    Postgres { keeper: Arc<Mutex<Keeper>>, proxies: Vec<Proxy> },
}

/// A fault that happened, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How it is called.
    pub name: &'static str,
    /// Which place it hit; `None` if all.
    pub slot: Option<usize>,
    /// When it began.
    pub from: Nanos,
    /// When it was over.
    pub to: Nanos,
}

/// The end of a fault, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Fault(usize),
    Resume { slot: usize, life: u32 },
    Refill { slot: usize },
    Recover { place: usize, life: u32 },
    Calm { slot: usize, weather: usize },
    StoreUp,
    LookAfterHolder,
}

/// Between two looks at a holder of many elections, and at a store that is to be
/// copied and is not up.
const LOOK: Duration = Duration::from_millis(200);
/// How long a fault that is meant for a command waits for one that runs.
const COMMAND: Duration = Duration::from_secs(5);

/// Carries out a schedule.
pub(crate) struct Nemesis<'r> {
    pub(crate) crew: &'r mut Crew,
    victim: &'r Victim,
    planned: &'r [Planned],
    /// When the schedule began.
    from: Nanos,
    queue: BinaryHeap<Reverse<(Nanos, Action)>>,
    marks: Vec<Mark>,
    /// Which weather each place has, as the number of its mark.
    weather: Vec<usize>,
    hogs: Vec<std::thread::JoinHandle<Outcome>>,
    store: Option<JoinHandle<Outcome>>,
    store_is_down: bool,
    history: &'r mut History,
}

/// What is told of a run beside its marks.
pub(crate) struct History {
    pub(crate) past: Past,
    pub(crate) succession: Succession,
}

impl<'r> Nemesis<'r> {
    pub(crate) fn new(
        crew: &'r mut Crew,
        victim: &'r Victim,
        history: &'r mut History,
        planned: &'r [Planned],
        from: Nanos,
    ) -> Self {
        let due =
            |(at, p): (usize, &Planned)| Reverse((from + clock::nanos(p.at), Action::Fault(at)));
        let queue = planned.iter().enumerate().map(due).collect();
        let weather = match victim {
            Victim::Postgres { proxies, .. } => vec![usize::MAX; proxies.len()],
            Victim::Sqlite(_) => Vec::new(),
        };
        Self {
            crew,
            victim,
            planned,
            from,
            queue,
            marks: Vec::new(),
            weather,
            hogs: Vec::new(),
            store: None,
            store_is_down: false,
            history,
        }
    }

    /// Everything, to the end of the last fault.
    pub(crate) async fn run(mut self) -> Outcome<Vec<Mark>> {
        while let Some(Reverse((due, action))) = self.queue.pop() {
            let wait = due.saturating_sub(clock::now());
            tokio::time::sleep(Duration::from_nanos(wait)).await;
            self.crew.all_well()?;
            self.act(action).await?;
        }
        if let Some(starting) = self.store.take() {
            started(starting).await?;
        }
        self.join_hogs()?;
        Ok(self.marks)
    }

    fn join_hogs(&mut self) -> Outcome {
        for hog in self.hogs.drain(..) {
            hog.join().map_err(|_| Failure::new("the one that held the lock panicked"))??;
        }
        Ok(())
    }

    async fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Fault(at) if self.must_wait(&self.planned[at])? => {
                self.after(LOOK, action);
                Ok(())
            }
            Action::Fault(at) => self.begin(self.planned[at].fault).await,
            Action::LookAfterHolder => {
                if self.history.succession.look()? {
                    self.mark(Fault::HolderKill, None, Duration::ZERO);
                }
                if self.history.succession.is_busy() {
                    self.after(LOOK, action);
                }
                Ok(())
            }
            Action::Resume { slot, life } => self.crew.resume(slot, life),
            Action::Refill { slot } => self.crew.spawn(slot),
            Action::Recover { place, life } => self.crew.programs.recover(place, life),
            Action::Calm { slot, weather } => {
                // A later weather has its own end.
                if let (Victim::Postgres { proxies, .. }, true) =
                    (self.victim, self.weather.get(slot) == Some(&weather))
                {
                    proxies[slot].set_flow(Flow::Pass);
                }
                Ok(())
            }
            Action::StoreUp => {
                if let Victim::Postgres { keeper, .. } = self.victim {
                    self.store = Some(in_background(keeper, Keeper::up));
                }
                self.store_is_down = false;
                Ok(())
            }
        }
    }

    /// Copies, and holders of many elections, come one at a time, and a copy waits
    /// for a store that is up. What is meant for a command waits for one, but not for long.
    fn must_wait(&self, planned: &Planned) -> Outcome<bool> {
        let holder = self.history.succession.is_busy();
        Ok(match planned.fault {
            Fault::Copy | Fault::PutBack => holder || !self.store_is_up(),
            Fault::HolderKill => holder,
            Fault::Guarded { aim: Aim::Leader(_), .. } => {
                let late = self.from + clock::nanos(planned.at + COMMAND);
                clock::now() < late && !self.crew.programs.has_leader()?
            }
            _ => false,
        })
    }

    fn store_is_up(&self) -> bool {
        let starting = self.store.as_ref().is_some_and(|starting| !starting.is_finished());
        !self.store_is_down && !starting
    }

    /// A fault for which there is no process does not happen, and is not counted.
    async fn begin(&mut self, fault: Fault) -> Outcome {
        match fault {
            Fault::Kill { aim, back_after } => {
                let slot = self.hit(aim);
                if self.crew.kill(slot)? {
                    self.mark(fault, Some(slot), back_after);
                    self.after(back_after, Action::Refill { slot });
                }
                Ok(())
            }
            Fault::Stop { aim, lasting } => {
                let slot = self.hit(aim);
                if let Some(life) = self.crew.stop(slot)? {
                    self.mark(fault, Some(slot), lasting);
                    self.after(lasting, Action::Resume { slot, life });
                }
                Ok(())
            }
            Fault::Jump { slot, to } => {
                self.mark(fault, Some(slot), Duration::ZERO);
                self.crew.jump(slot, to)
            }
            Fault::Hog { lasting } => {
                if let Victim::Sqlite(path) = self.victim {
                    let path = path.clone();
                    self.hogs.push(std::thread::spawn(move || books::hog(&path, lasting)));
                    self.mark(fault, None, lasting);
                }
                Ok(())
            }
            Fault::Copy => self.roll(fault, Past::copy_server, Past::copy_file).await,
            Fault::PutBack => self.roll(fault, Past::put_server_back, Past::put_file_back).await,
            Fault::HolderKill => {
                self.history.succession.begin()?;
                self.after(LOOK, Action::LookAfterHolder);
                Ok(())
            }
            Fault::Guarded { aim, blow, lasting } => self.strike(aim, blow, lasting),
            Fault::StoreKill { down_for } => self.kill_store(fault, down_for).await,
            Fault::Cut { aim } => self.network(fault, aim, Duration::ZERO, Proxy::cut),
            Fault::HalfClose { aim, toward_store } => {
                let side = if toward_store { Side::ToServer } else { Side::ToClient };
                self.network(fault, aim, Duration::ZERO, |proxy| proxy.half_close(side))
            }
            Fault::Delay { aim, by, lasting } => {
                self.network(fault, aim, lasting, |proxy| proxy.set_flow(Flow::Late(by)))
            }
            Fault::BlackHole { aim, lasting } => {
                self.network(fault, aim, lasting, |proxy| proxy.set_flow(Flow::Hold))
            }
        }
    }

    /// A program, its guardian, or both.
    fn strike(&mut self, aim: Aim, blow: Blow, lasting: Duration) -> Outcome {
        let (Aim::Leader(place) | Aim::Slot(place)) = aim;
        let programs = &mut self.crew.programs;
        let Some(place) = programs.aim(place, matches!(aim, Aim::Leader(_)))? else {
            return Ok(());
        };
        let Some(life) = programs.strike(place, blow)? else { return Ok(()) };
        let slot = self.crew.size() + place;
        if blow == Blow::Silence {
            let fault = Fault::Guarded { aim, blow, lasting };
            self.weather(fault, slot, lasting, |proxy| proxy.set_flow(Flow::Hold));
        } else {
            self.mark(Fault::Guarded { aim, blow, lasting }, Some(slot), lasting);
            self.after(lasting, Action::Recover { place, life });
        }
        Ok(())
    }

    fn network(
        &mut self,
        fault: Fault,
        aim: Aim,
        lasting: Duration,
        act: impl FnOnce(&Proxy),
    ) -> Outcome {
        let slot = self.hit(aim);
        self.weather(fault, slot, lasting, act);
        Ok(())
    }

    fn weather(&mut self, fault: Fault, slot: usize, lasting: Duration, act: impl FnOnce(&Proxy)) {
        let Victim::Postgres { proxies, .. } = self.victim else { return };
        act(&proxies[slot]);
        let weather = self.marks.len();
        self.mark(fault, Some(slot), lasting);
        if lasting > Duration::ZERO {
            self.weather[slot] = weather;
            self.after(lasting, Action::Calm { slot, weather });
        }
    }

    async fn kill_store(&mut self, fault: Fault, down_for: Duration) -> Outcome {
        let Victim::Postgres { keeper, .. } = self.victim else { return Ok(()) };
        if !self.store_is_up() {
            return Ok(());
        }
        if let Some(done) = self.store.take() {
            started(done).await?;
        }
        self.mark(fault, None, down_for);
        self.store_is_down = true;
        started(in_background(keeper, Keeper::down)).await?;
        self.after(down_for, Action::StoreUp);
        Ok(())
    }

    /// The store is copied, or the copy put back. A server is stopped for it while
    /// all processes go on; a file is left open by none of them.
    async fn roll(
        &mut self,
        fault: Fault,
        server: fn(&Past, &mut Keeper) -> Outcome,
        file: fn(&Past, &str, &mut dyn FnMut() -> Outcome) -> Outcome,
    ) -> Outcome {
        let past = self.history.past.clone();
        match self.victim {
            Victim::Postgres { keeper, .. } => {
                if let Some(done) = self.store.take() {
                    started(done).await?;
                }
                self.mark(fault, None, Duration::ZERO);
                self.store = Some(in_background(keeper, move |keeper| server(&past, keeper)));
                Ok(())
            }
            Victim::Sqlite(path) => {
                self.join_hogs()?;
                self.mark(fault, None, Duration::ZERO);
                file(&past, path, &mut || self.crew.end())?;
                self.crew.fill()
            }
        }
    }

    /// Whom an aim means now: one that runs, if there is any.
    fn hit(&self, aim: Aim) -> usize {
        let named = match aim {
            Aim::Leader(slot) => self.crew.leader().unwrap_or(slot),
            Aim::Slot(slot) => slot,
        };
        let slots = self.crew.size();
        let mut from_there = (0..slots).map(|step| (named + step) % slots);
        from_there.find(|slot| self.crew.runs(*slot)).unwrap_or(named)
    }

    fn after(&mut self, wait: Duration, action: Action) {
        self.queue.push(Reverse((clock::now() + clock::nanos(wait), action)));
    }

    fn mark(&mut self, fault: Fault, slot: Option<usize>, lasting: Duration) {
        let from = clock::now();
        self.marks.push(Mark { name: fault.name(), slot, from, to: from + clock::nanos(lasting) });
    }
}

/// What the keeper does takes seconds; meanwhile the proxies must go on.
fn in_background(
    keeper: &Arc<Mutex<Keeper>>,
    work: impl FnOnce(&mut Keeper) -> Outcome + Send + 'static,
) -> JoinHandle<Outcome> {
    let keeper = keeper.clone();
    tokio::task::spawn_blocking(move || {
        work(&mut keeper.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

async fn started(task: JoinHandle<Outcome>) -> Outcome {
    task.await.map_err(|_| Failure::new("the talk with the store's keeper panicked"))?
}
