//! Whether what processes were told of one name fits together: linearizability of taking,
//! dropping, owning and looking up.
//!
//! A history is what callers saw, each call with the moments between which it was made, by a
//! clock that all callers share ([`stamp`](crate::stamp)). It is linearizable if each call can
//! be given one moment between these two so that the calls, in the order of their moments, are
//! what a single register would have done:
//!
//! - a take that was answered with a token makes that token the present one. Tokens rise;
//! - a drop that was confirmed ends its token, if it is the present one;
//! - a caller that finds a token, is refused because of it, or is told by `is_current()` that it
//!   owns the name under it, does so while it is the present one;
//! - a caller that finds nothing does so while there is none.
//!
//! Two things more happen, of which no caller is told. A life ends, and its token with it, at
//! any moment; but then no call may find it or own it any more. And a take that is not answered
//! in time may be done all the same, undone and attempted anew, so that tokens come that no
//! answer gave out: at any moment after their owner first asked for the name.
//! Names have nothing to do with each other here: a history of many names is linearizable
//! exactly if that of each one is.
//!
//! # Why the check is sound and complete
//!
//! In general this takes a search over all orders (Wing and Gong; the tests have one, and
//! compare). Here tokens say in which order the owners came, so that moments can be reckoned.
//! Let `begin(t)` and `end(t)` be when token t becomes and ceases to be the present one.
//!
//! 1. A history is linearizable exactly if there are `begin(t) ≤ end(t) ≤ begin(next t)` such
//!    that `begin(t)` lies within the take of t and not after the end of any call that saw t;
//!    `end(t)` is not before the beginning of any such call, and not after the end of a
//!    confirmed drop of t; and each call that found nothing has a moment at which there is no
//!    token. Given these, a call that saw t takes place at a moment that lies within it and
//!    between the two, and a drop at `end(t)` or, if that was earlier, without effect.
//! 2. All but the last condition are bounds from below by constants and by earlier moments, or
//!    from above by constants. So the earliest moments that keep the bounds from below are
//!    found in one pass in the order of tokens, and if they break a bound from above, any
//!    others do.
//! 3. A call E that found nothing needs a gap, before some `begin(t)` that is not before the
//!    beginning of E, and after an end that is not after the end of E. Take the last gap whose
//!    earliest beginning is not after the end of E: any earlier gap bounds an earlier `begin`
//!    by the same constant, and with it all later ones. So the only bound that E adds is that
//!    `begin(t)` is not before the beginning of E, for the first t whose earliest `end(t)` is
//!    after the end of E. It moves no `end`: the beginning of E is before its end, and that
//!    before `end(t)`. So one pass does still.
//!
//! # Where observers judge
//!
//! A store over compare-and-swap judges a life by each observer's own clock: one may hold an
//! owner for dead that another, who came later, still shows. What is promised there is less,
//! and [`Judge::Observer`] checks that: finding nothing means that no process owned the name, as
//! `is_current()` tells, at a moment of the call. Where the store judges, it also means that
//! no call finds that token later.

use std::collections::BTreeMap;
use std::fmt;

mod lines;
#[cfg(test)]
mod tests;

pub use lines::{parse, unanswered};

/// Who judges whether an owner lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The store, by its own clock.
    Store,
    /// The caller, by its own clock.
    Observer,
}

/// What a caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A take was answered with this token.
    Took(u64),
    /// A take was not answered: it may have been done at any moment since, or never.
    TookPerhaps,
    /// The drop of this token was confirmed.
    Dropped(u64),
    /// `is_current()` was true for this token.
    Held(u64),
    /// A lookup found this token, of this owner.
    Found(u64, String),
    /// A take was refused, because the name is another's or of another call: under this token,
    /// of this owner.
    Refused(u64, String),
    /// A lookup found nothing.
    FoundNothing,
}

/// One call about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which life made it.
    pub by: String,
    /// A moment before it was made.
    pub from: u64,
    /// A moment after it was answered; the largest number if it never was.
    pub until: u64,
    /// What it was told.
    pub told: Told,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was told {:?} between {} and {}", self.by, self.told, self.from, self.until)
    }
}

/// What a linearizable history consists of, so that a test can say that it was not idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All calls.
    pub calls: usize,
    /// Tokens that were given out.
    pub tokens: usize,
    /// Takes that were not answered, and tokens that were seen and that no answer gave out.
    pub unanswered: (usize, usize),
    /// Calls that found a token or were refused by it, and that found nothing.
    pub found: (usize, usize),
    /// Confirmed drops.
    pub drops: usize,
}

impl Summary {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            tokens: self.tokens + other.tokens,
            unanswered: (
                self.unanswered.0 + other.unanswered.0,
                self.unanswered.1 + other.unanswered.1,
            ),
            found: (self.found.0 + other.found.0, self.found.1 + other.found.1),
            drops: self.drops + other.drops,
        }
    }
}

/// What is known of the time of one token.
#[derive(Debug)]
struct Tenancy<'a> {
    owner: Option<&'a str>,
    taken: bool,
    /// `begin` is not before this, because of the take, and not after that.
    begin: (u64, u64),
    /// The latest beginning of a call that saw it, and of one by which it was owned.
    seen: u64,
    held: u64,
    /// The end of the first confirmed drop.
    dropped: u64,
}

impl Default for Tenancy<'_> {
    fn default() -> Self {
        let begin = (0, u64::MAX);
        let dropped = u64::MAX;
        Self { owner: None, taken: false, begin, seen: 0, held: 0, dropped }
    }
}

impl<'a> Tenancy<'a> {
    fn is_of(&mut self, owner: &'a str, token: u64) -> Result<(), String> {
        match self.owner.replace(owner) {
            Some(other) if other != owner => {
                Err(format!("token {token} is said to be {other}'s and {owner}'s"))
            }
            _ => Ok(()),
        }
    }

