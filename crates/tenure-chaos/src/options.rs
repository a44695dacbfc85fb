//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::schedule::{self, Fault};

/// How to use it.
pub const USAGE: &str = "\
cargo xtask chaos [options]

  --store S        sqlite or postgres (default sqlite)
  --minutes M      how long faults go on (default 10)
  --seconds S      the same in seconds
  --seed N         the schedule of faults (default: from the clock, and printed)
  --workers N      how many processes stand for the election (default 5)
  --programs N     how many `tenure run` programs stand for another election, each
                   with a command that it runs while it leads (default 3; 0 for none)
  --tenure PATH    that program (default: `tenure` beside this program's own file)
  --ttl-ms N       the ttl of all of them (default 1000)
  --held N         how many further elections a member leads that is then killed
                   (default 20000; 0 for no such member)
  --out FOLDER     where logs, report and timeline go (default target/chaos)
  --sabotage X     break the workers on purpose, to see that it is noticed:
                   trust (they do not ask whether they lead), fence (they do not
                   fence), both, guard (what the commands start leaves the lock of
                   their work), or all
";

/// Where the elections are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// One file.
    Sqlite,
    /// A server of our own.
    Postgres,
}

impl StoreKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// What the workers do wrong on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sabotage {
    /// They take themselves for the leader without asking.
    pub trust: bool,
    /// They write without the fence where they should have one.
    pub fence: bool,
    /// What the guarded commands start gives up the lock that tells that it runs.
    pub guard: bool,
}

impl Sabotage {
    const ALL: [(&'static str, Self); 6] = [
        ("none", Self { trust: false, fence: false, guard: false }),
        ("trust", Self { trust: true, fence: false, guard: false }),
        ("fence", Self { trust: false, fence: true, guard: false }),
        ("both", Self { trust: true, fence: true, guard: false }),
        ("guard", Self { trust: false, fence: false, guard: true }),
        ("all", Self { trust: true, fence: true, guard: true }),
    ];

    /// As it is said on the command line.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(_, sabotage)| *sabotage == self);
        named.map_or("none", |(name, _)| name)
    }

    /// Understands [`Self::name`].
    pub fn parse(name: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().find(|(known, _)| *known == name);
        named.map(|(_, sabotage)| sabotage)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the elections are kept.
    pub store: StoreKind,
    /// How long faults go on.
    pub lasting: Duration,
    /// The schedule of faults.
    pub seed: u64,
    /// How many workers.
    pub workers: usize,
    /// How many programs that run a command under guard.
    pub programs: usize,
    /// Which program that is; `None` for the one beside our own file.
    pub tenure: Option<PathBuf>,
    /// Their ttl.
    pub ttl: Duration,
    /// How many elections a holder of many leads.
    pub held: u32,
    /// Where everything goes that is left of the run.
    pub out: PathBuf,
    /// What the workers do wrong on purpose.
    pub sabotage: Sabotage,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: StoreKind::Sqlite,
            lasting: Duration::from_secs(600),
            seed: 1,
            workers: 5,
            programs: 3,
            tenure: None,
            ttl: Duration::from_secs(1),
            held: 20_000,
            out: PathBuf::from("target/chaos"),
            sabotage: Sabotage::default(),
        }
    }
}

