//! `tenure-model`: searches the worlds and prints a table.

// Printing is what this program is for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use tenure_model::{Config, check, full, short};

const USAGE: &str = "tenure-model [--short] [world]   searches every world, or one";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let worlds = match words.as_slice() {
        [] => full(),
        ["--short"] => short(),
        [name] => full().into_iter().filter(|world| world.name == *name).collect(),
        _ => Vec::new(),
    };
    if worlds.is_empty() {
        let names: Vec<&str> = full().iter().map(|world| world.name).collect();
        eprintln!("{USAGE}\nthe worlds are: {}", names.join(", "));
        return ExitCode::from(2);
    }
    if run(worlds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Searches the worlds; whether all is well.
fn run(worlds: Vec<Config>) -> bool {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut total = 0;
    let mut good = true;
    println!("| world | members | elections | names | steps | distinct states | depth |");
    println!("|---|---|---|---|---|---|---|");
    for world in worlds {
        let Config { name, about, members, elections, names, horizon, .. } = world;
        let verdict = check(world, threads);
        let states = verdict.states;
        let depth = verdict.depth;
        let of = format!("{members} | {elections} | {names} | {horizon}");
        println!("| {name}: {about} | {of} | {states} | {depth} |");
        for violation in &verdict.violations {
            println!("BROKEN in {name}: {violation}");
        }
        for missed in &verdict.missed {
            println!("NEVER MET in {name}: {missed}");
        }
        good &= verdict.is_good();
        total += states;
    }
    println!(
        "total: {total} distinct states; {}",
        if good { "every rule holds" } else { "FAILED" }
    );
    good
}
