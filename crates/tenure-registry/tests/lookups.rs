//! R7: a lookup allocates nothing. By itself in a process, since it counts for the thread.

#![allow(clippy::unwrap_used, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tenure::Tenure;
use tenure::naming::Value;
use tenure_registry::Registry;

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; the count is of a thread-local
// that needs no allocation of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller of this function promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller of this function promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// R7: neither one that finds something nor one that does not; after the first lookup of a
/// thread, which makes the place that the thread keeps for all later ones.
#[tokio::test]
async fn a_lookup_allocates_nothing() {
    let tenure = Tenure::connect("memory:").await.unwrap();
    let names = Registry::open(&tenure, "orders").unwrap();
    names.ready().await.unwrap();
    let batch = (0..1_000).map(|n| (format!("user/{n}"), Value::at("h:1").unwrap()));
    let _mine = names.register_all(batch).await.unwrap();
    let wanted: Vec<String> = (0..2_000).map(|n| format!("user/{n}")).collect();
    assert!(names.lookup("user/1").is_some());

    let before = COUNT.with(Cell::get);
    let mut found = 0;
    for name in &wanted {
        if let Some(there) = names.lookup(name) {
            assert_eq!(there.value().endpoint(), Some("h:1"));
            found += usize::from(there.as_str() == name);
        }
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0, "allocations");
    assert_eq!(found, 1_000);
    assert!(!wanted.is_empty() && COUNT.with(Cell::get) > 0, "they are counted");
}
