//! Tasks that no pool runs: on threads of another kind, or wherever they are woken.
//!
//! The engine gives such a task the same block, state word and wakers as any other. What it does
//! not do is keep a register of them: their maker knows them by their references.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::OnceLock;

use crate::context;
use crate::sync::Arc;
use crate::task::state::Home;
use crate::task::{
    BeforeFirstPoll, Body, Entry, Header, JoinHandle, Residence, RunOutcome, Scheduler,
    SpawnRequest, TaskId,
};

/// A place where tasks run that is no pool.
pub trait Executor: Send + Sync + 'static {
    /// Queues a task that is ready. Called by wakers: it must not run the task, block or panic.
    fn submit(&self, entry: Entry);
}

/// An executor with an address that tasks can keep.
pub struct ExternalExecutor(Box<dyn Executor>);

impl ExternalExecutor {
    /// Tasks of `executor` know it by this.
    pub fn new(executor: impl Executor) -> Arc<ExternalExecutor> {
        Arc::new(ExternalExecutor(Box::new(executor)))
    }

    /// Makes a task of this executor, which is not queued yet. `number` tells it from the
    /// executor's other tasks.
    pub fn make<B, H>(
        self: &Arc<Self>,
        request: SpawnRequest<B, H>,
        number: u64,
    ) -> (Entry, JoinHandle<B::Output>)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        let home = Arc::as_ptr(self).cast();
        let request = request.map_body(|body| AtExternal {
            body,
            _executor: self.clone(),
        });
        request.allocate(Residence::new(Home::External, home), || id(number))
    }

    /// Queues a task of this executor.
    pub fn submit(&self, entry: Entry) {
        self.0.submit(entry);
    }

    /// # Safety
    /// Rule 6: `executor` is the task's, and `entry` has not been queued yet, so that its body is
    /// there and with it a reference to the executor.
    pub(crate) unsafe fn submit_woken(executor: *const ExternalExecutor, entry: Entry) {
        // SAFETY: alive now, says the caller; from here on our own count keeps it: the task may run
        // and end before `submit` returns.
        let executor = unsafe {
            Arc::increment_strong_count(executor);
            Arc::from_raw(executor)
        };
        executor.submit(entry);
    }
}

impl std::fmt::Debug for ExternalExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExternalExecutor")
    }
}

/// A body that keeps its executor alive.
struct AtExternal<B> {
    body: B,
    _executor: Arc<ExternalExecutor>,
}

impl<B: Body> Body for AtExternal<B> {
    type Output = B::Output;

    fn resume(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<B::Output> {
        // SAFETY: structural pinning of `body`; there is no Drop and no other access.
        unsafe { self.map_unchecked_mut(|this| &mut this.body) }.resume(cx)
    }

    fn ending(&self) -> crate::task::Ending {
        self.body.ending()
    }
}

fn id(number: u64) -> TaskId {
    TaskId::numbered(u16::MAX - 3, number)
}

// ---- wherever it is woken -----------------------------------------------------------------

/// Queues a task on a thread that is no worker.
pub type Fallback = fn(Entry);

static FALLBACK: OnceLock<Fallback> = OnceLock::new();

/// Sets where unconfined tasks go that are woken by a thread that is no worker. The first call
/// counts.
pub fn set_fallback(fallback: Fallback) {
    let _ = FALLBACK.set(fallback);
}

std::thread_local! {
    /// Unconfined tasks that were started inside another one's first turn.
    static NESTED: RefCell<Option<VecDeque<Entry>>> = const { RefCell::new(None) };
}

/// Starts a task that runs here and now until it first suspends, and afterwards wherever it is
/// woken. One that is started inside another's first turn begins when that turn is over: the stack
/// does not grow. `admit` is called before it begins; if it returns false, the task is refused.
pub fn spawn_unconfined<B, H>(
    request: SpawnRequest<B, H>,
    number: u64,
    admit: impl FnOnce(&Entry) -> bool,
) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
    H: BeforeFirstPoll,
{
    let (entry, handle) = request
        .allocate(Residence::new(Home::Anywhere, std::ptr::null()), || {
            id(number)
        });
    if !admit(&entry) {
        entry.refuse();
        return handle;
    }
    let first = NESTED.with(|nested| match &mut *nested.borrow_mut() {
        Some(queue) => {
            queue.push_back(entry);
            None
        }
        outermost => {
            *outermost = Some(VecDeque::new());
            Some(entry)
        }
    });
    let mut next = first;
    while let Some(entry) = next {
        // A panic of the body ends in its join cell.
        if let RunOutcome::Again(entry) = entry.run(&Here) {
            submit_anywhere(entry);
        }
        next = NESTED.with(|nested| {
            let mut nested = nested.borrow_mut();
            let entry = nested.as_mut().and_then(VecDeque::pop_front);
            if entry.is_none() {
                *nested = None;
            }
            entry
        });
    }
    handle
}

struct Here;

impl Scheduler for Here {
    fn register(&self, _header: &Header) {}

    fn is_stopping(&self) -> bool {
        false
    }
}

/// Queues an unconfined task where this thread is.
pub(crate) fn submit_anywhere(entry: Entry) {
    let left = context::with_worker(|worker| match worker {
        Some(worker) => {
            worker.wake(entry);
            None
        }
        None => Some(entry),
    });
    match (left, FALLBACK.get()) {
        (None, _) => {}
        (Some(entry), Some(fallback)) => fallback(entry),
        (Some(entry), None) => entry.refuse(),
    }
}
