//! Situations that a search must have met: a world in which nothing ever
//! happens breaks no rule either.

/// One situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// An election was won.
    Elected,
    /// It was won by another member than the term before.
    TakenOver,
    /// A leadership was lost because trust ended.
    TrustEnded,
    /// A leadership was lost because the store said so.
    Superseded,
    /// A leader stepped down when it was asked to.
    SteppedDown,
    /// A leader was given up because its work took too long to stop.
    DrainTimeout,
    /// A repeated bid found that it had won already (E2, H21).
    Adopted,
    /// A heartbeat came after its life was over (M1, H7).
    BeatenDead,
    /// A release came too late to matter (E1, H8).
    LateRelease,
    /// A restarted process found its id still in use.
    IdTaken,
    /// The answer of a win came too late to be believed (B5).
    LateWin,
    /// A member left in order.
    Left,
    /// An election was kept for a named successor, who won it.
    HandedOver,
    /// A bid was lost because the election was paused (E6).
    Paused,
    /// A name was taken, and its owner was told.
    NameOwned,
    /// The next owner of a name was another process.
    NameMoved,
    /// A name was lost because trust ended.
    NameLost,
    /// A take was refused, because the name is another's.
    NameRefused,
    /// A repeated take got the binding that it had made before (E2).
    NameAdopted,
    /// A drop came too late to matter (E1).
    LateDrop,
}

impl Mark {
    /// All of them, in the order of their declaration.
    pub const ALL: [Mark; 20] = [
        Mark::Elected,
        Mark::TakenOver,
        Mark::TrustEnded,
        Mark::Superseded,
        Mark::SteppedDown,
        Mark::DrainTimeout,
        Mark::Adopted,
        Mark::BeatenDead,
        Mark::LateRelease,
        Mark::IdTaken,
        Mark::LateWin,
        Mark::Left,
        Mark::HandedOver,
        Mark::Paused,
        Mark::NameOwned,
        Mark::NameMoved,
        Mark::NameLost,
        Mark::NameRefused,
        Mark::NameAdopted,
        Mark::LateDrop,
    ];
}

/// The situations met in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks(u32);

impl Marks {
    pub(crate) fn set(&mut self, mark: Mark) {
        self.0 |= 1 << mark as u8;
    }

    pub(crate) fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u8) != 0
    }
}
