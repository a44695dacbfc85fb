//! `cargo xtask chaos`: one run, and its report on the screen.

// This is the program: it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;

use tenure_chaos::{
    CommandOrders, Failure, HolderOrders, Options, Orders, Outcome, USAGE, become_program, hold,
    keep, run, run_command, work,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        // How this program starts its own processes; not for people.
        Some((role, rest)) if role == "worker" => Orders::parse(rest).and_then(|o| work(&o)),
        Some((role, rest)) if role == "holder" => HolderOrders::parse(rest).and_then(|o| hold(&o)),
        Some((role, rest)) if role == "keeper" => keeper(rest),
        Some((role, rest)) if role == "program" => become_program(rest),
        Some((role, rest)) if role == "command" => {
            CommandOrders::parse(rest).and_then(|o| run_command(&o))
        }
        Some((help, _)) if help == "--help" || help == "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        _ => chaos(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("chaos: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn keeper(args: &[String]) -> Outcome {
    match args {
        [log] => keep(Path::new(log)),
        _ => Err(Failure::new("a keeper is started by the program itself; leave it to that")),
    }
}

fn chaos(args: &[String]) -> Outcome {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let options = Options::parse(args, seconds)
        .map_err(|failure| Failure::new(format!("{failure}\n\n{USAGE}")))?;
    println!("{}", options.command());
    let report = run(&options)?;
    print!("{}", report.text());
    println!("{:<18}{}", "timeline", report.folder.join("timeline.svg").display());
    if report.problems().is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("FAILED; run it again with\n  {}", options.command())))
}
