//! Fork-join on the pool's own workers: who runs a job, and what a worker may do while it waits.
//!
//! The engine knows jobs, not closures: two words in the deque of the worker that forked. A job
//! lies in the frame of a join, or belongs to a scope whose frame waits for it; the thread that
//! made it takes it back or waits until it has run. So nothing here is ever dropped, and a pool
//! that stops lets those frames run to their end; its workers only stop taking jobs from each
//! other.
//!
//! # A job never runs on top of an unrelated frame
//!
//! A worker takes jobs of others in two places. In its loop, with nothing below: any job. In a
//! wait, on top of the frame that waits: only *descendants* of what it waits for, forked by it or
//! by what it forked. Otherwise a join of a microsecond could return a second late, below a job
//! that has nothing to do with it, or never, if that job waits for a lock that the frame holds.
//!
//! **Where descendants are: in the deque of the thief, while it is at our job.** For
//!
//! 1. *A worker's deque is empty in its loop*: every join takes its half back and every scope runs
//!    what is above its mark before they return.
//! 2. *A worker that waits has an empty deque.* It waits for a job that was taken from its deque,
//!    and thieves take the oldest first, so all that was older is gone, too; what is newer it runs
//!    before it waits.
//! 3. So a thief, in its loop or in a wait, begins every job with an empty deque, and before it
//!    sets the job's latch it runs what the job has left there (`Here::run_above`). What is in its
//!    deque between the two was forked by the job.
//!
//! Such help is known as leapfrogging (Wagner and Calder, 1993). It cannot end in a circle: a
//! worker that waits does so for a job deeper in the tree than its own, and so does the one it
//! waits for.
//!
//! # Coroutines
//!
//! A coroutine may be suspended in the middle of a join or a scope, and others then run on its
//! worker. A coroutine may also return with jobs in the deque: it has spawned them into a scope of
//! another task. So that 1 above still holds, what the coroutine has left in the deque since it
//! was resumed is handed over when the resume ends, either way: it becomes tasks, and who forked it
//! waits for the latch, as if it had been stolen ([`end_resume`]). What was in the deque before
//! belongs to frames below the resume, and stays: a resume has a *base*, and nothing on the
//! coroutine's stack takes what is below it. A mark that was taken before a suspension says nothing
//! afterwards: everything above the base has been forked since, by the frame that has the mark or
//! by one above it.
//!
//! A coroutine that is driven by hand has no scheduler that would run such tasks: the code that
//! drives it may be the only thread there is, and resume it until it ends. Its jobs are run where
//! it is resumed.
//!
//! A coroutine that waits for a latch is suspended itself, shielded: nothing unwinds out of a frame
//! that others work for.
//!
//! # The race of the latch
//!
//! The thief may finish our job J, set its latch, and begin an unrelated job whose forks go into
//! the same deque, while we are about to steal from it. So a waiter steals by `Deque::steal_if`: it
//! reads `top`, `bottom` and the slot, *then* asks whether the latch is still not set, and then
//! exchanges `top`. If that succeeds, the job it has is the one it saw.
//!
//! - It was forked after J ended: then the latch was set before the push, the Acquire load of
//!   `bottom` saw the push, and the question would have been answered with no.
//! - It was forked before J began: then it had been taken by the time J began, since the thief
//!   began with an empty deque. The thread that took it did so by moving `top` on, and two cannot
//!   move it on from the same place: the exchange fails.
//! - So it was forked by J, or by a descendant of J. That J has ended by now cannot be: it would
//!   have been taken out before, and the exchange would have failed.
//!
//! The index cannot be used twice with the same `top` (`queue/deque.rs`), so nothing has to be done
//! to the deque between two jobs. The model `fork_a_waiter_takes_no_job_of_somebody_else` checks
//! this, and fails if the question is asked before `bottom` is read.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::context::{self, Barrier};
use crate::executor::block_on::suspend;
use crate::observe::EventKind;
use crate::queue::{JobRef, Taker};
use crate::sched::crew::while_blocked;
pub use crate::sched::latch::Latch;
use crate::sched::worker::Worker;
use crate::sync::atomic::Ordering;
use crate::sync::{clock, hint, thread};
use crate::task::{Body, Options, SpawnRequest};
use crate::tuning::{FORK_ENOUGH, FORK_ONE_IN, SPIN_PAUSES, YIELD_NS};

/// This thread's worker, as fork-join sees it.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a>(&'a Worker);

/// Calls `f` with this thread's worker, if it is one.
#[inline(always)]
pub fn here<R>(f: impl FnOnce(Option<Here<'_>>) -> R) -> R {
    context::with_worker(|worker| f(worker.map(Here)))
}

/// A position in a worker's deque, valid until a coroutine is suspended there.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    bottom: u64,
    worker: usize,
    resume: u64,
}

/// The resume of a coroutine that is under way on a worker.
#[derive(Default)]
pub(super) struct CurrentResume {
    /// Tells it from every other of this worker; 0: the worker's own stack.
    number: Cell<u64>,
    /// What is in the deque below this belongs to frames on other stacks.
    base: Cell<u64>,
    /// Resumes so far.
    counted: Cell<u64>,
}

