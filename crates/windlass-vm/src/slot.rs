//! Where a guest runs: what others use to interrupt it.

use std::sync::{Arc, OnceLock, Weak};

use windlass_core::sched::Replacement;
use windlass_core::sched::pool::{self, Pool};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::guest_shared::GuestShared;

/// Interrupts an interpreter that does not look at the flag by itself: a signal to its thread, say.
pub trait Bell: Send + Sync {
    /// The slice of the guest that runs there is over. Called from any thread, perhaps a moment too
    /// late.
    fn ring(&self);
}

/// A place where one guest runs at a time.
pub(crate) struct Slot {
    /// Not 0: the guest is asked to come to the end of its step.
    preempt: AtomicU32,
    /// Since when a guest runs here, in nanoseconds; 0 if none does.
    since: AtomicU64,
    bell: Mutex<Option<Arc<dyn Bell>>>,
    has_bell: AtomicBool,
    /// The guest has others inside of it that want to go on.
    shares: AtomicBool,
    /// The pool whose worker runs what is here, and which worker; always the same one.
    home: OnceLock<Option<(Weak<Pool>, usize)>>,
    /// The guest that runs here, or ran here last; on the pool only, the reactor has it elsewhere.
    guest: Mutex<Weak<GuestShared>>,
    /// Its address, to compare: a lock less for a guest that runs here again.
    guest_address: AtomicUsize,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            preempt: AtomicU32::new(0),
            since: AtomicU64::new(0),
            bell: Mutex::default(),
            has_bell: AtomicBool::new(false),
            shares: AtomicBool::new(false),
            home: OnceLock::new(),
            guest: Mutex::new(Weak::new()),
            guest_address: AtomicUsize::new(0),
        }
    }
}

impl Slot {
    pub(crate) fn begin(&self, now: u64) {
        self.home.get_or_init(|| {
            pool::current_worker().map(|(pool, worker)| (Arc::downgrade(&pool), worker))
        });
        // Relaxed: a request for the guest before may hit this one, which is harmless.
        self.preempt.store(0, Ordering::Relaxed);
        self.shares.store(false, Ordering::Relaxed);
        // SeqCst: pairs with the ticker's look after it has said that it sleeps.
        self.since.store(now.max(1), Ordering::SeqCst);
    }

    /// Notes who runs here next. Only the thread of the slot does.
    pub(crate) fn set_guest(&self, guest: &Arc<GuestShared>) {
        let address = Arc::as_ptr(guest) as usize;
        // Relaxed: only this thread writes it. The weak reference keeps the address from being used
        // again.
        if self.guest_address.swap(address, Ordering::Relaxed) != address {
            *self.guest.lock() = Arc::downgrade(guest);
        }
    }

    /// Who runs here, or ran here last.
    pub(crate) fn guest(&self) -> Option<Arc<GuestShared>> {
        self.guest.lock().upgrade()
    }

    /// Lets another worker take the place of the one that runs this.
    pub(crate) fn replace_worker(&self) -> Option<Replacement> {
        let (pool, worker) = self.home.get()?.as_ref()?;
        pool.upgrade()?.replace_worker(*worker)
    }

    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Release);
        // Relaxed: it is the thread of the guest that sets it, and takes it away.
        if self.has_bell.load(Ordering::Relaxed) {
            self.has_bell.store(false, Ordering::Relaxed);
            *self.bell.lock() = None;
        }
    }

    pub(crate) fn since(&self) -> u64 {
        self.since.load(Ordering::SeqCst)
    }

    pub(crate) fn flag(&self) -> &AtomicU32 {
        &self.preempt
    }

    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: nothing else is read because of it.
        self.preempt.load(Ordering::Relaxed) != 0
    }

    /// Asks the guest that runs here to make room; true if it had not been asked.
    pub(crate) fn ask(&self) -> bool {
        if self.since() == 0 || self.preempt.swap(1, Ordering::Relaxed) != 0 {
            return false;
        }
        self.ring();
        true
    }

    /// Rings again, for an interpreter that could not stop where it was.
    pub(crate) fn ring(&self) {
        if let Some(bell) = &*self.bell.lock() {
            bell.ring();
        }
    }

    /// Lets the slice of this guest end even if no other guest waits. Returns true if that is new.
    pub(crate) fn share(&self) -> bool {
        // Relaxed: the readers are notified by other means.
        !self.shares.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed)
    }

    pub(crate) fn set_bell(&self, bell: Arc<dyn Bell>) {
        self.has_bell.store(true, Ordering::Relaxed);
        *self.bell.lock() = Some(bell);
        // Asked before the bell was there.
        if self.is_asked() {
            self.ring();
        }
    }
}
