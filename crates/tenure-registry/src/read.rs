//! Reading what changed since a revision, and all names where that does not do.
//!
//! # What could break it
//!
//! - **A life that was taken for dead owns names again.** Where the store's clock is set
//!   forward past the end of a life's ttl, its names are not in an answer; set back before
//!   that life was ended, the names that did not change meanwhile are in no later answer
//!   either. So a life that the answer before did not name as an owner is looked at by
//!   itself: if it has a name from before that answer, all names are read (R1).
//! - **The store forgot a registration before the copy had read it.** The copy asks from a
//!   revision that the store still has, and is told that nothing changed. What this process
//!   was given by a registration is newer than that answer: so all names are read, and its
//!   owner finds that the name is not among them (M6).

use std::collections::HashSet;

use tenure::naming::{Binding, NamesView, Rev, WhichNames};
use tenure::views::MemberRef;

/// What changed since a revision, or all names: then the view is [whole](NamesView::whole).
/// `given` is the newest revision of a registration of this process, `owners` are the lives
/// that owned names by the answer before. Where the store cannot tell what changed, it is
/// always all names.
pub(crate) async fn changed<F>(
    ask: impl Fn(WhichNames) -> F,
    since: Rev,
    given: Rev,
    tells: bool,
    owners: &HashSet<MemberRef>,
) -> tenure::Result<NamesView>
where
    F: Future<Output = tenure::Result<NamesView>>,
{
    if !tells {
        let view = ask(WhichNames::Prefix(String::new())).await?;
        let owner = |binding: &Binding| Some((binding.owner.clone()?, binding.remaining));
        let owners = view.bindings.iter().filter_map(owner).collect();
        return Ok(NamesView { owners, whole: true, ..view });
    }
    let view = ask(WhichNames::Since(since)).await?;
    let may_be_changes = since > Rev::START && !view.whole && view.rev >= given;
    if may_be_changes && !is_one_back(&ask, &view, since, owners).await? {
        return Ok(view);
    }
    match view.whole || since == Rev::START {
        true => Ok(NamesView { whole: true, ..view }),
        false => {
            let all = ask(WhichNames::Since(Rev::START)).await?;
            Ok(NamesView { whole: true, ..all })
        }
    }
}

/// Whether a life owns names that stood at `since` already, although it was no owner then.
async fn is_one_back<F>(
    ask: impl Fn(WhichNames) -> F,
    view: &NamesView,
    since: Rev,
    owners: &HashSet<MemberRef>,
) -> tenure::Result<bool>
where
    F: Future<Output = tenure::Result<NamesView>>,
{
    for (life, _) in view.owners.iter().filter(|(life, _)| !owners.contains(life)) {
        let is_new = view.bindings.iter().any(|binding| binding.owner.as_ref() == Some(life));
        if !is_new {
            return Ok(true);
        }
        let all = ask(WhichNames::OwnedBy(life.clone())).await?;
        if all.bindings.iter().any(|binding| binding.rev <= since) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
