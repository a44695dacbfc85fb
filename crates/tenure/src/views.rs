//! What a store shows of elections and members, beyond who leads, and what it answers to an
//! operator; with the types of their parts.

pub use tenure_core::{
    Amended, BadName, BadSettings, Candidate, ElectionView, HeldUp, Holder, Incarnation, MAX_NAME,
    MemberRef, MemberView, Note, Pause, Priority, Profile, Reservation, Snapshot, StepDown,
    is_hidden, shown,
};
