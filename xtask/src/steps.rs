//! Running other programs one after the other, with a summary that ends in one
//! clear line.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};

/// The root of the repository: cargo says where xtask's own manifest is.
pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// The cargo that started us, run at the root of the repository.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Whether `cargo <name>` is there.
pub(crate) fn has_cargo_command(name: &str) -> bool {
    cargo(&[name, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The steps of one verb: all are taken, also after one failed, and the summary
/// says which did.
pub(crate) struct Steps {
    verb: &'static str,
    started: Instant,
    taken: Vec<Taken>,
}

struct Taken {
    name: String,
    took: Duration,
    result: Result<(), String>,
}

impl Steps {
    pub(crate) fn of(verb: &'static str) -> Self {
        Self { verb, started: Instant::now(), taken: Vec::new() }
    }

    /// Runs a program, with its output shown as it comes.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) {
        self.step(name, || {
            println!("    {}", shown(command));
            match command.status() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(Failure::new(status.to_string())),
                Err(error) => Err(Failure::new(format!(
                    "{} could not be started: {error}; is it installed?",
                    command.get_program().display()
                ))),
            }
        });
    }

    /// Does something of our own.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("\n--- {name}");
        let from = Instant::now();
        let result = work().map_err(|failure| failure.to_string());
        if let Err(why) = &result {
            println!("{why}");
        }
        self.taken.push(Taken { name: name.to_owned(), took: from.elapsed(), result });
    }

    /// Prints the summary; fails if any step did.
    pub(crate) fn finish(self) -> Outcome {
        println!("\n--- summary of cargo xtask {}", self.verb);
        for step in &self.taken {
            let mark = if step.result.is_ok() { "ok    " } else { "FAILED" };
            println!("{mark} {:>7.1} s  {}", step.took.as_secs_f64(), step.name);
        }
        let failed: Vec<&str> = (self.taken.iter().filter(|step| step.result.is_err()))
            .map(|step| step.name.as_str())
            .collect();
        let total = self.started.elapsed().as_secs_f64();
        if failed.is_empty() {
            println!("{}: passed in {total:.1} s", self.verb);
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}: FAILED in {total:.1} s: {}; what went wrong is shown above",
            self.verb,
            failed.join(", ")
        )))
    }
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    let mut line = name.into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One failed step fails the verb, is named, and does not keep the later
    /// steps from being taken.
    #[test]
    fn a_failed_step_is_named_and_the_rest_are_still_taken() {
        let mut steps = Steps::of("sample");
        let mut later = false;
        steps.command("breaks", &mut Command::new("false"));
        steps.step("goes on", || {
            later = true;
            Ok(())
        });
        let failure = steps.finish().expect_err("one step failed").to_string();
        assert!(later);
        assert!(failure.contains("FAILED") && failure.contains("breaks"), "{failure}");
        assert!(!failure.contains("goes on"), "{failure}");
    }

    /// A program that is not there is a failed step with an explanation.
    #[test]
    fn a_missing_program_is_a_failure_not_a_panic() {
        let mut steps = Steps::of("sample");
        steps.command("absent", &mut Command::new("tenure-no-such-program"));
        let why = steps.taken[0].result.clone().expect_err("it is not there");
        assert!(why.contains("tenure-no-such-program could not be started"), "{why}");
    }

    /// Without a failure the verb passes.
    #[test]
    fn steps_that_all_succeed_pass() {
        let mut steps = Steps::of("sample");
        steps.command("works", &mut Command::new("true"));
        assert!(steps.finish().is_ok());
    }
}
