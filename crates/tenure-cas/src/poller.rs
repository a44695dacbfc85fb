//! Following by looking again and again.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use tenure_core::{
    ElectionName, Hint, Incarnation, MemberId, Mono, Namespace, Pause, StepDown, TermNumber,
};
use tokio::time::Sleep;

use crate::cells::Cells;
use crate::judge::{Hold, Judge};
use crate::reader::Reader;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::seen::Seen;
use crate::told::{News, Telling};
use tenure_store::{Followed, Following, Result};

/// What of an election is worth a hint. Heartbeats are not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digest {
    number: TermNumber,
    /// Who holds it and lives, by the observer's rule.
    holder: Option<Incarnation>,
    paused: Option<Pause>,
    step_down: Option<StepDown>,
    heir: Option<MemberId>,
}

/// Looks at elections at a jittered pace, and says what is new.
///
/// A store that was asked for elections by name follows those: what is held
/// is looked at when its holder's ttl is over, and that only if no member that waits
/// for it has looked by then; what is vacant or paused, at every turn. A store
/// that was asked for none follows all of the namespace, by listing it.
///
/// Where the register tells of changes, they are told at once, and the looks between are
/// left out: one in some turns is enough to notice what was not told.
///
/// This is the one verb that needs a timer, and so a tokio runtime.
#[derive(Debug)]
pub(crate) struct Poller {
    cells: Arc<Cells>,
    ns: Namespace,
    digests: Option<HashMap<ElectionName, Digest>>,
    queue: VecDeque<Hint>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When what this process holds itself was last looked at.
    checked_own: Option<Mono>,
    /// Whether the last look failed: whatever happened meanwhile is one hint.
    failed: bool,
    jitter: u64,
    telling: Telling,
    /// Whether it has told that it is there.
    connected: bool,
    /// Whether everything is to be looked at: something may have been missed.
    unlooked: bool,
    /// When everything was last looked at.
    looked: Option<Mono>,
}

/// Up to how many elections are looked at one by one when everything may have changed.
const ONE_BY_ONE: usize = 32;

/// What ended a wait.
enum Woken {
    Time,
    News(Result<News>),
}

impl Poller {
    pub(crate) fn new(cells: Arc<Cells>, ns: Namespace) -> Self {
        let jitter = cells.options.seed;
        let queue = VecDeque::from([Hint::Anything]);
        let digests = None;
        let sleep = None;
        let checked_own = None;
        let telling = Telling::new(cells.clone(), ns.clone());
        let looked = None;
        Self {
            cells,
            ns,
            digests,
            queue,
            sleep,
            checked_own,
            failed: false,
            jitter,
            telling,
            connected: false,
            unlooked: false,
            looked,
        }
    }

    /// Whether the register tells of changes, so that a look may wait that long.
    fn is_told_within(&self, time: Duration) -> bool {
        self.cells.watched_since(&self.ns, time).is_some()
    }

    /// The first look; where the register tells of changes, once it does.
    async fn begin(&mut self) -> Result<()> {
        if self.telling.is_there() && !self.connected {
            // The first that is told is that anything may have been missed.
            self.telling.next().await?;
            self.connected = true;
        }
        self.look_at_everything().await?;
        self.poll().await
    }

    /// Makes up for what may have been missed. One hint stands for all that happened
    /// meanwhile. Until it has come to its end it is owed: the caller may stop waiting.
    async fn make_up(&mut self) -> Result<()> {
        if self.unlooked {
            self.failed = true;
            self.look_at_everything().await?;
            self.unlooked = false;
            self.poll().await?;
        }
        Ok(())
    }

    /// Looks at all that is followed, whatever was told of it.
    async fn look_at_everything(&mut self) -> Result<()> {
        if !self.telling.is_there() {
            return Ok(());
        }
        match self.named() {
            Some(named) if named.len() <= ONE_BY_ONE => {
                self.reader().load_named(&named).await?;
            }
            _ => {
                let begun = self.cells.step();
                let every = self.reader().load_every_election().await?;
                self.reader().load_holders_of(every.iter(), begun).await?;
            }
        }
        self.reader().refresh_members(self.cells.now()).await?;
        self.looked = Some(self.cells.now());
        Ok(())
    }

    /// Waits for the next turn, or for what the register tells.
    async fn woken(&mut self) -> Woken {
        let pause = self.sleep.is_none().then(|| self.pause());
        let Self { sleep, telling, .. } = self;
        let pause = pause.unwrap_or_default();
        let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        let news = std::pin::pin!(telling.next());
        // The turn first: however much is told, it comes.
        match select(sleep.as_mut(), news).await {
            Either::Left(_) => Woken::Time,
            Either::Right((news, _)) => Woken::News(news),
        }
    }

