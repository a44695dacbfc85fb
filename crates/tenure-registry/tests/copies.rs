//! A copy that follows by what changed equals the store, whatever it missed in between.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tenure::Tenure;
use tenure::naming::{NamesView, Rev, Token, Value, WhichNames};
use tenure::testing::{HintFault, Stage};
use tenure_registry::{Registered, Registry};
use tenure_testkit::{Dice, within};

/// Name, token, revision and endpoint of each.
type Rows = Vec<(String, Token, Rev, Option<String>)>;

fn in_store(view: &NamesView) -> Rows {
    let row = |b: &tenure::naming::Binding| {
        let name = b.name.as_str().strip_prefix("s:").unwrap().to_owned();
        (name, b.token, b.rev, b.value.endpoint().map(String::from))
    };
    let mut rows: Rows = view.bindings.iter().map(row).collect();
    rows.sort();
    rows
}

fn in_copy(names: &Registry) -> Rows {
    let row = |f: tenure_registry::Found| {
        let endpoint = f.value().endpoint().map(String::from);
        (f.as_str().to_owned(), f.token(), f.changed_at(), endpoint)
    };
    names.all().into_iter().map(row).collect()
}

/// R1, R3, R6, Q8: one process registers, changes and releases names, and is ended now and
/// then. Another hears no hints, and asks after gaps of random length what changed. A thousand
/// times it has exactly what a full read of the store gives.
#[tokio::test]
async fn across_a_thousand_gaps_a_copy_equals_a_full_read() {
    let stage = Stage::new();
    let reader = stage.connect("reader").await.unwrap();
    let copy = Registry::open(&reader, "s").unwrap();
    within(copy.ready()).await.unwrap();
    stage.faults().hints(HintFault::Drop);
    let writer = stage.connect("writer").await.unwrap();
    let names = Registry::open(&writer, "s").unwrap();
    let mut dice = Dice::new(11);
    let mut own: Vec<Registered> = Vec::new();
    let mut ended = 0;
    for gap in 0..1_000 {
        for _ in 0..dice.below(8) {
            step(&names, &mut own, &mut dice).await;
        }
        if gap % 100 == 99 {
            ended += usize::from(!own.is_empty());
            end(&reader, &writer).await;
            own.clear();
            stage.settle().await;
        }
        let whole = within(reader.names().read(WhichNames::Prefix(String::new()))).await.unwrap();
        within(copy.reached(whole.rev)).await.unwrap();
        let equal = async {
            // The end of a life has no revision: it is seen with the next look.
            while in_copy(&copy) != in_store(&whole) && gap % 100 == 99 {
                stage.advance(Duration::from_millis(500)).await;
            }
        };
        within(equal).await;
        assert_eq!(in_copy(&copy), in_store(&whole), "after gap {gap}");
        assert_eq!(copy.rev(), whole.rev);
    }
    assert!(ended > 5);
}

async fn step(names: &Registry, own: &mut Vec<Registered>, dice: &mut Dice) {
    let at = dice.below(own.len());
    match dice.below(4) {
        0 if !own.is_empty() => drop(within(own.swap_remove(at).release()).await),
        1 if !own.is_empty() => {
            let value = Value::at(format!("h:{}", dice.below(1_000))).unwrap();
            drop(within(own[at].set(value)).await);
        }
        _ => {
            let name = format!("n{}", dice.below(30));
            own.extend(within(names.register(&name, Value::empty())).await);
        }
    }
}

async fn end(by: &Tenure, member: &Tenure) {
    by.evict_now(member.id()).await.unwrap();
}