/// What a resume hides until it ends.
#[derive(Debug)]
#[must_use = "a resume that begins ends"]
pub struct Resume(Option<Hidden>);

#[derive(Debug)]
struct Hidden {
    number: u64,
    base: u64,
}

/// Who runs the jobs that a coroutine leaves behind when its resume ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// They become tasks of the pool.
    HandOver,
    /// The thread that resumed it, at once.
    RunHere,
}

/// A coroutine is about to be resumed on this thread.
pub fn begin_resume() -> Resume {
    here(|here| {
        Resume(here.map(|here| {
            let resume = &here.0.resume;
            resume.counted.set(resume.counted.get() + 1);
            Hidden {
                number: resume.number.replace(resume.counted.get()),
                base: resume.base.replace(here.0.remote().forks.mark()),
            }
        }))
    })
}

/// The coroutine has been suspended, or has returned: sees to the jobs that it left in the deque.
pub fn end_resume(resume: Resume, leftovers: Leftovers) {
    let Some(hidden) = resume.0 else { return };
    here(|here| {
        let Some(here) = here else { return };
        while let Some(job) = here.take() {
            let mut job = HandedOver(Some(job));
            match leftovers {
                Leftovers::HandOver => {
                    drop(here.0.pool.spawn(SpawnRequest::new(job, Options::here())));
                }
                Leftovers::RunHere => {
                    // A coroutine further down is not suspended by it: this resume has not ended.
                    let _barrier = Barrier::raise();
                    job.run();
                }
            }
        }
        here.0.resume.number.set(hidden.number);
        here.0.resume.base.set(hidden.base);
    });
}

/// A job that has become a task. It is run in any case: a frame waits for it.
struct HandedOver(Option<JobRef>);

impl HandedOver {
    fn run(&mut self) {
        if let Some(job) = self.0.take() {
            // It does not count as being inside a task: as with a stolen one, a wait blocks the
            // thread. SAFETY: `end_resume` has taken it out of the deque, and this is a worker of
            // the same pool.
            context::outside_task(|| unsafe { job.run(Taker::Thief) });
        }
    }
}

impl Body for HandedOver {
    type Output = ();

    fn resume(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.run();
        Poll::Ready(())
    }
}

/// A task that is cancelled because the pool stops.
impl Drop for HandedOver {
    fn drop(&mut self) {
        self.run();
    }
}

