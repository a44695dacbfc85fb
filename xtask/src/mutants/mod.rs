//! `cargo xtask mutants`: breaks one thing after the other, and sees whether a test
//! notices. Rust by cargo-mutants, SQL by a mutator of our own. It takes hours, so it
//! is no part of CI; it can be stopped at any time, and a later run does what is left.
//!
//! The working tree is never touched, but for the verdicts in `docs/mutants`: SQL is
//! broken in test programs built from a copy of it, under `target/mutants`.

mod ledger;
mod places;
mod programs;
mod reach;
mod record;
mod runner;
mod rust;
mod scout;
mod scratch;
mod sql;
mod sweep;
mod switched;
mod switches;
mod tokens;
mod values;
mod worker;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use self::ledger::{Entry, Fate, Ledger};
use crate::failure::{Doing, Failure, Outcome};
use crate::metadata::{self, Package};
use crate::steps::root;
use crate::{servers, tidy};

const USAGE: &str = "\
cargo xtask mutants [--package X …] [--sql | --rust] [options]

  --package X   only this crate; default: every crate that has mutants
  --sql         only the statements of the SQL stores
  --rust        only the Rust code, by cargo-mutants
  --switched    only the Rust code of the crates named, each built once with a switch for
                each mutant; --with X lets the tests of crate X judge, too
  --again       forget the verdicts of earlier runs on what is chosen
  --survived    run again what survived before: tests were written since
  --by TEXT     try only tests whose name contains TEXT, as amend:: or specific_fence; what
                they do not notice stays what it was; may be repeated
  --only TEXT   only mutants whose name contains TEXT, as beat.sql or settings.rs; may be
                repeated
  --first       only the first look: the tests that catch most, not yet the whole suite
  --scout       less than that: only the random histories, where the crate has them, and
                what else looks at functions where they are; with --by only some of them
  --open        look again at what is open, with --scout too
  --histories N how many random histories each mutant has to pass; default 40, or 400 if
                all tests are run
  --equivalent WHY  run nothing: what is chosen by --only, and was not caught, changes
                nothing that could be noticed, for this reason
  --jobs N      how many SQL mutants are run at a time; default 2
  --list        print the SQL mutants and run none
  --count       print what is known of the SQL mutants of each file, and run none

The verdicts on SQL are kept in docs/mutants, those on Rust in target/mutants. A mutant
is run again when the function that it breaks has changed.
";

/// A crate with statements, and the folder they are in.
struct Stated {
    package: String,
    folder: PathBuf,
}

/// The crates that have statements.
fn stated(packages: &[Package]) -> Vec<Stated> {
    let stated = packages.iter().map(|package| Stated {
        package: package.name.clone(),
        folder: package.dir.join("src/sql"),
    });
    stated.filter(|stated| root().join(&stated.folder).is_dir()).collect()
}

/// What cargo-mutants is run over beside the libraries.
const PROGRAMS: [&str; 2] = ["tenure-guard", "tenure-cli"];

/// The crates that cargo-mutants is run over.
fn crates(packages: &[Package]) -> Vec<&str> {
    let libraries = tidy::libraries(packages).map(|package| package.name.as_str());
    libraries.chain(PROGRAMS).collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    packages: Vec<String>,
    sql: bool,
    rust: bool,
    switched: bool,
    with: Vec<String>,
    again: bool,
    survived: bool,
    first: bool,
    scout: bool,
    open: bool,
    list: bool,
    count: bool,
    jobs: usize,
    histories: Option<u32>,
    equivalent: Option<String>,
    only: Vec<String>,
    by: Vec<String>,
}

impl Options {
    fn has(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|named| named == package)
    }

    fn names(&self, mutant: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| mutant.contains(text.as_str()))
    }
}

pub(crate) fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let options = parse(args)?;
    let kept = root().join("target/mutants");
    fs::create_dir_all(&kept).doing(|| format!("make {}", kept.display()))?;
    let packages = metadata::packages()?;
    let chosen = |stated: &Stated| options.sql && options.has(&stated.package);
    for stated in stated(&packages).into_iter().filter(chosen) {
        let all = Statements::read(&stated.folder)?;
        if options.list {
            let chosen: Vec<_> = all.mutants.iter().filter(|m| options.names(&m.name)).collect();
            chosen.iter().for_each(|mutant| println!("{} {}", stated.package, mutant.name));
            println!("{} mutants", chosen.len());
            continue;
        }
        if options.count {
            let known = Ledger::open(&ledger_of(&stated.package));
            println!("{}:\n{}", stated.package, counted(&all.mutants, &known));
            continue;
        }
        if let Some(why) = &options.equivalent {
            println!(
                "{}: {} equivalent",
                stated.package,
                say(&stated.package, &all, &options, why)?
            );
            continue;
        }
        sweep::run(&kept, &stated.package, &all, &options)?;
    }
    if options.switched {
        for package in &options.packages {
            let names: Vec<_> = options.with.iter().chain([package]).map(String::as_str).collect();
            switched::run(&kept, package, &options, &started(&names)?)?;
        }
    }
    if options.rust && !options.list && !options.count {
        let mut chosen = crates(&packages);
        chosen.retain(|name| options.has(name));
        rust::run(&kept, &chosen, &options, &started(&chosen)?)?;
    }
    Ok(())
}

