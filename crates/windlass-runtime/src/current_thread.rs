//! Runtimes without workers of their own: the thread in `block_on` runs the tasks.
//!
//! One thread at a time has the turn. Another one that calls `block_on` meanwhile polls its own
//! future, and takes over the tasks when the turn is free.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use windlass_core::sched::pool::Hooks;
use windlass_core::sync::Arc;
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::task::Options;
use windlass_sync::lock::{Semaphore, SemaphorePermit};
use windlass_sync::time::{Shard, set_shard};

use crate::coroutine;
use crate::handle::Handle;
use crate::runtime::Shared;

/// What a runtime has in place of workers.
pub(crate) struct CurrentThread {
    /// One permit: the turn to run the tasks.
    turn: Semaphore,
    /// For the thread on which the runtime ends.
    hooks: Hooks,
    /// The tasks have that thread. Only the call that ends the runtime looks at it; Release and
    /// Acquire because the runtime may have been dropped on another thread.
    has_thread: AtomicBool,
}

impl CurrentThread {
    pub(crate) fn new(hooks: Hooks) -> CurrentThread {
        CurrentThread {
            turn: Semaphore::new(1),
            hooks,
            has_thread: AtomicBool::new(false),
        }
    }

    /// Runs the tasks of `runtime` on this thread until `future` has ended.
    #[track_caller]
    pub(crate) fn block_on<F: Future>(&self, runtime: &Handle, future: F) -> F::Output {
        assert!(
            !coroutine::is_inside(),
            "a coroutine cannot run the tasks of a current-thread runtime: its worker has other \
             tasks to run; call block_on on a plain thread"
        );
        let options = Options::here();
        let _entered = runtime.enter();
        let mut future = pin!(future);
        let _turn = match self.turn.try_acquire() {
            Ok(turn) => turn,
            Err(_) => match windlass_core::block_on(self.either(future.as_mut())) {
                Either::Output(output) => return output,
                Either::Turn(turn) => turn,
            },
        };
        let _waiting = windlass_core::begin_wait();
        let shared = runtime.shared();
        let _timers = OwnTimers::set(shared.timers().of_worker(0).clone());
        shared.pool.run_until(future, options)
    }

    /// The output of `future`, or the turn to run the tasks if that comes first.
    async fn either<F: Future>(&self, mut future: Pin<&mut F>) -> Either<'_, F::Output> {
        let mut turn = pin!(self.turn.acquire());
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Either::Output(output));
            }
            match turn.as_mut().poll(cx) {
                Poll::Ready(Ok(turn)) => Poll::Ready(Either::Turn(turn)),
                // Never closed.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Gives the tasks a thread: for a front end whose end waits for them, and for their own end.
    pub(crate) fn give_thread(&self, shared: &Shared) {
        if !self.has_thread.swap(true, Ordering::AcqRel) {
            // Without one the front end's end waits until its limit, and tasks that are suspended
            // are reported as leaked.
            let _ = shared.pool.give_thread(self.hooks.clone());
        }
    }

    /// Begins the end of the tasks. No task begins after the last `block_on`, unless a front end
    /// needs it. Shielded sections, timers and sockets go on: tasks of private pools may wait for
    /// them.
    pub(crate) fn begin_end(&self, shared: &Shared) {
        if shared.pool.begin_stop() {
            self.give_thread(shared);
        }
    }
}

enum Either<'a, T> {
    Output(T),
    Turn(SemaphorePermit<'a>),
}

/// This thread's timers are those of the runtime's worker while this exists.
struct OwnTimers(Option<Arc<Shard>>);

impl OwnTimers {
    fn set(shard: Arc<Shard>) -> OwnTimers {
        OwnTimers(set_shard(Some(shard)))
    }
}

impl Drop for OwnTimers {
    fn drop(&mut self) {
        set_shard(self.0.take());
    }
}
