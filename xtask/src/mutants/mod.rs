//! `cargo xtask mutants`: breaks one thing after the other, and sees whether a test
//! notices. Rust by cargo-mutants, SQL by a mutator of our own. It takes hours, so it
//! is no part of CI; it can be stopped at any time and resumed.
//!
//! The working tree is never touched: SQL is broken in a copy of it, under
//! `target/mutants/tree`.

mod ledger;
mod scratch;
mod sql;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::{Fate, Ledger};
use scratch::Scratch;

use crate::failure::{Doing, Failure, Outcome};
use crate::metadata;
use crate::servers::{self, Servers};
use crate::steps::{cargo, has_cargo_command, root};

const USAGE: &str = "\
cargo xtask mutants [--package X …] [--sql | --rust] [--resume] [--only TEXT] [--list]

  --package X   only this crate; default: every crate that has mutants
  --sql         only the statements of the SQL stores
  --rust        only the Rust code, by cargo-mutants
  --resume      go on with the run before, instead of beginning anew
  --only TEXT   only SQL mutants whose name contains TEXT, as beat.sql
  --list        print the SQL mutants and run none

What became of each is kept in target/mutants.
";

/// The crates with statements, each with the folder they are in.
const STATEMENTS: [(&str, &str); 2] = [
    ("tenure-postgres", "crates/tenure-postgres/src/sql"),
    ("tenure-sqlite", "crates/tenure-sqlite/src/sql"),
];

/// The crates that cargo-mutants is run over.
const CRATES: [&str; 7] = [
    "tenure-core",
    "tenure-store",
    "tenure-sqlite",
    "tenure-postgres",
    "tenure",
    "tenure-guard",
    "tenure-cli",
];

/// What to do for those who want the other half too.
const INSTALL: &str = "cargo-mutants is not installed, so the Rust code was left alone; to \
                       install it:\n    cargo install --locked cargo-mutants";

/// How long the tests of one mutant may take: a lock that is not let go of hangs them.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    packages: Vec<String>,
    sql: bool,
    rust: bool,
    resume: bool,
    list: bool,
    only: Option<String>,
}

pub(crate) fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let options = parse(args)?;
    let mut wanted = Vec::new();
    if options.sql {
        for (package, folder) in STATEMENTS {
            if options.packages.is_empty() || options.packages.iter().any(|p| p == package) {
                wanted.extend(statements(package, folder, options.only.as_deref())?);
            }
        }
    }
    if options.list {
        wanted.iter().for_each(|mutant| println!("{}", mutant.name));
        println!("{} mutants", wanted.len());
        return Ok(());
    }
    let kept = root().join("target/mutants");
    fs::create_dir_all(&kept).doing(|| format!("make {}", kept.display()))?;
    let chosen = chosen(&options, &wanted);
    let tested: Vec<_> =
        metadata::packages()?.into_iter().filter(|p| chosen.contains(&&*p.name)).collect();
    let servers = servers::start(&servers::needed(&tested))?;
    if options.sql {
        run_sql(&kept, &wanted, &options, &servers)?;
    }
    if options.rust {
        run_rust(&kept, &options, &servers)?;
    }
    Ok(())
}

/// The crates whose tests will be run.
fn chosen<'a>(options: &'a Options, wanted: &'a [Statement]) -> Vec<&'a str> {
    if !options.rust {
        return wanted.iter().map(|mutant| mutant.package).collect();
    }
    match &options.packages[..] {
        [] => CRATES.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    }
}

fn parse(args: &[String]) -> Outcome<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    let missing = |what: &str| Failure::new(format!("{what} is missing its value\n\n{USAGE}"));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--package" | "-p" => {
                options.packages.push(args.next().ok_or_else(|| missing(arg))?.clone());
            }
            "--only" => options.only = Some(args.next().ok_or_else(|| missing(arg))?.clone()),
            "--sql" => options.sql = true,
            "--rust" => options.rust = true,
            "--resume" => options.resume = true,
            "--list" => options.list = true,
            other => {
                return Err(Failure::new(format!("`{other}` is not understood\n\n{USAGE}")));
            }
        }
    }
    if !options.sql && !options.rust {
        (options.sql, options.rust) = (true, true);
    }
    Ok(options)
}

/// One broken statement of one crate.
struct Statement {
    package: &'static str,
    /// The file, from the root of the repository.
    file: PathBuf,
    /// The same in every run for as long as the place is as it was.
    name: String,
    text: String,
}

