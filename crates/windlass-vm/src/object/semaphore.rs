//! Permits that guests share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync;
use windlass_sync::park::Generation;
use windlass_value::Payload;

use super::Waiter;
use crate::exception::Exception;
use crate::guest_shared::GuestShared;

/// A number of permits. The longest waiter gets them first, also before one that wants fewer.
///
/// What a guest has taken and not given back comes back when it ends, however it ends.
#[derive(Clone)]
pub struct Semaphore {
    id: u64,
    state: Arc<sync::Mutex<State>>,
}

struct State {
    free: usize,
    most: usize,
    waiters: VecDeque<(Waiter, usize)>,
}

impl Semaphore {
    pub(crate) fn new(id: u64, permits: usize) -> Semaphore {
        Semaphore {
            id,
            state: Arc::new(sync::Mutex::new(State {
                free: permits,
                most: permits,
                waiters: VecDeque::new(),
            })),
        }
    }

    /// Its number, among those of its VM.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of free permits.
    pub fn free(&self) -> usize {
        self.state.lock().free
    }

    pub(crate) fn is(&self, other: &Semaphore) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    pub(crate) fn acquire(&self, waiter: Waiter, wanted: usize) {
        let mut state = self.state.lock();
        if wanted > state.most {
            let most = state.most;
            let _ = waiter.end(Err(Exception::TooMany { wanted, most }));
            return;
        }
        state.waiters.push_back((waiter, wanted));
        self.serve(&mut state);
    }

    /// Takes permits back.
    pub(crate) fn release(&self, permits: usize) {
        let mut state = self.state.lock();
        state.free += permits;
        self.serve(&mut state);
    }

    fn serve(&self, state: &mut State) {
        while let Some((_, wanted)) = state.waiters.front()
            && *wanted <= state.free
            && let Some((waiter, wanted)) = state.waiters.pop_front()
        {
            let guest = waiter.guest.clone();
            guest.with_resources(|resources| resources.add_permits(self, wanted));
            state.free -= wanted;
            if waiter.end(Ok(Payload::Nil.into())).is_err()
                && guest.with_resources(|resources| resources.remove_permits(self, wanted))
            {
                // The guest has ended, and its end has not found these permits.
                state.free += wanted;
            }
        }
    }

    /// Takes a wait out of the queue; those behind it may have waited for it alone.
    pub(crate) fn forget(&self, guest: &Arc<GuestShared>, generation: Generation) {
        let mut state = self.state.lock();
        state.waiters.retain(|(w, _)| !w.is(guest, generation));
        self.serve(&mut state);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Semaphore");
        out.field("id", &self.id);
        if let Some(state) = self.state.try_lock() {
            out.field("free", &state.free)
                .field("waiters", &state.waiters.len());
        }
        out.finish()
    }
}
