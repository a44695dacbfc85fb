//! A machine on a stage: feed it inputs at given times, look at what it says,
//! answer what it asks.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::*;

/// A machine under test, with what it has said so far.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) machine: Machine,
    pub(super) now: Mono,
    pub(super) sent: Vec<Outgoing>,
    pub(super) events: Vec<Event>,
}

pub(super) const WATCHED: StoreTraits =
    StoreTraits { native_watch: true, batch: 3, in_steps: false, elects_heirs: false };
/// A store that is polled.
pub(super) const POLLED: StoreTraits =
    StoreTraits { native_watch: false, batch: 3, in_steps: false, elects_heirs: false };

/// What a store answers, or that it does not.
pub(super) type Answer = Option<Result<Reply, Failed>>;

pub(super) const UNKNOWN: Failed = Failed { may_have_applied: true };
pub(super) const REFUSED: Failed = Failed { may_have_applied: false };

/// The number of any request, sent or not.
pub(super) fn request_id(number: u64) -> RequestId {
    super::super::io::RequestId(number)
}

pub(super) fn is_join(request: &Request) -> bool {
    matches!(request, Request::Join(_))
}

pub(super) fn is_beat(request: &Request) -> bool {
    matches!(request, Request::Heartbeat(_))
}

pub(super) fn is_claim(request: &Request) -> bool {
    matches!(request, Request::Claim(_))
}

pub(super) fn is_release(request: &Request) -> bool {
    matches!(request, Request::Release(_))
}

pub(super) fn is_read(request: &Request) -> bool {
    matches!(request, Request::Read(_))
}

pub(super) fn is_leave(request: &Request) -> bool {
    matches!(request, Request::Leave(_))
}

pub(super) fn joined() -> Reply {
    Reply::Join(Joined::In { attention: 0, seq: Seq::START })
}

/// The answer to a heartbeat: all is well, and this many terms are held.
pub(super) fn alive(holds: u32) -> Reply {
    let attention = 0;
    let seq = Seq::START;
    Reply::Heartbeat(Beat::Alive { attention, holds: Some(holds), seq, terms: Vec::new() })
}

pub(super) fn ended(superseded: bool) -> Reply {
    Reply::Heartbeat(Beat::Ended { superseded })
}

/// A claim answered: everything in it is won, as `number`.
pub(super) fn all_won(claim: &Claim, number: u64) -> Reply {
    let won = |bid: &Bid| {
        Claimed::Won(Term {
            election: bid.election.clone(),
            number: TermNumber::new(number),
            member: claim.member.clone(),
            elected_at: Timestamp::default(),
        })
    };
    Reply::Claim(Claims::Answered(claim.bids.iter().map(won).collect()))
}

/// A claim answered: each election is as `view` has it.
pub(super) fn all_held(claim: &Claim, view: &ElectionView) -> Reply {
    let held =
        |bid: &Bid| Claimed::Held(ElectionView { election: bid.election.clone(), ..view.clone() });
    Reply::Claim(Claims::Answered(claim.bids.iter().map(held).collect()))
}

/// A view of `election` held by `holder`, with a step-down asked of it.
pub(super) fn asked_to_step_down(holder: MemberRef, number: u64, to: Option<&str>) -> ElectionView {
    let step_down = StepDown {
        number: TermNumber::new(number),
        reason: Note::new("upgrade"),
        by: Note::new("ops"),
        to: to.map(|to| MemberId::new(to).unwrap()),
    };
    ElectionView { step_down: Some(step_down), ..held_by("nightly", holder, number, 9_000) }
}

pub(super) fn name(text: &str) -> ElectionName {
    ElectionName::new(text).unwrap()
}

pub(super) fn member(text: &str, life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(text).unwrap(), Incarnation::from_u128(life))
}

impl Script {
    /// A machine with the default timings: ttl 10 s, heartbeat 2.5 s, trust
    /// 8.99 s. It stands at 1,000 ms.
    pub(super) fn new(traits: StoreTraits) -> Self {
        Self::with(traits, Settings::default(), 1)
    }

