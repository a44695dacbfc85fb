//! The worker: one process that stands for the election, and writes while it
//! leads. Nothing that the store does ends it; only a signal does.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tenure::{Leadership, Tenure};

use crate::books::{Books, Fenced, Written};
use crate::checker::{Row, Worker};
use crate::clock;
use crate::failure::{Doing, Failure, Outcome};
use crate::options::Sabotage;
use crate::record::{Line, Log};

/// The name of the election.
pub(crate) const ELECTION: &str = "chaos";
/// How often a leader asks whether it leads, to write it down.
const SAMPLE: Duration = Duration::from_millis(4);
/// Between reading and writing the loose counter: most of the time, so that a
/// process that is stopped is mostly stopped there.
const LOOSE_HOLD: Duration = Duration::from_millis(50);
/// Between reading and writing under the fence: short, since it keeps others from
/// writing.
const FENCED_HOLD: Duration = Duration::from_millis(2);
/// Between two tries of something that failed.
const RETRY: Duration = Duration::from_millis(100);

/// What a worker is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Who it is.
    pub worker: Worker,
    /// The store.
    pub url: String,
    /// Where it writes down what happens.
    pub log: PathBuf,
    /// Its ttl.
    pub ttl: Duration,
    /// What it does wrong on purpose.
    pub sabotage: Sabotage,
    /// The process that started it.
    pub parent: u32,
}

impl Orders {
    /// As arguments of a process.
    pub fn args(&self) -> Vec<String> {
        vec![
            self.worker.slot.to_string(),
            self.worker.life.to_string(),
            self.url.clone(),
            self.log.display().to_string(),
            self.ttl.as_millis().to_string(),
            self.sabotage.name().to_owned(),
            self.parent.to_string(),
        ]
    }

    /// Understands [`Self::args`].
    pub fn parse(args: &[String]) -> Outcome<Self> {
        let bad = || Failure::new("a worker is started by the program itself; leave it to that");
        let [slot, life, url, log, ttl, sabotage, parent] = args else { return Err(bad()) };
        let number = |text: &String| text.parse::<u32>().map_err(|_| bad());
        let slot = usize::try_from(number(slot)?).map_err(|_| bad())?;
        Ok(Self {
            worker: Worker { slot, life: number(life)? },
            url: url.clone(),
            log: log.into(),
            ttl: Duration::from_millis(number(ttl)?.into()),
            sabotage: Sabotage::parse(sabotage).ok_or_else(bad)?,
            parent: number(parent)?,
        })
    }
}

