//! A local set: tasks that never leave their thread.
//!
//! The set is a small scheduler of its own, polled by whoever awaits it on its home thread. Its
//! tasks are the same blocks with the same state word; only their wakes go elsewhere: into the
//! set's queue on the home thread while the set runs, into its inbox from anywhere else.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::context;
use crate::queue::{Closed, Injector};
use crate::sync::{Arc, Mutex, UnsafeCell, hint, thread};
use crate::task::state::Home;
use crate::task::{
    AbortHandle, Body, Entry, FutureBody, Header, JoinError, JoinHandle, Options, Ran, Registry,
    Scheduler, Shard, TaskId, allocate,
};
use crate::tuning::POLLS_PER_TICK;

/// The half of a local set that other threads may touch.
pub(crate) struct LocalShared {
    inbox: Injector<Header>,
    waker: Mutex<Option<Waker>>,
    /// Only touched while `context::local()` is this set, which is on the home thread only.
    queue: UnsafeCell<VecDeque<Entry>>,
}

// SAFETY: `queue` is confined to the home thread (see there); the rest is shared by design.
unsafe impl Send for LocalShared {}
// SAFETY: as above.
unsafe impl Sync for LocalShared {}

/// Runs `!Send` futures on the thread that made it.
///
/// Drive it with [`run_until`](LocalSet::run_until); dropping it drops its tasks, on this thread.
pub struct LocalSet {
    shared: Arc<LocalShared>,
    shard: Shard,
    spawned: Cell<u64>,
    stopping: Cell<bool>,
    /// `!Send`: bodies and outputs stay on the home thread (rule 8).
    home: PhantomData<*const ()>,
}

/// Awaits a local task's output on its home thread.
#[must_use = "dropping the handle detaches the task"]
pub struct LocalJoinHandle<T> {
    handle: JoinHandle<T>,
    /// `!Send`: the output must not leave its thread (rule 8).
    home: PhantomData<*const ()>,
}

impl LocalShared {
    /// Queues a task of a set.
    ///
    /// # Safety
    /// Rule 6: `shared` is the task's set and `entry` has not been queued yet.
    pub(crate) unsafe fn submit(shared: *const LocalShared, entry: Entry) {
        if std::ptr::eq(context::local(), shared) {
            // SAFETY: rule 6: alive; and we are on the home thread while the set runs.
            unsafe { &*shared }.push_here(entry);
            return;
        }
        // SAFETY: rule 6: the set waits for this task, so it is alive now; from here on our own
        // count keeps it.
        let shared = unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        };
        // SAFETY: rule 1: the entry is ours to queue.
        if let Err(Closed(item)) = unsafe { shared.inbox.push(entry.into_raw()) } {
            // SAFETY: a closed queue gives the entry back. The set closes its inbox only when none
            // of its tasks is left, so nothing comes here; leak rather than drop on this thread.
            let _ = unsafe { Entry::from_raw(item) };
            debug_assert!(false, "a task outlived its local set");
            return;
        }
        shared.wake_home();
    }

    /// Asks the home thread to run the set.
    fn wake_home(&self) {
        // Taken out first: no lock is held while waking.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Only while `context::local()` is this set.
    fn push_here(&self, entry: Entry) {
        // SAFETY: confined to the home thread, and no other access is active: entries are run
        // outside of the closure.
        self.queue
            .with_mut(|queue| unsafe { (*queue).push_back(entry) });
    }

    /// Only while `context::local()` is this set.
    fn pop_here(&self) -> Option<Entry> {
        // SAFETY: as in `push_here`.
        self.queue.with_mut(|queue| unsafe { (*queue).pop_front() })
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalSet {
    /// An empty set, at home on this thread.
    pub fn new() -> LocalSet {
        LocalSet {
            shared: Arc::new(LocalShared {
                inbox: Injector::default(),
                waker: Mutex::new(None),
                queue: UnsafeCell::new(VecDeque::new()),
            }),
            shard: Registry::new().owner(),
            spawned: Cell::new(0),
            stopping: Cell::new(false),
            home: PhantomData,
        }
    }

    /// Starts a task on this thread. It runs while the set is awaited.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> LocalJoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_with(future, Options::here())
    }

    /// As `spawn_local`, with a name.
    pub fn spawn_with<F>(&self, future: F, options: Options) -> LocalJoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_body(FutureBody(future), options)
    }

    /// As `spawn_with`, for a body of any kind.
    pub fn spawn_body<B>(&self, body: B, options: Options) -> LocalJoinHandle<B::Output>
    where
        B: Body + 'static,
        B::Output: 'static,
    {
        self.spawned.set(self.spawned.get() + 1);
        let id = || TaskId::numbered(u16::MAX - 2, self.spawned.get());
        let home = Arc::as_ptr(&self.shared).cast();
        // A set has no classes: its queue is a plain FIFO.
        let options = Options {
            class: Default::default(),
            ..options
        };
        let entry = allocate(body, Home::Local, home, id, options, true);
        // SAFETY: rules 2 and 7: the task was made joinable, so this reference is counted.
        let handle = unsafe { JoinHandle::from_raw(entry.as_ptr()) };
        if self.stopping.get() {
            entry.refuse();
        } else {
            // SAFETY: rule 6: just made, not queued yet.
            unsafe { LocalShared::submit(Arc::as_ptr(&self.shared), entry) };
        }
        LocalJoinHandle {
            handle,
            home: PhantomData,
        }
    }

    /// Awaits `future`, and runs the set's tasks meanwhile.
    pub fn run_until<F: Future>(&self, future: F) -> RunUntil<'_, F> {
        RunUntil { set: self, future }
    }

    /// Runs `f` with this set as the one that `spawn_local` finds.
    fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(*const LocalShared, *const LocalSet);
        impl Drop for Leave {
            fn drop(&mut self) {
                context::set_local(self.0);
                CURRENT.with(|current| current.set(self.1));
            }
        }
        let before = CURRENT.with(|current| current.replace(self));
        let _leave = Leave(context::set_local(Arc::as_ptr(&self.shared)), before);
        f()
    }

    /// Gives up to a tick's worth of tasks their turn. True: there may be more.
    fn tick(&self) -> bool {
        for _ in 0..POLLS_PER_TICK {
            let Some(entry) = self.shared.pop_here().or_else(|| self.take_inbox()) else {
                return false;
            };
            if let Ran::Again(entry) = entry.run(self) {
                self.shared.push_here(entry);
            }
        }
        true
    }

    fn take_inbox(&self) -> Option<Entry> {
        if self.shared.inbox.is_empty() {
            return None;
        }
        self.shared.inbox.take(usize::MAX, |item| {
            // SAFETY: rule 1: the queue owned the entry and has handed it over.
            let entry = unsafe { Entry::from_raw(item) };
            entry.header().set_home(Arc::as_ptr(&self.shared).cast());
            self.shared.push_here(entry);
        });
        self.shared.pop_here()
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static CURRENT: Cell<*const LocalSet> = const { Cell::new(std::ptr::null()) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static CURRENT: Cell<*const LocalSet> = Cell::new(std::ptr::null());
}

/// Starts a `!Send` task on the local set that is being run on this thread.
///
/// # Panics
/// Outside of [`LocalSet::run_until`].
#[track_caller]
pub fn spawn_local<F>(future: F) -> LocalJoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_local_body(FutureBody(future), Options::here())
}

