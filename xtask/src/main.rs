//! The repository's own commands: `cargo xtask <verb>`.

// Printing is what these commands are for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod bench;
mod chaos;
mod failure;
mod fix;
mod fuzz;
mod metadata;
mod model;
mod mutants;
mod platforms;
mod screenshots;
mod servers;
mod sim;
mod spec;
mod steps;
mod test;
mod tidy;
mod times;
mod verify;

use std::process::ExitCode;

use failure::{Failure, Outcome};

const USAGE: &str = "\
cargo xtask <verb>

  test [args]     run every test; args go to the test runner, a plain word is a filter
  verify          formatting, lints, documentation and tidiness; changes nothing
  fix             format, and apply what clippy can fix by itself
  tidy            only the repository's own rules
  api             write docs/api.txt, the list of the public API of tenure
  bench [name]    run the benchmarks, or one of them
  sim [options]   run seeds of the simulator; --help lists the options
  model [world]   search small worlds of the machine to their end; --short: few
  spec            check the TLA+ specification with TLC, and that it can fail
  fuzz [target]   look for inputs that break a parser; --seconds N, --keep
  mutants [--sql] break conditions and locks one by one, and see a test notice; hours
  chaos [options] hurt real processes and their store; --help lists the options
  platforms       check the library for macOS and Windows, which nothing is run on
  screenshots     make the pictures of the dashboard in docs/images
  serve [name]    start the servers that tests use, print how to reach them, and
                  stop them at Ctrl-C
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Outcome {
    let Some((verb, rest)) = args.split_first() else {
        print!("{USAGE}");
        return Ok(());
    };
    match verb.as_str() {
        "test" => test::run(rest),
        "verify" => no_arguments(verb, rest).and_then(|()| verify::run()),
        "fix" => no_arguments(verb, rest).and_then(|()| fix::run()),
        "tidy" => no_arguments(verb, rest).and_then(|()| tidy::check()),
        "api" => no_arguments(verb, rest).and_then(|()| api::write(&steps::root())),
        "bench" => bench::run(rest),
        "platforms" => no_arguments(verb, rest).and_then(|()| platforms::run()),
        "screenshots" => no_arguments(verb, rest).and_then(|()| screenshots::run()),
        "serve" => servers::serve(rest),
        "sim" => sim::run(rest),
        "fuzz" => fuzz::run(rest),
        "chaos" => chaos::run(rest),
        "model" => model::run(rest),
        "mutants" => mutants::run(rest),
        "spec" => spec::run(rest),
        // How this program starts the process that keeps a server; not for people.
        servers::GUARD => servers::guard(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        unknown => Err(Failure::new(format!("there is no verb `{unknown}`\n\n{USAGE}"))),
    }
}

fn no_arguments(verb: &str, rest: &[String]) -> Outcome {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::new(format!(
            "`{verb}` takes no arguments, but got `{extra}`; leave it out"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    /// Each `cargo xtask` line on a page names a verb that there is.
    #[test]
    fn every_verb_that_a_page_names_is_one() {
        let mut pages =
            vec![steps::root().join("README.md"), steps::root().join("CONTRIBUTING.md")];
        for folder in ["docs", "docs/backends", "docs/decisions", "docs/spec"] {
            let found = std::fs::read_dir(steps::root().join(folder)).expect("a folder of pages");
            pages.extend(found.map(|entry| entry.expect("an entry").path()));
        }
        let crates = std::fs::read_dir(steps::root().join("crates")).expect("the crates");
        pages.extend(crates.map(|entry| entry.expect("a crate").path().join("README.md")));
        let mut count = 0;
        for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
            let text = std::fs::read_to_string(page).expect("a page");
            for rest in text.split("cargo xtask ").skip(1) {
                let is_word = |c: &char| c.is_ascii_lowercase();
                let verb: String = rest.chars().take_while(is_word).collect();
                let is_one = verb.is_empty() || USAGE.contains(&format!("\n  {verb} "));
                assert!(is_one, "{}: `cargo xtask {verb}`", page.display());
                count += 1;
            }
        }
        assert!(count > 50, "only {count} were found");
    }

    /// A mistyped verb is refused with the list of verbs, not ignored.
    #[test]
    fn an_unknown_verb_is_refused_with_the_list() {
        let failure = dispatch(&words("tets")).expect_err("must be refused").to_string();
        assert!(failure.contains("no verb `tets`"), "{failure}");
        assert!(failure.contains("test [args]"), "{failure}");
    }

    /// An argument that would be ignored is refused.
    #[test]
    fn a_verb_without_arguments_refuses_them() {
        let failure = dispatch(&words("verify tenure-core")).expect_err("must be refused");
        assert!(failure.to_string().contains("takes no arguments, but got `tenure-core`"));
    }
}
