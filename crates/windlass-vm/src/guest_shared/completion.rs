//! The end of a guest.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;
use windlass_actor::ExitReason;
use windlass_core::sync::atomic::Ordering;
use windlass_sync::park::ParkState;
use windlass_value::Payload;

use super::GuestShared;
use crate::exception::Exception;
use crate::guest::{Answer, Ending};
use crate::object::Waiter;
use crate::uncaught::Uncaught;

/// How a guest ended, or the waits for its end.
#[derive(Default)]
pub(super) struct Completion {
    result: Option<Result<Payload, ExitReason>>,
    /// Nearly always one.
    pub(super) waiters: SmallVec<[Waiter; 1]>,
    /// Whether a waiter or a handle has got the result.
    pub(super) awaited: bool,
    reported: bool,
}

impl GuestShared {
    /// Ends the guest: its locks and permits go back, its waiters are notified. The first end
    /// counts.
    pub(crate) fn finish(self: &Arc<GuestShared>, result: Result<Payload, ExitReason>) {
        let (waits, was) = self.park.close();
        if was == ParkState::Closed {
            return;
        }
        for wait in waits {
            self.undo(wait);
        }
        let resources = self.with_resources(std::mem::take);
        for mutex in resources.mutexes {
            mutex.pass_on(self);
        }
        for (semaphore, permits) in resources.permits {
            semaphore.release(permits);
        }
        let mut completion = self.completion.lock();
        for waiter in std::mem::take(&mut completion.waiters) {
            let notified = waiter.end(self.ending_of(&result));
            completion.awaited |= notified.is_ok();
        }
        completion.result = Some(result);
        drop(completion);
        if let Some(parent) = self.parent.as_ref().and_then(Weak::upgrade) {
            parent.tasks.fetch_sub(1, Ordering::Relaxed);
        }
        if self.handles.load(Ordering::SeqCst) == 0 {
            self.report();
        }
        if was == ParkState::Awake {
            self.vm.went_idle();
        }
    }

    /// How it ended.
    pub(crate) fn result(&self) -> Option<Result<Payload, ExitReason>> {
        self.completion.lock().result.clone()
    }

    fn ending_of(&self, result: &Result<Payload, ExitReason>) -> Ending {
        match result {
            Ok(value) => Ok(Answer::Value(value.clone())),
            Err(reason) => Err(Exception::TaskFailed {
                task: self.pid(),
                reason: reason.clone(),
            }),
        }
    }

    /// Lets this wait end with the guest.
    pub(crate) fn await_by(self: &Arc<GuestShared>, waiter: Waiter) {
        let mut completion = self.completion.lock();
        match &completion.result {
            Some(result) => {
                let notified = waiter.end(self.ending_of(result));
                completion.awaited |= notified.is_ok();
            }
            None => completion.waiters.push(waiter),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.completion.lock().result.is_some()
    }

    /// Counts one [`Task`](crate::Task) more that can get the result.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts one handle less. The last one reports a failure that was never awaited.
    pub(crate) fn remove_handle(&self) {
        // SeqCst, as the load in `finish`: one of the two sees that no handle is left, and `report`
        // reports once.
        if self.handles.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.report();
        }
    }

    /// A handle waits for the end: the result is not reported as never awaited.
    pub(crate) fn note_awaited(&self) {
        self.completion.lock().awaited = true;
    }

    /// Reports a failure that no waiter and no handle has got or can still get. Once.
    fn report(&self) {
        let mut completion = self.completion.lock();
        let failed = match &completion.result {
            Some(Err(reason @ (ExitReason::Error(_) | ExitReason::Panic(_)))) => reason.clone(),
            _ => return,
        };
        if completion.awaited || completion.reported {
            return;
        }
        completion.reported = true;
        drop(completion);
        self.vm.report(Uncaught {
            task: self.pid(),
            reason: failed,
        });
    }
}
