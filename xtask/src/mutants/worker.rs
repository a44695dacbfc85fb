//! One of those who work side by side: it breaks its own copy of the programs, runs the
//! tests in a database of their own, and says what became of the mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::Statement;
use super::ledger::{Entry, Fate, Ledger};
use super::programs::Programs;
use super::reach::Reach;
use super::record::Record;
use super::runner::{self, Ended, Finished, Task};
use super::scratch::Built;
use crate::failure::{Doing, Failure, Outcome};
use crate::servers::Servers;

/// Where tests find PostgreSQL.
const POSTGRES: &str = "TENURE_TEST_POSTGRES_URL";
/// What a test may take beyond what it usually takes: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the first look at a mutant may take, in seconds of tests.
const FIRST_LOOK: f64 = 30.0;
/// Tried before all others, alone: they catch most, and no real time is in them.
const SCOUTS: [&str; 2] = [
    "histories random_histories_go_by_the_rules",
    "specific_histories random_histories_leave_the_same_in_a_file_and_in_memory",
];
/// How many histories it runs at the first look, and when all tests are run.
const SCOUTED: (u32, u32) = (40, 400);

/// How closely a mutant is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// By the scout alone.
    Scout,
    /// By the tests that catch most.
    First,
    /// By all tests.
    Whole,
}

/// What all workers share.
pub(super) struct Shared<'a> {
    /// The programs as they were built.
    pub(super) built: &'a [Built],
    /// The tests: the program's place, and the name in it.
    pub(super) tests: &'a [(usize, String)],
    /// How the tests are called, in the same order.
    pub(super) names: &'a [String],
    pub(super) ledger: Mutex<Ledger>,
    pub(super) record: Mutex<Record>,
    pub(super) reach: Reach,
    /// How many tests a worker runs at a time.
    pub(super) slots: usize,
    /// What the names of the tests contain that are tried; all, if nothing is named.
    pub(super) by: &'a [String],
    /// How many histories a mutant has to pass, if it was said.
    pub(super) histories: Option<u32>,
    /// Which mutants the scout has looked at already.
    pub(super) scouted: BTreeSet<String>,
}

impl Shared<'_> {
    fn tries(&self, test: usize) -> bool {
        let name = &self.names[test];
        self.by.is_empty() || self.by.iter().any(|text| name.contains(text.as_str()))
    }
}

/// One worker.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) programs: Programs,
    pub(super) folder: PathBuf,
    /// Of its own: what one mutant does to a server does not disturb another.
    pub(super) servers: Servers,
}

