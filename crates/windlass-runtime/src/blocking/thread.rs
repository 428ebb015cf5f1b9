//! The threads of a blocking pool: when one starts, what it runs, when it retires.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::context::{self, RunsTasks};
use windlass_core::sync::{MutexGuard, clock, thread};
use windlass_core::task::contain;

use super::config::ThreadHook;
use super::state::{QueuedJob, State, Work};
use super::{BlockingPool, from_now};
use crate::handle::Handle;

thread_local! {
    /// The pool whose thread this is.
    static OWN: Cell<*const BlockingPool> = const { Cell::new(std::ptr::null()) };
}

/// Calls a hook, whose panic ends nothing else.
fn call(hook: &Option<ThreadHook>) {
    if let Some(hook) = hook {
        let _ = contain(|| hook());
    }
}

/// A thread that is to be started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) number: u64,
    pub(super) thread_slot: u16,
}

impl BlockingPool {
    /// Notifies or starts a thread for the queue. Fails if there is no thread and none can be
    /// started.
    pub(super) fn find_thread(
        self: &Arc<Self>,
        state: &mut State,
        runtime: &Handle,
    ) -> io::Result<()> {
        if state.idle > state.notified {
            state.notified += 1;
            self.work.notify_one();
            return Ok(());
        }
        if let Some(start) = self.reserve(state)
            && let Err(error) = self.start_thread(start, runtime)
        {
            state.take_back(start);
            if state.threads == 0 {
                return Err(error);
            }
        }
        Ok(())
    }

    /// A place for another thread, if there may be one, and none is on its way.
    fn reserve(&self, state: &mut State) -> Option<Start> {
        if state.starting > 0 || state.threads >= self.config.max_threads {
            return None;
        }
        // There are not more threads than slots: the builder sees to it.
        let thread_slot = state.free_slots.pop().unwrap_or(state.next_slot);
        state.next_slot = state.next_slot.max(thread_slot.saturating_add(1));
        let number = state.started;
        state.started += 1;
        state.threads += 1;
        state.starting += 1;
        Some(Start {
            number,
            thread_slot,
        })
    }

    fn start_thread(self: &Arc<Self>, start: Start, runtime: &Handle) -> io::Result<()> {
        let Start {
            number,
            thread_slot,
        } = start;
        let name = format!("{}-{number}", self.config.name);
        let (pool, runtime) = (self.clone(), runtime.clone());
        thread::spawn(name, self.config.stack_size, move || {
            OWN.with(|own| own.set(Arc::as_ptr(&pool)));
            context::set_thread_slot(thread_slot);
            let entered = runtime.enter();
            drop(runtime);
            // Coroutines of io tasks begin here.
            let runs_tasks = RunsTasks::begin();
            pool.run(start);
            call(&pool.config.on_stop);
            drop(runs_tasks);
            drop(entered);
            pool.leave(thread_slot);
        })?;
        Ok(())
    }

    /// There is more to do than there are threads for: starts one. Not under the lock, for which
    /// all wait.
    fn start_next<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        if state.closed || state.queue.is_empty() || state.idle > state.notified {
            return state;
        }
        let (Some(start), Ok(runtime)) = (self.reserve(&mut state), Handle::try_current()) else {
            return state;
        };
        drop(state);
        let started = self.start_thread(start, &runtime);
        drop(runtime);
        let mut state = self.state.lock();
        if started.is_err() {
            // Those that are there do it all.
            state.take_back(start);
            self.ended.notify_all();
        }
        state
    }

    /// A thread's life: jobs and turns, then a wait for more, then the end.
    fn run(self: &Arc<Self>, start: Start) {
        let Start {
            number,
            thread_slot,
        } = start;
        // Before the hook: it may wait for a job of its own, which needs another thread.
        self.state.lock().starting -= 1;
        call(&self.config.on_start);
        let mut state = self.state.lock();
        let mut retires_at = from_now(self.config.keep_alive);
        loop {
            loop {
                let pinned = state.take_pinned(thread_slot);
                let Some(queued) = pinned.or_else(|| state.queue.pop_front()) else {
                    break;
                };
                // Before its own: that may wait for the others.
                state = self.start_next(state);
                state = self.run_one(state, queued, number);
                retires_at = from_now(self.config.keep_alive);
            }
            if state.closed && state.tasks.is_empty() {
                return state.retire();
            }
            state.idle += 1;
            if state.closed {
                // Tasks that are being cancelled may still need a thread.
                state = self.work.wait(state);
                state.idle -= 1;
                state.notified = state.notified.saturating_sub(1);
                continue;
            }
            // The limit retires the thread; no thread polls for work here. It counts from its last
            // work, not from a call that was for another.
            let left = retires_at.saturating_sub(clock::now());
            let (woken, timed_out) = self.work.wait_for(state, Duration::from_nanos(left));
            state = woken;
            state.idle -= 1;
            if state.notified > 0 {
                state.notified -= 1;
            } else if timed_out && state.queue.is_empty() {
                if context::pinned_here() == 0 {
                    return state.retire();
                }
                retires_at = from_now(self.config.keep_alive);
            }
        }
    }

    fn run_one<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        queued: QueuedJob,
        number: u64,
    ) -> MutexGuard<'a, State> {
        let expired = queued
            .start_by
            .is_some_and(|start_by| clock::now() > start_by);
        if expired {
            state.expired += 1;
        } else if let Some(task) = queued.work.task() {
            state.running.insert(number, task);
        }
        drop(state);
        match queued.work {
            Work::Job(job) if expired => job.expire(),
            Work::Job(job) => job.run(),
            Work::Turn(entry) if expired => {
                entry.expire(self);
                self.turn_is_over(None);
            }
            Work::Turn(entry) => self.give_turn(entry),
        }
        let mut state = self.state.lock();
        state.running.remove(&number);
        state
    }

    fn leave(&self, thread_slot: u16) {
        let mut state = self.state.lock();
        state.ending -= 1;
        state.free_slots.push(thread_slot);
        drop(state);
        self.ended.notify_all();
    }

    /// True on one of this pool's threads.
    pub(crate) fn is_current(&self) -> bool {
        OWN.with(|own| std::ptr::eq(own.get(), self))
    }
}
