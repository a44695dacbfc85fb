//! The same requests to PostgreSQL and to the specification, and what both answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{
    Amend, Bid, Bind, Claim, ElectionName, Era, Heartbeat, Incarnation, Join, MemberId, MemberRef,
    Mono, Namespace, Nonce, Note, Priority, Profile, Purge, Query, Release, ReleaseCause,
    ReleaseItem, Rev, Seq, TermNumber, TermRef, Timestamp, Told, Which, WhichNames,
};
use tenure_postgres::PostgresStore;
use tenure_store::{MemoryState, Store};

use crate::compare::{Answer, Numbers, alike};
use crate::names::{Names, Revs};
use crate::place::Place;
use crate::steps::{self, Attempt, Life, MEMBERS, Number, Seen, Step, What};

/// The unit of time in which histories pass. So long that the time which really passes
/// during a history is nothing beside it.
pub const UNIT: Duration = Duration::from_secs(1_000);

/// A number that no clock of a history has reached, and that is heeded.
const AHEAD: u64 = 1 << 51;
/// Older than anything is.
const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// All time in PostgreSQL is relative to its clock: time passes when every instant that
/// it keeps is moved back.
const PASS: &str = "
    UPDATE {s}.members SET expires_at = expires_at - {d}, joined_at = joined_at - {d};
    UPDATE {s}.elections SET elected_at = elected_at - {d}, heir_until = heir_until - {d};
    UPDATE {s}.candidates SET since = since - {d};";

/// Nothing is there any more.
pub const RESET: &str = "
    DELETE FROM {s}.members; DELETE FROM {s}.profiles; DELETE FROM {s}.elections;
    DELETE FROM {s}.candidates; DELETE FROM {s}.remains; DELETE FROM {s}.told;
    DELETE FROM {s}.namespaces; DELETE FROM {s}.names; DELETE FROM {s}.names_gone;
    DELETE FROM {s}.names_at; UPDATE {s}.settings SET era = 0, floor = 0;";

/// One namespace, twice.
struct Space {
    ns: Namespace,
    spec: MemoryState,
    /// Before the lives of this history. Both namespaces have the same ones, under the same
    /// ids: what takes the row of the other namespace shows.
    first: u128,
    /// The lives of each id, the newest last.
    lives: Vec<Vec<Incarnation>>,
    /// How often each member has bid for each election.
    attempts: BTreeMap<(Incarnation, usize), u64>,
    numbers: Numbers,
    names: Names,
    /// Whether the specification forgot how lives ended, which PostgreSQL does not.
    forgot: bool,
}

/// One history under way.
pub struct World<'a> {
    place: &'a Place,
    store: &'a PostgresStore,
    spaces: [Space; 2],
    now: Mono,
}

impl<'a> World<'a> {
    /// An empty world, in namespaces that no other history has.
    pub async fn new(place: &'a Place, store: &'a PostgresStore, run: u64) -> Self {
        place.sql(RESET).await;
        let space = |letter| Space {
            ns: Namespace::new(format!("h{run}-{letter}")).unwrap(),
            spec: MemoryState::new(),
            first: u128::from(run) << 32,
            lives: vec![Vec::new(); MEMBERS],
            attempts: BTreeMap::new(),
            numbers: Numbers::default(),
            names: Names::default(),
            forgot: false,
        };
        let spaces = [space('a'), space('b')];
        Self { place, store, spaces, now: Mono::from_millis(1_000) }
    }

