use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::Dice;

fn call(by: &str, from: u64, until: u64, told: Told) -> Call {
    Call { by: by.to_owned(), from, until, told }
}

fn took(by: &str, from: u64, until: u64, token: u64) -> Call {
    call(by, from, until, Told::Took(token))
}

fn found(from: u64, until: u64, token: u64, owner: &str) -> Call {
    call("r", from, until, Told::Found(token, owner.to_owned()))
}

fn nothing(from: u64, until: u64) -> Call {
    call("r", from, until, Told::FoundNothing)
}

fn refused(history: &[Call], why: &str) {
    let found = check(history, Judge::Store).expect_err("it is not linearizable");
    assert!(found.contains(why), "{found}");
}

#[test]
fn a_history_of_one_register_is_accepted() {
    let history = [
        nothing(0, 1),
        took("a", 1, 4, 7),
        found(2, 3, 7, "a"),
        call("a", 5, 6, Told::Held(7)),
        call("a", 7, 9, Told::Dropped(7)),
        found(8, 10, 7, "a"),
        nothing(8, 8),
        took("b", 9, 12, 8),
        found(11, 11, 8, "b"),
        call("c", 13, u64::MAX, Told::TookPerhaps),
        found(14, 15, 9, "c"),
        call("d", 16, u64::MAX, Told::TookPerhaps),
    ];
    let summary = check(&history, Judge::Store).unwrap();
    assert_eq!((summary.calls, summary.tokens, summary.unanswered), (12, 3, (2, 1)));
    assert_eq!((summary.found, summary.drops), ((4, 2), 1));
    assert!(check(&history, Judge::Observer).is_ok());
}

#[test]
fn a_token_that_comes_twice_is_refused() {
    refused(&[took("a", 1, 2, 7), took("b", 3, 4, 7)], "given out twice");
    refused(&[took("a", 1, 2, 7), found(3, 4, 7, "b")], "said to be a's and b's");
}

#[test]
fn tokens_that_do_not_rise_in_time_are_refused() {
    refused(&[took("a", 1, 2, 8), took("b", 3, 4, 7)], "an earlier token");
}

#[test]
fn two_owners_at_a_time_are_refused() {
    let held = call("a", 5, 6, Told::Held(7));
    refused(&[took("a", 1, 2, 7), took("b", 3, 4, 8), held], "an earlier token");
}

#[test]
fn an_older_owner_that_is_found_after_a_newer_one_is_refused() {
    let history =
        [took("a", 1, 2, 7), took("b", 1, 9, 8), found(3, 4, 8, "b"), found(5, 6, 7, "a")];
    refused(&history, "an earlier token");
}

#[test]
fn nothing_that_is_found_while_a_name_is_owned_is_refused() {
    let history = [took("a", 1, 2, 7), nothing(3, 4), call("a", 5, 6, Told::Held(7))];
    refused(&history, "found nothing");
    let history = [took("a", 1, 2, 7), nothing(3, 4), found(5, 6, 7, "a")];
    refused(&history, "found nothing");
    // An observer that came later may still show an owner that owns the name no longer.
    assert!(check(&history, Judge::Observer).is_ok());
}

#[test]
fn what_is_found_after_its_drop_was_confirmed_is_refused() {
    let dropped = call("a", 3, 4, Told::Dropped(7));
    refused(&[took("a", 1, 2, 7), dropped, found(5, 6, 7, "a")], "its drop was confirmed");
}

#[test]
fn what_is_found_before_it_was_asked_for_is_refused() {
    refused(&[found(1, 2, 7, "a"), took("a", 3, 4, 7)], "it was taken after that");
    refused(&[found(1, 2, 7, "a")], "did not ask");
    let perhaps = call("a", 3, u64::MAX, Told::TookPerhaps);
    refused(&[found(1, 2, 7, "a"), perhaps], "it was taken after that");
}

/// What is written down line by line is read back; of a take that was answered its answer
/// counts, and the line at which a process was killed does not.
#[test]
fn lines_are_read_back() {
    let history = [
        took("a", 1, 2, 7),
        call("a", 3, 4, Told::Held(7)),
        call("a", 5, 6, Told::Dropped(7)),
        found(7, 8, 9, "b"),
        call("a", 8, 9, Told::Refused(9, "b".to_owned())),
        nothing(9, 10),
    ];
    let mut text = unanswered("n", "a", 1) + &unanswered("n", "b", 1);
    history.iter().for_each(|call| text.push_str(&call.line("n")));
    text.push_str("n a 11 12 took 1");
    let mut read = BTreeMap::new();
    parse(&text, &mut read);
    let mut whole = history.to_vec();
    whole.insert(1, call("b", 1, u64::MAX, Told::TookPerhaps));
    assert_eq!(read.remove("n").unwrap(), whole);
}

/// The search of Wing and Gong: every order in which each call comes before those that began
/// after it had ended, tried on the register itself.
mod search {
    use super::*;

