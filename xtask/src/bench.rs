//! `cargo xtask bench`: the figures the README and the guarantees speak of.

use crate::failure::{Failure, Outcome};
use crate::servers;
use crate::steps::{Steps, cargo};

/// A benchmark is a program that measures and prints; it exits with a failure
/// when a bar is missed.
struct Bench {
    name: &'static str,
    what: &'static str,
    /// What cargo is called with.
    cargo: &'static [&'static str],
    /// Finds what it needs on this machine, and gives what it finds that by.
    needs: fn() -> Outcome<Vec<(String, String)>>,
}

fn nothing() -> Outcome<Vec<(String, String)>> {
    Ok(Vec::new())
}

/// Every benchmark, in the order in which they run. To add one, add a line.
const BENCHES: &[Bench] = &[
    Bench {
        name: "core",
        what: "is_current() against the bare clock read",
        cargo: &["bench", "-q", "-p", "tenure", "--bench", "is_current"],
        needs: nothing,
    },
    Bench {
        name: "many",
        what: "ten thousand elections of one member against one",
        cargo: &["bench", "-q", "-p", "tenure", "--bench", "many"],
        needs: nothing,
    },
    Bench {
        name: "sqlite",
        what: "hand-over between processes on SQLite, and an idle standby",
        cargo: &["bench", "-q", "-p", "tenure", "--bench", "sqlite"],
        needs: nothing,
    },
    Bench {
        name: "postgres",
        what: "PostgreSQL beside its peers, on servers of the benchmark's own",
        cargo: &["bench", "-q", "-p", "tenure", "--bench", "postgres"],
        needs: servers::postgres_programs,
    },
    Bench {
        name: "names",
        what: "names beside bare inserts, elections, etcd and a HashMap",
        cargo: &["bench", "-q", "-p", "tenure-registry", "--bench", "names"],
        needs: servers::names_programs,
    },
    Bench {
        name: "server",
        what: "tenure serve beside an empty handler and connections that listen",
        cargo: &["bench", "-q", "-p", "tenure-cli", "--bench", "server"],
        needs: servers::postgres_programs,
    },
    Bench {
        name: "grpc",
        what: "a channel that follows the leader beside tonic's own, and a hand-over",
        cargo: &["bench", "-q", "-p", "tenure-grpc", "--bench", "grpc"],
        needs: nothing,
    },
    Bench {
        name: "etcd",
        what: "etcd beside bare writes, its own recipe and a poller, on a server of its own",
        cargo: &["bench", "-q", "-p", "tenure-etcd", "--bench", "etcd"],
        needs: servers::etcd_programs,
    },
    Bench {
        name: "cli",
        what: "the program: overlaps over 200 rounds of trouble, and what run and status cost",
        cargo: &["bench", "-q", "-p", "tenure-cli", "--bench", "cli"],
        needs: nothing,
    },
];

/// What cargo does not run: the clients in other languages.
const CLIENTS: &str = "clients";

/// Runs all of them, or the ones named.
pub(crate) fn run(names: &[String]) -> Outcome {
    let mut steps = Steps::of("bench");
    let (clients, of_cargo): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| name == CLIENTS);
    if names.is_empty() || !clients.is_empty() {
        let title = "clients: isLeader() against the clock, in Node and Python";
        steps.step(title, servers::bench_languages);
    }
    if !clients.is_empty() && of_cargo.is_empty() {
        return steps.finish();
    }
    let chosen = chosen(BENCHES, &of_cargo)?;
    for bench in chosen {
        let title = format!("{}: {}", bench.name, bench.what);
        match (bench.needs)() {
            Ok(found) => steps.command(&title, cargo(bench.cargo).envs(found)),
            Err(failure) => steps.step(&title, || Err(failure)),
        }
    }
    steps.finish()
}

fn chosen<'b>(all: &'b [Bench], names: &[String]) -> Outcome<Vec<&'b Bench>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            all.iter().find(|bench| bench.name == name).ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|bench| bench.name).collect();
                Failure::new(format!("no benchmark `{name}`; there are: {}", known.join(", ")))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is not in the table is refused with those that are.
    #[test]
    fn an_unknown_benchmark_is_refused_with_the_list() {
        let failure = chosen(BENCHES, &["cores".into()]).err().expect("must be refused");
        assert!(failure.to_string().contains("no benchmark `cores`; there are: core"));
    }

    /// Without a name all run; with one, that one.
    #[test]
    fn no_name_means_all() {
        assert_eq!(chosen(BENCHES, &[]).unwrap().len(), BENCHES.len());
        assert_eq!(chosen(BENCHES, &["core".into()]).unwrap()[0].name, "core");
    }

    /// Figures from a debug build would mislead.
    #[test]
    fn every_benchmark_is_built_for_release() {
        for bench in BENCHES {
            let release = ["--release", "bench"];
            assert!(bench.cargo.iter().any(|arg| release.contains(arg)), "{}", bench.name);
        }
    }
}
