//! `cargo xtask sim`: runs seeds, says what failed and how to see it again.

// This is the program: it prints, and it measures how long it took.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

use std::process::ExitCode;
use std::time::Instant;

use tenure_sim::{Failure, Mutation, Report, SECOND, Scenario, Suite, run, shrink};

const USAGE: &str = "\
cargo xtask sim [options]

  --seeds N        run N seeds (default 1000)
  --from S         begin with seed S (default 0)
  --seed S         run one seed, and show what happened if it fails
  --scenario X     one kind of world: swarm, calm, clocks, network, processes,
                   operators, beyond, cas, turns, replica, jump, names
                   (default: by the seed)
  --mutation M     break a rule on purpose
  --mutations      break every rule in turn, and say which seed caught it
  --trace N        how many of the last lines to show (default 60)
";

#[derive(Debug)]
struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    scenario: Option<Scenario>,
    mutation: Option<Mutation>,
    mutations: bool,
    trace: usize,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let fine = match parse(&args) {
        Err(problem) => {
            eprintln!("sim: {problem}\n\n{USAGE}");
            false
        }
        Ok(options) if options.mutations => break_everything(&options),
        Ok(options) => run_seeds(&options),
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seeds: 1_000,
        from: 0,
        seed: None,
        scenario: None,
        mutation: None,
        mutations: false,
        trace: 60,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--mutations" {
            options.mutations = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("`{arg}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|e| format!("`{arg} {value}`: {e}"));
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seed" => options.seed = Some(number()?),
            "--scenario" => options.scenario = Some(value.parse()?),
            "--mutation" => options.mutation = Some(value.parse()?),
            "--trace" => options.trace = usize::try_from(number()?).unwrap_or(usize::MAX),
            _ => return Err(format!("there is no option `{arg}`")),
        }
    }
    Ok(options)
}

fn suite(options: &Options) -> Suite {
    let (from, count) = options.seed.map_or((options.from, options.seeds), |seed| (seed, 1));
    let seeds = from..from.saturating_add(count);
    let scenario = options.scenario;
    let mutation = options.mutation;
    Suite { seeds, scenario, mutation, ..Suite::of(count) }
}

fn run_seeds(options: &Options) -> bool {
    let begun = Instant::now();
    let report = suite(options).run();
    for failure in &report.failures {
        show(options, failure);
    }
    figures(&report, options.mutation.is_none(), begun);
    let unreached = report.coverage.unreached();
    if options.seed.is_none() && options.scenario.is_none() && !unreached.is_empty() {
        println!("never reached in these seeds: {}", unreached.join(", "));
    }
    report.failures.is_empty()
}

fn show(options: &Options, failure: &Failure) {
    println!("\nseed {}: {}", failure.config.seed, failure.violation);
    println!("  replay: {}", failure.replay());
    if options.seed.is_none() {
        return;
    }
    let small = shrink(&failure.config, options.mutation);
    println!("\nthe smallest world that fails in the same way:\n{small:#?}\n");
    let outcome = run(&small, options.mutation, true);
    for line in outcome.trace.iter().flat_map(|trace| trace.tail(options.trace)) {
        println!("{line}");
    }
    if let Some(violation) = outcome.violation {
        println!("{violation}\n");
    }
}

#[allow(clippy::cast_precision_loss)]
fn figures(report: &Report, twice: bool, begun: Instant) {
    let took = begun.elapsed().as_secs_f64();
    let simulated = report.simulated as f64 / SECOND as f64;
    // Every seed runs twice: that is time in worlds, too.
    let (runs, each) = if twice { (2.0, ", each run twice") } else { (1.0, "") };
    let rate = runs * simulated / took.max(1e-9);
    println!(
        "{} seeds{each}, {} failed, in {took:.1} s; {simulated:.0} simulated seconds in \
         {} steps: {rate:.0} times real time",
        report.seeds,
        report.failures.len(),
        report.steps,
    );
}

fn break_everything(options: &Options) -> bool {
    let mut all_caught = true;
    for mutation in Mutation::ALL {
        let suite = Suite { mutation: Some(*mutation), patience: 1, ..suite(options) };
        match suite.run().failures.first() {
            Some(failure) => println!(
                "{mutation}: caught by seed {} ({}): {}\n  replay: {}",
                failure.config.seed,
                failure.config.scenario,
                failure.violation,
                failure.replay()
            ),
            None => {
                all_caught = false;
                println!("{mutation}: NOT CAUGHT by {} seeds", options.seeds);
            }
        }
    }
    all_caught
}