/// The mutants of a crate's statements.
fn statements(package: &'static str, folder: &str, only: Option<&str>) -> Outcome<Vec<Statement>> {
    let dir = root().join(folder);
    let doing = || format!("read {}", dir.display());
    let mut files: Vec<_> =
        fs::read_dir(&dir).doing(doing)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "sql")) {
        let text = fs::read_to_string(&file).doing(|| format!("read {}", file.display()))?;
        let short = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for mutant in sql::mutants(&text) {
            let line = text[..mutant.at.start].matches('\n').count() + 1;
            let column = mutant.at.start - text[..mutant.at.start].rfind('\n').map_or(0, |n| n + 1);
            let what = text[mutant.at.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
            let what: String = what.chars().take(90).collect();
            let how = mutant.what.name();
            let name = format!("{package}/{short}:{line}:{column} {how} {what}");
            let file = Path::new(folder).join(&short);
            found.push((
                mutant.what,
                Statement { package, file, name, text: sql::broken(&text, &mutant) },
            ));
        }
    }
    // What is removed tells most, so it comes first in all files.
    found.sort_by_key(|(what, _)| *what);
    let named = |s: &Statement| only.is_none_or(|only| s.name.contains(only));
    Ok(found.into_iter().map(|(_, statement)| statement).filter(named).collect())
}

fn run_sql(kept: &Path, wanted: &[Statement], options: &Options, servers: &Servers) -> Outcome {
    let mut ledger = Ledger::open(&kept.join("sql.tsv"), options.resume)?;
    let tree = Scratch::copy(&root(), &kept.join("tree"))?;
    let left: Vec<_> = wanted.iter().filter(|mutant| !ledger.knows(&mutant.name)).collect();
    println!("{} SQL mutants, of which {} are left", wanted.len(), left.len());
    // A suite that fails by itself would catch everything.
    let mut sound: Vec<&str> = Vec::new();
    for (count, mutant) in left.iter().enumerate() {
        if !sound.contains(&mutant.package) {
            let (fate, by) = tree.test(mutant.package, &servers.environment(), PATIENCE)?;
            if fate != Fate::Survived {
                return Err(Failure::new(format!(
                    "the tests of {} fail with nothing broken ({by}): mend that first",
                    mutant.package
                )));
            }
            sound.push(mutant.package);
        }
        let file = tree.path(&mutant.file);
        let whole = fs::read_to_string(&file).doing(|| format!("read {}", file.display()))?;
        fs::write(&file, &mutant.text).doing(|| format!("write {}", file.display()))?;
        let tested = tree.test(mutant.package, &servers.environment(), PATIENCE);
        fs::write(&file, whole).doing(|| format!("write {}", file.display()))?;
        let (fate, by) = tested?;
        ledger.note(&mutant.name, fate, &by)?;
        println!("{:>4}/{} {:<8} {}  {by}", count + 1, left.len(), fate.name(), mutant.name);
    }
    println!("\n{}", ledger.summary());
    Ok(())
}

/// The Rust half, by a program of its own.
fn run_rust(kept: &Path, options: &Options, servers: &Servers) -> Outcome {
    if !has_cargo_command("mutants") {
        println!("{INSTALL}");
        return Ok(());
    }
    for package in chosen(options, &[]) {
        let out = kept.join(format!("rust-{package}"));
        fs::create_dir_all(&out).doing(|| format!("make {}", out.display()))?;
        let mut line = cargo(&["mutants", "--package", package, "--all-features", "--no-shuffle"]);
        line.args(["--exclude", "**/fuzzing.rs", "--output"]).arg(&out);
        if options.resume {
            line.arg("--iterate");
        }
        if has_cargo_command("nextest") {
            line.arg("--test-tool=nextest");
        }
        // Survivors make it fail: they are the result, not a failure of this command.
        let status = line.envs(servers.environment()).status();
        let status = status.doing(|| "run cargo-mutants".into())?;
        println!("{package}: cargo-mutants ended with {status}; see {}", out.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn without_a_half_named_both_are_run() {
        let options = parse(&words("--resume -p tenure-sqlite")).unwrap();
        assert!(options.sql && options.rust && options.resume);
        assert_eq!(options.packages, ["tenure-sqlite"]);
        assert!(!parse(&words("--sql")).unwrap().rust);
        assert!(parse(&words("--sqll")).is_err() && parse(&words("--only")).is_err());
    }

    /// The statements of both stores have mutants, each under a name of its own.
    #[test]
    fn the_statements_of_this_repository_can_be_broken() {
        for (package, folder) in STATEMENTS {
            let found = statements(package, folder, None).unwrap();
            assert!(found.len() > 20, "{package} has {}", found.len());
            let mut names: Vec<_> = found.iter().map(|mutant| &mutant.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), found.len(), "{package}");
        }
        let beat = statements("tenure-postgres", STATEMENTS[0].1, Some("beat.sql")).unwrap();
        let removed = beat.iter().filter(|m| m.name.contains(" remove ")).count();
        assert_eq!(removed, 5, "handle, attention, holds, condemned, expires_at");
    }
}
