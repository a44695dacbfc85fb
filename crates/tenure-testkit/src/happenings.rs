//! What happens, as short as tests want it. A field that a happening gets has its value
//! here, once for all tests.

use tenure_core::{
    ElectionName, EndCause, Happening, Incarnation, MemberId, MemberRef, Note, Priority, Profile,
    ReleaseCause, Term, TermNumber, Timestamp,
};

/// A term was won.
#[must_use]
pub fn elected(term: Term) -> Happening {
    Happening::Elected { term }
}

/// A term came to its end, and nothing is kept for an heir.
#[must_use]
pub fn released(
    election: ElectionName,
    number: TermNumber,
    member: MemberRef,
    cause: ReleaseCause,
) -> Happening {
    Happening::Released { election, number, member, cause, heir: None }
}

/// A member left.
#[must_use]
pub fn left(member: MemberRef) -> Happening {
    Happening::Left { member }
}

/// A member was ended.
#[must_use]
pub fn ended(member: MemberRef, cause: EndCause) -> Happening {
    Happening::Ended { member, cause }
}

/// A pause was lifted; by whom is not said.
#[must_use]
pub fn resumed(election: ElectionName) -> Happening {
    Happening::Resumed { election, by: Note::default() }
}

/// One of each, with something in every field, and one for each cause. What is won was won
/// at `at`.
#[must_use]
pub fn each(at: Timestamp) -> Vec<Happening> {
    let member =
        MemberRef::new(MemberId::new("m").expect("an id"), Incarnation::from_u128(u128::MAX));
    let election = ElectionName::new("wählen").expect("a name");
    let number = TermNumber::new(3);
    let profile = Profile::new(["h:1", "h:2"], [0, 255, 10]).expect("a profile");
    let reason = Note::new("why = so");
    let by = Note::new("who");
    let heir = Some(MemberId::new("h").expect("an id"));
    let term = Term { election: election.clone(), number, member: member.clone(), elected_at: at };
    let mut all = vec![
        Happening::Joined { member: member.clone(), profile },
        Happening::Joined { member: member.clone(), profile: Profile::default() },
        left(member.clone()),
        Happening::Stood {
            election: election.clone(),
            member: member.clone(),
            priority: Priority::new(u16::MAX),
        },
        elected(term),
        Happening::StepDownAsked {
            election: election.clone(),
            number,
            reason: reason.clone(),
            by: by.clone(),
            to: heir.clone(),
        },
        Happening::Paused { election: election.clone(), reason, by: by.clone() },
        Happening::Resumed { election: election.clone(), by },
        resumed(election.clone()),
    ];
    for cause in ReleaseCause::ALL {
        if let ReleaseCause::Ended(cause) = cause {
            all.push(ended(member.clone(), cause));
        }
        let election = election.clone();
        let member = member.clone();
        let heir = heir.clone();
        all.push(Happening::Released { election, number, member, cause, heir });
    }
    all
}