    fn heard(&mut self, news: News) {
        match news {
            News::Nothing => {}
            News::Election(name) => self.compare(name),
            News::Life(life) => {
                let of = |digest: &Digest| digest.holder == Some(life);
                let hang = self.digests.iter().flatten().filter(|(_, digest)| of(digest));
                let names: Vec<_> = hang.map(|(name, _)| name.clone()).collect();
                names.into_iter().for_each(|name| self.compare(name));
            }
            News::Everything => {
                self.connected = true;
                self.unlooked = true;
            }
        }
    }

    /// Notes what is news of one election.
    fn compare(&mut self, name: ElectionName) {
        let key = self.cells.keys.election(&self.ns, &name);
        if self.telling.is_passed_over(&key) {
            return;
        }
        let known = self.cells.known::<ElectionRecord>(&key);
        let digest = known.map(|seen| self.digest(&seen));
        let Some(digests) = &mut self.digests else { return };
        match digest {
            Some(digest) if digests.get(&name) != Some(&digest) => {
                self.queue.push_back(hint(name.clone(), &digest));
                digests.insert(name, digest);
            }
            None if digests.remove(&name).is_some() => {
                self.queue.push_back(Hint::Election(name));
            }
            _ => {}
        }
    }

    /// Every election, from a listing; or, where changes are told, from what is known.
    async fn every_election(&mut self) -> Result<Vec<Seen<ElectionRecord>>> {
        let now = self.cells.now();
        let pace = self.cells.told_pace();
        let looked = self.looked.is_some_and(|then| now.since(then) < pace);
        if looked && self.is_told_within(pace) {
            let prefix = self.cells.keys.elections(&self.ns);
            let known: Vec<_> =
                self.cells.memory().elections.below(&prefix).map(|(_, s)| s.clone()).collect();
            let names = known.iter().map(|seen| seen.record.election.clone()).collect();
            return self.load_due(names).await;
        }
        let begun = self.cells.step();
        let every = self.reader().load_every_election().await?;
        self.reader().load_holders_of(every.iter(), begun).await?;
        self.looked = Some(now);
        Ok(every)
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.cells, &self.ns)
    }

    fn judge(&self) -> Judge<'_> {
        Judge::new(&self.cells, &self.ns)
    }

    /// The next pause: the pace, made up to a quarter shorter, so that many
    /// followers do not look in step.
    fn pause(&mut self) -> Duration {
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pace = self.cells.options.poll;
        let thousandths = u32::try_from((self.jitter >> 33) % 250).unwrap_or(0);
        pace - pace / 1_000 * thousandths
    }

    fn digest(&self, seen: &Seen<ElectionRecord>) -> Digest {
        let record = &seen.record;
        Digest {
            number: record.number(),
            holder: self.holder(record),
            paused: record.pause(),
            step_down: record.step_down(),
            heir: record.reserved.as_ref().map(|r| r.member.clone()),
        }
    }

    /// Who holds it and is not known to be gone: silence is news only when it
    /// was looked for.
    fn holder(&self, record: &ElectionRecord) -> Option<Incarnation> {
        let holder = record.holder.as_ref()?.incarnation;
        let gone = match self.judge().hold(record) {
            Hold::Vacant | Hold::Over(_) => true,
            Hold::Silent(member) => self.judge().is_dead(&member),
            Hold::Live(_) | Hold::Unproven { .. } => false,
        };
        (!gone).then_some(holder)
    }

    /// One look; notes what is news. The first one only notes, since
    /// [`Hint::Anything`] was given before it.
    async fn poll(&mut self) -> Result<()> {
        let elections = match self.named() {
            Some(named) => {
                self.check_own(&named).await?;
                self.load_due(named).await?
            }
            None => self.every_election().await?,
        };
        let named = elections.iter().map(|s| (s.record.election.clone(), self.digest(s)));
        let digests: HashMap<_, _> = named.collect();
        if std::mem::take(&mut self.failed) {
            self.queue.push_back(Hint::Anything);
        } else if let Some(before) = &self.digests {
            for (name, digest) in &digests {
                if before.get(name) != Some(digest) {
                    self.queue.push_back(hint(name.clone(), digest));
                }
            }
            let removed = before.keys().filter(|name| !digests.contains_key(*name));
            self.queue.extend(removed.cloned().map(Hint::Election));
        }
        self.digests = Some(digests);
        Ok(())
    }

    /// The elections that this store was asked for by name, if any.
    fn named(&self) -> Option<Vec<ElectionName>> {
        let prefix = self.cells.keys.elections(&self.ns);
        let memory = self.cells.memory();
        let named = memory.named.range(prefix.clone()..).take_while(|k| k.starts_with(&prefix));
        let named: Vec<_> =
            named.filter_map(|key| self.cells.keys.election_of(&self.ns, key)).collect();
        (!named.is_empty()).then_some(named)
    }

    /// Looks whether what this process holds is still there: its heartbeats do not
    /// touch it, and until it is noticed that it was removed by hand another may
    /// be elected beside. A few are looked at in each ttl, which costs less than a
    /// listing once in many; many are listed.
    async fn check_own(&mut self, named: &[ElectionName]) -> Result<()> {
        const FEW: usize = 4;
        const TTLS: u32 = 4;
        let own: Vec<_> =
            named.iter().filter_map(|name| Some((name, self.own_ttl(name)?))).collect();
        let Some(ttl) = own.iter().map(|(_, ttl)| *ttl).min() else { return Ok(()) };
        // The pace is shortened at random, so that a whole ttl would be every second
        // turn.
        let few = own.len() <= FEW;
        let told = self.is_told_within(ttl);
        let pause = if few { if told { ttl } else { ttl / 2 } } else { ttl * TTLS };
        if self.checked_own.is_some_and(|then| self.cells.now().since(then) < pause) {
            return Ok(());
        }
        if few {
            let keys: Vec<_> =
                own.iter().map(|(name, _)| self.cells.keys.election(&self.ns, name)).collect();
            let reader = self.reader();
            let loads = keys.iter().map(|key| reader.load_election(key));
            self.cells.all(loads.collect()).await.into_iter().collect::<Result<Vec<_>>>()?;
        } else {
            self.reader().load_every_election().await?;
        }
        self.checked_own = Some(self.cells.now());
        let gone = own.into_iter().map(|(name, _)| name).filter(|name| {
            self.cells.known::<ElectionRecord>(&self.cells.keys.election(&self.ns, name)).is_none()
        });
        self.queue.extend(gone.cloned().map(Hint::Election));
        Ok(())
    }

    /// The ttl of an election that this process holds itself, as far as it knows.
    fn own_ttl(&self, name: &ElectionName) -> Option<Duration> {
        let key = self.cells.keys.election(&self.ns, name);
        let seen = self.cells.known::<ElectionRecord>(&key)?;
        let holder = seen.record.holder.as_ref()?;
        let key = self.cells.keys.member(&self.ns, &holder.member);
        self.cells.memory().written(&key, holder.incarnation).map(|_| holder.ttl_ns)
    }

    /// Looks at those that it is time to look at, and gives all that are known.
    async fn load_due(&self, named: Vec<ElectionName>) -> Result<Vec<Seen<ElectionRecord>>> {
        let due: Vec<_> = named.iter().filter(|name| self.is_due(name)).cloned().collect();
        for batch in due.chunks(self.cells.options.batch) {
            self.reader().load_changed(batch).await?;
        }
        let known = |name| self.cells.known(&self.cells.keys.election(&self.ns, name));
        Ok(named.iter().filter_map(known).collect())
    }

    /// A member that waits for a term looks by itself when the ttl is over, and is
    /// given a tenth of it to do so. What is asked of this process's own terms, it
    /// learns by its heartbeats.
    fn is_due(&self, name: &ElectionName) -> bool {
        let key = self.cells.keys.election(&self.ns, name);
        let Some(seen) = self.cells.known::<ElectionRecord>(&key) else { return true };
        let told = self.is_told_within(self.cells.told_pace());
        let look = !told || self.cells.now().since(seen.looked) >= self.cells.told_pace();
        let Some(holder) = &seen.record.holder else { return look };
        if seen.record.paused.is_some() {
            return look;
        }
        let key = self.cells.keys.member(&self.ns, &holder.member);
        if self.cells.memory().written(&key, holder.incarnation).is_some() {
            return false;
        }
        let pace = self.cells.options.poll_held;
        let looked = self.cells.known::<MemberRecord>(&key).map(|member| member.looked);
        if let (Some(pace), Some(looked)) = (pace, looked)
            && !told
            && self.cells.now().since(looked) >= pace
        {
            return true;
        }
        match self.judge().hold(&seen.record) {
            Hold::Silent(member) => {
                let ttl = member.record.ttl_ns;
                let silent = self.cells.now().since(member.since);
                silent >= self.judge().patience(ttl) + ttl / 10
            }
            Hold::Live(_) | Hold::Unproven { .. } => false,
            Hold::Vacant | Hold::Over(_) => look,
        }
    }
}

fn hint(election: ElectionName, digest: &Digest) -> Hint {
    if digest.holder.is_none() && digest.paused.is_none() {
        return Hint::Vacant { election, heir: digest.heir.clone() };
    }
    Hint::Election(election)
}

#[async_trait]
impl Following for Poller {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if self.digests.is_none() && self.sleep.is_none() && !self.failed {
                // What the first hint makes others look at is what changes are
                // told against, so it is looked at first.
                self.begin().await.inspect_err(|_| self.failed = true)?;
            }
            self.make_up().await.inspect_err(|_| self.failed = true)?;
            if let Some(hint) = self.queue.pop_front() {
                return Ok(Followed::Hint(hint));
            }
            match self.woken().await {
                Woken::Time => {
                    self.telling.check();
                    let looked = self.poll().await;
                    self.sleep = None;
                    looked.inspect_err(|_| self.failed = true)?;
                }
                Woken::News(news) => {
                    let news = news.inspect_err(|_| self.failed = true)?;
                    self.heard(news);
                }
            }
        }
    }
}
