//! A register whose requests go wrong as a script says.

use std::collections::VecDeque;

use tenure_core::Timestamp;
use tenure_testkit::Dice;

use super::*;
use crate::memory_register::MemoryRegister;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    /// Not carried out, and the error says so.
    Refused,
    /// Carried out, and the error leaves it open.
    Unsaid,
    /// Not carried out, and the error leaves it open.
    Unclear,
    /// The same; it arrives after the next request that is carried out.
    Late,
    Denied,
    /// Another process writes first.
    Overtaken,
}

#[derive(Debug, Default)]
struct Script {
    inner: MemoryRegister,
    fates: Mutex<VecDeque<Fate>>,
    /// When each request came, and whether it was a swap.
    sent: Mutex<Vec<(Mono, bool)>>,
    late: Mutex<Option<(String, Expect, Vec<u8>)>>,
}

impl Script {
    fn new(fates: impl IntoIterator<Item = Fate>) -> Arc<Self> {
        Arc::new(Self { fates: Mutex::new(fates.into_iter().collect()), ..Self::default() })
    }

    fn next(&self, swap: bool) -> Fate {
        self.sent.lock().unwrap().push((TokioClock.now(), swap));
        self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Done)
    }

    fn swaps(&self) -> usize {
        self.sent.lock().unwrap().iter().filter(|(_, swap)| *swap).count()
    }

    fn requests(&self) -> usize {
        self.sent.lock().unwrap().len()
    }

    /// One request with its fate.
    async fn carry<T>(
        &self,
        fate: Fate,
        request: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let error = |kind| Err(Error::new(kind, "it failed"));
        match fate {
            Fate::Done | Fate::Overtaken => request.await,
            Fate::Refused => error(ErrorKind::Busy),
            Fate::Denied => error(ErrorKind::Denied),
            Fate::Unclear | Fate::Late => error(ErrorKind::Timeout).map_err(Error::maybe_applied),
            Fate::Unsaid => {
                let _ = request.await;
                error(ErrorKind::Unreachable).map_err(Error::maybe_applied)
            }
        }
    }
}

#[async_trait]
impl Register for Script {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let answer = self.carry(self.next(false), self.inner.load(key, known)).await;
        let late = self.late.lock().unwrap().take();
        if let Some((key, expect, bytes)) = late {
            self.inner.swap(&key, expect, bytes).await?;
        }
        answer
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let fate = self.next(true);
        if fate == Fate::Late {
            let write = (key.to_owned(), expect.clone(), bytes.clone());
            *self.late.lock().unwrap() = Some(write);
        }
        if fate == Fate::Overtaken {
            self.inner.swap(key, expect.clone(), b"another".to_vec()).await?;
        }
        self.carry(fate, self.inner.swap(key, expect, bytes)).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.carry(self.next(true), self.inner.remove(key, expect)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.carry(self.next(false), self.inner.list(prefix)).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

/// The runtime's own time, which stands still while anything can be done.
#[derive(Debug)]
struct TokioClock;

impl Clock for TokioClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Mono {
        thread_local!(static FROM: tokio::time::Instant = tokio::time::Instant::now());
        Mono::from_nanos(
            u64::try_from(FROM.with(tokio::time::Instant::elapsed).as_nanos()).unwrap(),
        )
    }

    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }
}

const WITHIN: Duration = Duration::from_secs(10);

fn over(script: &Arc<Script>) -> Retrying {
    Retrying::new(script.clone(), Arc::new(TokioClock), Repeats::within(WITHIN))
}

async fn create(fates: impl IntoIterator<Item = Fate>) -> (Arc<Script>, Result<Swapped>) {
    let script = Script::new(fates);
    let swapped = over(&script).swap("k", Expect::Absent, b"mine".to_vec()).await;
    (script, swapped)
}

