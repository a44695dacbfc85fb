//! The store in memory: `memory:` and `memory:name`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use tenure_store::MemoryStore;

use super::{Backend, Driver, Opened, Opening, Target};
use crate::Result;
use crate::time::Time;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[("memory", "memory:")],
    feature: "",
    here: true,
    driver: Some(Driver { parse, schema: || None }),
};

/// `memory:` is a store of one's own; `memory:name` is shared by everything in this
/// process that names it so.
#[derive(Debug)]
struct Memory {
    name: String,
}

#[allow(clippy::unnecessary_wraps)]
fn parse(url: &str) -> Result<Box<dyn Target>> {
    let name = url.strip_prefix("memory:").unwrap_or_default().trim_start_matches('/');
    Ok(Box::new(Memory { name: name.into() }))
}

#[async_trait]
impl Target for Memory {
    async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
        Ok(Opened::plain(Arc::new(self.store(opening.time))))
    }
}

impl Memory {
    fn store(&self, time: &Time) -> MemoryStore {
        static NAMED: OnceLock<Mutex<HashMap<String, MemoryStore>>> = OnceLock::new();
        let fresh = || match time {
            Time::Boot => MemoryStore::new(),
            Time::Manual(clock) => MemoryStore::with_clock(clock.clone()),
        };
        if self.name.is_empty() {
            return fresh();
        }
        let named = NAMED.get_or_init(Mutex::default).lock();
        let mut named = named.unwrap_or_else(PoisonError::into_inner);
        named.entry(self.name.clone()).or_insert_with(fresh).clone()
    }
}