impl Worker<'_> {
    /// What becomes of a mutant. A first look takes the tests that catch most; it leaves
    /// the mutant open if none of them does. `passed` are those that need not be run.
    pub(super) fn judge(
        &self,
        mutant: &Statement,
        look: Look,
        passed: &mut BTreeSet<usize>,
    ) -> Outcome<Entry> {
        let place = Place::make(self, self.histories(look))?;
        self.programs.overwrite(&mutant.file, &mutant.whole, &mutant.text)?;
        let judged = self.judge_in(&place, mutant, look, passed);
        self.programs.overwrite(&mutant.file, &mutant.whole, &mutant.whole)?;
        let (fate, by) = judged?;
        Ok(Entry { fate, digest: mutant.digest.clone(), by })
    }

    fn histories(&self, look: Look) -> u32 {
        let usual = if look == Look::Whole { SCOUTED.1 } else { SCOUTED.0 };
        self.shared.histories.unwrap_or(usual)
    }

    /// What tests find in their environment, with a new database.
    pub(super) fn environment(&self, look: Look) -> Outcome<Vec<(String, String)>> {
        Ok(Place::make(self, self.histories(look))?.environment)
    }

    fn judge_in(
        &self,
        place: &Place,
        mutant: &Statement,
        look: Look,
        passed: &mut BTreeSet<usize>,
    ) -> Outcome<(Fate, String)> {
        let mut set_aside = BTreeSet::new();
        let scout = self.shared.names.iter().position(|name| SCOUTS.contains(&name.as_str()));
        let scout = scout.filter(|scout| self.shared.tries(*scout));
        let unseen = scout.filter(|_| !self.shared.scouted.contains(&mutant.name));
        if let Some(judged) = unseen.map(|scout| self.scouted(place, scout)).transpose()?.flatten()
        {
            return Ok(judged);
        }
        if scout.is_some() && look == Look::Scout {
            return Ok((Fate::Open, String::new()));
        }
        loop {
            let mut order = self.order(mutant);
            order.retain(|test| {
                let again = passed.contains(test) || set_aside.contains(test);
                !again && Some(*test) != scout && self.shared.tries(*test)
            });
            let cut = if look == Look::Whole { order.len() } else { self.first_look(&order) };
            let whole = cut == order.len();
            order.truncate(cut);
            let Some(failed) = self.first_failure(place, &order, passed)? else {
                let fate = match () {
                    () if !self.shared.by.is_empty() => self.before(mutant),
                    () if whole => Fate::Survived,
                    () => Fate::Open,
                };
                return Ok((fate, String::new()));
            };
            if is_refused(&failed.said) {
                return Ok((Fate::Unviable, String::new()));
            }
            if self.is_to_blame(place, &failed)? {
                let fate = if failed.ended == Ended::Hung { Fate::Hung } else { Fate::Caught };
                return Ok((fate, self.shared.names[failed.test].clone()));
            }
            set_aside.insert(failed.test);
        }
    }

    /// What is known of a mutant that some tests did not notice.
    fn before(&self, mutant: &Statement) -> Fate {
        let survived = lock(&self.shared.ledger).has_survived(&mutant.name);
        if survived { Fate::Survived } else { Fate::Open }
    }

    /// What the scout says of a mutant, if it notices it.
    fn scouted(&self, place: &Place, scout: usize) -> Outcome<Option<(Fate, String)>> {
        let scouted = self.alone(place, &self.programs.all, scout)?;
        if scouted.ended == Ended::Passed {
            lock(&self.shared.record).passed(&self.shared.names[scout], scouted.took);
            return Ok(None);
        }
        if is_refused(&scouted.said) {
            return Ok(Some((Fate::Unviable, String::new())));
        }
        let fate = if scouted.ended == Ended::Hung { Fate::Hung } else { Fate::Caught };
        Ok(self.is_to_blame(place, &scouted)?.then(|| (fate, self.shared.names[scout].clone())))
    }

    /// Runs all tests with nothing broken, and asks the server what each of them called.
    /// `None` where no server counts.
    pub(super) fn reach(&self) -> Outcome<Option<Reach>> {
        let place = Place::make(self, SCOUTED.0)?;
        let Some((_, url)) = place.environment.iter().find(|(key, _)| key == POSTGRES) else {
            return Ok(None);
        };
        let count = self.shared.tests.len();
        let tasks = (0..count).map(|test| self.task(self.shared.built, test)).collect();
        let mut processes = BTreeMap::new();
        runner::run(tasks, self.shared.slots * 2, &place.environment, &place.folder, |finished| {
            let name = &self.shared.names[finished.test];
            if finished.ended == Ended::Passed {
                lock(&self.shared.record).passed(name, finished.took);
            } else {
                println!("     fails with nothing broken: {name}");
                lock(&self.shared.record).doubt(name);
            }
            processes.insert(finished.process, name.clone());
            true
        })?;
        let counted = "SELECT schemaname, funcname FROM pg_stat_user_functions";
        Ok(Some(Reach::counted(&processes, &psql_in(url, &[counted])?)))
    }

    /// The tests in the order in which they are tried, by their places.
    fn order(&self, mutant: &Statement) -> Vec<usize> {
        let record = lock(&self.shared.record);
        let names = self.shared.names;
        let order = record.order(names, &mutant.name, &lock(&self.shared.ledger));
        let reaches = |name: &&&str| self.shared.reach.may(name, mutant.counted.as_deref());
        let order = order.iter().filter(reaches);
        order.filter_map(|name| names.iter().position(|other| other == name)).collect()
    }

    /// How many of these a first look takes.
    fn first_look(&self, order: &[usize]) -> usize {
        let record = lock(&self.shared.record);
        let mut seconds = 0.0;
        let enough = order.iter().position(|test| {
            seconds += record.seconds(&self.shared.names[*test]);
            seconds > FIRST_LOOK
        });
        enough.unwrap_or(order.len())
    }

    /// Runs tests until the first that does not pass, and gives that.
    fn first_failure(
        &self,
        place: &Place,
        order: &[usize],
        passed: &mut BTreeSet<usize>,
    ) -> Outcome<Option<Finished>> {
        let tasks = order.iter().map(|test| self.task(&self.programs.all, *test)).collect();
        let mut failed = None;
        runner::run(tasks, self.shared.slots, &place.environment, &place.folder, |finished| {
            if finished.ended == Ended::Passed {
                lock(&self.shared.record).passed(&self.shared.names[finished.test], finished.took);
                passed.insert(finished.test);
                return true;
            }
            failed = Some(finished);
            false
        })?;
        Ok(failed)
    }

    /// Whether the mutant is why a test failed. On a busy machine any test may fail, so it
    /// is run again, alone, and must fail again, and then pass with nothing broken. No real
    /// time is in a scout: one that is known to be sound is believed without the last.
    fn is_to_blame(&self, place: &Place, failed: &Finished) -> Outcome<bool> {
        if failed.said.contains("No space left on device") {
            return Err(Failure::new("the disk is full: no verdict is sound"));
        }
        let name = &self.shared.names[failed.test];
        let hung = failed.ended == Ended::Hung;
        let again =
            hung || self.alone(place, &self.programs.all, failed.test)?.ended != Ended::Passed;
        let timeless = SCOUTS.contains(&name.as_str());
        if again && !hung && timeless && lock(&self.shared.record).is_believed(name) {
            return Ok(true);
        }
        let sound = self.alone(place, self.shared.built, failed.test)?;
        let mut record = lock(&self.shared.record);
        if sound.ended == Ended::Passed {
            record.passed(name, sound.took);
            if again {
                return Ok(true);
            }
        }
        println!("     not believed: {name}");
        record.doubt(name);
        Ok(false)
    }

    fn alone(&self, place: &Place, programs: &[Built], test: usize) -> Outcome<Finished> {
        let mut found = None;
        let task = vec![self.task(programs, test)];
        runner::run(task, 1, &place.environment, &place.folder, |finished| {
            found = Some(finished);
            true
        })?;
        found.ok_or_else(|| Failure::new("a test that was run did not end"))
    }

    fn task(&self, programs: &[Built], test: usize) -> Task {
        let (program, name) = &self.shared.tests[test];
        let usual = lock(&self.shared.record).seconds(&self.shared.names[test]);
        let program = &programs[*program];
        Task {
            test,
            program: program.path.clone(),
            folder: program.folder.clone(),
            name: name.clone(),
            limit: PATIENCE + Duration::from_secs_f64(usual * 4.0),
        }
    }
}