    #[derive(Clone, Copy, Default)]
    struct Register {
        present: Option<u64>,
        /// Where observers judge: a call found nothing since it was taken.
        over: bool,
        newest: u64,
    }

    /// A token that no answer gave out is one that its owner was given and not told of, at
    /// some moment after it first asked.
    pub(super) fn linearizable(calls: &[Call], judge: Judge) -> bool {
        let is_take =
            |told: &Told| matches!(told, Told::Took(_) | Told::TookPerhaps | Told::Refused(..));
        let mut all: Vec<_> =
            calls.iter().filter(|call| call.told != Told::TookPerhaps).cloned().collect();
        for (token, owner) in seen(calls) {
            if calls.iter().any(|call| call.told == Told::Took(token)) {
                continue;
            }
            let asked = calls.iter().filter(|call| call.by == owner && is_take(&call.told));
            let Some(from) = asked.map(|call| call.from).min() else { return false };
            all.push(took(owner, from, u64::MAX, token));
        }
        order(&all, &mut vec![false; all.len()], Register::default(), judge)
    }

    fn seen(calls: &[Call]) -> BTreeMap<u64, &str> {
        let seen = calls.iter().filter_map(|call| match &call.told {
            Told::Found(token, owner) | Told::Refused(token, owner) => {
                Some((*token, owner.as_str()))
            }
            Told::Held(token) => Some((*token, call.by.as_str())),
            _ => None,
        });
        seen.collect()
    }

    fn order(calls: &[Call], done: &mut [bool], register: Register, judge: Judge) -> bool {
        let left: Vec<_> = (0..calls.len()).filter(|place| !done[*place]).collect();
        let Some(first_end) = left.iter().map(|place| calls[*place].until).min() else {
            return true;
        };
        left.into_iter().filter(|place| calls[*place].from <= first_end).any(|place| {
            let Some(register) = step(register, &calls[place].told, judge) else { return false };
            done[place] = true;
            let goes_on = order(calls, done, register, judge);
            done[place] = false;
            goes_on
        })
    }

    /// The register after a call; `None` if the call cannot be next.
    fn step(register: Register, told: &Told, judge: Judge) -> Option<Register> {
        let is = |token: &u64| register.present == Some(*token);
        let ended = Register { present: None, ..register };
        match told {
            Told::Took(token) if *token > register.newest => {
                Some(Register { present: Some(*token), over: false, newest: *token })
            }
            Told::Dropped(token) if is(token) => Some(ended),
            Told::Dropped(token) if *token <= register.newest => Some(register),
            Told::Held(token) if is(token) && !register.over => Some(register),
            Told::Found(token, _) | Told::Refused(token, _) if is(token) => Some(register),
            Told::FoundNothing if judge == Judge::Store => Some(ended),
            Told::FoundNothing => Some(Register { over: true, ..register }),
            _ => None,
        }
    }
}

/// A history of a few calls, some of them with answers that no register gives.
fn random(dice: &mut Dice) -> Vec<Call> {
    let mut calls = Vec::new();
    // Each token has one owner, as in any history that gets as far as the moments.
    let owner = |token: u64| if token.is_multiple_of(2) { "a" } else { "b" };
    let mut given = BTreeSet::new();
    for _ in 0..dice.between(2, 7) {
        let from = dice.between(0, 12);
        let until = from + dice.between(0, 4);
        let token = dice.between(1, 3);
        let by = owner(token);
        calls.push(match dice.below(10) {
            0..=2 if given.insert(token) => took(by, from, until, token),
            3 => nothing(from, until),
            4 => call(by, from, until, Told::Held(token)),
            5 => call(by, from, until, Told::Dropped(token)),
            6 => call(by, from, u64::MAX, Told::TookPerhaps),
            7 => call("r", from, until, Told::Refused(token, by.to_owned())),
            _ => found(from, until, token, by),
        });
    }
    calls
}

/// The reckoning says of every history what the search over all orders says.
#[test]
fn the_reckoning_agrees_with_a_search_over_all_orders() {
    let mut dice = Dice::new(16);
    let mut good = [0; 2];
    for case in 0..60_000 {
        let history = random(&mut dice);
        // A drop of what was never given out is no history of callers.
        let reigns = gather(&history).unwrap();
        if reigns.values().any(|reign| reign.seen == 0 && !reign.taken) {
            continue;
        }
        for (judge, good) in [Judge::Store, Judge::Observer].into_iter().zip(&mut good) {
            let reckoned = check(&history, judge);
            let searched = search::linearizable(&history, judge);
            assert_eq!(
                reckoned.is_ok(),
                searched,
                "case {case}, {judge:?}: {reckoned:?} {history:#?}"
            );
            *good += usize::from(searched);
        }
    }
    assert!(good.iter().all(|good| (2_000..40_000).contains(good)), "{good:?}");
}
