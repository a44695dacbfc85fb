//! A machine on a stage: feed it inputs at given times, look at what it says,
//! answer what it asks.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::*;

/// A machine under test, with what it has said so far.
pub(super) struct Script {
    pub(super) machine: Machine,
    pub(super) now: Mono,
    pub(super) sent: Vec<Outgoing>,
    pub(super) events: Vec<Event>,
}

pub(super) const SHARED: StoreTraits =
    StoreTraits { shared_heartbeat: true, native_watch: true, batch: 3 };
pub(super) const SINGLE: StoreTraits =
    StoreTraits { shared_heartbeat: false, native_watch: false, batch: 3 };

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
        Self::with(traits, Settings::default())
    }

    pub(super) fn with(traits: StoreTraits, settings: Settings) -> Self {
        let id = MemberId::new("me").unwrap();
        let machine = Machine::new(id, Profile::default(), settings, traits, 1);
        Self { machine, now: Mono::from_millis(1_000), sent: Vec::new(), events: Vec::new() }
    }

    /// A machine that has joined and stands for `election`; its claim is out.
    pub(super) fn standing(traits: StoreTraits, election: &str) -> Self {
        let mut script = Self::new(traits);
        script.stand(election);
        script.answer(Ok(Reply::Join(Joined::In { attention: 0, seq: Seq::START })));
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
        self.feed(Input::Reply { id, result: Box::new(result) });
    }

    pub(super) fn me(&self) -> MemberRef {
        self.machine.membership.me().expect("joined")
    }

    /// Answers the claim that is out: everything in it is won, as `number`.
    pub(super) fn win(&mut self, number: u64) {
        let Request::Claim(claim) = self.asked() else { panic!("no claim: {:?}", self.sent) };
        let member = claim.member.clone();
        let won = |bid: &Bid| {
            Claimed::Won(Term {
                election: bid.election.clone(),
                number: TermNumber::new(number),
                member: member.clone(),
                elected_at: Timestamp::default(),
            })
        };
        let answers = claim.bids.iter().map(won).collect();
        self.answer(Ok(Reply::Claim(Claims::Answered(answers))));
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
        let (attention, seq) = (0, Seq::START);
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

/// A view of `election` held by somebody else under `number`.
pub(super) fn held_by(election: &str, holder: MemberRef, number: u64, left: u64) -> ElectionView {
    ElectionView {
        number: TermNumber::new(number),
        holder: Some(Holder {
            member: holder,
            profile: Profile::default(),
            elected_at: Timestamp::default(),
            ttl: core::time::Duration::from_secs(10),
            remaining: core::time::Duration::from_millis(left),
        }),
        ..ElectionView::vacant(name(election))
    }
}