    /// The wall clock that the specification is told, in 2027.
    fn wall(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + self.now.as_nanos() / 1_000_000)
    }

    /// Does one step on both sides; an error says how they differ.
    pub async fn step(&mut self, step: &Step) -> Result<(), String> {
        // What comes later has waited for less, also when no time was said to pass.
        self.now = self.now + Duration::from_millis(1);
        if let What::Pass { units } = step.what {
            self.now = self.now + UNIT * units;
            let seconds = (UNIT * units).as_secs();
            self.place.sql(&PASS.replace("{d}", &format!("interval '{seconds} seconds'"))).await;
            return Ok(());
        }
        let era = self.spaces[step.space].spec.era();
        let before = self.spaces[step.space].spec.seq();
        let Some(asked) = self.asked(step) else { return Ok(()) };
        let spec = self.spec(step.space, &asked);
        let ours = self.ours(step.space, &asked).await?;
        if self.spaces[step.space].spec.era() != era {
            // One era for all namespaces of a database; the specification has one each.
            let era = self.spaces[step.space].spec.era();
            self.spaces[1 - step.space].spec.begin(era);
            self.compare_floor(step.space).await?;
            self.compare_state(1 - step.space, self.spaces[1 - step.space].spec.seq()).await?;
        }
        let answers = (spec, ours);
        self.compare_state(step.space, before).await.and_then(|()| {
            let space = &self.spaces[step.space];
            let known = (&space.numbers, &space.names.revs);
            alike(known, space.forgot, answers.0.leaving_out(&asked), {
                answers.1.leaving_out(&asked)
            })
        })
    }

    /// Compares the floors of an era that has just begun. Below what is told each goes by
    /// its own clock; above, both are the same.
    async fn compare_floor(&self, space: usize) -> Result<(), String> {
        let Space { spec, ns, .. } = &self.spaces[space];
        let examined = self.store.read(ns, &Query::examination()).await;
        let examined = examined.map_err(|e| e.to_string())?.examined;
        let ours = examined.and_then(|examined| examined.era).expect("an era").era.floor();
        let rules = spec.era().floor();
        let same = ours == rules || ours.max(rules) < AHEAD;
        same.then_some(()).ok_or_else(|| format!("the floor is {rules} by the rules, {ours} here"))
    }

    /// Compares all that can be read, with the journal since `before`.
    pub async fn compare_state(&mut self, space: usize, before: Seq) -> Result<(), String> {
        let now = self.now;
        let space = &mut self.spaces[space];
        let history = space.spec.seq().get().saturating_sub(before.get()).min(1_000);
        let history = usize::try_from(history).unwrap();
        let query = Query { history, ..Query::everything() };
        let ours = self.store.read(&space.ns, &query).await.map_err(|e| e.to_string())?;
        let spec = space.spec.read(now, &query);
        space.numbers.learn(&spec.history, &ours.history)?;
        let which = WhichNames::Prefix(String::new());
        let ours_named = self.store.names(&space.ns, &which).await;
        let ours_named = ours_named.map_err(|error| error.to_string())?;
        let spec_named = space.spec.names(now, &which);
        space.names.revs.learn(spec_named.rev, ours_named.rev)?;
        let known = (&space.numbers, &space.names.revs);
        alike(known, space.forgot, Answer::Read(spec), Answer::Read(ours))?;
        alike(known, space.forgot, Answer::Names(spec_named), Answer::Names(ours_named))
    }

    pub async fn compare_all(&mut self) -> Result<(), String> {
        for space in 0..self.spaces.len() {
            self.compare_state(space, self.spaces[space].spec.seq()).await?;
        }
        let unsound = self.place.unsound().await;
        if unsound.is_empty() { Ok(()) } else { Err(format!("it does not hold that {unsound:?}")) }
    }

    fn spec(&mut self, space: usize, asked: &Asked) -> Answer {
        let wall = self.wall();
        let now = self.now;
        let spec = &mut self.spaces[space].spec;
        match asked {
            Asked::Join(join) => Answer::Join(spec.join(now, wall, join)),
            Asked::Beat(beat) => Answer::Beat(spec.heartbeat(now, beat)),
            Asked::Leave(member) => {
                spec.leave(wall, member);
                Answer::Nothing
            }
            Asked::Claim(claim) => Answer::Claim(spec.claim(now, wall, claim)),
            Asked::Release(release) => {
                spec.release(now, wall, release);
                Answer::Nothing
            }
            Asked::Amend(amend) => Answer::Amend(election(amend), spec.amend(now, wall, amend)),
            Asked::Read(query) => Answer::Read(spec.read(now, query)),
            Asked::Bind(bind) => {
                let election = bind.fence.as_ref().map(|term| term.election.clone());
                Answer::Bind(election, spec.bind(now, wall, bind))
            }
            Asked::Names(which) => Answer::Names(spec.names(now, which)),
        }
    }

    /// The same of PostgreSQL, under the numbers that it gave out itself.
    async fn ours(&self, space: usize, asked: &Asked) -> Result<Answer, String> {
        let space = &self.spaces[space];
        let store = self.store;
        let ns = &space.ns;
        let answer = match asked.clone().renumbered(&space.numbers, &space.names.revs) {
            Asked::Join(join) => store.join(ns, &join).await.map(Answer::Join),
            Asked::Beat(beat) => store.heartbeat(ns, &beat).await.map(Answer::Beat),
            Asked::Leave(member) => store.leave(ns, &member).await.map(|()| Answer::Nothing),
            Asked::Claim(claim) => store.claim(ns, &claim).await.map(Answer::Claim),
            Asked::Release(release) => store.release(ns, &release).await.map(|()| Answer::Nothing),
            Asked::Amend(amend) => {
                let amended = store.amend(ns, &amend).await;
                amended.map(|amended| Answer::Amend(election(&amend), amended))
            }
            Asked::Read(query) => store.read(ns, &query).await.map(Answer::Read),
            Asked::Bind(bind) => {
                let election = bind.fence.as_ref().map(|term| term.election.clone());
                store.bind(ns, &bind).await.map(|bindings| Answer::Bind(election, bindings))
            }
            Asked::Names(which) => store.names(ns, &which).await.map(Answer::Names),
        };
        answer.map_err(|error| format!("PostgreSQL failed: {error}"))
    }

    /// The request that a step means now; `None` if there is no member to make it.
    fn asked(&mut self, step: &Step) -> Option<Asked> {
        let rolls_back = |seen: &Seen| matches!(seen, Seen::Beyond(_));
        if let What::Join { seen, .. }
        | What::Claim { seen, .. }
        | What::Release { seen, .. }
        | What::Bind { seen, .. } = &step.what
        {
            self.spaces[step.space].forgot |= rolls_back(seen);
        }
        self.spaces[step.space].asked(self.now, &step.what)
    }
}

