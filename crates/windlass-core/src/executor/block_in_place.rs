//! Blocking a worker's thread in the middle of a task.
//!
//! The task's turn goes on, so three things of the turn are lifted for the call: the ban on
//! `block_on`, the mark of a `block_on` that polls this task, and the budget, which no new poll
//! would refill. All three are exchanged (`context`), because a coroutine may be suspended inside
//! of the call.
//!
//! The ban is lifted for one task, by the address of its header. A task that runs inside of the
//! call, on a runtime of its own, has another address, so the ban holds for it, and a turn need not
//! save and restore the mark.

use std::cell::Cell;

use super::block_on::exchange_waiting;
use crate::context::{self, Exchange};
use crate::sched::while_blocked;
use crate::sync::with_world;
use crate::task::Header;

/// Runs `f`, which may block this thread; another worker takes this one's place meanwhile. Inside
/// of it `block_on` is allowed. On a thread that is no worker `f` just runs.
///
/// In a simulation and in a pool that keeps an order `f` just runs, too, and `block_on` stays
/// refused: no other thread could do what it waits for.
///
/// # Panics
/// In a task of a current-thread pool, which has no other worker.
#[track_caller]
pub fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    let (is_current_thread, has_others) = context::with_worker(|worker| match worker {
        Some(worker) => (
            worker.pool.config.current_thread,
            worker.pool.has_many_threads(),
        ),
        None => (false, true),
    });
    assert!(
        !is_current_thread,
        "can call blocking only when running on the multi-threaded runtime: a current-thread \
         runtime has no other worker to go on; move the blocking call into spawn_blocking"
    );
    if !has_others || with_world(|world| world.is_some()) {
        return f();
    }
    context::installed(&MayBlock::here(), || while_blocked(f))
}

/// The running task may block its thread while this is exchanged in.
struct MayBlock {
    task: Cell<*const Header>,
    budget: Cell<u8>,
    is_waiting: Cell<bool>,
}

impl MayBlock {
    fn here() -> MayBlock {
        MayBlock {
            task: Cell::new(context::current_header()),
            budget: Cell::new(context::UNLIMITED),
            is_waiting: Cell::new(false),
        }
    }
}

impl Exchange for MayBlock {
    fn exchange(&self) {
        context::exchange_may_block(&self.task);
        context::exchange_budget(&self.budget);
        exchange_waiting(&self.is_waiting);
    }
}