/// Enters why what is chosen is equivalent, and says how many those are.
fn say(package: &str, all: &Statements, options: &Options, why: &str) -> Outcome<usize> {
    if options.only.is_empty() {
        return Err(Failure::new("--equivalent needs --only: each mutant has a reason of its own"));
    }
    let mut ledger = Ledger::open(&ledger_of(package));
    let mut said = 0;
    for mutant in all.mutants.iter().filter(|mutant| options.names(&mutant.name)) {
        let known = ledger.entry(&mutant.name).filter(|entry| entry.digest == mutant.digest);
        if known.is_some_and(|entry| matches!(entry.fate, Fate::Open | Fate::Survived)) {
            let digest = mutant.digest.clone();
            let entry = Entry { fate: Fate::Equivalent, digest, by: why.to_owned() };
            ledger.note(&mutant.name, entry)?;
            println!("  {}", mutant.name);
            said += 1;
        }
    }
    Ok(said)
}

/// Where the verdicts on a crate's statements are.
fn ledger_of(package: &str) -> PathBuf {
    root().join(format!("docs/mutants/{package}.tsv"))
}

/// What is known of the mutants of each file, as a table.
fn counted(mutants: &[Statement], known: &Ledger) -> String {
    let mut rows: BTreeMap<&str, [usize; 7]> = BTreeMap::new();
    for mutant in mutants {
        let file = mutant.name.split(' ').next().unwrap_or_default();
        let entry = known.entry(&mutant.name).filter(|entry| entry.digest == mutant.digest);
        let place = entry.map_or(6, |entry| entry.fate as usize);
        for row in [file, "all"] {
            rows.entry(row).or_default()[place] += 1;
        }
    }
    let all = rows.remove("all").unwrap_or_default();
    let mut text = String::from(
        "| file | caught | hung | unviable | open | survived | equivalent | not run |\n",
    );
    text += "|---|---|---|---|---|---|---|---|\n";
    for (file, row) in rows.into_iter().chain([("all", all)]) {
        let row: Vec<_> = row.iter().map(usize::to_string).collect();
        text += &format!("| {file} | {} |\n", row.join(" | "));
    }
    text
}

/// The servers that the tests of these crates need.
fn started(names: &[&str]) -> Outcome<servers::Servers> {
    let packages = metadata::packages()?.into_iter();
    let tested: Vec<_> = packages.filter(|package| names.contains(&&*package.name)).collect();
    servers::start(&servers::needed(&tested))
}

fn parse(args: &[String]) -> Outcome<Options> {
    let mut options = Options { jobs: 2, ..Options::default() };
    let mut args = args.iter();
    let missing = |what: &str| Failure::new(format!("{what} is missing its value\n\n{USAGE}"));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--package" | "-p" => {
                options.packages.push(args.next().ok_or_else(|| missing(arg))?.clone());
            }
            "--by" => options.by.push(args.next().ok_or_else(|| missing(arg))?.clone()),
            "--with" => options.with.push(args.next().ok_or_else(|| missing(arg))?.clone()),
            "--only" => options.only.push(args.next().ok_or_else(|| missing(arg))?.clone()),
            "--jobs" => {
                let jobs = args.next().and_then(|jobs| jobs.parse().ok()).filter(|n| *n > 0);
                options.jobs = jobs.ok_or_else(|| missing(arg))?;
            }
            "--histories" => {
                let count = args.next().and_then(|count| count.parse().ok());
                options.histories = Some(count.ok_or_else(|| missing(arg))?);
            }
            "--equivalent" => {
                options.equivalent = Some(args.next().ok_or_else(|| missing(arg))?.clone());
            }
            "--open" => options.open = true,
            "--sql" => options.sql = true,
            "--rust" => options.rust = true,
            "--switched" => options.switched = true,
            "--again" => options.again = true,
            "--survived" => options.survived = true,
            "--first" => options.first = true,
            "--scout" => options.scout = true,
            "--list" => options.list = true,
            "--count" => options.count = true,
            other => {
                return Err(Failure::new(format!("`{other}` is not understood\n\n{USAGE}")));
            }
        }
    }
    if !options.sql && !options.rust && !options.switched {
        options.sql = true;
        options.rust = true;
    }
    Ok(options)
}

/// One broken statement of one crate.
struct Statement {
    /// The file, from the root of the repository.
    file: PathBuf,
    /// The same in every run for as long as what it breaks is there.
    name: String,
    /// Of the function that it is in.
    digest: String,
    /// The function, if the server counts its calls.
    counted: Option<String>,
    /// The file's text as it is.
    whole: String,
    /// And broken.
    text: String,
    /// The function's name and its broken body, if it is in one.
    body: Option<(String, String)>,
    what: sql::What,
}

/// The statements of a crate.
struct Statements {
    folder: PathBuf,
    /// The text of each file.
    texts: BTreeMap<PathBuf, String>,
    mutants: Vec<Statement>,
}

