//! A pool without a thread: the thread that waits for a future runs the tasks meanwhile.
//!
//! The future (the *root*) is a task of the pool like any other, so its wake-ups take the ways of
//! all wake-ups, and SLEEP.md holds as it is: there is one worker, which sleeps in the driver.
//! Between two calls nobody is that worker. It then counts as awake, so that a spawn or a wake
//! queues its task and wakes no thread; the next call finds it.
//!
//! Rejected: to poll the root beside the tasks, with a waker of its own. That waker would be a
//! second way to end the worker's sleep, with a proof of its own.
//!
//! # The rules that `unsafe` blocks cite
//! 1. **The frame outlives the body.** `run_until` returns, or unwinds, only after the root's body
//!    was dropped, which the body notes as the last thing it does. Its pointers are valid until
//!    then.
//! 2. **One thread.** The pool has one worker, `run_until` is that worker for as long as the body
//!    exists, and it hands out no handle of the root by which another thread could end it. So the
//!    body is resumed and dropped on the thread of `run_until`.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Config, Driver, Hooks, Pool, StopReport, run_worker};
use crate::context;
use crate::sched::stop::Phase;
use crate::sched::worker::Worker;
use crate::sync::{Arc, thread};
use crate::task::{Body, Options, SpawnRequest};

impl Pool {
    /// Makes a pool that [`run_until`](Pool::run_until) runs.
    pub fn on_callers(config: Config, driver: Arc<dyn Driver>) -> Arc<Pool> {
        let config = Config {
            workers: 1,
            max_workers: 1,
            current_thread: true,
            // As in tokio: a task that yields lets all others run, whoever spawned them.
            in_order: true,
            ..config
        };
        Pool::without_threads(config, Some(driver))
    }

    /// Runs the tasks of a pool made by [`on_callers`](Pool::on_callers) on this thread, until
    /// `future` has ended. The caller sees to it that no other thread does so at the same time, and
    /// that the pool is not stopping.
    ///
    /// # Panics
    /// With the panic of `future`.
    pub fn run_until<F: Future>(self: &Arc<Pool>, future: F, options: Options) -> F::Output {
        assert!(self.config.current_thread && !self.is_stopping());
        let mut future = pin!(future);
        let mut output: Option<Result<F::Output, Box<dyn Any + Send>>> = None;
        let mut poll = |cx: &mut Context<'_>| {
            // The panic goes on in the caller's frame, not in the task.
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(value)) => output = Some(Ok(value)),
                Err(payload) => output = Some(Err(payload)),
            }
            Poll::Ready(())
        };
        let is_over = Cell::new(false);
        let body = RootBody::new(&mut poll, &is_over);
        let worker = Worker::new(self.clone(), 0, None);
        context::enter_worker(&worker, || {
            drop(self.spawn(SpawnRequest::new(body, options)));
            // Rule 1: whatever else lets the worker leave, the frame stays until the root is over.
            while !is_over.get() {
                worker.run();
            }
        });
        match output {
            Some(Ok(value)) => value,
            Some(Err(payload)) => resume_unwind(payload),
            None => unreachable!("no handle of the root is given out, and the pool does not stop"),
        }
    }

    /// Lets such a pool stop: spawns are refused, and no task begins that has not. Its tasks end in
    /// [`end_stopped`](Pool::end_stopped); until then they, timers and sockets go on if a thread
    /// has been given.
    pub fn begin_stop(&self) -> bool {
        self.stop.advance(Phase::Stopping)
    }

    /// Ends such a pool, which stops already, as [`shutdown`](Pool::shutdown) does.
    pub fn end_stopped(&self, limit: Duration) -> StopReport {
        self.end(Some(limit))
    }

    /// Gives the worker of such a pool a thread, for what needs its tasks to go on while the pool
    /// ends: from now on [`shutdown`](Pool::shutdown) works as it does for other pools.
    pub fn give_thread(self: &Arc<Pool>, hooks: Hooks) -> io::Result<()> {
        // Before the thread runs: from now on a shutdown waits for it.
        self.stop.join(0);
        let (inside, name) = (self.clone(), format!("{}-0", self.config.name));
        let thread = thread::spawn(name, self.config.stack_size, move || {
            run_worker(&inside, 0, &hooks);
        });
        match thread {
            Ok(thread) => {
                self.crew.adopt(thread);
                Ok(())
            }
            Err(error) => {
                self.stop.drained(0);
                Err(error)
            }
        }
    }
}

/// A poll of the root, without the types of its frame.
type PollRoot<'a> = dyn FnMut(&mut Context<'_>) -> Poll<()> + 'a;

/// The root as the body of a task.
struct RootBody {
    poll: NonNull<PollRoot<'static>>,
    is_over: NonNull<Cell<bool>>,
}

// SAFETY: rule 2: it does not leave its thread.
unsafe impl Send for RootBody {}

impl RootBody {
    fn new(poll: &mut PollRoot<'_>, is_over: &Cell<bool>) -> RootBody {
        let poll: *mut PollRoot<'_> = poll;
        // SAFETY: only the lifetime changes, and rule 1 stands for it.
        let poll =
            unsafe { std::mem::transmute::<*mut PollRoot<'_>, *mut PollRoot<'static>>(poll) };
        RootBody {
            // SAFETY: made from a reference.
            poll: unsafe { NonNull::new_unchecked(poll) },
            is_over: NonNull::from(is_over),
        }
    }
}

impl Body for RootBody {
    type Output = ();

    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: rule 1; and the frame uses the closure no more until the body is dropped.
        let poll = unsafe { self.poll.as_mut() };
        poll(cx)
    }
}

impl Drop for RootBody {
    fn drop(&mut self) {
        // The worker looks at its notices before each turn, and leaves.
        context::with_worker(|worker| {
            if let Some(worker) = worker {
                worker.pool.stop.set_crowded(true);
            }
        });
        // SAFETY: rule 1, for the last time.
        unsafe { self.is_over.as_ref() }.set(true);
    }
}
