//! The only loop around the machine.
//!
//! It runs on a thread of its own with a runtime of its own, so that neither a
//! blocked nor a busy application runtime can delay a heartbeat (F2), and no
//! code of the application ever runs on it. Requests to the store are tasks of
//! that runtime; the loop itself never waits for the store, so that the end of
//! trust is signalled on time whatever the store does (T3, H2).

mod board;
mod command;
mod names;
mod start;
mod waits;

use std::collections::HashMap;
use std::sync::Arc;

use tenure_core::{
    ElectionName, ElectionView, Event, Failed, Hint, Input, LostReason, Machine, Mono, Namespace,
    Outgoing, Output, Priority, Reply, Request, RequestId, TermNumber, TermRef,
};
use tenure_store::SharedStore;
use tokio::sync::{mpsc, oneshot};

pub(crate) use board::{Board, PostedChange, Present};
pub(crate) use command::{CampaignOutcome, Campaigned, Command, OutcomeSender, Patience};
pub(crate) use names::{NameCommand, NameOutcome};
pub(crate) use start::{Connection, Plan, Reach, Started, random, wait_for_end};

use self::names::NameWaits;
use self::waits::{Campaign, Over, Waits};
use crate::Error;
use crate::client::Client;
use crate::feed::Hints;
use crate::member::reign::{LetGo, Reign, TrustedUntil};
use crate::metrics::{Hook, Metric, Verb};
use crate::time::{Time, Timer};

/// Everything the loop owns.
struct Driver {
    machine: Machine,
    store: SharedStore,
    ns: Namespace,
    time: Time,
    board: Arc<Board>,
    /// Closed when the driver ends.
    client: Arc<Client>,
    metrics: Hook,
    /// The member's one trust, where one heartbeat renews everything.
    trust: Arc<TrustedUntil>,
    /// What is led, and the ticket of the campaign that won it.
    reigns: HashMap<ElectionName, (Arc<Reign>, u64)>,
    waits: Waits,
    names: NameWaits,
    leaving: Vec<oneshot::Sender<bool>>,
    /// Set once the member has left: whether the store confirmed it.
    left: Option<bool>,
    replies: mpsc::UnboundedSender<StoreReply>,
    /// From the first campaign on.
    hints: Option<Hints>,
}

/// A request that came back.
struct StoreReply {
    id: RequestId,
    verb: Verb,
    started: Mono,
    result: tenure_store::Result<Reply>,
}

impl Driver {
    /// Runs until the member has left.
    async fn run(
        mut self,
        mut timer: Timer,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut replies: mpsc::UnboundedReceiver<StoreReply>,
    ) {
        let mut open = true;
        while !self.machine.is_done() {
            let wake = self.next_wake();
            // In this order: the end of trust is acted on before anything that arrives, an
            // answer, which may extend trust, before a new wish, and hints last (N1).
            tokio::select! {
                biased;
                () = timer.until(wake) => self.feed(Input::Wake),
                Some(answered) = replies.recv() => self.on_answered(answered),
                command = commands.recv(), if open => match command {
                    Some(command) => self.on_command(command),
                    // The application has dropped all its handles: leave in order.
                    None => {
                        open = false;
                        self.feed(Input::Shutdown);
                    }
                },
                hint = next_hint(&mut self.hints) => self.feed(Input::Hint(hint)),
            }
            self.end_impatient();
            self.board.health().standing = self.waits.campaigns();
        }
        // A shutdown may have been asked for while the last answer came in. Closed first: a
        // command that is sent from now on fails at its sender.
        commands.close();
        while let Some(command) = commands.recv().await {
            if let Command::Shutdown { done } = command {
                let _ = done.send(self.left.unwrap_or(false));
            }
        }
    }

    fn next_wake(&self) -> Option<Mono> {
        self.waits.next_limit().into_iter().chain(self.machine.next_wake()).min()
    }

