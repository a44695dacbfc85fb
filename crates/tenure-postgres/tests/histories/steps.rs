//! What a history is made of: steps that mean something whatever came before, so that
//! any of them may be left out.

use tenure_testkit::Dice;

/// How many ids members go by.
pub const MEMBERS: usize = 4;
/// How many elections there are. Most steps are about the first few, where members meet.
pub const ELECTIONS: usize = 24;
const CONTENDED: usize = 2;
/// How many names there are. Most steps are about the first few.
pub const NAMES: usize = 22;
const CONTENDED_NAMES: usize = 6;

/// One step, in one of two namespaces.
#[derive(Clone, Debug)]
pub struct Step {
    pub space: usize,
    pub what: What,
}

/// What is asked of the store. Durations are in units of time, members and elections are
/// numbered.
#[derive(Clone, Debug)]
pub enum What {
    Join {
        member: usize,
        life: Life,
        ttl: u32,
        supersede: bool,
        inherits: bool,
        seen: Seen,
    },
    Beat {
        member: usize,
        life: Life,
        ttl: u32,
        held: Vec<(usize, Number)>,
    },
    Leave {
        member: usize,
        life: Life,
    },
    Claim {
        member: usize,
        life: Life,
        ttl: u32,
        bids: Vec<Bid>,
        grace: u32,
        seen: Seen,
    },
    Release {
        member: usize,
        life: Life,
        items: Vec<Item>,
        grace: u32,
        confirm_within: u32,
        seen: Seen,
    },
    StepDown {
        election: usize,
        number: Option<Number>,
        to: Option<usize>,
        note: usize,
    },
    Pause {
        election: usize,
        note: usize,
    },
    Resume {
        election: usize,
    },
    Evict {
        member: usize,
        now: bool,
    },
    Restored,
    /// One step of a purge, of everything that is unused or of nothing.
    Purge {
        everything: bool,
        after: Option<usize>,
        most: usize,
        dry_run: bool,
    },
    Look {
        member: usize,
        election: usize,
    },
    Held {
        member: usize,
    },
    Bind {
        /// A caller that is no member, if none.
        member: Option<usize>,
        life: Life,
        ttl: u32,
        ops: Vec<NameOp>,
        fence: Option<(usize, Number)>,
        seen: Seen,
        known: Seen,
    },
    Names(Asked),
    /// Time passes.
    Pass {
        units: u32,
    },
}

/// Which life of an id acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// One that was never there before.
    New,
    /// The newest one.
    Newest,
    /// The one before it: its requests are late.
    Former,
}

/// Which number of an election is named.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Newest,
    Former,
    Wrong,
}

/// Which attempt a bid belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Attempt {
    New,
    Last,
    Former,
}

impl Attempt {
    fn again(self) -> Self {
        match self {
            Attempt::New => Attempt::Last,
            other => other,
        }
    }
}

/// How much of the journal the caller has seen.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    Nothing,
    All,
    /// So much more than there is: what it saw was forgotten.
    Beyond(u64),
}

#[derive(Clone, Debug)]
pub struct Bid {
    pub election: usize,
    pub priority: u16,
    pub attempt: Attempt,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub election: usize,
    pub number: Option<Number>,
    pub cause: usize,
    pub successor: Option<(usize, u32)>,
}

/// What becomes of a name. Tokens and revisions are named like numbers of terms.
#[derive(Clone, Debug)]
pub struct NameOp {
    /// Of all names; or of those that the caller may change, if it is aimed and has any.
    pub name: usize,
    pub aimed: bool,
    pub attempt: Attempt,
    pub what: Becomes,
    pub value: usize,
}

#[derive(Clone, Debug)]
pub enum Becomes {
    Taken,
    Posted,
    Changed { of_life: bool, token: Number, expect: Option<Number> },
    Dropped { token: Number },
}

/// Which names are read.
#[derive(Clone, Debug)]
pub enum Asked {
    Named(Vec<usize>),
    Prefix(usize),
    Owned(usize),
    /// Since where they stood so many steps ago, or beyond what there is.
    Since(usize),
    Beyond,
}

/// Draws what a step is made of.
pub struct Draw(Dice);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.0.one_in(count)
    }

    fn units(&mut self, from: u32, upto: u32) -> u32 {
        from + u32::try_from(self.below((upto - from + 1) as usize)).unwrap()
    }

    fn member(&mut self) -> usize {
        self.below(MEMBERS)
    }

    fn election(&mut self) -> usize {
        if self.one_in(10) { self.below(ELECTIONS) } else { self.below(CONTENDED) }
    }

    fn life(&mut self) -> Life {
        if self.one_in(15) { Life::Former } else { Life::Newest }
    }

    fn number(&mut self) -> Number {
        match self.below(10) {
            0 => Number::Wrong,
            1 => Number::Former,
            _ => Number::Newest,
        }
    }

    fn seen(&mut self) -> Seen {
        match self.below(40) {
            0 => Seen::Beyond(self.0.between(1, 5)),
            1..=20 => Seen::All,
            _ => Seen::Nothing,
        }
    }

    fn priority(&mut self) -> u16 {
        [0, 1, 100, 100, 100, 100, 200, 65_535][self.below(8)]
    }
}

