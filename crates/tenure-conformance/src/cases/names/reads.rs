//! Reading names: of one moment, by name, prefix and owner, and what changed since.

use std::collections::BTreeMap;

use tenure_core::{BindAnswer, BindOp, Binding, Hint, MemberRef, Name, NamesView, Rev, WhichNames};

use tenure_store::{Followed, Following};

use tenure_store::ErrorKind;

use super::asking::{Owner, bound, name, plain, value};
use super::with_names;
use crate::Outcome;
use crate::actor::Actor;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// N1: a follower is told of a change of names although the journal stands still, also of
/// one that comes right after another it was told of.
pub(crate) async fn a_follower_is_told_of_a_change_of_names(world: &World<'_>) -> Outcome {
    if !with_names!(world).since {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let first = a.take("n").await?;
    let mut following = world.follow().await?;
    same!(world.heard(&mut *following).await?, Followed::Hint(Hint::Anything), "the first hint");
    let changed = bound(a.op(a.changing(&first, "other")?).await?)?;
    told_of_names(world, &mut *following).await?;
    a.let_go(&changed).await?;
    told_of_names(world, &mut *following).await?;
    b.take("n").await?;
    told_of_names(world, &mut *following).await?;
    Ok(())
}

/// Waits for a hint that names changed.
async fn told_of_names(world: &World<'_>, following: &mut dyn Following) -> Outcome {
    while world.heard(following).await? != Followed::Hint(Hint::Names) {}
    Ok(())
}

fn texts(view: &NamesView) -> Vec<&str> {
    view.bindings.iter().map(|binding| binding.name.as_str()).collect()
}

/// Each way of asking finds the same bindings, by name, at the same revision.
pub(crate) async fn names_are_found_by_name_and_by_owner(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let two = a.take("two").await?;
    let one = b.take("one").await?;
    let three = a.take("three").await?;
    let all = [plain(&one), plain(&three), plain(&two)];
    same!(world.bound().await?, all, "all names");
    let asked = ["two", "none", "one", "two"].map(name).into_iter().collect::<Outcome<_>>()?;
    let named = world.names(&WhichNames::Named(asked)).await?;
    same!(texts(&named), ["one", "two"], "those that were named");
    same!(plain(&named.bindings[1]), plain(&two), "one that was named");
    for (actor, expected) in [(&a, &["three", "two"][..]), (&b, &["one"])] {
        let owned = world.names(&WhichNames::OwnedBy(actor.me.clone())).await?;
        same!(texts(&owned), expected, "what one owns");
        let rev = if traits.since { three.rev } else { Rev::START };
        same!(owned.rev, rev, "the revision of the answer");
        ensure!(!owned.whole && owned.gone.is_empty(), "nothing besides: {owned:?}");
    }
    world.has_reached(three.rev, "looking changes nothing").await?;
    Ok(())
}

/// A prefix is text, whatever its characters mean elsewhere.
pub(crate) async fn a_prefix_is_taken_literally(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let all = [
        "a",
        "a%",
        "a%b",
        "a*b",
        "a/b",
        "a?b",
        "a[b]",
        "a\\b",
        "a_b",
        "ab",
        "aXb",
        "A",
        "á",
        "ä",
        "名",
        "名前",
        "\u{10ffff}",
        "\u{10ffff}x",
        "~",
    ];
    for text in all {
        a.take(text).await?;
    }
    for prefix in [
        "",
        "a",
        "a%",
        "a_",
        "a*",
        "a?",
        "a[",
        "a\\",
        "a/",
        "A",
        "á",
        "名",
        "名前",
        "\u{10ffff}",
        "x",
        "a%b",
        "a%bc",
        "%",
        "_",
        "\\",
    ] {
        let found = world.names(&WhichNames::Prefix(prefix.into())).await?;
        let mut expected: Vec<_> =
            all.into_iter().filter(|text| text.starts_with(prefix)).collect();
        expected.sort_unstable();
        same!(texts(&found), expected, format!("names that begin with {prefix:?}"));
    }
    Ok(())
}

/// A reader that keeps a copy of the names, by what changed since it looked last.
#[derive(Default)]
struct Copy {
    rev: Rev,
    known: BTreeMap<Name, Binding>,
}

impl Copy {
    async fn catch_up(&mut self, world: &World<'_>) -> Outcome {
        let changed = world.since(self.rev).await?;
        ensure!(changed.rev >= self.rev || changed.whole, "a revision goes back: {changed:?}");
        if changed.whole {
            self.known.clear();
        }
        for name in &changed.gone {
            self.known.remove(name);
        }
        self.known.extend(changed.bindings.iter().map(|b| (b.name.clone(), plain(b))));
        let lives = |owner: &MemberRef| changed.owners.iter().any(|(life, _)| life == owner);
        self.known.retain(|_, binding| binding.owner.as_ref().is_none_or(&lives));
        self.rev = changed.rev;
        Ok(())
    }

    /// Whether it is what a full read shows at this moment.
    async fn compare(&self, world: &World<'_>, what: &str) -> Outcome {
        let all = world.bound().await?;
        same!(self.known.values().cloned().collect::<Vec<_>>(), all, what);
        Ok(())
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Something happens to one of a few names.
async fn stir(world: &World<'_>, dice: &mut Dice, actors: &mut [Owner]) -> Outcome {
    let who = usize::try_from(dice.below(actors.len() as u64)).unwrap_or(0);
    let actor = &actors[who];
    let text = format!("n{}", dice.below(6));
    let found = world.names(&WhichNames::Named(vec![name(&text)?])).await?.bindings.pop();
    match (dice.below(24), found) {
        (0, _) => {
            actor.leave().await?;
            actors[who] = world.owner(actor.me.id.as_str()).await?;
        }
        (1, _) => {
            world.evict(actor.me.id.as_str(), true).await?;
            actors[who] = world.owner(actor.me.id.as_str()).await?;
        }
        (2, _) => {
            actor.fade(world.unit()).await?;
            let all: Vec<&Actor> = actors.iter().map(|owner| &**owner).collect();
            world.lapse(&all).await?;
            actors[who] = world.owner(actors[who].me.id.as_str()).await?;
        }
        (3..6, Some(binding)) => {
            actor.op(actor.changing(&binding, &format!("v{}", dice.below(100)))?).await?;
        }
        (6..11, Some(binding)) => {
            actor.op(actor.dropping(&binding)).await?;
        }
        (11, _) => {
            actor.op(actor.posting(&text)?).await?;
        }
        // Several at once, of which some are taken.
        (12, _) => {
            let texts = (0..3).map(|_| format!("n{}", dice.below(6)));
            let ops: Vec<BindOp> = texts.map(|t| actor.taking(&t)).collect::<Outcome<_>>()?;
            for op in ops {
                actor.op(op).await?;
            }
        }
        _ => {
            actor.op(actor.taking(&text)?).await?;
        }
    }
    Ok(())
}

/// Q8, R1, R4: what changed since, asked after any gap, makes up what a full read shows.
pub(crate) async fn what_changed_since_makes_up_a_full_read(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !traits.since {
        return Ok(());
    }
    for seed in 1..=3 {
        let world = world.namespace(&format!("seed-{seed}"))?;
        let mut dice = Dice(seed);
        let mut actors = Vec::new();
        for id in ["a", "b", "c"] {
            actors.push(world.owner(id).await?);
        }
        let mut always = Copy::default();
        let mut seldom = Copy::default();
        for step in 0..60 {
            stir(&world, &mut dice, &mut actors).await?;
            always.catch_up(&world).await?;
            always.compare(&world, &format!("seed {seed}, step {step}, always")).await?;
            if dice.below(7) == 0 {
                seldom.catch_up(&world).await?;
                seldom.compare(&world, &format!("seed {seed}, step {step}, seldom")).await?;
            }
        }
        let mut late = Copy::default();
        late.catch_up(&world).await?;
        late.compare(&world, &format!("seed {seed}, from the start")).await?;
    }
    Ok(())
}

/// Q8: only what changed, each name once, as it stands now. A store that cannot tell says so.
pub(crate) async fn since_tells_only_what_changed(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !traits.since {
        let error = match world.store().await.names(&world.ns, &WhichNames::Since(Rev::START)).await
        {
            Err(error) => error,
            Ok(view) => fail!("it is denied, and told all the same: {view:?}"),
        };
        same!(error.kind(), ErrorKind::Invalid, "the kind of the refusal");
        ensure!(error.to_string().contains("changed since"), "it says why: {error}");
        return Ok(());
    }
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let kept = a.take("kept").await?;
    let dropped = a.take("dropped").await?;
    let before = world.rev().await?;
    let quiet = world.since(before).await?;
    ensure!(!quiet.whole, "nothing was forgotten: {quiet:?}");
    same!((quiet.rev, quiet.bindings, quiet.gone), (before, vec![], vec![]), "no change");
    let owners: Vec<_> = quiet.owners.into_iter().map(|(life, _)| life).collect();
    same!(owners, std::slice::from_ref(&a.me), "the lives that own names");
    let changed = bound(a.op(a.changing(&kept, "one")?).await?)?;
    let changed = bound(a.op(a.changing(&changed, "two")?).await?)?;
    a.let_go(&dropped).await?;
    let passing = b.take("passing").await?;
    b.let_go(&passing).await?;
    let told = world.since(before).await?;
    ensure!(!told.whole, "nothing was forgotten: {told:?}");
    same!(told.bindings.iter().map(plain).collect::<Vec<_>>(), [plain(&changed)], "changes");
    let gone: Vec<_> = told.gone.iter().map(Name::as_str).collect();
    ensure!(gone.contains(&"dropped"), "what is gone: {gone:?}");
    ensure!(!gone.contains(&"kept"), "what is gone: {gone:?}");
    let owners: Vec<_> = told.owners.into_iter().map(|(life, _)| life).collect();
    same!(owners, std::slice::from_ref(&a.me), "the lives that own names");
    Ok(())
}

/// Q8: a revision that is ahead of the store's, or too old for what it remembers of drops.
pub(crate) async fn who_cannot_be_told_what_changed_gets_all_names(world: &World<'_>) -> Outcome {
    /// More revisions than any store remembers drops for.
    const CHANGES: usize = 20_000;
    let traits = with_names!(world);
    if !traits.since {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let first = a.take("n").await?;
    let dropped = a.take("dropped").await?;
    let ahead = world.since(Rev::new(dropped.rev.get() + 1)).await?;
    ensure!(ahead.whole, "the store has not come as far: {ahead:?}");
    same!(texts(&ahead), ["dropped", "n"], "all names");
    let batch = world.capabilities().await.batch.min(1_000);
    if batch < 1_000 {
        return Ok(());
    }
    a.let_go(&dropped).await?;
    let mut changed = 0;
    while changed < CHANGES {
        let change = || Ok(BindOp::change(name("n")?, a.next_nonce(), first.token, value("v")?));
        let answers = a.ops((0..batch).map(|_| change()).collect::<Outcome<Vec<_>>>()?).await?;
        let done = answers.iter().all(|answer| matches!(answer, BindAnswer::Bound(_)));
        ensure!(done, "a change of its own name is done");
        changed += batch;
    }
    let old = world.since(dropped.rev).await?;
    let told = old.gone.iter().any(|name| name.as_str() == "dropped");
    ensure!(old.whole || told, "the drop is told, or everything: {old:?}");
    same!(texts(&old), ["n"], "all names");
    ensure!(!world.since(old.rev).await?.whole, "what changes from here on is known");
    Ok(())
}