/// A request, as the specification takes it.
#[derive(Clone, Debug)]
pub enum Asked {
    Join(Join),
    Beat(Heartbeat),
    Leave(MemberRef),
    Claim(Claim),
    Release(Release),
    Amend(Amend),
    Read(Query),
    Bind(Bind),
    Names(WhichNames),
}

impl Asked {
    /// With PostgreSQL's numbers in place of the specification's.
    fn renumbered(mut self, numbers: &Numbers, revs: &Revs) -> Self {
        match &mut self {
            Asked::Beat(beat) => {
                for term in &mut beat.held {
                    term.number = numbers.ours(&term.election, term.number);
                }
            }
            Asked::Release(release) => {
                for item in &mut release.items {
                    item.number = item.number.map(|n| numbers.ours(&item.election, n));
                }
            }
            Asked::Amend(Amend::StepDown { election, number, .. }) => {
                *number = number.map(|n| numbers.ours(election, n));
            }
            Asked::Bind(bind) => {
                if let Some(term) = &mut bind.fence {
                    term.number = numbers.ours(&term.election, term.number);
                }
                revs.renumber(bind);
            }
            Asked::Names(WhichNames::Since(rev)) => *rev = Rev::new(revs.ours(rev.get())),
            _ => {}
        }
        self
    }
}

/// The election that an operator's request is about.
fn election(amend: &Amend) -> Option<ElectionName> {
    match amend {
        Amend::StepDown { election, .. }
        | Amend::Pause { election, .. }
        | Amend::Resume { election, .. } => Some(election.clone()),
        Amend::Evict { .. } | Amend::Restored { .. } | Amend::Purge(_) => None,
    }
}

fn name(election: usize) -> ElectionName {
    ElectionName::new(format!("e{election}")).unwrap()
}

