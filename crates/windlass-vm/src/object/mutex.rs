//! Mutual exclusion between guests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync;
use windlass_sync::park::Generation;
use windlass_value::Payload;

use super::Waiter;
use crate::exception::Exception;
use crate::guest_shared::GuestShared;

/// A lock that one guest has at a time. The longest waiter gets it next.
///
/// It is given back by its owner, or when its owner ends, however it ends.
#[derive(Clone)]
pub struct Mutex {
    id: u64,
    state: Arc<sync::Mutex<State>>,
}

struct State {
    owner: Option<Arc<GuestShared>>,
    waiters: VecDeque<Waiter>,
}

impl Mutex {
    pub(crate) fn new(id: u64) -> Mutex {
        Mutex {
            id,
            state: Arc::new(sync::Mutex::new(State {
                owner: None,
                waiters: VecDeque::new(),
            })),
        }
    }

    /// Its number, among those of its VM.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether a guest has it.
    pub fn is_locked(&self) -> bool {
        self.state.lock().owner.is_some()
    }

    pub(crate) fn is(&self, other: &Mutex) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    pub(crate) fn lock(&self, waiter: Waiter) {
        let mut state = self.state.lock();
        match &state.owner {
            Some(owner) if Arc::ptr_eq(owner, &waiter.guest) => {
                let _ = waiter.end(Err(Exception::Relock));
            }
            Some(_) => state.waiters.push_back(waiter),
            None => {
                self.give(&mut state, waiter);
            }
        }
    }

    /// Gives it to this waiter; false if that one is gone.
    fn give(&self, state: &mut State, waiter: Waiter) -> bool {
        let guest = waiter.guest.clone();
        // Before the guest can run: it may unlock at once.
        guest.with_resources(|resources| resources.mutexes.push(self.clone()));
        state.owner = Some(guest.clone());
        if waiter.end(Ok(Payload::Nil.into())).is_ok() {
            return true;
        }
        // The end of the guest may have found it among what the guest holds, and then gives it
        // back.
        let mine = guest.with_resources(|resources| resources.let_go_of(self));
        if mine {
            state.owner = None;
        }
        !mine
    }

    /// Gives it to the next, if this guest has it.
    pub(crate) fn pass_on(&self, from: &Arc<GuestShared>) {
        let mut state = self.state.lock();
        if !state.owner.as_ref().is_some_and(|o| Arc::ptr_eq(o, from)) {
            return;
        }
        state.owner = None;
        while let Some(next) = state.waiters.pop_front() {
            if self.give(&mut state, next) {
                return;
            }
        }
    }

    /// Takes a wait out of the queue.
    pub(crate) fn forget(&self, guest: &Arc<GuestShared>, generation: Generation) {
        let mut state = self.state.lock();
        state.waiters.retain(|w| !w.is(guest, generation));
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Mutex");
        out.field("id", &self.id);
        if let Some(state) = self.state.try_lock() {
            out.field("locked", &state.owner.is_some())
                .field("waiters", &state.waiters.len());
        }
        out.finish()
    }
}
