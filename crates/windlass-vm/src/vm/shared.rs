//! What all guests of a VM share.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use windlass_actor::{ExitReason, Host};
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::sync::{Mutex, Padded};
use windlass_core::task::contain;
use windlass_runtime::Handle;
use windlass_sync::lock::Notify;

use super::counts::VmCounts;
use super::snapshot::VmSnapshot;
use crate::guest_shared::GuestShared;
use crate::guest_table::GuestTable;
use crate::limits::Limits;
use crate::placement::Placement;
use crate::pool::Pool;
use crate::reactor::Reactor;
use crate::reason::ReasonKind;
use crate::stuck::StuckGuests;
use crate::uncaught::Uncaught;

/// What decides which guest runs when, as its [`Placement`] says.
pub(crate) enum GuestScheduler {
    Pool(Pool),
    Reactor(Box<Reactor>),
}

pub(super) type OnUncaught = Arc<dyn Fn(Uncaught) + Send + Sync>;

/// What all guests of a VM share.
pub(crate) struct VmShared {
    pub(crate) runtime: Handle,
    pub(crate) host: Host,
    pub(crate) scheduler: GuestScheduler,
    /// Slices are counted in instructions.
    pub(crate) counting: bool,
    pub(crate) slice_count: u64,
    pub(crate) limits: Limits,
    /// On lines of their own: every step writes here, and reads the rest.
    pub(crate) counts: Padded<VmCounts>,
    pub(super) on_uncaught: Option<OnUncaught>,
    /// Guests that do not come back.
    pub(crate) stuck: StuckGuests,
    pub(crate) guests: GuestTable,
    pub(super) ids: AtomicU64,
    /// Guests that came to run meanwhile; on the pool.
    pub(super) held_back: Mutex<Vec<Arc<GuestShared>>>,
    /// Notified when `active` or `running` reaches 0.
    pub(super) quiet: Notify,
}

impl VmShared {
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Lets a guest run that was parked.
    pub(crate) fn wake(&self, guest: &Arc<GuestShared>) {
        match &self.scheduler {
            GuestScheduler::Pool(_) => guest.request_step(),
            GuestScheduler::Reactor(reactor) => reactor.make_ready(guest),
        }
    }

    /// A guest wants its slice to end. On the pool it does in any case.
    pub(crate) fn look_again(&self) {
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.wake_loop();
        }
    }

    pub(crate) fn remove_deadline(&self, key: (u64, u64)) {
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.remove_deadline(key);
        }
    }

    pub(crate) fn report(&self, uncaught: Uncaught) {
        match &self.on_uncaught {
            Some(notify) => {
                contain(|| notify(uncaught));
            }
            None => tracing::error!(target: "windlass::vm", "{uncaught}"),
        }
    }

    pub(crate) fn woke_up(&self) {
        self.counts.active.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn went_idle(&self) {
        if self.counts.active.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.quiet.notify_waiters();
        }
    }

    /// Before a step: false if nothing is to run now. SeqCst: one word counts the running guests,
    /// the other says that none shall run, and one of the two sides sees the other.
    pub(crate) fn enter(&self, guest: &Arc<GuestShared>) -> bool {
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        if self.counts.paused.load(Ordering::SeqCst) == 0 {
            return true;
        }
        self.leave();
        self.held_back.lock().push(guest.clone());
        if self.counts.paused.load(Ordering::SeqCst) == 0 {
            self.let_go();
        }
        false
    }

    /// As `enter`, on the reactor, which keeps who came meanwhile itself. To be left in any case.
    pub(crate) fn enter_job(&self) -> bool {
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        self.counts.paused.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn leave(&self) {
        if self.counts.running.fetch_sub(1, Ordering::SeqCst) == 1
            && self.counts.paused.load(Ordering::SeqCst) > 0
        {
            self.quiet.notify_waiters();
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.counts.paused.load(Ordering::SeqCst) > 0
    }

    pub(super) fn let_go(&self) {
        for guest in std::mem::take(&mut *self.held_back.lock()) {
            guest.request_step();
        }
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.wake_loop();
        }
    }

    /// The reason to end a guest that has used up its time.
    pub(crate) fn over_limit(&self, guest: &GuestShared) -> Option<ExitReason> {
        let most = guest.limits.cpu?;
        let used = Duration::from_nanos(guest.cpu.load(Ordering::Relaxed));
        (used > most).then(|| {
            let text = format!("it has used {used:?} of processor time, and may use {most:?}");
            ExitReason::Error(text.into())
        })
    }

    pub(super) async fn until(&self, quiet: impl Fn(&VmShared) -> bool) {
        loop {
            let mut notified = pin!(self.quiet.notified());
            notified.as_mut().enable();
            if quiet(self) {
                return;
            }
            notified.await;
        }
    }

    pub(super) fn placement(&self) -> Placement {
        match self.scheduler {
            GuestScheduler::Pool(_) => Placement::Pool,
            GuestScheduler::Reactor(_) => Placement::Reactor,
        }
    }

    pub(crate) fn snapshot(&self) -> VmSnapshot {
        let counts = &self.counts;
        let parked = ReasonKind::ALL
            .iter()
            .map(|kind| {
                let parked = counts.parked[*kind as usize].load(Ordering::Relaxed);
                (*kind, (parked as i64).max(0) as usize)
            })
            .collect();
        VmSnapshot {
            placement: self.placement(),
            active_vm_tasks: self.counts.running.load(Ordering::Relaxed),
            ready_or_running: self.counts.active.load(Ordering::Relaxed),
            parked,
            steps: counts.steps.load(Ordering::Relaxed),
            preemptions_requested: counts.asked.load(Ordering::Relaxed),
            preemptions_taken: counts.taken.load(Ordering::Relaxed),
            stuck: self.stuck.current_names(),
            replay: match &self.scheduler {
                GuestScheduler::Reactor(reactor) => reactor.replay_position(),
                GuestScheduler::Pool(_) => None,
            },
        }
    }
}
