//! What one request may ask of names: many operations, limits, and a fence.

use tenure_core::{
    Amend, Bind, BindAnswer, BindOp, Bindings, Era, MAX_ENDPOINT, MAX_INDEX, MAX_INDEX_TEXT,
    MAX_NAME, MAX_NOTICE, MAX_VALUE, Note, Rev, TermRef, Token, Value,
};
use tenure_store::{Error, ErrorKind};

use super::asking::{Owner, bound, gone, name, plain, taken};
use super::with_names;
use crate::Outcome;
use crate::actor::named;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// Q1: each operation finds what the one before it left, and is answered in its place.
pub(crate) async fn operations_are_answered_in_their_order(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let a = world.owner("a").await?;
    if world.capabilities().await.batch < 4 {
        return Ok(());
    }
    let mut answers = a.ops([a.taking("y")?, a.taking("x")?, a.taking("y")?]).await?;
    let again = taken(answers.remove(2))?;
    let x = bound(answers.remove(1))?;
    let y = bound(answers.remove(0))?;
    same!((x.name.as_str(), y.name.as_str()), ("x", "y"), "the names in their order");
    same!(plain(&again), plain(&y), "the second attempt in one request");
    ensure!(!traits.since || x.rev == y.rev.next(), "revisions in order: {y:?}, {x:?}");
    let none = BindOp::drop(name("z")?, a.next_nonce(), Token::new(1));
    let ops = [a.changing(&x, "new")?, a.dropping(&y), a.taking("y")?, none];
    let mut answers = a.ops(ops).await?;
    same!(gone(answers.remove(3))?, None, "a drop of what never was");
    let anew = bound(answers.remove(2))?;
    same!(gone(answers.remove(1))?, None, "the drop");
    let changed = bound(answers.remove(0))?;
    ensure!(anew.token > y.token, "taken again in the same request: {anew:?} after {y:?}");
    same!(world.bound().await?, [plain(&changed), plain(&anew)], "what is bound");
    Ok(())
}

fn takes(actor: &Owner, count: usize) -> Outcome<Vec<BindOp>> {
    (0..count).map(|i| actor.taking(&format!("n{i:05}"))).collect()
}

/// What a refused request is answered, of which nothing was done.
async fn refused(world: &World<'_>, actor: &Owner, bind: &Bind) -> Outcome<Error> {
    let before = world.rev().await?;
    let bound = world.bound().await?;
    let error = match actor.store.bind(&actor.ns, bind).await {
        Err(error) => error,
        Ok(bindings) => fail!("it must be refused: {bindings:?}"),
    };
    same!(error.kind(), ErrorKind::Invalid, "the kind of the refusal");
    ensure!(!error.may_have_applied(), "nothing was done: {error}");
    same!(world.rev().await?, before, "the revision after a refusal");
    same!(world.bound().await?, bound, "what is bound after a refusal");
    Ok(error)
}

