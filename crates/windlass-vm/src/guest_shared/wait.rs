//! The waits of a guest.

use std::sync::Arc;

use windlass_core::sync::atomic::Ordering;
use windlass_core::task::AbortHandle;
use windlass_sync::park::{EndedWaits, Generation, Wait};

use super::GuestShared;
use crate::exception::Exception;
use crate::guest::{Answer, Ending};
use crate::object::{Channel, Mutex as VmMutex, Semaphore, Waiter};
use crate::reason::{Reason, ReasonKind};

/// What is to be undone when a wait ends in another way than it was meant to.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) kind: ReasonKind,
    pub(crate) timer: WaitTimer,
    pub(crate) queue: WaitQueue,
}

/// A timer of a wait.
#[derive(Debug)]
pub(crate) enum WaitTimer {
    None,
    /// A task of the runtime.
    Task(AbortHandle),
    /// An entry among the reactor's deadlines.
    Deadline((u64, u64)),
}

/// Where a wait stands in line.
#[derive(Debug)]
pub(crate) enum WaitQueue {
    None,
    Channel(Channel),
    Mutex(VmMutex),
    Semaphore(Semaphore),
    Task(Arc<GuestShared>),
    Mail,
}

impl WaitQueue {
    /// Where a wait for this stands.
    pub(crate) fn of(reason: &Reason) -> WaitQueue {
        match reason {
            Reason::AwaitTask(task) => WaitQueue::Task(task.guest.clone()),
            Reason::MutexLock(mutex) => WaitQueue::Mutex(mutex.clone()),
            Reason::SemaphoreAcquire(semaphore, _) => WaitQueue::Semaphore(semaphore.clone()),
            Reason::ChannelSend(channel, _) | Reason::ChannelReceive(channel) => {
                WaitQueue::Channel(channel.clone())
            }
            Reason::Receive { .. } | Reason::Exit => WaitQueue::Mail,
            Reason::Sleep(_) | Reason::IoWait(_) | Reason::Custom(_) | Reason::Begun => {
                WaitQueue::None
            }
        }
    }
}

impl GuestShared {
    /// Begins a wait. Returns `None` if the guest has ended, or was cancelled: then the wait has
    /// ended already.
    pub(crate) fn begin_wait(
        self: &Arc<GuestShared>,
        tag: u64,
        kind: ReasonKind,
        queue: WaitQueue,
    ) -> Option<Waiter> {
        let undo = Undo {
            kind,
            timer: WaitTimer::None,
            queue,
        };
        let generation = self.park.begin(tag, undo)?;
        self.vm.counts.parked(kind, 1);
        let waiter = Waiter {
            guest: self.clone(),
            generation,
        };
        if self.stop_asked.load(Ordering::Relaxed)
            && let Some(reason) = self.cancelled.lock().take()
        {
            let _ = waiter.end(Err(Exception::Cancelled(reason)));
            return None;
        }
        Some(waiter)
    }

    pub(crate) fn set_timer(&self, generation: Generation, timer: WaitTimer) {
        let mut timer = Some(timer);
        let there = self.park.change(generation, |undo| {
            undo.timer = timer.take().unwrap_or(WaitTimer::None);
        });
        if !there && let Some(timer) = timer {
            self.drop_timer(timer);
        }
    }

    /// Ends a wait and wakes the guest.
    pub(crate) fn end_wait(
        self: &Arc<GuestShared>,
        generation: Generation,
        ending: Ending,
    ) -> Result<(), Ending> {
        let ended = self.park.end(generation, ending)?;
        self.vm.counts.parked(ended.undo.kind, -1);
        self.drop_timer(ended.undo.timer);
        if let WaitQueue::Mail = ended.undo.queue {
            self.forget_mail(generation);
        }
        if ended.wakes {
            self.wake();
        }
        Ok(())
    }

    /// Takes a wait back.
    pub(crate) fn withdraw(self: &Arc<GuestShared>, tag: u64) {
        if let Some(wait) = self.park.withdraw(tag) {
            self.undo(wait);
        }
    }

    pub(super) fn undo(self: &Arc<GuestShared>, wait: Wait<Undo>) {
        let generation = wait.generation;
        self.vm.counts.parked(wait.undo.kind, -1);
        self.drop_timer(wait.undo.timer);
        match wait.undo.queue {
            WaitQueue::None => {}
            WaitQueue::Channel(channel) => channel.forget(self, generation),
            WaitQueue::Mutex(mutex) => mutex.forget(self, generation),
            WaitQueue::Semaphore(semaphore) => semaphore.forget(self, generation),
            WaitQueue::Task(task) => {
                let mut completion = task.completion.lock();
                completion.waiters.retain(|w| !w.is(self, generation));
            }
            WaitQueue::Mail => self.forget_mail(generation),
        }
    }

    fn drop_timer(&self, timer: WaitTimer) {
        match timer {
            WaitTimer::None => {}
            WaitTimer::Task(task) => task.abort(),
            WaitTimer::Deadline(key) => self.vm.remove_deadline(key),
        }
    }

    /// It shall stop: everything it waits for ends with that, or the next thing it waits for.
    pub(crate) fn cancel(self: &Arc<GuestShared>, reason: Arc<str>) {
        // Relaxed: a hint for who runs it; what counts is under the lock.
        self.stop_asked.store(true, Ordering::Relaxed);
        let (waits, wakes) = self
            .park
            .end_all(|| Err(Exception::Cancelled(reason.clone())));
        if waits.is_empty() {
            *self.cancelled.lock() = Some(reason);
        }
        for wait in waits {
            self.undo(wait);
        }
        if wakes {
            self.wake();
        }
    }

    /// Returns the reason of the cancel, as long as no wait has ended with it.
    pub(crate) fn cancel_reason(&self) -> Option<Arc<str>> {
        match self.stop_asked.load(Ordering::Relaxed) {
            true => self.cancelled.lock().clone(),
            false => None,
        }
    }

    /// The guest is about to wait: true if it may.
    pub(crate) fn park(&self) -> bool {
        let parked = self.park.park();
        if parked {
            self.vm.went_idle();
        }
        parked
    }

    /// What has arrived.
    pub(crate) fn arrived(&self) -> EndedWaits<Ending> {
        self.park.take()
    }

    /// Whether something has arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.park.has_arrived()
    }

    /// Ends a wait with what arrived at the process. If the wait has ended already, a message is
    /// kept for the next one.
    pub(crate) fn input(self: &Arc<GuestShared>, generation: Generation, ending: Ending) {
        match self.end_wait(generation, ending) {
            Err(Ok(Answer::Message(message))) => self.mail.lock().returned.push_back(message),
            Err(Ok(Answer::Exited(exited))) => self.mail.lock().notices.push_front(exited),
            _ => {}
        }
    }

    /// What it waits for, in the order in which it began to.
    pub(crate) fn waits_for(&self) -> Vec<ReasonKind> {
        let mut kinds = Vec::new();
        self.park.each(|wait| kinds.push(wait.undo.kind));
        kinds
    }

    fn wake(self: &Arc<GuestShared>) {
        self.vm.woke_up();
        self.vm.wake(self);
    }
}
