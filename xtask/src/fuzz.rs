//! `cargo xtask fuzz`: looks for inputs that break a parser. First those that were
//! kept, and some thousands made from them, with the stable compiler; then, where
//! cargo-fuzz is installed, as long as one likes.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::{Doing, Failure, Outcome};
use crate::steps::{Steps, cargo, has_cargo_command, root};

const USAGE: &str = "\
cargo xtask fuzz [--seconds N] [--keep] [target …]

  --seconds N   how long each target runs (default 60)
  --keep        afterwards, add the inputs that reached something new to fuzz/corpus

First the kept inputs are run, and inputs made from them. TENURE_FUZZ_SEED says from
which seed, if not from another one each time, and TENURE_FUZZ_INPUTS how many for
each target.
";

/// Which inputs are made from those that were kept.
const SEED: &str = "TENURE_FUZZ_SEED";

/// What to do for those who want the real thing.
const INSTALL: &str = "to fuzz, install both:\n    \
    rustup toolchain install nightly --profile minimal\n    \
    cargo install cargo-fuzz --locked";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u32,
    keep: bool,
    targets: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let options = parse(args, &targets()?)?;
    let mut steps = Steps::of("fuzz");
    steps.command("kept inputs, and some made from them", &mut with_the_stable_compiler());
    if !has_fuzzer() {
        println!("\nonly kept inputs were run, and some made from them; {INSTALL}");
        return steps.finish();
    }
    steps.command("build", &mut fuzz("build", &[]));
    for target in &options.targets {
        let found = folder(&["found", target])?;
        let failed = folder(&["failed"])?.join(format!("{target}-"));
        let failed = format!("-artifact_prefix={}", failed.display());
        let time = format!("-max_total_time={}", options.seconds);
        let limits = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"];
        let mut line = fuzz("run", &[target]);
        line.arg(&found).arg(kept(target)).args(["--", &time, &failed]).args(limits);
        steps.command(target, &mut line);
        if options.keep {
            let mut line = fuzz("run", &[target]);
            line.arg(kept(target)).arg(&found).args(["--", "-merge=1", "-max_len=4096"]);
            steps.command(&format!("{target}: keep"), &mut line);
        }
    }
    steps.finish()
}

fn parse(args: &[String], known: &[String]) -> Outcome<Options> {
    let mut options = Options { seconds: 60, keep: false, targets: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--keep" => options.keep = true,
            "--seconds" => {
                let value = args.next().and_then(|value| value.parse().ok());
                let refuse = || Failure::new("`--seconds` needs a whole number of seconds");
                options.seconds = value.filter(|n| *n > 0).ok_or_else(refuse)?;
            }
            target if known.iter().any(|name| name == target) => options.targets.push(arg.clone()),
            other => {
                let known = known.join(", ");
                let why = format!("there is no fuzz target `{other}`; there are: {known}");
                return Err(Failure::new(why));
            }
        }
    }
    if options.targets.is_empty() {
        options.targets = known.to_vec();
    }
    Ok(options)
}

/// One file each.
fn targets() -> Outcome<Vec<String>> {
    let folder = root().join("fuzz").join("targets");
    let mut names = Vec::new();
    let reading = || format!("read {}", folder.display());
    for file in fs::read_dir(&folder).doing(reading)? {
        let path = file.doing(reading)?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn has_fuzzer() -> bool {
    let asked = Command::new("rustup")
        .args(["run", "nightly", "cargo", "fuzz", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// Without a sanitizer, since there is no unsafe code to watch, and without
/// optimisation: the build is what is waited for.
fn fuzz(verb: &str, args: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz", verb, "--fuzz-dir", "fuzz"]);
    command.args(["--target-dir", "target/fuzz", "--dev", "--sanitizer", "none"]).args(args);
    // Flags and toolchain of the cargo that runs us are not those of nightly.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.current_dir(root());
    command
}

/// The same properties as plain tests, `kept_inputs_of_…` and `damaged_inputs_of_…`.
fn with_the_stable_compiler() -> Command {
    let runner: &[&str] =
        if has_cargo_command("nextest") { &["nextest", "run"] } else { &["test"] };
    let mut command = cargo(runner);
    command.args(["--workspace", "--all-features", "--lib", "--bins", "_inputs_of_"]);
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, RandomState::new().hash_one(0).to_string());
    }
    command
}

fn kept(target: &str) -> PathBuf {
    root().join("fuzz").join("corpus").join(target)
}

/// A folder of this verb's own, made if it is not there.
fn folder(parts: &[&str]) -> Outcome<PathBuf> {
    let mut path = root().join("target").join("fuzz");
    path.extend(parts);
    fs::create_dir_all(&path).doing(|| format!("make the folder {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Outcome<Options> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        parse(&args, &["names".to_owned(), "urls".to_owned()])
    }

    #[test]
    fn all_targets_run_unless_some_are_named() {
        assert_eq!(parsed("").unwrap().targets, ["names", "urls"]);
        let options = parsed("--seconds 5 urls --keep").unwrap();
        assert_eq!(options, Options { seconds: 5, keep: true, targets: vec!["urls".into()] });
        assert!(parsed("nams").unwrap_err().to_string().contains("there are: names, urls"));
        assert!(parsed("--seconds soon").is_err() && parsed("--seconds 0").is_err());
    }

    /// A target without inputs would never be replayed, one that is not in the
    /// manifest would never be run, and one that no test names only where there
    /// is a nightly compiler.
    #[test]
    fn every_target_is_built_and_has_kept_inputs() {
        let manifest = fs::read_to_string(root().join("fuzz").join("Cargo.toml")).unwrap();
        for target in targets().unwrap() {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not built");
            let inputs = fs::read_dir(kept(&target)).map(Iterator::count).unwrap_or_default();
            assert!(inputs > 0, "nothing is kept for {target}");
            for call in ["replay", "damage"] {
                let line = format!("{call}(\"{target}\", ");
                assert!(tests().iter().any(|text| text.contains(&line)), "no test has {line}");
            }
        }
    }

    /// What the crates say of fuzzing.
    fn tests() -> Vec<String> {
        let crates = fs::read_dir(root().join("crates")).unwrap();
        let files = crates.map(|entry| entry.unwrap().path().join("src").join("fuzzing.rs"));
        files.filter_map(|file| fs::read_to_string(file).ok()).collect()
    }
}