impl Here<'_> {
    /// True if others have enough to take already, so that a join need not fork. Each call counts
    /// as a join.
    #[inline(always)]
    pub fn has_enough(self) -> bool {
        let worker = self.0;
        if worker.remote().forks.len() < FORK_ENOUGH {
            return false;
        }
        let joins = worker.joins.get().wrapping_add(1);
        worker.joins.set(joins);
        !joins.is_multiple_of(FORK_ONE_IN)
    }

    /// A latch that this worker waits for.
    #[inline]
    pub fn latch(self) -> Latch {
        Latch::new(self.0.index)
    }

    /// This worker's index in its pool.
    #[inline]
    pub fn index(self) -> usize {
        self.0.index
    }

    /// The pool's workers.
    pub fn workers(self) -> usize {
        self.0.pool.workers()
    }

    /// Tells the pool from every other one of this program.
    pub fn pool_id(self) -> usize {
        self.0.pool.number
    }

    /// Returns a mark of the deque's top: what is forked from now on is above it.
    #[inline]
    pub fn mark(self) -> Mark {
        Mark {
            bottom: self.0.remote().forks.mark(),
            worker: self.0.index,
            resume: self.0.resume.number.get(),
        }
    }

    /// Leaves a job where other workers can take it, and notifies one of them if that is worth it.
    ///
    /// # Safety
    /// The job can be run on any worker of the pool until the frame that forks it has taken it back
    /// or waited for it, and that frame does one of the two before it returns.
    #[inline]
    pub unsafe fn fork(self, job: JobRef) {
        self.0.remote().forks.push(job);
        self.0.announce_fork();
    }

    /// Takes the newest job back. None: the last one of this stack has been stolen, or there was
    /// none.
    #[inline]
    pub fn take(self) -> Option<JobRef> {
        self.take_from(self.0.resume.base.get())
    }

    /// Takes back the newest job, if it was forked above the mark.
    #[inline]
    pub fn take_above(self, mark: Mark) -> Option<JobRef> {
        let is_valid = (mark.worker, mark.resume) == (self.0.index, self.0.resume.number.get());
        self.take_from(if is_valid {
            mark.bottom
        } else {
            self.0.resume.base.get()
        })
    }

    /// Takes back the newest job, if its position is `lowest` or above.
    #[inline]
    fn take_from(self, lowest: u64) -> Option<JobRef> {
        let forks = &self.0.remote().forks;
        let is_above = (forks.mark().wrapping_sub(lowest) as i64) > 0;
        is_above.then(|| forks.pop()).flatten()
    }

    /// Runs what was forked above the mark and is still here.
    pub fn run_above(self, mark: Mark) {
        while let Some(job) = self.take_above(mark) {
            // SAFETY: we have taken it out of our deque.
            unsafe { job.run(Taker::Owner) };
        }
    }

    /// Sets a latch that another worker of this pool waits for.
    ///
    /// # Safety
    /// As [`Latch::set`].
    pub unsafe fn set(self, latch: *const Latch) {
        let pool = &self.0.pool;
        // SAFETY: says the caller. The parker is the pool's, and this worker keeps the pool alive.
        unsafe {
            Latch::set(latch, |waiter| {
                // No other thread sleeps elsewhere with this one.
                let _ = pool.crew.remote(waiter).joiner.unpark();
            });
        }
    }

    /// Takes a job from the worker that is at something we wait for, if `still` says so after the
    /// job was seen. See the module's head.
    pub fn steal_from(self, victim: usize, still: impl FnOnce() -> bool) -> Option<JobRef> {
        if victim == self.0.index {
            return None;
        }
        let job = self.0.pool.crew.remote(victim).forks.steal_if(still)?;
        self.0.note_stolen(victim);
        Some(job)
    }

    /// Waits until the latch is set. A coroutine is suspended; a thread runs meanwhile what `help`
    /// has taken from those who are at it.
    pub fn wait(self, latch: &Latch, help: impl Fn() -> Option<JobRef>) {
        if suspend(true, &mut |cx| latch.poll(cx)) {
            return;
        }
        // It is empty (2 of the module's head), unless a plain thread below this frame has come
        // back into the pool and spawned into our scope from there. Then others take what is in it,
        // and we only wait.
        let may_help = self.0.remote().forks.is_empty();
        let spin = &self.0.pool.config.spin;
        let mut round = 0;
        while !latch.is_set() {
            if let Some(job) = may_help.then(&help).flatten() {
                // The watchdog sees that it goes on; the task is still the one below.
                self.0.remote().pulse.count();
                // SAFETY: `help` has taken it out of another worker's deque.
                unsafe { job.run(Taker::Thief) };
                round = 0;
                continue;
            }
            if round >= spin.yields {
                return wait_idle(self.0, latch);
            }
            if round < spin.tight {
                (0..SPIN_PAUSES).for_each(|_| hint::spin_loop());
            } else {
                let before = clock::now();
                thread::yield_now();
                if clock::now() - before > YIELD_NS {
                    // Another thread needs the core: one last look, then sleep.
                    round = spin.yields;
                    continue;
                }
            }
            round += 1;
        }
    }
}

/// Nothing is left to do here but to wait for this latch: the thread sleeps, and another worker
/// takes its place.
#[cold]
fn wait_idle(worker: &Worker, latch: &Latch) {
    if !latch.begin_sleep() {
        return;
    }
    // Exactly one token comes, from the thread that sets the latch.
    while_blocked(|| worker.remote().joiner.park());
    debug_assert!(latch.is_set());
}

impl Worker {
    /// Notifies a sleeper about a job in our own deque: through a gate, because most joins are over
    /// before it is awake. This worker takes the job back itself, so nothing is lost if no worker
    /// is notified.
    #[inline]
    fn announce_fork(&self) {
        if self.pool.idle.worth_announcing() {
            self.announce_fork_gated();
        }
    }

    #[cold]
    fn announce_fork_gated(&self) {
        if self.pool.config.stealing
            && self
                .fork_gate
                .opens(&self.policy, &self.remote().forks_robbed)
        {
            self.pool.announce();
        }
    }

    /// A job of another worker. A pool that stops takes none: those who forked run them.
    pub(super) fn steal_job(&self, last: bool) -> Option<JobRef> {
        if self.pool.stop.is_stopping() {
            return None;
        }
        self.victims(last).find_map(|victim| {
            let forks = &self.pool.crew.remote(victim).forks;
            if forks.is_empty() {
                return None;
            }
            let job = forks.steal()?;
            self.note_stolen(victim);
            Some(job)
        })
    }

    fn note_stolen(&self, victim: usize) {
        let remote = self.remote();
        remote.counters.forks_stolen.one();
        remote.recorder.record(EventKind::StealJob, victim as u64);
        self.pool
            .crew
            .remote(victim)
            .forks_robbed
            .store(true, Ordering::Relaxed);
    }

    /// Runs a stolen job with nothing below it.
    pub(super) fn run_job(&self, job: JobRef) {
        debug_assert!(self.remote().forks.is_empty(), "1 of the module's head");
        self.remote().pulse.begin_job();
        // SAFETY: `steal_job` has taken it out of another worker's deque.
        unsafe { job.run(Taker::Thief) };
        // It was no poll: it must not be measured as one. And it was long, perhaps: timers and
        // sockets come before the next one.
        let now = clock::now();
        self.begin_batch(now);
        self.pool.poll_driver(now);
    }
}