impl Statements {
    fn read(folder: &Path) -> Outcome<Self> {
        let dir = root().join(folder);
        let doing = || format!("read {}", dir.display());
        let mut all =
            Self { folder: folder.to_owned(), texts: BTreeMap::new(), mutants: Vec::new() };
        for path in fs::read_dir(&dir).doing(doing)?.flatten().map(|entry| entry.path()) {
            let Some(name) = path.file_name().filter(|_| path.extension() == Some("sql".as_ref()))
            else {
                continue;
            };
            let text = fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
            all.texts.insert(folder.join(name), text);
        }
        for (file, text) in &all.texts {
            all.mutants.extend(broken(file, text));
        }
        // What is removed tells most, so it comes first in all files.
        all.mutants.sort_by_key(|mutant| mutant.what);
        Ok(all)
    }
}

/// The mutants of one file.
fn broken(file: &Path, whole: &str) -> Vec<Statement> {
    let short = file.file_name().unwrap_or_default().to_string_lossy();
    let parts = places::parts(whole);
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for mutant in sql::mutants(whole) {
        let part = places::part_at(&parts, mutant.at.start);
        let function = part.map_or("", |part| &part.name);
        let what: Vec<_> = whole[mutant.at.clone()].split_whitespace().collect();
        let mut name = format!("{short} {function}: {} {}", mutant.what.name(), what.join(" "));
        // The same text may stand in a function more than once.
        let times = named.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name += &format!(" #{times}");
        }
        let body = part.and_then(|part| part.body(whole).map(|at| (part, at)));
        let body = body.filter(|(_, at)| at.contains(&mutant.at.start)).map(|(part, at)| {
            let [before, after] = [at.start..mutant.at.start, mutant.at.end..at.end];
            let body = format!("{}{}{}", &whole[before], mutant.instead, &whole[after]);
            (part.name.clone(), body)
        });
        found.push(Statement {
            body,
            file: file.to_owned(),
            name,
            digest: part.map(|part| part.digest.clone()).unwrap_or_default(),
            counted: part.filter(|part| part.counted).map(|part| part.name.clone()),
            whole: whole.to_owned(),
            text: sql::broken(whole, &mutant),
            what: mutant.what,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn without_a_half_named_both_are_run() {
        let options = parse(&words("--again -p tenure-sqlite --jobs 3")).unwrap();
        assert!(options.sql && options.rust && options.again && options.jobs == 3);
        assert!(options.has("tenure-sqlite") && !options.has("tenure-core"));
        assert!(!parse(&words("--sql")).unwrap().rust);
        for wrong in ["--sqll", "--only", "--jobs", "--jobs 0"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    /// The statements of both stores have mutants, each under a name of its own that no
    /// edit elsewhere changes.
    #[test]
    fn the_statements_of_this_repository_can_be_broken() {
        let packages = metadata::packages().unwrap();
        let read = |package: &str| {
            let known = stated(&packages).into_iter().find(|stated| stated.package == package);
            Statements::read(&known.unwrap().folder).unwrap()
        };
        for package in ["tenure-postgres", "tenure-sqlite"] {
            let all = read(package);
            assert!(all.mutants.len() > 20, "{package} has {}", all.mutants.len());
            let mut names: Vec<_> = all.mutants.iter().map(|mutant| &mutant.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all.mutants.len(), "{package}");
        }
        let all = read("tenure-postgres");
        let removed = |mutant: &&Statement| mutant.name.starts_with("beat.sql : remove");
        let removed = all.mutants.iter().filter(removed).count();
        assert_eq!(removed, 5, "handle, attention, holds, condemned, expires_at");
    }

    /// A store that is added is broken too, without a change here.
    #[test]
    fn every_store_is_among_the_crates_that_are_broken() {
        let package = |name: &str| Package { name: name.into(), ..Package::default() };
        let packages = ["tenure-core", "tenure-newest", "tenure-sim", "xtask"].map(package);
        assert_eq!(
            crates(&packages),
            ["tenure-core", "tenure-newest", "tenure-guard", "tenure-cli"]
        );
    }

    #[test]
    fn what_is_not_known_of_a_file_is_counted_too() {
        let found = broken(Path::new("x/a.sql"), "CREATE FUNCTION f() IF a THEN b;");
        let known = Ledger::open(Path::new("missing.tsv"));
        let table = counted(&found, &known);
        assert!(table.contains("| a.sql | 0 | 0 | 0 | 0 | 0 | 0 | 2 |\n| all | 0 |"), "{table}");
    }

    #[test]
    fn a_text_that_stands_twice_has_two_names() {
        let found = broken(Path::new("x/a.sql"), "CREATE FUNCTION f() IF a THEN b; IF a THEN c;");
        let names: Vec<_> = found.iter().map(|mutant| mutant.name.as_str()).collect();
        let all = ["remove a", "remove a #2", "negate a", "negate a #2"];
        assert_eq!(names, all.map(|name| format!("a.sql f: {name}")));
    }
}