/// Works until it is killed.
pub fn work(orders: &Orders) -> Outcome {
    die_with(orders.parent)?;
    let log = Log::create(&orders.log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.doing(|| "start the runtime".into())?;
    runtime.block_on(async {
        let tenure = connect(orders).await;
        let mut job = Job { orders, log, books: None, written: 0 };
        loop {
            let leadership = tenure.election(ELECTION).campaign().await;
            let leadership = leadership.doing(|| "campaign".into())?;
            job.lead(leadership).await?;
        }
    })
}

/// However the parent ends, this process ends with it, stopped or not.
pub(crate) fn die_with(parent: u32) -> Outcome {
    set_parent_process_death_signal(Some(Signal::KILL)).doing(|| "follow the parent".into())?;
    // It may have ended before.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if now == Some(parent) { Ok(()) } else { Err(Failure::new("the parent is gone")) }
}

/// Tries until the store answers.
async fn connect(orders: &Orders) -> Tenure {
    loop {
        let id = format!("worker-{}", orders.worker.slot);
        match Tenure::builder(&orders.url).id(id).ttl(orders.ttl).connect().await {
            Ok(tenure) => return tenure,
            Err(error) => say(&error),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// For a person who reads what a worker said; standard error is a file.
#[allow(clippy::print_stderr)]
pub(crate) fn say(what: &dyn std::fmt::Display) {
    eprintln!("{}: {what}", clock::now());
}

struct Job<'o> {
    orders: &'o Orders,
    log: Log,
    books: Option<Books>,
    written: u64,
}

impl Job<'_> {
    /// Leads until it is over.
    async fn lead(&mut self, leadership: Leadership) -> Outcome {
        self.log.write(&Line::Wall { at: clock::now(), wall: clock::wall() })?;
        let witness = witness(&leadership, self.log.share()?, self.orders.sabotage.trust)?;
        while leadership.is_current() {
            if let Err(failure) = self.round(&leadership).await {
                say(&failure);
                // Whatever the connection was in the middle of, it is over.
                self.books = None;
                tokio::time::sleep(RETRY).await;
            }
        }
        drop(leadership);
        witness.join().map_err(|_| Failure::new("the witness panicked"))?
    }

    /// One write of each kind. Only the loose one asks whether it leads, and
    /// before it reads, as a careful program without a fence would; the fenced
    /// one asks the fence alone.
    async fn round(&mut self, leadership: &Leadership) -> Outcome {
        let mut books = match self.books.take() {
            Some(books) => books,
            None => Books::open(&self.orders.url).await?,
        };
        self.written += 1;
        let element = format!("{}n{}", self.orders.worker, self.written);

        let from = clock::now();
        let value = books.loose_value().await? + 1;
        tokio::time::sleep(LOOSE_HOLD).await;
        let row = Row { element: element.clone(), term: leadership.token(), value };
        books.loose_write(&row).await?;
        let at = clock::now();
        self.log.write(&Line::Loose { element: element.clone(), from, at })?;

        self.log.write(&Line::Try { element: element.clone(), at: clock::now() })?;
        let fence = !self.orders.sabotage.fence;
        let write = Fenced { leadership, fence, element: &element, hold: FENCED_HOLD };
        let line = match books.fenced(write).await? {
            Written::Done => Line::Done { element, at: clock::now() },
            Written::Refused => Line::Refused { element },
        };
        self.log.write(&line)?;
        self.books = Some(books);
        Ok(())
    }
}

/// Writes down, on a thread of its own, how long this process trusts that it
/// leads.
///
/// The clock is read first and the question asked after: if the answer is yes,
/// it was yes at the moment that was read. A process that is stopped anywhere
/// between cannot stretch its interval: either it was stopped before the question,
/// and the answer is no, or after, and the moment lies before.
fn witness(
    leadership: &Leadership,
    mut log: Log,
    blind: bool,
) -> Outcome<thread::JoinHandle<Outcome>> {
    let leadership = leadership.clone();
    let term = leadership.token();
    let watch = move || -> Outcome {
        let from = clock::now();
        let mut to = from;
        let mut said_no = 0_u32;
        // A worker that does not ask goes on for a while after it should have stopped.
        while leadership.is_current() || (blind && said_no < 100) {
            said_no += u32::from(!leadership.is_current());
            log.write(&Line::Trust { term, from, to })?;
            thread::sleep(SAMPLE);
            to = clock::now();
        }
        Ok(())
    };
    thread::Builder::new().name("witness".into()).spawn(watch).doing(|| "start a witness".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parent says is what the worker hears.
    #[test]
    fn orders_come_through() {
        let orders = Orders {
            worker: Worker { slot: 3, life: 12 },
            url: "sqlite:/a b.db".into(),
            log: "/logs/x.log".into(),
            ttl: Duration::from_millis(1_500),
            sabotage: Sabotage { trust: true, fence: false, guard: false },
            parent: 77,
        };
        let heard = Orders::parse(&orders.args()).unwrap();
        assert_eq!(format!("{heard:?}"), format!("{orders:?}"));
        assert!(Orders::parse(&orders.args()[1..]).is_err());
    }

    /// One whose parent is gone must not stay behind.
    #[test]
    fn a_worker_without_its_parent_refuses_to_work() {
        let me = std::process::id();
        assert!(die_with(me).unwrap_err().to_string().contains("the parent is gone"));
    }
}
