//! Everything that can happen next.

/// One step of a world. Processes and letters are named by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A step of time passes on every clock.
    Tick,
    /// A step of time passes, but this process's clock misses it: it runs slow.
    Slip(usize),
    /// A process is run because the time it asked for has come.
    Wake(usize),
    /// A request reaches the store and is answered at once; or a late reply
    /// arrives.
    Deliver(usize),
    /// A request reaches the store, and the reply is late.
    Delay(usize),
    /// A request or a late reply is lost.
    Lose(usize),
    /// A request reaches the store, and the reply is lost.
    LoseReply(usize),
    /// A request reaches the store and is answered, and a late copy of it is
    /// still on its way.
    Double(usize),
    /// A process is cut off from the store.
    Cut(usize),
    /// It is connected again.
    Mend(usize),
    /// The next hint reaches a process.
    Hint(usize),
    /// The work of a process that was told to stop has stopped.
    WorkStops(usize),
    /// A leader resigns of its own accord: its work has stopped already.
    Resign(usize),
    /// A process gives back a name that it owns: its work has stopped already.
    Drop(usize),
    /// The work under a name that was lost has stopped.
    LetGo(usize),
    /// A process dies without a word.
    Crash(usize),
    /// A dead process starts again under the same id.
    Restart(usize),
    /// A process is asked to shut down in order.
    Shutdown(usize),
    /// An operator asks the leader of the first election to step down; with a
    /// process, in favour of that one.
    StepDown(Option<usize>),
    /// An operator evicts a member, and what it holds stays its own for its ttl.
    Evict(usize),
    /// An operator pauses the first election.
    Pause,
    /// An operator resumes it.
    Resume,
}
