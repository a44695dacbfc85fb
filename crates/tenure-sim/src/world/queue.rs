//! What is to happen, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use tenure_core::TermNumber;
use tenure_core::{
    Amend, ElectionName, Failed, Hint, Incarnation, Mono, Name, Reply, Request, RequestId, Token,
};

use super::clients::{Said, Turn};
use crate::clock::Nanos;
use crate::config::Feature;
use crate::fact::Who;
use crate::store::Caller;

/// Something that will happen.
#[derive(Clone, Debug)]
pub(crate) enum Happens {
    /// A machine asked to be woken; only the newest wish counts.
    Wake { who: Who, wish: u64 },
    /// A request reaches the store.
    Request { who: Who, id: RequestId, request: Rc<Request> },
    /// A reply reaches its process.
    Reply { who: Who, id: RequestId, result: Result<Reply, Failed> },
    /// A hint reaches a process.
    Hint { who: Who, hint: Hint },
    /// An application does something.
    App { who: Who, act: Act },
    /// An operator's request reaches the store.
    Operator(Amend),
    /// A fenced write reaches what it writes to.
    Write { who: Who, incarnation: Incarnation, election: ElectionName, token: TermNumber },
    /// It is time for trouble of this kind.
    Trouble(Feature),
    /// A process that was frozen goes on.
    Thaw { who: Who },
    /// The way between a process and the store is open again.
    Reconnect { process: usize },
    /// A process is started.
    Start { process: usize },
    /// An operation reaches the service; `asked` if it has waited for the lock since then,
    /// by the service's clock.
    Call { call: u64, asked: Option<Mono> },
    /// A process looks for itself at what the store does not tell.
    Poll { who: Who, first: bool },
    /// The service's answer reaches a process, or an operator.
    Answer { by: Caller, answer: u64 },
    /// A process compares the names that it owns with what the store shows.
    CompareNames { who: Who },
    /// A client of a server does or hears something.
    Client(Turn),
    /// The next part of the healing.
    Heal(u8),
}

/// What an application does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Begins to stand.
    Stand(ElectionName),
    /// Stops standing.
    Withdraw(ElectionName),
    /// Its work of this term has stopped, of its own accord or as it was told.
    Stopped(ElectionName, TermNumber),
    /// Asks its own leadership to stop in order.
    StopLeading(ElectionName, TermNumber),
    /// Wants to write something.
    Write(ElectionName, TermNumber),
    /// Serves the session of this number: what its client said, or what time has come for.
    Session(ElectionName, u64, Said),
    /// Does something with a name.
    Name(NameAct),
    /// Shuts the process down in order.
    Shutdown,
}

/// What an application does with a name.
#[derive(Clone, Debug)]
pub(crate) enum NameAct {
    /// Takes it.
    Take(Name),
    /// Publishes something else with it.
    Change(Name, Token),
    /// Drops it: its work has stopped.
    Drop(Name, Token),
    /// Does not wait any more for this take.
    Withdraw(Name, u64),
    /// Its work has stopped after the name was lost.
    LetGo(Name, Token),
}

#[derive(Debug)]
struct Queued {
    at: Nanos,
    order: u64,
    what: Happens,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    /// The earliest is the greatest; among equals, the one put in first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Everything that will happen.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Queued>,
    order: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: Nanos, what: Happens) {
        self.order += 1;
        self.heap.push(Queued { at, order: self.order, what });
    }

    pub(crate) fn pop(&mut self) -> Option<(Nanos, Happens)> {
        self.heap.pop().map(|next| (next.at, next.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_comes_first_and_equals_in_order() {
        let mut queue = Queue::default();
        for (at, part) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            queue.push(at, Happens::Heal(part));
        }
        let mut order = Vec::new();
        while let Some((at, Happens::Heal(part))) = queue.pop() {
            order.push((at, part));
        }
        assert_eq!(order, [(3, 1), (3, 3), (5, 0), (5, 2)]);
    }
}