/// Whether the store refuses the text itself, so that nothing can be said of the tests.
fn is_refused(said: &str) -> bool {
    ["while installing the schema", "refused installing the schema", "near \""]
        .iter()
        .any(|text| said.contains(text))
}

/// A thread that panicked while it held the lock has ended the run already.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder and, if a server is used, a database for the tests of one mutant. What tests
/// that were killed left behind is gone with the place before, and so is what still ran on
/// the server.
struct Place {
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

impl Place {
    fn make(worker: &Worker<'_>, histories: u32) -> Outcome<Self> {
        let folder = worker.folder.join("run");
        remake(&folder)?;
        let mut environment = worker.servers.environment();
        if let Some((_, url)) = environment.iter().find(|(key, _)| key == POSTGRES) {
            psql(
                url,
                &["DROP DATABASE IF EXISTS postgres WITH (FORCE)", "CREATE DATABASE postgres"],
            )?;
            let url = url.clone();
            environment.push(("TENURE_HISTORIES_AT".to_owned(), url));
            environment.push(("TENURE_HISTORIES".to_owned(), histories.to_string()));
        }
        environment.push(("TMPDIR".to_owned(), folder.display().to_string()));
        Ok(Self { folder, environment })
    }
}

/// Sets the worker's server up for databases that are thrown away: nothing is kept that a
/// failure of the machine could spoil.
pub(super) fn prepare(servers: &Servers) -> Outcome {
    let environment = servers.environment();
    let url = environment.iter().find(|(key, _)| key == POSTGRES).map(|(_, url)| url);
    let hasten = [
        "ALTER SYSTEM SET fsync = off",
        "ALTER SYSTEM SET track_functions = 'all'",
        "SELECT pg_reload_conf()",
    ];
    url.map_or(Ok(()), |url| psql(url, &hasten).map(drop))
}

fn remake(folder: &Path) -> Outcome {
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
    // Servers that tests start run as other users.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    fs::set_permissions(folder, open).doing(|| format!("open {}", folder.display()))
}

/// Has the server do something, beside the database that the tests use.
fn psql(url: &str, statements: &[&str]) -> Outcome<String> {
    let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
    psql_in(&format!("{server}/template1"), statements)
}

fn psql_in(url: &str, statements: &[&str]) -> Outcome<String> {
    let mut line = Command::new("psql");
    line.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--no-align", "--tuples-only"]);
    for statement in statements {
        line.args(["--command", statement]);
    }
    let output = line
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .doing(|| "run psql, which comes with PostgreSQL".into())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::new(format!("`{}` failed: {why}", statements.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_the_store_refuses_is_told_from_a_test_that_fails() {
        assert!(is_refused("PostgreSQL refused installing the schema: syntax error"));
        assert!(is_refused("SqliteFailure: near \"WHERE\": syntax error"));
        assert!(!is_refused("assertion failed: the member lives"));
    }
}
