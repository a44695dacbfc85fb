//! What is told from a revision on leads to what there is, whatever changes in between.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use tenure::Tenure;
use tenure::naming::{Binding, Name, Rev, Token, Value, WhichNames};
use tenure::store::Store;
use tenure::testing::{Fault, FaultyStore, StoreVerb};
use tenure::views::MemberRef;
use tenure_core::{Bind, BindAnswer, BindOp, Bindings, Nonce};
use tenure_registry::{Change, NameLooks};
use tenure_store::MemoryStore;
use tenure_testkit::{Dice, requests, within};

/// Token, revision and owner of each name.
type Names = BTreeMap<String, (Token, Rev, Option<MemberRef>)>;

struct World {
    store: FaultyStore,
    lives: Vec<MemberRef>,
    last: u128,
}

impl World {
    async fn new() -> Self {
        let store = FaultyStore::new(MemoryStore::new().shared());
        let mut world = Self { store, lives: Vec::new(), last: 0 };
        for _ in 0..3 {
            let life = world.joins().await;
            world.lives.push(life);
        }
        world
    }

    async fn joins(&mut self) -> MemberRef {
        self.last += 1;
        let life = requests::member(&format!("m{}", self.last), self.last);
        self.store.join(&requests::ns(), &requests::join(&life)).await.unwrap();
        life
    }

    async fn view(&self) -> Vec<Binding> {
        let all = WhichNames::Prefix("p:".into());
        self.store.names(&requests::ns(), &all).await.unwrap().bindings
    }

    async fn names(&self) -> Names {
        let row = |b: Binding| (b.name.to_string(), (b.token, b.rev, b.owner));
        self.view().await.into_iter().map(row).collect()
    }

    async fn rev(&self) -> Rev {
        let all = WhichNames::Since(Rev::START);
        self.store.names(&requests::ns(), &all).await.unwrap().rev
    }

    async fn bind(&self, life: &MemberRef, op: BindOp) -> BindAnswer {
        let bind = Bind::new(life.clone(), Duration::from_secs(1_000), [op]);
        match self.store.bind(&requests::ns(), &bind).await.unwrap() {
            Bindings::Answered(answers) => answers.into_iter().next().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Something happens to some name, or to a life.
    async fn step(&mut self, dice: &mut Dice) {
        let at = dice.below(3);
        let nonce = Nonce::new(dice.below(1 << 30) as u64);
        let name = Name::new(format!("p:{}", dice.below(12))).unwrap();
        let there = self.view().await.into_iter().find(|binding| binding.name == name);
        match (there, dice.below(8)) {
            (_, 0) => {
                let life = self.lives[at].clone();
                self.store.leave(&requests::ns(), &life).await.unwrap();
                self.lives[at] = self.joins().await;
            }
            (Some(there), 1..4) => {
                let drops = BindOp::drop(name, nonce, there.token);
                self.bind(&there.owner.unwrap(), drops).await;
            }
            (Some(there), _) => {
                let value = Value::at(format!("h:{nonce:?}")).unwrap();
                let changes = BindOp::change(name, nonce, there.token, value);
                self.bind(&there.owner.unwrap(), changes).await;
            }
            (None, _) => {
                let life = self.lives[at].clone();
                self.bind(&life, BindOp::take(name, nonce, Value::empty())).await;
            }
        }
    }
}

fn follow(known: &mut Names, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Lives { lives, .. } => {
                known.retain(|_, (_, _, owner)| owner.as_ref().is_some_and(|o| lives.contains(o)));
            }
            Change::Registered(found) => {
                let row = (found.token(), found.changed_at(), found.owner().cloned());
                let before = known.insert(found.as_str().to_owned(), row);
                assert!(before.is_none_or(|(token, ..)| token < found.token()), "{found:?}");
            }
            Change::Changed(found) => {
                let row = (found.token(), found.changed_at(), found.owner().cloned());
                let before = known.insert(found.as_str().to_owned(), row);
                assert_eq!(before.unwrap().0, found.token(), "it was known: {found:?}");
            }
            Change::Released { name, .. } => drop(known.remove(&name)),
            other => panic!("{other:?}"),
        }
    }
}

/// Two hundred times: from a revision on, with changes before the first question, between the
/// two questions of the beginning, and between looks.
#[tokio::test]
async fn a_resumed_watch_leads_to_what_there_is() {
    let mut world = World::new().await;
    let mut dice = Dice::new(5);
    let operator = Tenure::with_store(world.store.shared()).operate().await.unwrap();
    for _ in 0..20 {
        world.step(&mut dice).await;
    }
    let mut ended = 0;
    for round in 0..200 {
        let mut known = world.names().await;
        let from = world.rev().await;
        let lives = world.last;
        for _ in 0..dice.below(6) {
            world.step(&mut dice).await;
        }
        let mut looks = NameLooks::new(&operator, "p:").unwrap().from(from);
        let asked = world.store.counts().calls(StoreVerb::Names);
        world.store.script(StoreVerb::Names, [Fault::Delay(Duration::ZERO), Fault::Hold]);
        let first = tokio::spawn(async move { (looks.look().await.unwrap(), looks) });
        within(world.store.called(StoreVerb::Names, asked + 2)).await;
        for _ in 0..dice.below(4) {
            world.step(&mut dice).await;
        }
        tokio::task::yield_now().await;
        world.store.let_go();
        let (changes, mut looks) = within(first).await.unwrap();
        follow(&mut known, changes);
        for _ in 0..2 {
            follow(&mut known, looks.look().await.unwrap());
            assert_eq!(known, world.names().await, "in round {round}, from {from}");
            for _ in 0..dice.below(3) {
                world.step(&mut dice).await;
            }
        }
        ended += world.last - lives;
    }
    assert!(ended > 50, "{ended} lives ended");
}

/// A name that was changed is not told as bound, and one that is free is told so: by itself,
/// without anything else being known.
#[tokio::test]
async fn what_changed_and_what_is_free_is_told_as_such() {
    let world = World::new().await;
    let [a, b, _] = [0, 1, 2].map(|at| world.lives[at].clone());
    let named = |name: &str| Name::new(name).unwrap();
    let take = |n: u64, name: &str| BindOp::take(named(name), Nonce::new(n), Value::empty());
    let BindAnswer::Bound(changes) = world.bind(&a, take(1, "p:changes")).await else { panic!() };
    let BindAnswer::Bound(free) = world.bind(&a, take(2, "p:free")).await else { panic!() };
    world.bind(&b, take(3, "p:of-b")).await;
    let from = world.rev().await;
    let value = Value::at("h:1").unwrap();
    world.bind(&a, BindOp::change(changes.name, Nonce::new(4), changes.token, value)).await;
    world.bind(&a, BindOp::drop(free.name, Nonce::new(5), free.token)).await;
    world.bind(&a, take(6, "p:new")).await;
    world.bind(&a, take(7, "other")).await;
    world.store.leave(&requests::ns(), &b).await.unwrap();

    let operator = Tenure::with_store(world.store.shared()).operate().await.unwrap();
    let mut looks = NameLooks::new(&operator, "p:").unwrap().from(from);
    let changes = looks.look().await.unwrap();
    let [
        Change::Lives { lives, .. },
        Change::Released { name, .. },
        Change::Changed(changed),
        Change::Registered(new),
    ] = &changes[..]
    else {
        panic!("{changes:?}")
    };
    assert_eq!((&lives[..], &**name), (&[a][..], "p:free"));
    assert_eq!((changed.as_str(), new.as_str()), ("p:changes", "p:new"));
    assert_eq!(looks.all().len(), 2);
}