fn id(member: usize) -> MemberId {
    MemberId::new(["a", "b", "c", "d"][member]).unwrap()
}

fn note(note: usize) -> Note {
    Note::new(["", "for a test", "f\u{fc}r \u{2603}"][note])
}

fn profile(life: Incarnation) -> Profile {
    match life.as_u128() % 3 {
        0 => Profile::default(),
        1 => Profile::new(["10.0.0.1:80"], vec![]).unwrap(),
        _ => Profile::new(["a:1", "b:2"], vec![0, 255]).unwrap(),
    }
}

impl Space {
    fn asked(&mut self, now: Mono, what: &What) -> Option<Asked> {
        Some(match what {
            What::Join { member, life, ttl, supersede, inherits, seen } => {
                let incarnation = self.joining(now, *member, *life)?;
                Asked::Join(Join {
                    member: MemberRef::new(id(*member), incarnation),
                    ttl: UNIT * *ttl,
                    profile: profile(incarnation),
                    supersede: *supersede,
                    inherits: *inherits,
                    seen: self.seen(*seen),
                })
            }
            What::Beat { member, life, ttl, held } => {
                let named = held.iter().map(|(election, number)| TermRef {
                    election: name(*election),
                    number: self.number(*election, *number),
                });
                let held = named.collect();
                Asked::Beat(Heartbeat {
                    member: self.member(*member, *life)?,
                    ttl: UNIT * *ttl,
                    held,
                })
            }
            What::Leave { member, life } => Asked::Leave(self.member(*member, *life)?),
            What::Claim { member, life, ttl, bids, grace, seen } => Asked::Claim(Claim {
                member: self.member(*member, *life)?,
                ttl: UNIT * *ttl,
                bids: self.bids(self.member(*member, *life)?.incarnation, bids),
                heir_grace: UNIT * *grace,
                seen: self.seen(*seen),
            }),
            // More than eight terms at once are given back, not handed over.
            What::Release { member, life, items, grace, confirm_within, seen } => {
                let confirm_within = if items.len() > 8 { 0 } else { *confirm_within };
                Asked::Release(Release {
                    member: self.member(*member, *life)?,
                    items: self.items(items),
                    heir_grace: UNIT * *grace,
                    confirm_within: UNIT * confirm_within,
                    seen: self.seen(*seen),
                })
            }
            What::Look { member, election } => {
                // No candidate is ahead of one whose life is over, and it does not matter which is.
                let asker = self.member(*member, Life::Newest);
                let asker = asker.filter(|member| self.lives(now, member));
                Asked::Read(Query { asker, ..Query::elections([name(*election)]) })
            }
            What::Held { member } => {
                let held = self.member(*member, Life::Newest)?.incarnation;
                Asked::Read(Query { which: Which::HeldBy(held), ..Query::nothing() })
            }
            What::Bind { member, life, ttl, ops, fence, seen, known } => {
                let caller = match member {
                    Some(member) => Some(self.member(*member, *life)?),
                    None => None,
                };
                let fence = fence.map(|(election, number)| TermRef {
                    election: name(election),
                    number: self.number(election, number),
                });
                Asked::Bind(Bind {
                    ttl: UNIT * *ttl,
                    fence,
                    ops: self.names.ops(&self.spec, now, caller.as_ref(), ops),
                    seen: self.seen(*seen),
                    known: self.names.revs.known(*known),
                    member: caller,
                })
            }
            What::Names(asked) => Asked::Names(match asked {
                steps::Asked::Owned(member) => {
                    WhichNames::OwnedBy(self.member(*member, Life::Newest)?)
                }
                other => self.names.which(other),
            }),
            operator => Asked::Amend(self.amend(operator)?),
        })
    }