/// What the cell holds in the end.
async fn held(script: &Script) -> Vec<u8> {
    match script.inner.load("k", None).await.unwrap() {
        Loaded::Found { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn looks_and_listings_that_fail_are_asked_again() {
    for fate in [Fate::Refused, Fate::Unclear] {
        let script = Script::new([fate, fate]);
        assert_eq!(over(&script).load("k", None).await.unwrap(), Loaded::Absent);
        assert_eq!(script.requests(), 3);
        let script = Script::new([fate]);
        assert_eq!(over(&script).list("").await.unwrap(), []);
        assert_eq!(script.requests(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_applied_is_sent_again() {
    let (script, swapped) = create([Fate::Refused, Fate::Refused]).await;
    assert!(matches!(swapped.unwrap(), Swapped::Stored(_)));
    assert_eq!((script.swaps(), script.requests()), (3, 3));
}

/// E2: what may have been applied is looked at. It was: it is not sent again.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_applied_unsaid_is_found_and_not_sent_again() {
    for looks in [&[][..], &[Fate::Refused], &[Fate::Unclear, Fate::Refused]] {
        let (script, swapped) = create([&[Fate::Unsaid], looks].concat()).await;
        let Swapped::Stored(version) = swapped.unwrap() else { panic!("a conflict") };
        assert_eq!(script.swaps(), 1);
        let known = script.inner.load("k", Some(&version)).await.unwrap();
        assert_eq!(known, Loaded::Unchanged, "the version is the cell's");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_looked_at_and_not_applied_is_sent_again() {
    let (script, swapped) = create([Fate::Unclear]).await;
    assert!(matches!(swapped.unwrap(), Swapped::Stored(_)));
    assert_eq!((script.swaps(), script.requests()), (2, 3));
    // The same over a version.
    let script = Script::new([Fate::Done, Fate::Unclear]);
    let register = over(&script);
    let made = register.swap("k", Expect::Absent, b"1".to_vec()).await.unwrap();
    let Swapped::Stored(version) = made else { panic!("a conflict") };
    let swapped = register.swap("k", Expect::Version(version), b"2".to_vec()).await.unwrap();
    assert!(matches!(swapped, Swapped::Stored(_)));
    assert_eq!((script.swaps(), held(&script).await), (3, b"2".to_vec()));
}

/// E2: the first attempt arrives between the look and the second one, which
/// conflicts with it. That is not the write of another process.
#[tokio::test(start_paused = true)]
async fn a_conflict_with_ones_own_late_write_is_no_conflict() {
    let (script, swapped) = create([Fate::Late]).await;
    assert!(matches!(swapped.unwrap(), Swapped::Stored(_)));
    assert_eq!((script.swaps(), script.inner.writes()), (2, 1), "applied once");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_with_another_is_one_after_any_number_of_repeats() {
    for fates in [vec![Fate::Overtaken], vec![Fate::Unclear, Fate::Done, Fate::Overtaken]] {
        let (script, swapped) = create(fates).await;
        assert_eq!(swapped.unwrap(), Swapped::Conflict);
        assert_eq!(held(&script).await, b"another");
    }
}

/// E2: what any attempt left open stays open, whatever the last one said.
#[tokio::test(start_paused = true)]
async fn an_error_that_is_left_says_whether_any_attempt_may_have_been_applied() {
    let (script, swapped) = create([Fate::Denied]).await;
    assert!(!swapped.unwrap_err().may_have_applied());
    assert_eq!(script.requests(), 1, "what is denied is denied again");
    let (_, swapped) = create([Fate::Unclear, Fate::Denied]).await;
    assert!(swapped.unwrap_err().may_have_applied());
    let (_, swapped) = create([Fate::Unclear].into_iter().chain([Fate::Refused; 50])).await;
    assert!(swapped.unwrap_err().may_have_applied());
    let (_, swapped) = create([Fate::Refused; 50]).await;
    assert!(!swapped.unwrap_err().may_have_applied());
}

#[tokio::test(start_paused = true)]
async fn a_removal_is_repeated_and_one_that_was_applied_is_found_gone() {
    for fate in [Fate::Refused, Fate::Unsaid, Fate::Unclear] {
        let script = Script::new([Fate::Done, fate]);
        let register = over(&script);
        let made = register.swap("k", Expect::Absent, b"1".to_vec()).await.unwrap();
        let Swapped::Stored(version) = made else { panic!("a conflict") };
        assert_eq!(register.remove("k", &version).await.unwrap(), Removed::Gone);
        assert_eq!(script.inner.load("k", None).await.unwrap(), Loaded::Absent);
    }
}

/// F1: repeats come more slowly each time, and end.
#[tokio::test(start_paused = true)]
async fn repeats_come_ever_more_slowly_and_not_for_ever() {
    let (script, swapped) = create([Fate::Refused; 50]).await;
    assert_eq!(swapped.unwrap_err().kind(), ErrorKind::Busy);
    let sent: Vec<Mono> = script.sent.lock().unwrap().iter().map(|(at, _)| *at).collect();
    let pauses: Vec<Duration> = sent.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(pauses.len() >= 3, "{pauses:?}");
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0] * 3 / 2), "{pauses:?}");
    assert!(sent.last().unwrap().since(sent[0]) <= WITHIN, "{pauses:?}");
}

/// The bar: under four repeats a second, however many requests fail at once.
#[tokio::test(start_paused = true)]
async fn a_hundred_requests_that_fail_at_once_are_repeated_at_one_pace() {
    let script = Script::new([Fate::Refused; 1_000]);
    let register = Arc::new(over(&script));
    let mut asking = Vec::new();
    for n in 0..100 {
        let register = register.clone();
        asking.push(tokio::spawn(async move { register.load(&format!("k{n}"), None).await }));
    }
    let mut failed = 0;
    for asked in asking {
        failed += usize::from(asked.await.unwrap().is_err());
    }
    assert_eq!(failed, 100);
    let mut sent: Vec<Mono> = script.sent.lock().unwrap().iter().map(|(at, _)| *at).collect();
    let repeats = sent.split_off(100);
    assert!(repeats.len() > 20, "{} repeats", repeats.len());
    let second = Duration::from_secs(1);
    for (n, at) in repeats.iter().enumerate() {
        let within = repeats[n..].iter().take_while(|later| later.since(*at) < second).count();
        assert!(within <= 4, "{within} repeats within a second");
    }
    let average = repeats.len() as u128 * 1_000 / WITHIN.as_millis();
    assert!(average < 4, "{average} repeats a second");
}

/// E2, with everything that can go wrong mixed: each writer appends its mark by
/// compare and swap. What it was told is stored is there exactly once; what it
/// was told is not is not there.
#[tokio::test(start_paused = true)]
async fn what_was_told_stored_is_there_once_and_what_was_told_lost_is_not() {
    for seed in 0..200_u64 {
        let mut dice = Dice::new(seed);
        let mut roll = || match dice.below(8) {
            0 => Fate::Refused,
            1 => Fate::Unsaid,
            2 => Fate::Unclear,
            3 => Fate::Late,
            _ => Fate::Done,
        };
        let script = Script::new((0..400).map(|_| roll()));
        let register = Arc::new(over(&script));
        let mut writers = Vec::new();
        for writer in 0..3_u8 {
            let register = register.clone();
            writers.push(tokio::spawn(async move { append_marks(&*register, writer).await }));
        }
        let mut stored = Vec::new();
        let mut lost = Vec::new();
        for writer in writers {
            let (s, l) = writer.await.unwrap();
            stored.extend(s);
            lost.extend(l);
        }
        let held = held(&script).await;
        for mark in &stored {
            let times = held.chunks(2).filter(|there| there == mark).count();
            assert_eq!(times, 1, "seed {seed}: {mark:?} was stored; {held:?}");
        }
        for mark in &lost {
            assert!(!held.chunks(2).any(|there| there == mark), "seed {seed}: {mark:?} was lost");
        }
        assert!(stored.len() > 5, "seed {seed}");
    }
}

/// Marks that were told to be stored, and marks that were told not to be. A mark
/// that met a conflict is not used again: the conflict may be with itself.
async fn append_marks(register: &dyn Register, writer: u8) -> (Vec<[u8; 2]>, Vec<[u8; 2]>) {
    let mut stored = Vec::new();
    let mut lost = Vec::new();
    for n in 0..8 {
        let mark = [writer, n];
        let seen = register.load("k", None).await;
        let (mut bytes, expect) = match seen {
            Ok(Loaded::Found { bytes, version }) => (bytes, Expect::Version(version)),
            Ok(_) => (Vec::new(), Expect::Absent),
            Err(_) => continue,
        };
        bytes.extend(mark);
        match register.swap("k", expect, bytes).await {
            Ok(Swapped::Stored(_)) => stored.push(mark),
            Err(error) if !error.may_have_applied() => lost.push(mark),
            _ => {}
        }
    }
    (stored, lost)
}
