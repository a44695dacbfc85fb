//! What the driver's thread and the application share about one name that is owned here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Binding, LostReason, MemberRef, Mono, Name, Token};
use tokio::sync::Notify;

use crate::member::reign::TrustedUntil;

/// One binding of this member's life.
#[derive(Debug)]
pub(crate) struct Owned {
    name: Name,
    token: Token,
    owner: Option<MemberRef>,
    /// One for everything that the member holds: one heartbeat renews it all.
    trust: Arc<TrustedUntil>,
    /// Written before any later trust, and read after it.
    over: AtomicBool,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    binding: Binding,
    lost: Option<LostReason>,
}

impl Owned {
    pub(crate) fn new(binding: Binding, trust: Arc<TrustedUntil>) -> Self {
        Self {
            name: binding.name.clone(),
            token: binding.token,
            owner: binding.owner.clone(),
            trust,
            over: AtomicBool::new(false),
            state: Mutex::new(State { binding, lost: None }),
            changed: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn owner(&self) -> Option<&MemberRef> {
        self.owner.as_ref()
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// Until when it may be trusted, for now; the beginning of time if it is lost.
    pub(crate) fn trusted_until(&self) -> Mono {
        let until = self.trust.get();
        if self.over.load(Ordering::Acquire) { Mono::ZERO } else { until }
    }

    pub(crate) fn binding(&self) -> Binding {
        self.lock().binding.clone()
    }

    pub(crate) fn changed_to(&self, binding: Binding) {
        let mut state = self.lock();
        if binding.rev > state.binding.rev {
            state.binding = binding;
        }
    }

    pub(crate) fn end(&self, reason: LostReason) {
        self.over.store(true, Ordering::Release);
        self.lock().lost.get_or_insert(reason);
        self.changed.notify_waiters();
    }

    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        self.lock().lost
    }

    /// Waits for the loss.
    pub(crate) async fn lost(&self) -> LostReason {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(reason) = self.lost_reason() {
                return reason;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