/// As [`spawn_local`], for a body of any kind.
///
/// # Panics
/// Outside of [`LocalSet::run_until`].
#[track_caller]
pub fn spawn_local_body<B>(body: B, options: Options) -> LocalJoinHandle<B::Output>
where
    B: Body + 'static,
    B::Output: 'static,
{
    let set = CURRENT.with(Cell::get);
    // SAFETY: `enter` sets the pointer for as long as it borrows the set, on this thread.
    match unsafe { set.as_ref() } {
        Some(set) => set.spawn_body(body, options),
        None => panic!(
            "spawn_local outside of a local set: run it inside LocalSet::run_until, or use spawn \
             for a future that is Send"
        ),
    }
}

impl Scheduler for LocalSet {
    fn register(&self, header: &Header) {
        self.shard.register(header);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.get()
    }
}

/// The future of [`LocalSet::run_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct RunUntil<'a, F> {
    set: &'a LocalSet,
    future: F,
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is structurally pinned and never moved; `set` is a plain reference.
        let (set, future) = unsafe {
            let this = self.get_unchecked_mut();
            (this.set, Pin::new_unchecked(&mut this.future))
        };
        let same = |there: &Option<Waker>| there.as_ref().is_some_and(|w| w.will_wake(cx.waker()));
        let mut there = set.shared.waker.lock();
        if !same(&there) {
            let old = there.replace(cx.waker().clone());
            drop(there);
            drop(old);
        } else {
            drop(there);
        }
        set.enter(|| {
            if let Poll::Ready(output) = future.poll(cx) {
                return Poll::Ready(output);
            }
            if set.tick() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

/// Drops every task of the set, here, on its home thread.
impl Drop for LocalSet {
    fn drop(&mut self) {
        self.stopping.set(true);
        self.enter(|| {
            self.shard.registry().walk(|task| {
                task.cancel_by_force();
                true
            });
            loop {
                while let Some(entry) = self.shared.pop_here().or_else(|| self.take_inbox()) {
                    // HELD by us: this only marks the task.
                    let _ = entry.header().state.cancel_by_force();
                    if let Ran::Again(entry) = entry.run(self) {
                        self.shared.push_here(entry);
                    }
                }
                if self.shard.registry().is_empty() && self.shared.inbox.close_if_empty() {
                    return;
                }
                // A waker on another thread is between taking a task and queueing it.
                hint::spin_loop();
                thread::yield_now();
            }
        });
        self.shared.waker.lock().take();
    }
}

impl<T> LocalJoinHandle<T> {
    /// Asks the task to end; see [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// A handle that can only abort, from any thread.
    pub fn abort_handle(&self) -> AbortHandle {
        self.handle.abort_handle()
    }

    /// True once the output (or the error) is there.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> Future for LocalJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(cx)
    }
}

impl std::fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSet")
            .field("suspended", &self.shard.registry().len())
            .field("inbox", &self.shared.inbox.len())
            .finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for LocalJoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}

impl<F> std::fmt::Debug for RunUntil<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunUntil")
            .field("set", self.set)
            .finish_non_exhaustive()
    }
}
