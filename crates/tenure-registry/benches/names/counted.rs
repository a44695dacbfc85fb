//! Counts the bytes that are allocated, which the system's own figure does not tell.

#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

static BYTES: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize, sign: i64) {
    BYTES.fetch_add(sign * i64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        unsafe { System.dealloc(at, layout) }
    }
}

/// The bytes that are allocated now.
pub(crate) fn bytes() -> f64 {
    BYTES.load(Ordering::Relaxed) as f64
}