impl Options {
    /// Understands a command line; `seed` is used if it names none.
    pub fn parse(args: &[String], seed: u64) -> Outcome<Self> {
        let mut options = Self { seed, ..Self::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(value) = args.next() else {
                return Err(Failure::new(format!("`{arg}` needs a value, or is not an option")));
            };
            options.set(arg, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, arg: &str, value: &str) -> Outcome {
        let refuse = |why: &str| Err(Failure::new(format!("`{arg} {value}`: {why}")));
        let number = |least: u64, most: u64| match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(Failure::new(format!(
                "`{arg} {value}`: it must be a whole number from {least} to {most}"
            ))),
        };
        match arg {
            "--store" => match value {
                "sqlite" => self.store = StoreKind::Sqlite,
                "postgres" => self.store = StoreKind::Postgres,
                _ => return refuse("there are sqlite and postgres"),
            },
            "--minutes" => self.lasting = Duration::from_secs(number(1, 1_440)? * 60),
            "--seconds" => self.lasting = Duration::from_secs(number(5, 86_400)?),
            "--seed" => self.seed = number(0, u64::MAX)?,
            "--workers" => self.workers = usize::try_from(number(2, 50)?).unwrap_or(50),
            "--programs" => self.programs = usize::try_from(number(0, 20)?).unwrap_or(0),
            "--tenure" => match std::path::absolute(value) {
                Ok(path) if path.is_file() => self.tenure = Some(path),
                _ => return refuse("there is no such file"),
            },
            "--ttl-ms" => self.ttl = Duration::from_millis(number(200, 60_000)?),
            "--held" => self.held = u32::try_from(number(0, 1_000_000)?).unwrap_or(0),
            "--out" => self.out = value.into(),
            "--sabotage" => match Sabotage::parse(value) {
                Some(sabotage) => self.sabotage = sabotage,
                None => return refuse("there are trust, fence, both, guard, all and none"),
            },
            _ => return Err(Failure::new(format!("there is no option `{arg}`"))),
        }
        Ok(())
    }

    /// The command that runs the same schedule again.
    pub fn command(&self) -> String {
        let seconds = self.lasting.as_secs();
        let lasting = match seconds % 60 {
            0 => format!("--minutes {}", seconds / 60),
            _ => format!("--seconds {seconds}"),
        };
        let mut line = format!(
            "cargo xtask chaos --store {} {lasting} --seed {}",
            self.store.name(),
            self.seed
        );
        let usual = Self::default();
        if self.workers != usual.workers {
            line.push_str(&format!(" --workers {}", self.workers));
        }
        if self.programs != usual.programs {
            line.push_str(&format!(" --programs {}", self.programs));
        }
        if let Some(tenure) = &self.tenure {
            line.push_str(&format!(" --tenure {}", tenure.display()));
        }
        if self.ttl != usual.ttl {
            line.push_str(&format!(" --ttl-ms {}", self.ttl.as_millis()));
        }
        if self.held != usual.held {
            line.push_str(&format!(" --held {}", self.held));
        }
        if self.sabotage != usual.sabotage {
            line.push_str(&format!(" --sabotage {}", self.sabotage.name()));
        }
        line
    }

    /// How many faults the run must at least have had: 500 in six minutes, and in ten
    /// where there are no programs that run a command.
    pub fn least_faults(&self) -> u64 {
        self.lasting.as_secs() * 500 / if self.programs == 0 { 600 } else { 360 }
    }

    /// How many times a program must at least have been killed with its guardian.
    pub fn least_both(&self) -> usize {
        schedule::both_killed(self).min(1)
    }

    /// How many holders of many elections must at least have been killed.
    pub fn least_deaths(&self) -> usize {
        schedule::count(self, |fault| matches!(fault, Fault::HolderKill)).min(1)
    }

    /// How many copies must at least have been put back.
    pub fn least_rollbacks(&self) -> usize {
        schedule::count(self, |fault| matches!(fault, Fault::PutBack)).min(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Options> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        Options::parse(&args, 42)
    }

    /// The printed command gives the same run.
    #[test]
    fn the_printed_command_is_understood() {
        let line = "--store postgres --seconds 90 --seed 9 --workers 3 --programs 2 --ttl-ms 500 --held 7 --sabotage all";
        let options = parse(line).unwrap();
        let again = parse(options.command().strip_prefix("cargo xtask chaos ").unwrap()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{options:?}"));
        assert!(parse("").unwrap().command().ends_with("--store sqlite --minutes 10 --seed 42"));
    }

    #[test]
    fn a_wrong_option_is_refused_with_what_is_right() {
        for (line, part) in [
            ("--store oracle", "sqlite and postgres"),
            ("--minutes 0", "from 1 to"),
            ("--workers 1", "from 2 to 50"),
            ("--seed x", "whole number"),
            ("--held many", "from 0 to"),
            ("--minutes", "needs a value"),
            ("--colour red", "no option `--colour`"),
            ("--sabotage much", "trust, fence, both"),
            ("--programs 21", "from 0 to 20"),
            ("--tenure no-such-file-here", "no such file"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(part), "{line}: {said}");
        }
    }

    /// The bar, in proportion.
    #[test]
    fn five_hundred_faults_are_asked_of_six_minutes() {
        assert_eq!(parse("--minutes 6").unwrap().least_faults(), 500);
        assert_eq!(parse("--minutes 10 --programs 0").unwrap().least_faults(), 500);
        assert_eq!(parse("--seconds 30 --programs 0").unwrap().least_faults(), 25);
    }
}
