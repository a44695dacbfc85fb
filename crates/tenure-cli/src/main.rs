#![doc = include_str!("../README.md")]

mod args;
mod config;
mod context;
mod exit;
mod failure;
#[cfg(test)]
mod fuzzing;
mod output;
mod redact;
mod run;
mod show;
mod top;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use context::Context;
use exit::Exit;
use failure::{Failure, Outcome};

fn main() -> ExitCode {
    // How `tenure run` starts its auxiliary processes; not for people, and not a matter
    // of the command line's rules.
    if let Some(end) = tenure_guard::auxiliary(std::env::args_os().skip(1)) {
        return run::auxiliary_exit(end).into();
    }
    if let Some(variable) = args::unreadable() {
        output::say(&format!("{variable} is set to bytes that are no UTF-8; set it anew"));
        return Exit::Usage.into();
    }
    // Mistakes in the command line are clap's to explain; it ends with 2.
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_silent() {
                output::say(&failure.to_string());
            }
            failure.exit().into()
        }
    }
}

fn dispatch(cli: Cli) -> Outcome {
    match cli.command {
        Command::Completions { shell } => return verbs::reference::completions(shell),
        Command::Man => return verbs::reference::man(),
        Command::Codes => return verbs::reference::codes(),
        Command::Timing(args) => return verbs::timing::run(&Context::new(&cli.global)?, &args),
        Command::Schema(args) => return verbs::schema::run(&Context::new(&cli.global)?, &args),
        _ => {}
    }
    let context = Context::new(&cli.global)?;
    if cli.command.writes() {
        context.make_home()?;
    }
    enough_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("starting a runtime", error))?;
    let outcome = runtime.block_on(verbs::carry_out(&context, cli.command));
    // A store that hangs must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}

/// Says that no more files may be opened before anything else fails for it: most
/// of what does would tell of something else, and the runtime panics.
fn enough_files() -> Outcome<()> {
    /// What a verb has open at most, and a few more.
    const NEEDED: usize = 32;
    let open = |_| std::fs::File::open("/dev/null");
    match (0..NEEDED).map(open).collect::<Result<Vec<_>, _>>() {
        Err(error) if matches!(error.raw_os_error(), Some(TOO_MANY_HERE | TOO_MANY)) => {
            let what = "this process may open too few files: too many open files";
            let remedy = "raise the limit (ulimit -n, LimitNOFILE=, fs.file-max)";
            Err(Failure::new(Exit::System, format!("{what}; {remedy}")))
        }
        _ => Ok(()),
    }
}

/// `EMFILE` and `ENFILE`.
const TOO_MANY_HERE: i32 = rustix::io::Errno::MFILE.raw_os_error();
const TOO_MANY: i32 = rustix::io::Errno::NFILE.raw_os_error();
