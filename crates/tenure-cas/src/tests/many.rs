//! Claims of many bids, of which some fail on their way.

use super::*;

fn bids(names: &[&str]) -> Vec<Bid> {
    let bid = |(name, nonce): (&&str, u64)| Bid::new(named(name), Nonce::new(nonce));
    names.iter().zip(1..).map(bid).collect()
}

fn try_claim(of: &Process, bids: &[Bid]) -> Result<Claims> {
    let member = of.me.clone();
    let bids = bids.to_vec();
    let claim = Claim::new(member, TTL, bids);
    ready(of.store.claim(&ns(), &claim))
}

/// `+` for a bid that was won, `-` for one that was lost, `?` for one of which
/// nothing is known.
fn claim(of: &Process, bids: &[Bid]) -> String {
    let Claims::Answered(answers) = try_claim(of, bids).unwrap() else { panic!("ended") };
    let sign = |answer: &Claimed| match answer {
        Claimed::Won(_) => '+',
        Claimed::Held(_) => '-',
        Claimed::Unknown(_) => '?',
    };
    answers.iter().map(sign).collect()
}

#[test]
fn an_election_that_cannot_be_looked_at_leaves_only_its_own_bid_open() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let bids = bids(&["e", "f", "g"]);
    wire.load_meets("elections/f", Fault::Fail);
    assert_eq!(claim(&a, &bids), "+?+");
    assert_eq!(claim(&a, &bids), "+++");
    assert_eq!(a.view("f").number.get(), 1);
}

/// E2: a bid that may have won stays open, and gets its term when it is repeated.
#[test]
fn a_bid_whose_answer_is_lost_is_open_and_wins_the_same_term_when_repeated() {
    for fault in [Fault::LoseAnswer, Fault::Fail] {
        let wire = Wire::default();
        let a = Process::joined(&wire, "a", 1);
        let bids = bids(&["e", "f", "g"]);
        wire.swap_meets("elections/f", fault);
        assert_eq!(claim(&a, &bids), "+?+");
        assert_eq!(claim(&a, &bids), "+++");
        assert_eq!(a.view("f").number.get(), 1, "one term, and not two");
        assert!(a.keeps("f", 1) && a.keeps("e", 1) && a.keeps("g", 1));
    }
}

/// A holder of whom nothing is heard: what it holds stays open, and nothing else.
#[test]
fn a_holder_that_cannot_be_looked_at_leaves_only_what_it_holds_open() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("f", 1);
    a.win("g", 2);
    assert_eq!(claim(&b, &bids(&["e", "f", "g"])), "+--");
    for _ in 0..2 {
        wire.load_meets("members/a", Fault::Fail);
    }
    assert_eq!(claim(&b, &bids(&["e", "f", "g"])), "+??");
    assert!(wire.loads.lock().unwrap().is_empty(), "both looks failed");
}

/// If everything failed, that is an error: it is what people are told.
#[test]
fn a_claim_of_which_nothing_came_through_is_an_error() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let bids = bids(&["e", "f"]);
    for name in ["elections/e", "elections/f"] {
        wire.load_meets(name, Fault::Fail);
    }
    assert!(!try_claim(&a, &bids).unwrap_err().may_have_applied());
    wire.swap_meets("elections/e", Fault::Fail);
    wire.swap_meets("elections/f", Fault::LoseAnswer);
    assert!(try_claim(&a, &bids).unwrap_err().may_have_applied());
    assert_eq!(claim(&a, &bids), "++");
}

/// M2: what was won is only won by the heartbeat after it; if that fails nothing
/// is.
#[test]
fn without_the_heartbeat_nothing_of_a_claim_is_won() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let bids = bids(&["e", "f"]);
    wire.swap_meets("members/a", Fault::Fail);
    assert!(try_claim(&a, &bids).unwrap_err().may_have_applied());
    assert_eq!(claim(&a, &bids), "++");
}
