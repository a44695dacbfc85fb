//! Being a member: join, be ended, leave. The heartbeats between are in
//! [`trust`](super::trust).

use core::time::Duration;

use super::Event;
use super::context::Context;
use super::slot::{Flight, Slot};
use super::terms::Terms;
use super::trust::Trust;
use crate::{Failed, Join, Joined, MemberRef, Mono, Reply, Request};

/// How often a leave is tried before the member is left to its ttl.
const LEAVE_TRIES: u32 = 3;

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Membership {
    state: State,
    /// Whether to be a member even while standing for nothing.
    wanted: bool,
    /// Whether the next join may end an older life of the same id.
    was_superseded: bool,
    pub(super) join: Slot<MemberRef>,
    pub(super) leave: Slot<()>,
    leave_tries: u32,
}

/// See the diagram on the [crate's page](crate#the-life-of-a-member).
#[derive(Clone, Debug, Default, Hash)]
enum State {
    #[default]
    Out,
    Joining(MemberRef),
    In(Life),
    Gone,
}

/// One life in the store.
#[derive(Clone, Debug, Hash)]
pub(super) struct Life {
    pub(super) member: MemberRef,
    /// See [`Beat::Alive`](crate::Beat::Alive).
    pub(super) attention: u64,
}

/// The store says that this life is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct LifeOver {
    /// Whether another life of the same id has taken its place.
    pub(super) superseded: bool,
}

impl Membership {
    /// Whether the member has left for good.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    pub(super) fn is_out(&self) -> bool {
        matches!(self.state, State::Out)
    }

    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    pub(super) fn life(&self) -> Option<&Life> {
        match &self.state {
            State::In(life) => Some(life),
            _ => None,
        }
    }

    pub(super) fn life_mut(&mut self) -> Option<&mut Life> {
        match &mut self.state {
            State::In(life) => Some(life),
            _ => None,
        }
    }

    /// When to join or leave; `may_leave` says that a member that shuts down is free to.
    pub(super) fn wake(
        &self,
        is_shutting_down: bool,
        may_leave: bool,
        stands: bool,
    ) -> Option<Mono> {
        let leave = self.leave.wake(may_leave.then_some(Mono::ZERO));
        match &self.state {
            State::Out if !is_shutting_down && (self.wanted || stands) => {
                self.join.wake(Some(Mono::ZERO))
            }
            State::Joining(_) if !is_shutting_down || self.join.is_in_flight() => {
                self.join.wake(Some(Mono::ZERO))
            }
            State::Joining(_) | State::In(_) => leave,
            State::Out | State::Gone => None,
        }
    }

    /// Joins, if there is a reason to and it is time.
    pub(super) fn step(&mut self, cx: &mut Context<'_>, stands: bool) {
        if cx.is_shutting_down {
            return;
        }
        if self.is_out() && (self.wanted || stands) {
            let member = MemberRef::new(cx.id.clone(), cx.entropy.incarnation());
            self.state = State::Joining(member);
        }
        let State::Joining(member) = &self.state else { return };
        if !self.join.is_free(cx.now) {
            return;
        }
        let join = Join::new(member.clone(), cx.settings.idle_ttl())
            .with_profile(cx.profile.clone())
            .with_supersede(!self.was_superseded)
            .with_inherits(!cx.confirm_within().is_zero())
            .with_seen(cx.place.to_tell(cx.decide));
        self.join.send(cx, Request::Join(join), member.clone());
    }

    /// The answer to a join, or that there was none.
    pub(super) fn on_join(
        &mut self,
        cx: &mut Context<'_>,
        flight: Flight<MemberRef>,
        result: &Result<Reply, Failed>,
        terms: &mut Terms,
    ) {
        match *result {
            Ok(Reply::Join(Joined::In { attention, seq })) => {
                let member = flight.what;
                terms.trust = Trust::of_new_life(flight.started + cx.settings.idle_heartbeat());
                self.state = State::In(Life { member: member.clone(), attention });
                terms.note_place(cx, flight.seen, seq);
                cx.emit(Event::Joined { member });
            }
            Ok(Reply::Join(Joined::Taken { by, remaining })) => {
                self.join.succeeded();
                if by == flight.what.incarnation {
                    // This very life is over already: the next try is another.
                    self.state = State::Out;
                }
                // It may be gone before its ttl has run out.
                let wait = remaining.min(cx.settings.idle_ttl());
                let retry_at = cx.now + wait.max(cx.settings.retry_least());
                self.join.hold_until(retry_at);
                cx.emit(Event::IdTaken { by, retry_at });
            }
            // Unknown or failed: the same life asks again, which is harmless.
            _ => self.join.failed(cx, Duration::MAX),
        }
    }

    /// This life is over. `was_granted` says that the store ever confirmed it.
    pub(super) fn end_life(&mut self, cx: &mut Context<'_>, over: LifeOver, was_granted: bool) {
        self.state = State::Out;
        self.was_superseded = over.superseded;
        if over.superseded {
            self.join.hold_until(cx.now + cx.settings.retry_most());
        } else if !was_granted {
            // A store that lets in and ends at once must not be hammered.
            self.join.failed(cx, Duration::MAX);
        }
    }

    /// Leaves, if the store has or may have this member.
    pub(super) fn leave(&mut self, cx: &mut Context<'_>) {
        let member = match &self.state {
            State::Joining(member) if !self.join.is_in_flight() => member.clone(),
            State::In(life) => life.member.clone(),
            State::Joining(_) | State::Out | State::Gone => return,
        };
        if self.leave.is_free(cx.now) {
            self.leave_tries += 1;
            self.leave.send(cx, Request::Leave(member), ());
        }
    }

    /// The answer to a leave, or that there was none. Whether to try no more.
    #[must_use]
    pub(super) fn on_leave(&mut self, cx: &mut Context<'_>, confirmed: bool) -> bool {
        let is_done = confirmed || self.leave_tries >= LEAVE_TRIES;
        if !is_done {
            self.leave.failed(cx, Duration::MAX);
        }
        is_done
    }

    pub(super) fn go(&mut self) {
        self.state = State::Gone;
    }
}