/// A limit is refused in words, and nothing of the request is done.
pub(crate) async fn one_operation_more_than_a_full_batch_is_refused(world: &World<'_>) -> Outcome {
    with_names!(world);
    let batch = world.capabilities().await.batch;
    if batch > 10_000 {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let error = refused(world, &a, &a.binds(takes(&a, batch + 1)?)).await?;
    ensure!(error.to_string().contains(&batch.to_string()), "it names the limit: {error}");
    for answer in a.ops(takes(&a, batch)?).await? {
        bound(answer)?;
    }
    same!(world.bound().await?.len(), batch, "names of a full batch");
    Ok(())
}

/// Every byte there is, as many as are allowed; and one more is refused with the reason,
/// together with all that was asked with it (Q1).
pub(crate) async fn values_come_back_byte_for_byte(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let bytes = |len: usize| (0..len).map(|i| (i * 89 + i / 251) as u8).collect::<Vec<u8>>();
    let text = |i: usize| format!("{i}-{}", "ü".repeat((MAX_INDEX_TEXT - 2) / 2));
    let endpoint = format!("é%_\\'\"-{}", "e".repeat(MAX_ENDPOINT - 8));
    let pairs: Vec<_> = (0..MAX_INDEX).map(|i| (text(i), text(i + 1))).collect();
    let full = Value::at(&endpoint)?.with_index(pairs)?;
    let own = full.clone().with_data(bytes(MAX_VALUE))?;
    let notice = full.with_data(bytes(MAX_NOTICE))?;
    let long = "n".repeat(MAX_NAME);
    let odd = Value::empty().with_index([("a b", "c=d; e"), ("選", "😀")])?.with_data(b"\x00")?;
    let ops = [
        BindOp::take(name(&long)?, a.next_nonce(), own),
        BindOp::post(name("notice")?, a.next_nonce(), notice),
        BindOp::take(name("empty")?, a.next_nonce(), Value::empty()),
        BindOp::take(name("'odd' \"名\" 😀")?, a.next_nonce(), odd),
    ];
    for op in ops {
        let tenure_core::What::Take { value: given, .. } = op.what.clone() else { continue };
        let binding = bound(a.op(op.clone()).await?)?;
        ensure!(binding.value == given, "the value of {} when it is bound", op.name);
        let seen = world.names(&tenure_core::WhichNames::Named(vec![op.name.clone()])).await?;
        same!(seen.bindings.len(), 1, "bindings of one name");
        ensure!(seen.bindings[0].value == given, "the value of {} on view", op.name);
        same!(seen.bindings[0].name, op.name, "the name");
    }
    let more = Value::empty().with_data(bytes(MAX_VALUE + 1))?;
    let large = BindOp::take(name("large")?, a.next_nonce(), more);
    let error = refused(world, &a, &a.binds([a.taking("small")?, large])).await?;
    ensure!(error.to_string().contains(&MAX_VALUE.to_string()), "it names the limit: {error}");
    let unowned = refused(world, &a, &Bind::anonymous([a.taking("small")?])).await?;
    ensure!(unowned.to_string().contains("without an owner"), "it says what to do: {unowned}");
    Ok(())
}

async fn fenced(actor: &Owner, text: &str, term: TermRef) -> Outcome<Bindings> {
    actor.bind(&actor.binds([actor.taking(text)?]).with_fence(term)).await
}

/// Q2: under a fence, only while exactly this term is held and is the newest.
pub(crate) async fn a_fence_passes_only_who_holds_the_newest_term(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let first = a.win("e").await?;
    if !traits.fenced {
        let bind = a.binds([a.taking("n")?]).with_fence(named(&first));
        refused(world, &a, &bind).await?;
        return Ok(());
    }
    let passed = fenced(&a, "held", named(&first)).await?;
    ensure!(
        matches!(&passed, Bindings::Answered(answers)
        if matches!(answers[..], [BindAnswer::Bound(_)])),
        "the holder passes: {passed:?}"
    );
    let before = world.rev().await?;
    let older = Bindings::Fenced { newest: first.number };
    same!(fenced(&b, "foreign", named(&first)).await?, older, "another's term");
    let ahead = TermRef { number: first.number.next(), ..named(&first) };
    same!(fenced(&a, "ahead", ahead).await?, older, "a number that no term has");
    let second = a.win("e").await?;
    let newer = Bindings::Fenced { newest: second.number };
    same!(fenced(&a, "older", named(&first)).await?, newer, "an older term of its own");
    a.resign(&second).await?;
    same!(fenced(&a, "given up", named(&second)).await?, newer, "a term that was given up");
    let third = b.win("e").await?;
    same!(
        fenced(&a, "lost", named(&second)).await?,
        Bindings::Fenced { newest: third.number },
        "a term that another followed"
    );
    same!(world.rev().await?, before, "the revision after what was fenced off");
    let passed = fenced(&b, "newest", named(&third)).await?;
    ensure!(matches!(passed, Bindings::Answered(_)), "the newest passes: {passed:?}");
    Ok(())
}

/// M6: a member that has seen a revision that the store has not reached tells it, and its own
/// token is above what was forgotten; so is every token after an operator's word.
pub(crate) async fn what_was_forgotten_makes_the_tokens_jump(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let first = a.take("n").await?;
    let known = Rev::new(first.rev.get() + Era::JUMP);
    let bind = Bind { known, ..a.binds([a.taking("m")?]) };
    let mut answers = super::asking::answered(a.bind(&bind).await?)?;
    let second = bound(answers.remove(0))?;
    ensure!(second.rev > known, "{second:?} is above what was seen, {known}");
    let bind = Bind { known, ..a.binds([a.taking("k")?]) };
    let mut answers = super::asking::answered(a.bind(&bind).await?)?;
    same!(bound(answers.remove(0))?.rev, second.rev.next(), "the revision that follows");
    let before = world.rev().await?;
    a.store.amend(&a.ns, &Amend::Restored { by: Note::new("ops") }).await?;
    let reached = world.rev().await?;
    ensure!(reached.get() > before.get() + Era::JUMP, "{reached} after {before}, before a change");
    if traits.since {
        ensure!(world.since(before).await?.whole, "what an earlier era changed is not known");
        ensure!(!world.since(reached).await?.whole, "what this era changes is known");
    }
    let third = a.take("third").await?;
    ensure!(third.rev > reached, "{third:?} after {reached}");
    Ok(())
}
