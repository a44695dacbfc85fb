//! `is_current()` against the bare clock read, and what it allocates.
//!
//! Slices of both are interleaved, so that a noisy machine disturbs both alike;
//! the figure is the ratio of the medians.

// A counting allocator cannot be written without unsafe code.
#![allow(clippy::print_stdout, missing_docs, unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tenure::Tenure;
use tenure_store::BootClock;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON_THIS_THREAD.try_with(std::cell::Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ON_THIS_THREAD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

const CALLS: u32 = 20_000;
const SLICES: usize = 301;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tenure = runtime.block_on(Tenure::connect("memory:"))?;
    let leadership = runtime.block_on(tenure.election("bench").campaign())?;

    let mut clock = Vec::new();
    let mut current = Vec::new();
    for _ in 0..SLICES {
        clock.push(slice(|| black_box(BootClock::read()).as_nanos() > 0));
        current.push(slice(|| leadership.is_current()));
    }
    ON_THIS_THREAD.set(true);
    let mut all = true;
    for _ in 0..CALLS {
        all &= black_box(leadership.is_current());
    }
    ON_THIS_THREAD.set(false);
    assert!(all, "the leadership was lost during the benchmark");

    let (clock, ..) = common::median(&mut clock);
    let (current, low, high) = common::median(&mut current);
    println!(
        "bare clock read {clock:.1} ns, is_current() {current:.1} ns (middle half {low:.1} to {high:.1})"
    );
    let mut bars = common::Bars::default();
    bars.at_most("is_current() / bare clock read", current / clock, 1.3, "x");
    let allocations = ALLOCATIONS.load(Ordering::Relaxed);
    bars.at_most("allocations in 20,000 calls", allocations as f64, 0.0, "");
    bars.finish();
    Ok(())
}

/// Nanoseconds per call.
fn slice(call: impl Fn() -> bool) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}