    fn amend(&self, what: &What) -> Option<Amend> {
        let by = note(1);
        Some(match what {
            What::StepDown { election, number, to, note: why } => Amend::StepDown {
                election: name(*election),
                number: number.map(|number| self.number(*election, number)),
                to: to.map(id),
                reason: note(*why),
                by,
            },
            What::Pause { election, note: why } => {
                Amend::Pause { election: name(*election), reason: note(*why), by }
            }
            What::Resume { election } => Amend::Resume { election: name(*election), by },
            What::Evict { member, now } => Amend::Evict { member: id(*member), now: *now, by },
            What::Restored => Amend::Restored { by },
            // What ended before the specification forgot ages from now on there, and from its
            // end in PostgreSQL.
            What::Purge { .. } if self.forgot => return None,
            What::Purge { everything, after, most, dry_run } => {
                let most = *most;
                let dry_run = *dry_run;
                let after = after.map(name);
                let older_than = if *everything { Duration::ZERO } else { AGES };
                Amend::Purge(Purge { older_than, after, most, dry_run, by })
            }
            _ => return None,
        })
    }

    /// The life that joins. What ended before the specification forgot is not asked for.
    fn joining(&mut self, now: Mono, member: usize, life: Life) -> Option<Incarnation> {
        if life == Life::New || self.lives[member].is_empty() {
            let count = self.lives[member].len() as u128;
            let fresh = Incarnation::from_u128(self.first + ((member as u128) << 16) + count);
            self.lives[member].push(fresh);
            return Some(fresh);
        }
        let member = self.member(member, life)?;
        (self.lives(now, &member) || !self.forgot).then_some(member.incarnation)
    }

    fn lives(&self, now: Mono, member: &MemberRef) -> bool {
        let live = self.spec.read(now, &Query::members()).members;
        live.iter().any(|view| view.member == *member)
    }

    fn member(&self, member: usize, life: Life) -> Option<MemberRef> {
        let back = if life == Life::Former { 2 } else { 1 };
        let lives = &self.lives[member];
        let life = *lives.get(lives.len().checked_sub(back)?)?;
        Some(MemberRef::new(id(member), life))
    }

    fn number(&self, election: usize, number: Number) -> TermNumber {
        self.numbers.named(&name(election), number)
    }

    /// What a member tells. Where nothing was forgotten, its number counts for nothing.
    fn seen(&self, seen: Seen) -> Told {
        let seq = self.spec.seq().get();
        let ahead = AHEAD + (seq << 20);
        let (place, number) = match seen {
            Seen::Nothing => (0, 0),
            Seen::All => (seq, ahead),
            Seen::Beyond(more @ ..3) => (seq + more, 0),
            Seen::Beyond(more @ ..5) => (seq + more, ahead),
            Seen::Beyond(more) => (seq + more, Era::HEEDED << (seq % 12)),
        };
        Told::new(Seq::new(place), TermNumber::new(number))
    }

    fn bids(&mut self, life: Incarnation, bids: &[steps::Bid]) -> Vec<Bid> {
        let nonce = |attempts: &mut u64, attempt| match attempt {
            Attempt::New => {
                *attempts += 1;
                *attempts
            }
            Attempt::Last => *attempts,
            Attempt::Former => attempts.saturating_sub(1),
        };
        let bid = |bid: &steps::Bid| {
            let attempts = self.attempts.entry((life, bid.election)).or_default();
            let nonce = Nonce::new(nonce(attempts, bid.attempt).max(1));
            Bid { election: name(bid.election), priority: Priority::new(bid.priority), nonce }
        };
        bids.iter().map(bid).collect()
    }

    fn items(&self, items: &[steps::Item]) -> Vec<ReleaseItem> {
        let mut named = BTreeSet::new();
        let once = items.iter().filter(|item| named.insert(item.election));
        let causes = [
            ReleaseCause::Resigned,
            ReleaseCause::SteppedDown,
            ReleaseCause::Abandoned,
            ReleaseCause::Left,
        ];
        let item = |item: &steps::Item| ReleaseItem {
            election: name(item.election),
            number: item.number.map(|number| self.number(item.election, number)),
            cause: causes[item.cause],
            successor: item.successor.map(|(member, units)| (id(member), UNIT * units)),
        };
        once.map(item).collect()
    }
}