/// A history: the same for the same seed.
pub fn history(seed: u64) -> Vec<Step> {
    let mut dice = Draw(Dice::new(seed));
    // Every third history is about both namespaces alike, most are about one.
    let other = if seed.is_multiple_of(3) { 2 } else { 6 };
    // First of all there has to be a member.
    let mut steps: Vec<_> = (0..MEMBERS - 1).map(|member| first(&mut dice, 0, member)).collect();
    if other == 2 {
        steps.extend((0..MEMBERS - 1).map(|member| first(&mut dice, 1, member)));
    }
    let count = 20 + dice.below(40);
    for _ in 0..count {
        let space = usize::from(dice.one_in(other));
        let last = steps.last().filter(|_| dice.one_in(12));
        steps.push(match last {
            Some(last) => Step { space: last.space, what: again(last.what.clone()) },
            None => Step { space, what: what(&mut dice) },
        });
    }
    steps
}

/// The same request once more, as by a caller that had no answer.
fn again(mut what: What) -> What {
    match &mut what {
        What::Join { life, .. } if *life == Life::New => *life = Life::Newest,
        What::Claim { bids, .. } => {
            bids.iter_mut().for_each(|bid| bid.attempt = bid.attempt.again());
        }
        What::Bind { ops, .. } => ops.iter_mut().for_each(|op| op.attempt = op.attempt.again()),
        _ => {}
    }
    what
}

fn first(dice: &mut Draw, space: usize, member: usize) -> Step {
    let what = What::Join {
        member,
        life: Life::New,
        ttl: dice.units(2, 6),
        supersede: true,
        inherits: !dice.one_in(3),
        seen: Seen::Nothing,
    };
    Step { space, what }
}

fn what(dice: &mut Draw) -> What {
    match dice.below(140) {
        100..=131 => bind(dice),
        132..=139 => What::Names(asked(dice)),
        0..=11 => join(dice),
        12..=21 => beat(dice),
        22..=24 => What::Leave { member: dice.member(), life: dice.life() },
        25..=51 => claim(dice),
        52..=68 => release(dice),
        69..=82 => operator(dice),
        83..=85 => What::Look { member: dice.member(), election: dice.election() },
        86 => What::Held { member: dice.member() },
        _ => What::Pass { units: dice.units(1, 3) },
    }
}

fn bind(dice: &mut Draw) -> What {
    let anonymous = dice.one_in(8);
    let ops = match dice.below(9) {
        0..=1 => many_names(dice, anonymous),
        2..=4 => (0..2 + dice.below(4)).map(|_| name_op(dice, anonymous)).collect(),
        _ => vec![name_op(dice, anonymous)],
    };
    let fence = (!anonymous && dice.one_in(8)).then(|| (dice.election(), dice.number()));
    What::Bind {
        member: (!anonymous).then(|| dice.member()),
        life: dice.life(),
        ttl: dice.units(1, 5),
        ops,
        fence,
        seen: dice.seen(),
        known: dice.seen(),
    }
}

fn name_op(dice: &mut Draw, anonymous: bool) -> NameOp {
    let attempt = match dice.below(6) {
        0 => Attempt::Last,
        1 => Attempt::Former,
        _ => Attempt::New,
    };
    let what = match dice.below(10) {
        0..=4 if !anonymous => Becomes::Taken,
        0..=5 => Becomes::Posted,
        6..=7 => Becomes::Changed {
            of_life: !anonymous && !dice.one_in(4),
            token: dice.number(),
            expect: dice.one_in(2).then(|| dice.number()),
        },
        _ => Becomes::Dropped { token: dice.number() },
    };
    let name = if dice.one_in(10) { dice.below(NAMES) } else { dice.below(CONTENDED_NAMES) };
    NameOp { name, aimed: !dice.one_in(3), attempt, what, value: dice.below(4) }
}

/// More than are judged one by one if all are new, in any order; sometimes with one among
/// them that is there, comes twice, or is to become something else.
fn many_names(dice: &mut Draw, anonymous: bool) -> Vec<NameOp> {
    let count = 8 + dice.below(5);
    // Often the same ones, so that a batch is repeated.
    let further = if dice.one_in(2) { dice.below(NAMES - CONTENDED_NAMES - count + 1) } else { 0 };
    let from = CONTENDED_NAMES + further;
    let attempt = if dice.one_in(3) { Attempt::Last } else { Attempt::New };
    let drops = dice.one_in(4);
    let mut names: Vec<_> = (from..from + count).collect();
    if dice.one_in(2) {
        names.reverse();
    }
    let op = |(name, dice): (usize, &mut Draw)| {
        let what = match (drops, anonymous) {
            (true, _) => Becomes::Dropped { token: Number::Newest },
            (false, true) => Becomes::Posted,
            (false, false) => Becomes::Taken,
        };
        NameOp { name, aimed: false, attempt, what, value: dice.below(4) }
    };
    let mut ops: Vec<_> = names.into_iter().map(|name| op((name, dice))).collect();
    let at = dice.below(count);
    match dice.below(6) {
        0 => ops[at] = name_op(dice, anonymous),
        1 => ops[at].name = ops[0].name,
        2 if !anonymous => ops[at].what = Becomes::Posted,
        _ => {}
    }
    ops
}