    /// A call that found the token present.
    fn saw(&mut self, call: &Call) {
        self.begin.1 = self.begin.1.min(call.until);
        self.seen = self.seen.max(call.from);
    }
}

/// Checks the history of one name.
///
/// # Errors
///
/// If it is not linearizable: why.
///
/// ```
/// use tenure_testkit::history::{Call, Judge, Told, check};
///
/// let call = |by: &str, from, until, told| Call { by: by.into(), from, until, told };
/// let took = call("a", 1, 2, Told::Took(7));
/// let found = call("b", 3, 4, Told::Found(7, "a".into()));
/// let nothing = call("b", 5, 6, Told::FoundNothing);
/// let history = [took.clone(), found, nothing.clone()];
/// assert!(check(&history, Judge::Store).is_ok(), "its life may have ended unseen");
///
/// let held = call("a", 7, 8, Told::Held(7));
/// assert!(check(&[took, nothing, held], Judge::Store).is_err(), "it had not");
/// ```
pub fn check(calls: &[Call], judge: Judge) -> Result<Summary, String> {
    let mut reigns = gather(calls)?;
    let unanswered = attribute(calls, &mut reigns)?;
    let nothing = latest_before(calls);
    let mut free = 0;
    for (token, reign) in &reigns {
        let least = reign.begin.0.max(free);
        let end = least.max(reign.seen);
        let owned = match judge {
            Judge::Store => end,
            Judge::Observer => least.max(reign.held),
        };
        let begin = least.max(nothing(owned));
        if begin > reign.begin.1 {
            let why = if begin > least {
                "a call found nothing before it was found or owned"
            } else if free > reign.begin.0 {
                "an earlier token was there after that"
            } else {
                "it was taken after that"
            };
            return Err(format!(
                "token {token} begins at {begin} or later, and was there by {}: {why}",
                reign.begin.1
            ));
        }
        if end > reign.dropped {
            return Err(format!(
                "token {token} was there at {end} or later, and its drop was confirmed by {}",
                reign.dropped
            ));
        }
        free = end;
    }
    let count = |is: fn(&Told) -> bool| calls.iter().filter(|call| is(&call.told)).count();
    Ok(Summary {
        calls: calls.len(),
        tokens: reigns.len(),
        unanswered: (count(|told| matches!(told, Told::TookPerhaps)), unanswered),
        found: (
            count(|told| matches!(told, Told::Found(..) | Told::Refused(..))),
            count(|told| matches!(told, Told::FoundNothing)),
        ),
        drops: count(|told| matches!(told, Told::Dropped(_))),
    })
}

/// What the calls say of each token by itself.
fn gather(calls: &[Call]) -> Result<BTreeMap<u64, Tenancy<'_>>, String> {
    let mut reigns: BTreeMap<u64, Tenancy<'_>> = BTreeMap::new();
    for call in calls {
        if call.from > call.until {
            return Err(format!("a call ends before it begins: {call}"));
        }
        match &call.told {
            Told::Took(token) => {
                let reign = reigns.entry(*token).or_default();
                if std::mem::replace(&mut reign.taken, true) {
                    return Err(format!("token {token} was given out twice, last to {}", call.by));
                }
                reign.is_of(&call.by, *token)?;
                reign.begin = (call.from, reign.begin.1.min(call.until));
            }
            Told::Dropped(token) => {
                let reign = reigns.entry(*token).or_default();
                reign.is_of(&call.by, *token)?;
                reign.dropped = reign.dropped.min(call.until);
            }
            Told::Held(token) => {
                let reign = reigns.entry(*token).or_default();
                reign.is_of(&call.by, *token)?;
                reign.saw(call);
                reign.held = reign.held.max(call.from);
            }
            Told::Found(token, owner) | Told::Refused(token, owner) => {
                let reign = reigns.entry(*token).or_default();
                reign.is_of(owner, *token)?;
                reign.saw(call);
            }
            Told::TookPerhaps | Told::FoundNothing => {}
        }
    }
    Ok(reigns)
}

/// Tokens that no answer gave out begin after their owner first asked for the name. Answers
/// how many there are.
fn attribute<'a>(
    calls: &'a [Call],
    reigns: &mut BTreeMap<u64, Tenancy<'a>>,
) -> Result<usize, String> {
    let mut asked: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls {
        if matches!(call.told, Told::Took(_) | Told::TookPerhaps | Told::Refused(..)) {
            let first = asked.entry(&call.by).or_insert(call.from);
            *first = call.from.min(*first);
        }
    }
    let mut count = 0;
    for (token, reign) in reigns.iter_mut().filter(|(_, reign)| !reign.taken) {
        let owner = reign.owner.unwrap_or_default();
        let Some(first) = asked.get(owner) else {
            return Err(format!("token {token} is {owner}'s, who did not ask for it"));
        };
        reign.begin.0 = *first;
        count += 1;
    }
    Ok(count)
}

/// Of the calls that found nothing and ended before a moment, the latest beginning.
fn latest_before(calls: &[Call]) -> impl Fn(u64) -> u64 {
    let nothing = calls.iter().filter(|call| call.told == Told::FoundNothing);
    let mut ended: Vec<_> = nothing.map(|call| (call.until, call.from)).collect();
    ended.sort_unstable();
    let mut latest = 0;
    for (_, from) in &mut ended {
        latest = latest.max(*from);
        *from = latest;
    }
    move |moment| {
        let place = ended.partition_point(|(until, _)| *until < moment);
        place.checked_sub(1).map_or(0, |last| ended[last].1)
    }
}
