//! Guests on the workers of the runtime: each worker decides for itself.
//!
//! A guest's process steps it (`guest_process.rs`); the engine's queues are the ready queue. What
//! is left to do here is preemption: the *ticker*, a thread of its own, looks at the slots in which
//! guests run and asks those to make room whose slice is over.
//!
//! # When the ticker sleeps
//! It looks when the first slice is over, at most [`FINEST`] times per slice, and sleeps for good
//! when no guest has run for [`LINGER`] slices. Then it says so (`dozing`), and looks once more. A
//! worker that begins a step stores the time in its slot first and then looks whether the ticker is
//! dozing (both SeqCst): one of the two sees the other.

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windlass_core::sync::{CoarseClock, Mutex, clock};
use windlass_runtime::dispatch::{Dispatcher, OwnThread};
use windlass_runtime::time::{Instant, precise};
use windlass_sync::lock::Notify;

use crate::error::BuildError;
use crate::guest_shared::GuestShared;
use crate::slot::Slot;
use crate::vm::{GuestScheduler, VmShared};

/// How many slices without a guest the ticker stays awake for.
const LINGER: u32 = 8;

/// How often per slice the ticker looks at most: no guest runs for longer than a slice and this
/// part of it.
const FINEST: u64 = 8;

/// Of so many VMs a thread keeps its slot.
const KEPT: usize = 4;

pub(crate) struct Pool {
    id: u64,
    slice: Duration,
    slots: Mutex<Vec<Weak<Slot>>>,
    bell: Arc<Notify>,
    dozing: Arc<AtomicBool>,
    ticker: Mutex<Option<OwnThread<()>>>,
}

/// Where guests of one VM run on this thread.
struct ThreadSlot {
    vm: u64,
    slot: Arc<Slot>,
    /// This thread's clock.
    near: CoarseClock,
}

thread_local! {
    /// By VM, the latest last. The slot of a running guest is taken out.
    static HERE: RefCell<Vec<ThreadSlot>> = const { RefCell::new(Vec::new()) };
}

impl Pool {
    pub(crate) fn new(slice: Duration) -> Pool {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Pool {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            slice,
            slots: Mutex::default(),
            bell: Arc::default(),
            dozing: Arc::new(AtomicBool::new(false)),
            ticker: Mutex::new(None),
        }
    }

    pub(crate) fn start(&self, shared: &Arc<VmShared>) -> Result<(), BuildError> {
        if shared.counting {
            return Ok(());
        }
        let ticking = tick(
            Arc::downgrade(shared),
            self.bell.clone(),
            self.dozing.clone(),
            self.slice,
        );
        let ticker = Dispatcher::builder(1)
            .name("windlass-vm-ticker")
            .run_in(&shared.runtime, ticking)
            .map_err(BuildError::Workers)?;
        *self.ticker.lock() = Some(ticker);
        Ok(())
    }

    /// The ticker ends with the last guest, which holds the VM's shared half.
    pub(crate) fn stop(&self) {}

    /// Takes out what this thread has of this VM, or makes it.
    fn take_here(&self) -> ThreadSlot {
        let there = HERE.with_borrow_mut(|all| {
            let place = all.iter().rposition(|here| here.vm == self.id)?;
            Some(all.remove(place))
        });
        there.unwrap_or_else(|| {
            let slot = Arc::new(Slot::default());
            let mut known = self.slots.lock();
            known.retain(|slot| slot.strong_count() > 0);
            known.push(Arc::downgrade(&slot));
            ThreadSlot {
                vm: self.id,
                slot,
                near: CoarseClock::default(),
            }
        })
    }

    /// Asks every guest that runs to make room.
    pub(crate) fn ask_all(&self, shared: &VmShared) {
        for slot in self.running() {
            if slot.ask() {
                shared.counts.asked();
            }
        }
    }

    fn running(&self) -> Vec<Arc<Slot>> {
        let slots = self.slots.lock();
        let there = slots.iter().filter_map(Weak::upgrade);
        there.filter(|slot| slot.since() != 0).collect()
    }

    /// Asks guests whose slice is over to make room. Returns when to look again, if a guest runs.
    fn look(&self, shared: &VmShared, now: u64) -> Option<u64> {
        let slice = self.slice.as_nanos() as u64;
        shared.stuck.forget_returned();
        let next = self.running().into_iter().filter_map(|slot| {
            let since = slot.since();
            if since == 0 {
                return None;
            }
            if now.saturating_sub(since) < slice {
                return Some(since + slice);
            }
            match slot.ask() {
                true => shared.counts.asked(),
                // It could not stop where it was.
                false => slot.ring(),
            }
            if shared.stuck.is_due(since, slice, now)
                && let Some(guest) = slot.guest()
            {
                shared.stuck.give_up(&slot, since, &guest);
            }
            Some(now + slice / 2)
        });
        next.min().map(|next| next.max(now + slice / FINEST))
    }
}

/// Keeps what a thread has of a VM, for as many as it keeps.
fn put_back(here: ThreadSlot) {
    HERE.with_borrow_mut(|all| {
        if all.len() >= KEPT {
            all.remove(0);
        }
        all.push(here);
    });
}

/// Asks guests to make room, as long as the VM is there.
async fn tick(shared: Weak<VmShared>, bell: Arc<Notify>, dozing: Arc<AtomicBool>, slice: Duration) {
    let mut quiet = 0;
    loop {
        let Some(vm) = shared.upgrade() else {
            return;
        };
        let GuestScheduler::Pool(pool) = &vm.scheduler else {
            return;
        };
        let now = clock::now();
        let next = pool.look(&vm, now);
        quiet = if next.is_some() { 0 } else { quiet + 1 };
        if quiet <= LINGER {
            // The slice of a guest that begins after this look is not over before that.
            let left = next.map_or(slice, |next| Duration::from_nanos(next - now).min(slice));
            drop(vm);
            let _ = precise::block_until_or(Instant::now() + left, bell.notified());
            continue;
        }
        dozing.store(true, Ordering::SeqCst);
        if pool.running().is_empty() {
            drop(vm);
            bell.notified().await;
        }
        dozing.store(false, Ordering::SeqCst);
        quiet = 0;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

impl VmShared {
    /// Runs something in the slot of this thread, and counts the time.
    pub(crate) fn on_slot<T>(&self, guest: &Arc<GuestShared>, run: impl FnOnce(&Slot) -> T) -> T {
        let GuestScheduler::Pool(pool) = &self.scheduler else {
            unreachable!("the reactor gives slots itself");
        };
        let mut here = pool.take_here();
        let began = here.near.keep();
        here.slot.set_guest(guest);
        here.slot.begin(began);
        if pool.dozing.load(Ordering::SeqCst) {
            pool.bell.notify_one();
        }
        let ran = run(&here.slot);
        here.slot.end();
        let ended = here.near.now();
        guest
            .cpu
            .fetch_add(ended.saturating_sub(began), Ordering::Relaxed);
        put_back(here);
        ran
    }
}