fn asked(dice: &mut Draw) -> Asked {
    match dice.below(8) {
        0 => Asked::Named((0..3).map(|_| dice.below(NAMES)).collect()),
        1 => Asked::Prefix(dice.below(3)),
        2 => Asked::Owned(dice.member()),
        3 => Asked::Beyond,
        _ => Asked::Since(dice.below(8)),
    }
}

fn join(dice: &mut Draw) -> What {
    What::Join {
        member: dice.member(),
        life: if dice.one_in(3) { dice.life() } else { Life::New },
        ttl: dice.units(1, 5),
        supersede: !dice.one_in(4),
        inherits: !dice.one_in(3),
        seen: dice.seen(),
    }
}

fn beat(dice: &mut Draw) -> What {
    let named = if dice.one_in(2) { 1 + dice.below(2) } else { 0 };
    let held = (0..named).map(|_| (dice.election(), dice.number())).collect();
    What::Beat { member: dice.member(), life: dice.life(), ttl: dice.units(1, 5), held }
}

fn claim(dice: &mut Draw) -> What {
    let bids = match dice.below(12) {
        0 => many(dice),
        1..=3 => (0..2 + dice.below(3)).map(|_| bid(dice)).collect(),
        _ => vec![bid(dice)],
    };
    let member = dice.member();
    let ttl = dice.units(1, 5);
    let grace = dice.units(0, 2);
    What::Claim { member, life: dice.life(), ttl, bids, grace, seen: dice.seen() }
}

fn bid(dice: &mut Draw) -> Bid {
    let attempt = match dice.below(8) {
        0 => Attempt::Last,
        1 => Attempt::Former,
        _ => Attempt::New,
    };
    Bid { election: dice.election(), priority: dice.priority(), attempt }
}

/// More than are told one by one, mostly at one priority.
fn many(dice: &mut Draw) -> Vec<Bid> {
    // Sometimes for more than the end of a life clears away.
    let count = if dice.one_in(4) { 17 + dice.below(6) } else { 9 + dice.below(4) };
    let from = dice.below(ELECTIONS - count);
    let same = (!dice.one_in(3)).then(|| dice.priority());
    let attempt = if dice.one_in(4) { Attempt::Last } else { Attempt::New };
    let priority = |dice: &mut Draw| same.unwrap_or_else(|| dice.priority());
    let places = from..from + count;
    places.map(|election| Bid { election, priority: priority(dice), attempt }).collect()
}

fn release(dice: &mut Draw) -> What {
    let count = match dice.below(10) {
        0 => 9 + dice.below(4),
        1..=2 => 2,
        _ => 1,
    };
    let items: Vec<_> = (0..count).map(|place| item(dice, place, count)).collect();
    let grace = dice.units(0, 2);
    let confirm_within = if dice.one_in(3) { 0 } else { dice.units(1, 3) };
    let seen = dice.seen();
    What::Release { member: dice.member(), life: dice.life(), items, grace, confirm_within, seen }
}

fn item(dice: &mut Draw, place: usize, count: usize) -> Item {
    let election = if count > 2 { place } else { dice.election() };
    let number = (!dice.one_in(8)).then(|| dice.number());
    let successor = dice.one_in(3).then(|| (dice.member(), dice.units(0, 2)));
    Item { election, number, cause: dice.below(4), successor }
}

fn operator(dice: &mut Draw) -> What {
    let election = dice.election();
    let note = dice.below(3);
    match dice.below(18) {
        14..=17 => What::Purge {
            everything: !dice.one_in(6),
            after: dice.one_in(4).then(|| dice.election()),
            most: if dice.one_in(3) { 1 + dice.below(3) } else { 100 },
            dry_run: dice.one_in(5),
        },
        0..=3 => {
            let number = dice.one_in(2).then(|| dice.number());
            let to = dice.one_in(2).then(|| dice.member());
            What::StepDown { election, number, to, note }
        }
        4..=5 => What::Pause { election, note },
        6..=8 => What::Resume { election },
        9..=11 => What::Evict { member: dice.member(), now: false },
        12 => What::Evict { member: dice.member(), now: true },
        _ if dice.one_in(3) => What::Restored,
        _ => What::Resume { election },
    }
}
