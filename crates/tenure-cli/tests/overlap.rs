//! No two children of one election ever run at once, and none outlives its
//! term, whatever happens to the program that started them.

#![allow(clippy::unwrap_used)]

mod common;

use common::overlap::{Life, overlaps, play, stamp_if_child};

/// Not a test of its own: what the members below run, in this same program.
#[test]
fn a_stamping_child() {
    stamp_if_child();
}

fn trouble(server: Option<&str>) {
    let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let child = [this.as_str(), "--exact", "a_stamping_child", "--nocapture"];
    let lives = play(child.map(String::from).to_vec(), server, 12, |_| {});
    assert!(lives.len() > 12, "every round begins a child: {lives:?}");
    assert!(overlaps(&lives).is_empty(), "{:?}", overlaps(&lives));
}

/// B9, H4, R2: kill -9 of `tenure run`, SIGSTOP past the ttl, an outage of the
/// store, and kill -9 of `tenure run` with its guardian, in turns. The benchmark does the same two hundred times.
#[test]
fn children_of_one_election_never_overlap_and_none_survives_its_term_on_sqlite() {
    trouble(None);
}

/// The same where the ttl alone tells that a leader is dead.
#[test]
fn children_of_one_election_never_overlap_and_none_survives_its_term_on_postgres() {
    let url = std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`");
    trouble(Some(&url));
}

/// The proof itself must not be blind.
#[test]
fn the_checker_sees_an_overlap_of_a_nanosecond() {
    let life = |term, first, last| Life { term, id: 1, label: "child".into(), first, last };
    assert!(overlaps(&[life(1, 10, 20), life(2, 21, 30)]).is_empty());
    assert_eq!(overlaps(&[life(1, 10, 20), life(2, 20, 30)]).len(), 1);
    assert_eq!(overlaps(&[life(2, 10, 20), life(1, 25, 30)]).len(), 1, "terms only rise");
}
