//! `tenure demo`: an election, a crash and a hand-over among real processes,
//! each step explained.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::journal::{Happening, JournalStream, Journalled, Seq};
use tenure::{ElectionName, MemberId, Operator, Tenure, Term};

use tenure_api::span;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Tone};

/// Any step that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(15);
const ELECTION: &str = "demo";
const NAMES: [&str; 3] = ["ann", "bob", "cyd"];

pub(crate) async fn run(context: &Context) -> Outcome {
    if context.output.json {
        return Err(Failure::usage("demo is for people and has no JSON; leave --json out"));
    }
    let home = Home::new()?;
    let mut cast = Cast { out: context.output.streaming(), home: &home, actors: Vec::new() };
    let told = tokio::time::timeout(LIMIT * 4, cast.play()).await;
    drop(cast);
    match told {
        Ok(told) => told,
        Err(_) => {
            Err(Failure::new(Exit::NotInTime, "the demo took too long; is the disk very slow?"))
        }
    }
}

/// A directory of its own, removed at the end.
struct Home {
    path: PathBuf,
}

impl Home {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("tenure-demo-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| {
            Failure::system(format!("making the directory {}", path.display()), error)
        })?;
        Ok(Self { path })
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.path.join("demo.db").display())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is left lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The candidates, and what is told about them.
struct Cast<'a> {
    out: Output,
    home: &'a Home,
    actors: Vec<(&'static str, Child)>,
}

/// However the demonstration ends, none of its processes is left.
impl Drop for Cast<'_> {
    fn drop(&mut self) {
        for (_, child) in &mut self.actors {
            // A guardian notices the end of its `tenure` and ends the command.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Cast<'_> {
    async fn play(&mut self) -> Outcome {
        let store = self.home.store();
        let operator = Tenure::builder(&store).id("audience").operate().await?;
        let mut journal = operator.follow(Some(Seq::START))?;
        let election = ElectionName::new(ELECTION)?;

        self.step("three candidates stand for the election \"demo\" on one SQLite file")?;
        for name in NAMES {
            self.enter(name, &store)?;
        }
        let first = elected(&mut journal, &election, 0).await?;
        self.told(&format!(
            "{} leads with term {}; its command runs, the others wait",
            first.member.id, first.number
        ))?;
        self.all_standing(&operator).await?;

        self.step(&format!("kill -9 of {}: no goodbye, no release", first.member.id))?;
        let killed = Instant::now();
        self.kill(&first.member.id)?;
        let second = elected(&mut journal, &election, first.number.get()).await?;
        self.told(&format!(
            "{} leads with term {}, {} after the kill",
            second.member.id,
            second.number,
            span::show(killed.elapsed())
        ))?;
        self.told(
            "the kernel dropped the dead process's file lock, which proves its death: the next \
             leader did not wait for the ttl of 10s. The dead one's command was gone before \
             that: its guardian shares the lock",
        )?;

        self.step(&format!("{} is asked to step down, as before a deployment", second.member.id))?;
        let asked = Instant::now();
        operator.election(ELECTION).ask_to_step_down("the demo goes on").await?;
        let third = elected(&mut journal, &election, second.number.get()).await?;
        self.told(&format!(
            "{} leads with term {}, {} after the request",
            third.member.id,
            third.number,
            span::show(asked.elapsed())
        ))?;
        self.told("its command was told to stop, ended, and only then was the term given up")?;

        self.step("a write that still carries the first term's number is refused by the fence")?;
        let newest = operator.election(ELECTION).view().await?.number;
        self.told(&format!(
            "`tenure fence demo {}` answers no: the newest term is {newest}. Numbers only rise, \
             whatever clocks and pauses do",
            first.number
        ))?;
        self.out.line("")?;
        self.out
            .line("try it: tenure run --election NAME -- CMD, on as many terminals as you like")?;
        Ok(Exit::Ok)
    }

    fn step(&self, text: &str) -> Outcome<()> {
        self.out.line("")?;
        self.out.line(&self.out.paint(Tone::Strong, &format!("» {text}")))
    }

    fn told(&self, text: &str) -> Outcome<()> {
        self.out.line(&format!("  {text}"))
    }

    fn enter(&mut self, name: &'static str, store: &str) -> Outcome<()> {
        let child = Command::new("/proc/self/exe")
            .args(["run", "--quiet", "--store", store, "--namespace", "default"])
            .args(["--election", ELECTION, "--id", name, "--on-lost", "standby", "--"])
            .args(["sleep", "1000"])
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| Failure::system("starting a candidate", error))?;
        self.actors.push((name, child));
        self.told(&format!("{name}: tenure run --election demo --id {name} -- sleep 1000"))
    }

    fn kill(&mut self, id: &MemberId) -> Outcome<()> {
        let Some((_, child)) = self.actors.iter_mut().find(|(name, _)| *name == id.as_str()) else {
            return Err(Failure::new(Exit::System, format!("{id} is not one of the demo's own")));
        };
        child.kill().map_err(|error| Failure::system("killing the leader", error))
    }

    /// Every process must be a candidate before the leader dies.
    async fn all_standing(&self, operator: &Operator) -> Outcome<()> {
        let began = Instant::now();
        while operator.election(ELECTION).view().await?.candidates.len() < NAMES.len() {
            if began.elapsed() > LIMIT {
                return Err(Failure::new(Exit::NotInTime, "not all candidates stood in time"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// The next term with a higher number.
async fn elected(
    journal: &mut JournalStream,
    election: &ElectionName,
    above: u64,
) -> Outcome<Term> {
    let wait = async {
        while let Some(news) = journal.next().await {
            let Journalled::Entries(entries) = news else { continue };
            for entry in entries {
                if let Happening::Elected { term, .. } = entry.what
                    && term.election == *election
                    && term.number.get() > above
                {
                    return Ok(term);
                }
            }
        }
        Err(Failure::new(Exit::System, "the demo's store was shut down"))
    };
    tokio::time::timeout(LIMIT, wait)
        .await
        .unwrap_or_else(|_| Err(Failure::new(Exit::NotInTime, "no member was elected in time")))
}