    /// Feeds the machine and carries out what it says, in its order.
    fn feed(&mut self, input: Input) {
        let now = self.time.now();
        self.machine.handle(now, input);
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(out) => self.send(now, out),
                Output::Event(event) => self.on_event(event),
            }
        }
    }

    /// Carries a request to the store. It is dropped at its deadline, when the
    /// machine has given it up already.
    fn send(&self, now: Mono, out: Outgoing) {
        let Outgoing { id, request, deadline } = out;
        let verb = Verb::of(&request);
        let store = self.store.clone();
        let ns = self.ns.clone();
        let time = self.time.clone();
        let replies = self.replies.clone();
        // A task beside the loop: a store that hangs delays no heartbeat and no loss.
        tokio::spawn(async move {
            let limit = deadline.since(now);
            let result = time.within(limit, tenure_store::perform(&*store, &ns, &request)).await;
            let result = result.unwrap_or_else(|| Err(too_slow(verb, limit, &request)));
            let _ = replies.send(StoreReply { id, verb, started: now, result });
        });
    }

    fn on_answered(&mut self, answered: StoreReply) {
        let StoreReply { id, verb, started, result } = answered;
        let latency = self.time.now().since(started);
        self.metrics.record(Metric::Request { verb, latency, failed: result.is_err() });
        self.note_health(verb, &result);
        let result = Box::new(result.map_err(|error| Failed::from(&error)));
        self.feed(Input::Reply { id, result });
    }

    fn note_health(&self, verb: Verb, result: &tenure_store::Result<Reply>) {
        let mut health = self.board.health();
        match result {
            Ok(_) => {
                if health.failures > 0 {
                    let failures = health.failures;
                    tracing::info!(target: "tenure", failures, "the store answers again");
                }
                health.failures = 0;
                health.last_success = Some(self.time.now());
            }
            Err(error) => {
                health.failures = health.failures.saturating_add(1);
                health.last_error = Some(error.to_string());
                let maybe = error.may_have_applied();
                let failures = health.failures;
                tracing::warn!(target: "tenure", verb = verb.name(), %error, may_have_applied = maybe, failures, "a request to the store failed");
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Tell(input) => self.feed(input),
            Command::Stand { election, priority, patience, ticket, reply } => {
                let campaign = Campaign::new(reply, patience, self.time.now(), ticket);
                if self.begin(&election, campaign) {
                    self.feed(Input::Stand { election, priority });
                }
            }
            Command::StandForAll { mut elections, ticket, reply } => {
                let now = self.time.now();
                elections.retain(|election| {
                    let reply = OutcomeSender::Among(reply.clone());
                    self.begin(election, Campaign::new(reply, Patience::Endless, now, ticket))
                });
                self.feed(Input::StandForAll { elections, priority: Priority::default() });
            }
            Command::Withdraw { election, ticket } => self.withdraw(election, ticket),
            Command::Bind(commands) => self.bind(commands),
            Command::WithdrawName { name, ticket } => self.withdraw_name(name, ticket),
            Command::LetGoOfName { name, token } => self.let_go_of_name(name, token),
            Command::Confirm { term, confirm } => self.confirm(term, confirm),
            Command::Turn { done } => {
                // A caller that no longer waits is not told.
                let _ = done.send(());
            }
            Command::Idle { done } => {
                tokio::spawn(async {
                    for _ in 0..32 {
                        tokio::task::yield_now().await;
                    }
                    let _ = done.send(());
                });
            }
            Command::Shutdown { done } => {
                self.leaving.push(done);
                self.feed(Input::Shutdown);
            }
        }
    }

    /// Notes a campaign, or refuses it: one at a time for each election.
    fn begin(&mut self, election: &ElectionName, campaign: Campaign) -> bool {
        if self.waits.campaign(election).is_some() || self.reigns.contains_key(election) {
            campaign.reply.send(election, Err(Error::AlreadyStanding(election.clone())));
            return false;
        }
        // From the first candidacy on: a member that stands for nothing needs no hints, and
        // following costs the store a session or looks.
        if self.hints.is_none() {
            self.hints = self.client.feed().and_then(|feed| feed.hints()).ok();
        }
        self.metrics.record(Metric::Standing { election: election.clone() });
        self.waits.begin(election.clone(), campaign);
        true
    }

    /// Ends exactly the campaign that held this ticket, also if it was won
    /// while its caller stopped waiting; never another's for the same election.
    fn withdraw(&mut self, election: ElectionName, ticket: u64) {
        let waits = self.waits.campaign(&election).is_some_and(|c| c.ticket == ticket);
        let leads = self.reigns.get(&election).is_some_and(|(_, won_by)| *won_by == ticket);
        if waits {
            self.waits.take(&election);
            self.feed(Input::Withdraw { election });
        } else if leads && let Some(input) = self.forsake(&election) {
            self.feed(input);
        }
    }

    /// Gives up a term whose campaign has stopped waiting. Work that began
    /// under it all the same, since the board showed it, is told to stop first.
    fn forsake(&self, election: &ElectionName) -> Option<Input> {
        let (reign, _) = self.reigns.get(election)?;
        let election = election.clone();
        let number = reign.term.number;
        reign.give_up(None, None);
        match reign.let_go() {
            LetGo::Last { to } => Some(Input::Resign { election, number, to }),
            LetGo::TellOthers { to } => Some(Input::StopLeading { election, number, to }),
            LetGo::Nothing => None,
        }
    }

    fn confirm(&mut self, term: TermRef, confirm: oneshot::Sender<bool>) {
        let now = self.time.now();
        let limit = self.machine.settings().ttl();
        self.waits.confirm(term, confirm, now, limit);
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Joined { member } => {
                tracing::info!(target: "tenure", %member, "joined");
                let mut health = self.board.health();
                health.member = Some(member);
                health.conflict = None;
            }
            Event::IdTaken { by, .. } => {
                let conflict = format!(
                    "another process is a member under this id (incarnation {by}): give each \
                     process an id of its own, or wait for the other's ttl to run out"
                );
                tracing::warn!(target: "tenure", incarnation = %by, "the member id is taken");
                self.board.health().conflict = Some(conflict);
            }
            Event::MemberEnded { member, superseded } => {
                tracing::warn!(target: "tenure", %member, superseded, "this membership is over");
                let mut health = self.board.health();
                health.member = None;
                if superseded {
                    let conflict = "another process joined under this id and took its place: \
                                    give each process an id of its own";
                    health.conflict = Some(conflict.into());
                }
            }
            Event::RolledBack { seen, found } => {
                tracing::error!(
                    target: "tenure", seen = seen.get(), found = found.get(),
                    "the store was rolled back: it has forgotten what it told before; what was led \
                     is given up, and the next bid lets the numbers jump (after a restore, also \
                     run `tenure restored`)"
                );
                let told = format!(
                    "the store was rolled back: it had told of place {seen} of the journal, and is \
                     at {found}; after a restore from a backup, run `tenure restored`"
                );
                self.board.health().rolled_back = Some(told);
            }
            Event::Trusted { until, margin_left } => {
                self.trust.set(until);
                self.metrics.record(Metric::Renewed { margin_left });
            }
            Event::Elected { term, trusted_until } => self.on_elected(term, trusted_until),
            Event::Stopping { election, number, reason, drain_until } => {
                tracing::info!(target: "tenure", %election, term = number.get(), ?reason, "asked to stop leading");
                if let Some((reign, _)) = self.reigns.get(&election) {
                    self.board.stopping(reign, reason, drain_until);
                }
            }
            Event::Lost { election, number, reason } => self.on_lost(&election, number, reason),
            Event::GivenBack { election, number } => {
                self.waits.given_back(&TermRef { election, number });
            }
            Event::NameAnswered { ticket, answer } => self.on_name_answered(ticket, answer),
            Event::NamesLost { names, reason } => self.on_names_lost(names, reason),
            Event::Withdrawn { election } => {
                self.board.health().no_longer_waits(&election);
                if let Some(campaign) = self.waits.take(&election) {
                    campaign.reply.send(&election, Err(Error::ShutDown));
                }
            }
            Event::Standby { view } => {
                self.board.health().saw(&view);
                self.waits.note(&view);
                self.on_standby(view);
            }
            Event::Left { confirmed } => {
                tracing::info!(target: "tenure", confirmed, "left");
                self.left = Some(confirmed);
                self.waits.left(confirmed);
                for done in self.leaving.drain(..) {
                    let _ = done.send(confirmed);
                }
            }
        }
    }

    fn on_elected(&mut self, term: tenure_core::Term, trusted_until: Mono) {
        let election = term.election.clone();
        tracing::info!(target: "tenure", %election, term = term.number.get(), member = %term.member, "elected");
        self.trust.set(trusted_until);
        self.board.health().no_longer_waits(&election);
        let number = term.number;
        let reign = Arc::new(Reign::new(term, self.trust.clone()));
        let campaign = self.waits.take(&election);
        let ticket = campaign.as_ref().map_or(0, |campaign| campaign.ticket);
        self.reigns.insert(election.clone(), (reign.clone(), ticket));
        self.board.elected(reign.clone());
        self.metrics.record(Metric::Elected { election: election.clone(), number });
        let told = campaign.is_some_and(|c| c.reply.send(&election, Ok(Campaigned::Won(reign))));
        // The caller no longer waits: give it back at once.
        if !told && let Some(input) = self.forsake(&election) {
            self.machine.handle(self.time.now(), input);
        }
    }

    fn on_lost(&mut self, election: &ElectionName, number: TermNumber, reason: LostReason) {
        tracing::info!(target: "tenure", %election, term = number.get(), ?reason, "no longer leads");
        let term = TermRef { election: election.clone(), number };
        if reason != LostReason::Superseded {
            self.waits.owe(term.clone());
        }
        if let Some((reign, _)) = self.reigns.remove(election) {
            let waiting = reign.end(reason);
            self.board.lost(election, reason);
            if reason == LostReason::DrainTimeout {
                let holds = reign.holds();
                tracing::warn!(target: "tenure", %election, term = number.get(), holds, "work did not end within the drain: it was told that the term is lost");
            }
            waiting.into_iter().for_each(|confirm| self.confirm(term.clone(), confirm));
            self.metrics.record(Metric::Lost { election: election.clone(), number, reason });
        }
    }

    /// The store has answered that the election is not free: a caller that did not want to
    /// wait has its answer.
    fn on_standby(&mut self, view: Box<ElectionView>) {
        let election = view.election.clone();
        let impatient = |c: &Campaign| matches!(c.patience, Patience::OneAnswer(_));
        if self.waits.campaign(&election).is_some_and(impatient)
            && let Some(campaign) = self.waits.take(&election)
        {
            campaign.reply.send(&election, Ok(Campaigned::NotNow(Some(view))));
            self.machine.handle(self.time.now(), Input::Withdraw { election });
        }
    }

    /// Ends waits whose time is over.
    fn end_impatient(&mut self) {
        let now = self.time.now();
        while let Some(over) = self.waits.over(now) {
            let Over::Campaign(election, campaign) = over else { continue };
            let because = {
                let health = self.board.health();
                let failing = (health.failures > 0).then(|| health.last_error.clone()).flatten();
                health.conflict.clone().or(failing)
            };
            let outcome = match (campaign.patience, because) {
                // The store answers, but this member may not lead for now: it
                // stepped down a moment ago.
                (Patience::OneAnswer(_), None) => Ok(Campaigned::NotNow(None)),
                (_, because) => {
                    let because = because.or(campaign.why_not());
                    let waited = now.since(campaign.since);
                    Err(Error::NotElected { election: election.clone(), waited, because })
                }
            };
            campaign.reply.send(&election, outcome);
            self.feed(Input::Withdraw { election });
        }
    }
}

impl Drop for Driver {
    /// However the loop ends, no work is left believing that it leads.
    fn drop(&mut self) {
        for (election, (reign, _)) in self.reigns.drain() {
            // Who waits for a confirmation hears that there will be none.
            drop(reign.end(LostReason::TrustEnded));
            self.board.lost(&election, LostReason::TrustEnded);
        }
        self.names.end();
        self.client.close();
    }
}

async fn next_hint(hints: &mut Option<Hints>) -> Hint {
    match hints {
        Some(hints) => hints.next().await,
        None => std::future::pending().await,
    }
}

fn too_slow(verb: Verb, limit: std::time::Duration, request: &Request) -> tenure_store::Error {
    let message = format!("{} got no answer from the store within {limit:?}", verb.name());
    let error = tenure_store::Error::new(tenure_store::ErrorKind::Timeout, message);
    if matches!(request, Request::Read(_)) { error } else { error.maybe_applied() }
}
