//! The effects that guests have on each other: one place for both placements.
//!
//! On the pool, the thread that runs the guest performs an operation at once. On the reactor the
//! operation is posted, and the reactor performs it, so that all decisions are made in one place
//! and in an order that can be recorded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use windlass_core::task::{contain, panic_message};
use windlass_runtime::time::sleep;
use windlass_value::Payload;

use crate::exception::Exception;
use crate::guest::{Answer, Ending};
use crate::guest_shared::{GuestShared, Receive, WaitQueue, WaitTimer};
use crate::object::{Channel, Mutex, Semaphore, Waiter};
use crate::reason::{Reason, Work};
use crate::vm::{GuestScheduler, VmShared};

/// An operation of a guest that has an effect on others.
pub(crate) enum Op {
    Begin { tag: u64, reason: Reason },
    Withdraw { tag: u64 },
    Unlock(Mutex),
    Release(Semaphore, usize),
    Close(Channel),
    Spawned(Arc<GuestShared>),
}

impl Op {
    /// Returns what the guest asked for, as recordings say it.
    pub(crate) fn description(&self) -> String {
        match self {
            Op::Begin { reason, .. } => reason.description(),
            Op::Withdraw { .. } => "withdraw".to_owned(),
            Op::Unlock(_) => "unlock".to_owned(),
            Op::Release(_, permits) => format!("release {permits}"),
            Op::Close(_) => "close".to_owned(),
            Op::Spawned(_) => "spawned".to_owned(),
        }
    }
}

impl VmShared {
    /// Performs the operation of a guest: at once on the pool, by posting it on the reactor.
    pub(crate) fn perform_or_post(self: &Arc<VmShared>, guest: &Arc<GuestShared>, op: Op) {
        match &self.scheduler {
            GuestScheduler::Pool(_) => self.perform(guest, op),
            GuestScheduler::Reactor(reactor) => reactor.post_op(guest, op),
        }
    }

    /// Performs the operation of a guest at once.
    pub(crate) fn perform(self: &Arc<VmShared>, guest: &Arc<GuestShared>, op: Op) {
        match op {
            Op::Begin { tag, reason } => self.begin(guest, tag, reason),
            Op::Withdraw { tag } => guest.withdraw(tag),
            Op::Unlock(mutex) => mutex.pass_on(guest),
            Op::Release(semaphore, permits) => semaphore.release(permits),
            Op::Close(channel) => channel.close(),
            // On the pool it runs already.
            Op::Spawned(_) => {}
        }
    }

    fn begin(self: &Arc<VmShared>, guest: &Arc<GuestShared>, tag: u64, reason: Reason) {
        if let Reason::Begun = reason {
            return;
        }
        let Some(waiter) = guest.begin_wait(tag, reason.kind(), WaitQueue::of(&reason)) else {
            return;
        };
        let generation = waiter.generation;
        match reason {
            Reason::AwaitTask(task) => task.guest.await_by(waiter),
            Reason::Sleep(time) => self.set_timer(&waiter, time, Ok(Payload::Nil.into())),
            Reason::MutexLock(mutex) => mutex.lock(waiter),
            Reason::SemaphoreAcquire(semaphore, permits) => semaphore.acquire(waiter, permits),
            Reason::ChannelSend(channel, value) => channel.send(waiter, value),
            Reason::ChannelReceive(channel) => channel.receive(waiter),
            Reason::Receive { pattern, timeout } => {
                // No time at all: the process says whether a message is there.
                let now = timeout.is_some_and(|timeout| timeout.is_zero());
                let receive = Receive {
                    generation,
                    pattern,
                    now,
                };
                guest.want(|mail| mail.receives.push(receive));
                if let Some(timeout) = timeout.filter(|_| !now) {
                    self.set_timer(&waiter, timeout, Err(Exception::TimedOut));
                }
                self.want_mail(guest);
            }
            Reason::Exit => {
                guest.want(|mail| mail.exits.push(generation));
                self.want_mail(guest);
            }
            Reason::IoWait(work) => self.submit(waiter, work),
            Reason::Custom(custom) => {
                guest.want(|mail| mail.customs.push((generation, custom)));
                self.want_mail(guest);
            }
            Reason::Begun => {}
        }
    }

    /// The process of this guest has something to look for. On the pool it is the one that is
    /// running.
    fn want_mail(&self, guest: &GuestShared) {
        if let GuestScheduler::Reactor(reactor) = &self.scheduler
            && !reactor.is_replaying()
        {
            guest.request_step();
        }
    }

    fn set_timer(self: &Arc<VmShared>, waiter: &Waiter, time: Duration, ending: Ending) {
        let (guest, generation) = (&waiter.guest, waiter.generation);
        match &self.scheduler {
            GuestScheduler::Reactor(reactor) => {
                let key = reactor.add_deadline(time, waiter.clone(), ending);
                guest.set_timer(generation, WaitTimer::Deadline(key));
            }
            GuestScheduler::Pool(_) => {
                let waiter = waiter.clone();
                let task = self.runtime.spawn(async move {
                    sleep(time).await;
                    let _ = waiter.end(ending);
                });
                guest.set_timer(generation, WaitTimer::Task(task.abort_handle()));
            }
        }
    }

    /// Has blocking work done.
    fn submit(self: &Arc<VmShared>, waiter: Waiter, work: Work) {
        match &self.scheduler {
            GuestScheduler::Reactor(reactor) => reactor.submit(waiter, work),
            GuestScheduler::Pool(_) => self.run_blocking(waiter, work, |waiter, ending| {
                let _ = waiter.end(ending);
            }),
        }
    }

    /// Does blocking work on a thread for that, and calls `done` with the result.
    pub(crate) fn run_blocking(
        &self,
        waiter: Waiter,
        work: Work,
        done: impl FnOnce(Waiter, Ending) + Send + 'static,
    ) {
        let mut answer = Blocked(Some((waiter, done)));
        let job = move || {
            let ending = match catch_unwind(AssertUnwindSafe(work.0)) {
                Ok(result) => result.map(Answer::Value),
                Err(panic) => {
                    let message = message_of(&*panic);
                    contain(|| drop(panic));
                    Err(Exception::Panicked(message))
                }
            };
            answer.complete(ending);
        };
        // Without a thread the closure is dropped, and says so.
        drop(self.runtime.try_spawn_blocking(job));
    }
}

/// What came of blocking work, which may not have been done at all.
struct Blocked<F: FnOnce(Waiter, Ending)>(Option<(Waiter, F)>);

impl<F: FnOnce(Waiter, Ending)> Blocked<F> {
    fn complete(&mut self, ending: Ending) {
        if let Some((waiter, done)) = self.0.take() {
            done(waiter, ending);
        }
    }
}

impl<F: FnOnce(Waiter, Ending)> Drop for Blocked<F> {
    fn drop(&mut self) {
        self.complete(Err(Exception::NoThread));
    }
}

/// The text of a panic.
pub(crate) fn message_of(panic: &(dyn std::any::Any + Send)) -> Arc<str> {
    panic_message(panic)
        .unwrap_or("a panic without a message")
        .into()
}
