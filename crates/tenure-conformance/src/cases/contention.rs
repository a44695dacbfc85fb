//! Contention: many at once, and the arithmetic must come out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Claimed, Joined, TermNumber};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::actor::{Actor, How};
use crate::case::same;
use crate::harness::ask_again_in;
use crate::world::World;
use crate::{CaseFailure, Outcome};

/// Waits for all, and fails with the first that failed.
pub(super) async fn all<T: 'static>(mut racers: JoinSet<Outcome<T>>) -> Outcome<Vec<T>> {
    let mut finished = Vec::new();
    while let Some(racer) = racers.join_next().await {
        let outcome = racer.map_err(|e| CaseFailure::new(format!("a racer fell over: {e}")))?;
        finished.push(outcome?);
    }
    Ok(finished)
}

/// C1, H9, B4: of many who claim at the same moment exactly one wins, and the
/// others are told who.
pub(crate) async fn of_many_who_race_exactly_one_wins(world: &World<'_>) -> Outcome {
    const RACERS: usize = 12;
    let mut actors = Vec::new();
    for i in 0..RACERS {
        actors.push(Arc::new(world.member(&format!("racer-{i:02}")).await?));
    }
    for round in 0..5 {
        let name = format!("e{round}");
        let barrier = Arc::new(Barrier::new(RACERS));
        let mut racers = JoinSet::new();
        for actor in &actors {
            let actor = actor.clone();
            let name = name.clone();
            let barrier = barrier.clone();
            racers.spawn(async move {
                barrier.wait().await;
                let claimed = actor.bid(&name, How::default()).await?;
                Ok((actor.me.clone(), claimed))
            });
        }
        let answers = all(racers).await?;
        let won = |(_, claimed): &&_| matches!(claimed, Claimed::Won(_));
        let winners: Vec<_> = answers.iter().filter(won).map(|(me, _)| me.clone()).collect();
        same!(winners.len(), 1, format!("winners of {name}"));
        for (me, claimed) in &answers {
            if let Claimed::Held(view) = claimed {
                let told = view.holder.as_ref().map(|h| &h.member);
                same!(told, Some(&winners[0]), format!("what {me} is told"));
            }
        }
    }
    Ok(())
}

/// B3: of many who join under one id exactly one is in.
pub(crate) async fn of_many_namesakes_exactly_one_is_in(world: &World<'_>) -> Outcome {
    const RACERS: usize = 8;
    let barrier = Arc::new(Barrier::new(RACERS));
    let mut racers = JoinSet::new();
    for _ in 0..RACERS {
        let actor = world.life("a").await?;
        let barrier = barrier.clone();
        racers.spawn(async move {
            barrier.wait().await;
            let joined = actor.join(false).await?;
            Ok((matches!(joined, Joined::In { .. }), actor))
        });
    }
    let answers = all(racers).await?;
    same!(answers.iter().filter(|(joined, _)| *joined).count(), 1, "namesakes that are in");
    for (joined, actor) in &answers {
        if *joined {
            actor.alive().await?;
        } else {
            actor.ended().await?;
        }
    }
    Ok(())
}

/// What the leaders of the sum write to. It checks the fence, as a resource
/// should: never a number below one it has seen.
#[derive(Default)]
struct Resource {
    newest: TermNumber,
    value: u64,
    refused: u64,
    tokens: BTreeSet<TermNumber>,
}

impl Resource {
    fn write(&mut self, token: TermNumber, value: u64) {
        if token < self.newest {
            self.refused += 1;
            return;
        }
        (self.newest, self.value) = (token, value);
        self.tokens.insert(token);
    }
}

/// One worker's share: wins, reads, lets others have a turn, writes, resigns.
async fn increments(actor: Actor, resource: Arc<Mutex<Resource>>, count: usize) -> Outcome {
    let lock = || resource.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..count {
        let term = win_in_the_end(&actor).await?;
        let seen = lock().value;
        tokio::task::yield_now().await;
        lock().write(term.number, seen + 1);
        actor.resign(&term).await?;
    }
    Ok(())
}

async fn win_in_the_end(actor: &Actor) -> Outcome<tenure_core::Term> {
    for _ in 0..5_000 {
        if let Claimed::Won(term) = actor.bid("e", How::default()).await? {
            return Ok(term);
        }
        ask_again_in(Duration::from_millis(1)).await;
    }
    Err(CaseFailure::new(format!("{} never won although all others resign", actor.me)))
}

/// Promises 1 and 3: nothing is lost, nothing is refused, no number comes twice.
pub(crate) async fn fenced_increments_add_up(world: &World<'_>) -> Outcome {
    const WORKERS: usize = 4;
    const EACH: usize = 15;
    let resource = Arc::new(Mutex::new(Resource::default()));
    let mut workers = JoinSet::new();
    for i in 0..WORKERS {
        let worker = world.member(&format!("worker-{i}")).await?;
        workers.spawn(increments(worker, resource.clone(), EACH));
    }
    all(workers).await?;
    let resource = resource.lock().unwrap_or_else(PoisonError::into_inner);
    same!(resource.refused, 0, "writes refused, though no leader was deposed");
    same!(resource.value, (WORKERS * EACH) as u64, "the sum of the increments");
    same!(resource.tokens.len(), WORKERS * EACH, "different numbers");
    Ok(())
}

/// M1, M2: an expired holder's heartbeat and a takeover arrive together: the
/// heartbeat is refused whichever comes first.
pub(crate) async fn a_heartbeat_that_races_a_takeover_loses(world: &World<'_>) -> Outcome {
    for round in 0..3 {
        let name = format!("e{round}");
        let a = world.member(&format!("a{round}")).await?;
        let b = world.member(&format!("b{round}")).await?;
        a.win(&name).await?;
        a.fade(world.unit()).await?;
        world.lapse(&[&a, &b]).await?;
        let mut racers = JoinSet::new();
        let barrier = Arc::new(Barrier::new(2));
        let start = barrier.clone();
        racers.spawn(async move {
            start.wait().await;
            a.ended().await.map(|_| ())
        });
        racers.spawn(async move {
            barrier.wait().await;
            b.win(&name).await?;
            b.alive().await.map(|_| ())
        });
        all(racers).await?;
    }
    Ok(())
}