    pub(super) fn with(traits: StoreTraits, settings: Settings, seed: u128) -> Self {
        let id = MemberId::new("me").unwrap();
        let machine = Machine::new(id, Profile::default(), settings, traits, seed);
        Self { machine, now: Mono::from_millis(1_000), sent: Vec::new(), events: Vec::new() }
    }

    /// A machine that has joined and stands for `election`; its claim is out.
    pub(super) fn standing(traits: StoreTraits, election: &str) -> Self {
        let mut script = Self::new(traits);
        script.stand(election);
        script.answer(Ok(joined()));
        script
    }

    /// A machine that leads `election` with term 1, won by a claim sent at
    /// 1,000 ms and answered at once.
    pub(super) fn leading(traits: StoreTraits, election: &str) -> Self {
        let mut script = Self::standing(traits, election);
        script.win(1);
        script.events.clear();
        script
    }

    pub(super) fn feed(&mut self, input: Input) {
        self.machine.handle(self.now, input);
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(out) => self.sent.push(out),
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    pub(super) fn stand(&mut self, election: &str) {
        let priority = Priority::default();
        self.feed(Input::Stand { election: name(election), priority });
    }

    /// Moves to `millis` in the machine's own steps: every wake it asks for is
    /// fed at its time.
    pub(super) fn run_to(&mut self, millis: u64) {
        let end = Mono::from_millis(millis);
        while let Some(wake) = self.machine.next_wake().filter(|wake| *wake <= end) {
            let stuck = wake <= self.now;
            self.now = self.now.max(wake);
            self.feed(Input::Wake);
            let again = self.machine.next_wake().is_some_and(|next| next <= self.now);
            assert!(!(stuck && again), "the machine asks to be woken in the past for ever");
        }
        self.now = self.now.max(end);
    }

    /// Moves on by `millis`, as [`run_to`](Self::run_to) does.
    pub(super) fn run_for(&mut self, millis: u64) {
        self.run_to(self.now.as_nanos() / 1_000_000 + millis);
    }

    /// Moves to `millis` at once, as after a SIGSTOP or a suspend.
    pub(super) fn jump_to(&mut self, millis: u64) {
        self.now = Mono::from_millis(millis);
    }

    /// The oldest unanswered request.
    pub(super) fn asked(&self) -> &Request {
        &self.sent.first().expect("a request is out").request
    }

    /// Answers the oldest unanswered request.
    pub(super) fn answer(&mut self, result: Result<Reply, Failed>) {
        let id = self.sent.remove(0).id;
        self.reply(id, result);
    }

    pub(super) fn reply(&mut self, id: RequestId, result: Result<Reply, Failed>) {
        self.feed(Input::Reply { id, result: Box::new(result) });
    }

    /// Takes the oldest unanswered request of a kind off the list.
    pub(super) fn take(&mut self, kind: fn(&Request) -> bool) -> Outgoing {
        let at = self.sent.iter().position(|out| kind(&out.request));
        self.sent.remove(at.unwrap_or_else(|| panic!("not asked: {:?}", self.sent)))
    }

    /// Puts the oldest unanswered request of a kind first in line.
    pub(super) fn first(&mut self, kind: fn(&Request) -> bool) -> &mut Self {
        let out = self.take(kind);
        self.sent.insert(0, out);
        self
    }

    pub(super) fn has_asked(&self, kind: fn(&Request) -> bool) -> bool {
        self.sent.iter().any(|out| kind(&out.request))
    }

    /// Runs to `millis` with a store that answers at once, or not at all.
    pub(super) fn play(&mut self, millis: u64, mut store: impl FnMut(Mono, &Request) -> Answer) {
        let end = Mono::from_millis(millis);
        let mut at = self.now;
        let mut asked = 0;
        loop {
            while !self.sent.is_empty() {
                let out = self.sent.remove(0);
                asked = if at == self.now { asked + 1 } else { 1 };
                at = self.now;
                assert!(asked <= 1_000, "a hot loop at {at}: {:?}", out.request);
                if let Some(result) = store(self.now, &out.request) {
                    self.reply(out.id, result);
                }
            }
            let Some(wake) = self.machine.next_wake().filter(|wake| *wake <= end) else { break };
            let stuck = wake <= self.now;
            self.now = self.now.max(wake);
            self.feed(Input::Wake);
            let again = self.machine.next_wake().is_some_and(|next| next <= self.now);
            assert!(!(stuck && again && self.sent.is_empty()), "woken for nothing, for ever");
        }
        self.now = self.now.max(end);
    }

    /// Hands out what the machine says in one go, in order.
    pub(super) fn outputs(&mut self, input: Input) -> Vec<Output> {
        self.machine.handle(self.now, input);
        core::iter::from_fn(|| self.machine.poll()).collect()
    }

    /// Gives the term of `election` up: the work has stopped.
    pub(super) fn resign(&mut self, election: &str, number: u64, to: Option<&str>) {
        let to = to.map(|to| MemberId::new(to).unwrap());
        let number = TermNumber::new(number);
        self.feed(Input::Resign { election: name(election), number, to });
    }

    pub(super) fn withdraw(&mut self, election: &str) {
        self.feed(Input::Withdraw { election: name(election) });
    }

    /// Answers the read that is out with these views.
    pub(super) fn seen(&mut self, views: impl IntoIterator<Item = ElectionView>) {
        let id = self.take(is_read).id;
        let elections = views.into_iter().collect();
        let snapshot = Snapshot { elections, ..Snapshot::default() };
        self.reply(id, Ok(Reply::Read(snapshot)));
    }

    /// Whether the application was told that it leads `election`.
    pub(super) fn elected(&self) -> Vec<(ElectionName, u64)> {
        let elected = |event: &Event| match event {
            Event::Elected { term, .. } => Some((term.election.clone(), term.number.get())),
            _ => None,
        };
        self.events.iter().filter_map(elected).collect()
    }

    pub(super) fn me(&self) -> MemberRef {
        self.machine.membership.life().expect("joined").member.clone()
    }

    /// Answers the claim that is out: everything in it is won, as `number`.
    pub(super) fn win(&mut self, number: u64) {
        let Request::Claim(claim) = self.asked() else { panic!("no claim: {:?}", self.sent) };
        let won = all_won(claim, number);
        self.answer(Ok(won));
    }

    /// Answers the claim that is out with these views.
    pub(super) fn held(&mut self, views: impl IntoIterator<Item = ElectionView>) {
        let answers = views.into_iter().map(Claimed::Held).collect();
        self.answer(Ok(Reply::Claim(Claims::Answered(answers))));
    }

    /// Answers the heartbeat that is out: all is well.
    pub(super) fn alive(&mut self, holds: u32) {
        let Request::Heartbeat(beat) = self.asked() else { panic!("no beat: {:?}", self.sent) };
        let renewed = |term: &TermRef| TermBeat {
            term: term.clone(),
            outcome: TermOutcome::Renewed { step_down: None },
        };
        let terms = beat.held.iter().map(renewed).collect();
        let attention = 0;
        let seq = Seq::START;
        let alive = Beat::Alive { attention, holds: Some(holds), seq, terms };
        self.answer(Ok(Reply::Heartbeat(alive)));
    }

    pub(super) fn lost(&self) -> Vec<(ElectionName, u64, LostReason)> {
        let lost = |event: &Event| match event {
            Event::Lost { election, number, reason } => {
                Some((election.clone(), number.get(), *reason))
            }
            _ => None,
        };
        self.events.iter().filter_map(lost).collect()
    }
}

/// A view of `election` held by another member under `number`.
pub(super) fn held_by(election: &str, holder: MemberRef, number: u64, left: u64) -> ElectionView {
    ElectionView {
        number: TermNumber::new(number),
        holder: Some(Holder {
            member: holder,
            profile: Profile::default(),
            elected_at: Timestamp::default(),
            ttl: core::time::Duration::from_secs(10),
            remaining: core::time::Duration::from_millis(left),
            unconfirmed: false,
        }),
        ..ElectionView::vacant(name(election))
    }
}
