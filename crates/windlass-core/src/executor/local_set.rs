//! A local set: tasks that never leave their thread.
//!
//! The set is a small scheduler of its own, polled by whoever awaits it on its home thread. Its
//! tasks are the same blocks with the same state word; only their wakes go elsewhere: into the
//! set's queue on the home thread while the set runs, into its inbox from anywhere else.
//!
//! A set with coroutines is kept by its thread until they have ended: when the thread ends, they
//! unwind before its thread-locals go (`thread_end`), also if the set itself was leaked, is kept in
//! one of these thread-locals, or was dropped while the thread unwound.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::context::{self, Exchange, RunsTasks};
use crate::deep::nested_levels;
use crate::queue::{Closed, Injector};
use crate::sync::thread::ThreadId;
use crate::sync::{Arc, Mutex, UnsafeCell, hint, thread, with_world};
use crate::task::state::Home;
use crate::task::{
    AbortHandle, BeforeFirstPoll, Body, Class, Ending, Entry, FutureBody, Header, JoinError,
    JoinHandle, Options, Registry, RunOutcome, Scheduler, Shard, SpawnRequest, TaskId, TaskRef,
    contain,
};
use crate::tuning::POLLS_PER_TICK;

/// The half of a local set that other threads may touch.
pub(crate) struct LocalShared {
    inbox: Injector<Header>,
    waker: Mutex<Option<Waker>>,
    /// Only touched while `CURRENT` is this set, which is on the home thread only.
    queue: UnsafeCell<VecDeque<Entry>>,
}

// SAFETY: `queue` is confined to the home thread (see there); the rest is shared by design.
unsafe impl Send for LocalShared {}
// SAFETY: as above.
unsafe impl Sync for LocalShared {}

/// Runs `!Send` futures on the thread that made it.
///
/// Drive it with [`run_until`](LocalSet::run_until); dropping it drops its tasks, on this thread,
/// and lets its coroutines unwind, which waits for the children of their scopes. Inside of a
/// future, or of a task that panics, the drop does not wait: the worker does the rest. A coroutine
/// that catches its cancellation and waits again, a thousand times over, is leaked. While the
/// thread unwinds, coroutines cannot: they do when the task, or the outermost call that runs tasks,
/// has caught the panic, or else when the thread ends.
pub struct LocalSet {
    /// `!Send`: bodies and outputs stay on the home thread (rule 8).
    tasks: Rc<LocalTasks>,
}

/// The half of a local set that its home thread alone touches.
struct LocalTasks {
    shared: Arc<LocalShared>,
    shard: Shard,
    spawned: Cell<u64>,
    stopping: Cell<bool>,
    /// The thread keeps this set, because of its coroutines.
    is_kept: Cell<bool>,
    /// It was dropped while the thread unwound, and has coroutines left.
    is_orphan: Cell<bool>,
    /// Its tasks are being ended: one of them may own it.
    is_finishing: Cell<bool>,
}

/// What became of the sections of a set that is being ended.
enum Sections {
    /// There are none that could end.
    Over,
    /// A task can go on.
    Moved,
    /// A task of the worker waits for them.
    HandedOver,
}

/// Ends a set that was dropped on a worker where nothing could wait: in the turn of a future, or
/// after a panic. It is pinned to that worker from its beginning, so it stays on the set's home
/// thread, and nothing cancels it but force. Anywhere else it leaks the set.
struct FinishSet {
    set: ManuallyDrop<Rc<LocalTasks>>,
    home: ThreadId,
}

impl FinishSet {
    fn new(set: Rc<LocalTasks>) -> FinishSet {
        FinishSet {
            set: ManuallyDrop::new(set),
            home: thread::current().id(),
        }
    }

    fn is_at_home(&self) -> bool {
        self.home == thread::current().id()
    }
}

impl Body for FinishSet {
    type Output = ();

    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_at_home() {
            return Poll::Ready(());
        }
        let set = &*self.set;
        let has_more = set.enter(|| {
            set.remember_waker(cx);
            set.end_ready() || !set.shared.inbox.is_empty()
        });
        if has_more {
            // Others have their turn, too.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if set.has_sections() {
            return Poll::Pending;
        }
        set.end_finish();
        Poll::Ready(())
    }
}

/// The worker stops by force before the set has ended: it ends with its thread.
impl Drop for FinishSet {
    fn drop(&mut self) {
        if self.is_at_home() {
            self.set.is_finishing.set(false);
            context::unpin();
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.set) };
        }
    }
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
        if is_running(shared) {
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

    /// Only while `CURRENT` is this set.
    fn push_here(&self, entry: Entry) {
        // SAFETY: confined to the home thread, and no other access is active: entries are run
        // outside of the closure.
        self.queue
            .with_mut(|queue| unsafe { (*queue).push_back(entry) });
    }

    /// Only while `CURRENT` is this set.
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
        let tasks = LocalTasks {
            shared: Arc::new(LocalShared {
                inbox: Injector::default(),
                waker: Mutex::new(None),
                queue: UnsafeCell::new(VecDeque::new()),
            }),
            shard: Registry::new().owner(),
            spawned: Cell::new(0),
            stopping: Cell::new(false),
            is_kept: Cell::new(false),
            is_orphan: Cell::new(false),
            is_finishing: Cell::new(false),
        };
        LocalSet {
            tasks: Rc::new(tasks),
        }
    }

    /// Starts a task on this thread. It runs while the set is awaited.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> LocalJoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_request(SpawnRequest::new(FutureBody(future), Options::here()))
    }

    /// Starts a task with a body of any kind on this thread, as `spawn_local` does.
    pub fn spawn_request<B, H>(&self, request: SpawnRequest<B, H>) -> LocalJoinHandle<B::Output>
    where
        B: Body + 'static,
        B::Output: 'static,
        H: BeforeFirstPoll,
    {
        self.tasks.spawn(request)
    }

    /// Awaits `future`, and runs the set's tasks meanwhile.
    pub fn run_until<F: Future>(&self, future: F) -> RunUntil<'_, F> {
        RunUntil { set: self, future }
    }
}

impl LocalTasks {
    fn spawn<B, H>(&self, mut request: SpawnRequest<B, H>) -> LocalJoinHandle<B::Output>
    where
        B: Body + 'static,
        B::Output: 'static,
        H: BeforeFirstPoll,
    {
        self.spawned.set(self.spawned.get() + 1);
        let id = || TaskId::numbered(u16::MAX - 2, self.spawned.get());
        let home = Arc::as_ptr(&self.shared).cast();
        // A set has no classes: its queue is a plain FIFO.
        request.options.class = Class::Normal;
        let (entry, handle) = request.allocate(Home::Local, home, id);
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

    /// Ends every task: futures are dropped, coroutines unwind, one that goes on waiting is leaked.
    fn finish(self: &Rc<Self>) {
        self.stopping.set(true);
        if self.is_finishing.replace(true) || self.is_lost() {
            return;
        }
        // Coroutines go on only inside of a call that runs tasks.
        let runs_tasks = RunsTasks::begin();
        let sections = self.enter(|| {
            self.cancel_suspended();
            loop {
                if self.end_ready() {
                    continue;
                }
                match self.wait_for_sections() {
                    Sections::Moved => {}
                    over => break over,
                }
            }
        });
        match sections {
            Sections::HandedOver => {}
            Sections::Moved | Sections::Over => self.end_finish(),
        }
        drop(runs_tasks);
    }

    /// Gives every task that is queued one turn to end. False: none was.
    fn end_ready(&self) -> bool {
        let ready: Vec<Entry> = std::iter::from_fn(|| self.take_ready()).collect();
        let any = !ready.is_empty();
        for entry in ready {
            // HELD by us: these only mark the task.
            let state = &entry.header().state;
            let _ = match entry.ending() {
                Ending::Wait => state.cancel(),
                Ending::Drop | Ending::Unwind => state.cancel_by_force(),
            };
            if let RunOutcome::Again(entry) = entry.run(self) {
                self.shared.push_here(entry);
            }
        }
        any
    }

    /// No task has a section left that could end: the others are dropped, or leaked.
    fn end_finish(self: &Rc<Self>) {
        self.enter(|| {
            let is_over = || self.shard.registry().is_empty() && self.shared.inbox.close_if_empty();
            self.end_tasks(is_over, |entry| {
                let _ = entry.cancel(&**self);
            });
        });
        self.forget_waker();
        self.is_orphan.set(false);
        self.is_finishing.set(false);
        self.let_go();
    }

    /// True if a task waits inside of a section that ends by itself.
    fn has_sections(&self) -> bool {
        let mut waits = false;
        self.shard.registry().walk(|task| {
            waits = self.is_in_section(&task);
            !waits
        });
        waits
    }

    /// True for a set that a thread-local keeps, when the process exits inside of a call that runs
    /// tasks: thread-locals that its coroutines refer to may be gone.
    fn is_lost(&self) -> bool {
        #[cfg(not(any(windlass_loom, windlass_shuttle)))]
        return context::runs_tasks()
            && self.is_kept.get()
            && !self.shard.registry().is_empty()
            && crate::thread_end::process_exits();
        #[cfg(any(windlass_loom, windlass_shuttle))]
        return false;
    }

    /// Waits until a task can go on, if one waits inside of a section that ends by itself (for
    /// children that borrow from it). A worker's thread must not sleep here: the children may be
    /// pinned to it. So a coroutine that drops its set is suspended, and elsewhere a task of the
    /// worker goes on.
    fn wait_for_sections(self: &Rc<Self>) -> Sections {
        if !self.has_sections() {
            return Sections::Over;
        }
        let mut has_ready = |cx: &mut Context<'_>| {
            self.remember_waker(cx);
            !self.shared.inbox.is_empty()
        };
        if crate::executor::block_on::suspend(true, &mut has_ready) {
            return Sections::Moved;
        }
        let is_handed_over = context::with_worker(|worker| {
            let worker = worker.filter(|worker| worker.pool.has_many_threads());
            worker
                .map(|worker| worker.spawn_pinned(FinishSet::new(self.clone())))
                .is_some()
        });
        if is_handed_over {
            return Sections::HandedOver;
        }
        if with_world(|world| world.is_some()) {
            // The one thread of a simulation would sleep for ever.
            return Sections::Over;
        }
        crate::block_anywhere(std::future::poll_fn(|cx| match has_ready(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
        Sections::Moved
    }

    /// Wakes of tasks on other threads wake `cx` from now on.
    fn remember_waker(&self, cx: &Context<'_>) {
        let mut there = self.shared.waker.lock();
        if there.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            return;
        }
        let old = there.replace(cx.waker().clone());
        // It may be anybody's: not under the lock.
        drop(there);
        contain(|| drop(old));
    }

    fn forget_waker(&self) {
        let old = self.shared.waker.lock().take();
        contain(|| drop(old));
    }

    /// As `finish`, while the thread unwinds: a coroutine's own destructors would believe that it
    /// is the coroutine that panics. So those that have begun are left to `finish_orphans`, or to
    /// the end of the thread.
    fn finish_but_coroutines(self: &Rc<Self>) {
        self.stopping.set(true);
        if self.is_finishing.get() || self.is_lost() {
            return;
        }
        let _runs_tasks = RunsTasks::begin();
        let begun: RefCell<Vec<Entry>> = RefCell::default();
        self.enter(|| {
            self.cancel_suspended();
            let is_over = || {
                let is_registered = |entry: &&Entry| entry.header().is_registered();
                let left = begun.borrow().iter().filter(is_registered).count();
                self.shard.registry().len() == left
            };
            self.end_tasks(is_over, |entry| match entry.unwinds() {
                true => begun.borrow_mut().push(entry),
                false => {
                    let _ = entry.cancel(&**self);
                }
            });
            let begun = begun.take();
            if !begun.is_empty() {
                self.is_orphan.set(true);
                HAS_ORPHANS.with(|orphans| orphans.set(true));
            }
            for entry in begun {
                self.shared.push_here(entry);
            }
        });
        self.forget_waker();
    }

    /// Gives every task that is queued to `end`, until `is_over`: no other is on its way.
    fn end_tasks(&self, is_over: impl Fn() -> bool, end: impl Fn(Entry)) {
        loop {
            while let Some(entry) = self.take_ready() {
                // HELD by us: this only marks the task.
                let _ = entry.header().state.cancel_by_force();
                end(entry);
            }
            if is_over() {
                return;
            }
            // A waker on another thread is between taking a task and queueing it.
            hint::spin_loop();
            thread::yield_now();
        }
    }

    /// The thread keeps this set until its coroutines have ended.
    fn keep(self: &Rc<Self>) {
        if !self.is_kept.replace(true) {
            KEPT.with(|kept| kept.borrow_mut().push(self.clone()));
        }
    }

    /// The thread no longer keeps this set.
    fn let_go(self: &Rc<Self>) {
        if self.is_kept.replace(false) {
            let let_go = KEPT.with(|kept| {
                let mut kept = kept.borrow_mut();
                let index = kept.iter().position(|set| Rc::ptr_eq(set, self));
                index.map(|index| kept.swap_remove(index))
            });
            drop(let_go);
        }
    }

    /// True if this task of the set waits inside of a section that ends by itself.
    fn is_in_section(&self, task: &TaskRef) -> bool {
        // SAFETY: rules 1 and 2: the task is registered, so it is not complete; and it is at home
        // on this thread, so no other one looks at its body.
        unsafe { (task.header().vtable.ending)(task.as_ptr()) == Ending::Wait }
    }

    /// Cancels what is suspended, which moves it to the queue. What is inside of a section that
    /// ends by itself stays there, and is woken: it may see to it that the section ends soon.
    fn cancel_suspended(&self) {
        self.shard.registry().walk(|task| {
            match self.is_in_section(&task) {
                true => {
                    task.cancel();
                    task.wake();
                }
                false => task.cancel_by_force(),
            }
            true
        });
    }

    /// The next task that is queued, here or in the inbox.
    fn take_ready(&self) -> Option<Entry> {
        self.shared.pop_here().or_else(|| self.take_inbox())
    }

    /// Runs `f` with this set as the one that `spawn_local` finds.
    fn enter<R>(self: &Rc<Self>, f: impl FnOnce() -> R) -> R {
        struct Entered(Cell<*const LocalTasks>);
        impl Exchange for Entered {
            fn exchange(&self) {
                CURRENT.with(|current| current.swap(&self.0));
            }
        }
        context::installed(&Entered(Cell::new(Rc::as_ptr(self))), f)
    }

    /// Gives up to a tick's worth of tasks their turn. True: there may be more.
    fn tick(&self) -> bool {
        for _ in 0..POLLS_PER_TICK {
            let Some(entry) = self.take_ready() else {
                return false;
            };
            if let RunOutcome::Again(entry) = entry.run(self) {
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
    static CURRENT: Cell<*const LocalTasks> = const { Cell::new(std::ptr::null()) };
    /// Sets with coroutines that have begun. Without a destructor, so it is there to the end.
    static KEPT: ManuallyDrop<RefCell<Vec<Rc<LocalTasks>>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    /// Some of them were dropped while the thread unwound.
    static HAS_ORPHANS: Cell<bool> = const { Cell::new(false) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static CURRENT: Cell<*const LocalTasks> = Cell::new(std::ptr::null());
    static KEPT: ManuallyDrop<RefCell<Vec<Rc<LocalTasks>>>> =
        ManuallyDrop::new(RefCell::new(Vec::new()));
    static HAS_ORPHANS: Cell<bool> = Cell::new(false);
}

/// True if this thread is inside the set that `shared` is a half of.
fn is_running(shared: *const LocalShared) -> bool {
    let set = CURRENT.with(Cell::get);
    // SAFETY: as in `spawn_local_body`.
    unsafe { set.as_ref() }.is_some_and(|set| std::ptr::eq(Arc::as_ptr(&set.shared), shared))
}

/// A coroutine of the set that runs on this thread has begun.
pub(crate) fn note_coroutine() {
    let set = CURRENT.with(Cell::get);
    if set.is_null() {
        return;
    }
    // SAFETY: `enter` took the pointer from the `Rc` that it borrows until it returns, and we are
    // inside of it, on this thread.
    let set = unsafe {
        Rc::increment_strong_count(set);
        Rc::from_raw(set)
    };
    set.keep();
}

/// Lets the coroutines of sets unwind that were dropped while the thread unwound, if it no longer
/// does: for the end of a call that has caught the panic.
pub(crate) fn finish_orphans() {
    if thread::panicking() || !HAS_ORPHANS.with(|orphans| orphans.replace(false)) {
        return;
    }
    let orphan = || {
        KEPT.with(|kept| {
            let kept = kept.borrow();
            kept.iter().find(|set| set.is_orphan.get()).cloned()
        })
    };
    while let Some(set) = orphan() {
        set.is_orphan.set(false);
        contain(|| set.finish());
    }
}

/// Ends the sets whose coroutines have begun on this thread and have not ended: the thread ends.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub(crate) fn finish_sets_of_thread() {
    while let Some(set) = KEPT.with(|kept| kept.borrow_mut().pop()) {
        set.is_kept.set(false);
        // A destructor that panics must not keep the others, nor whoever joins the thread.
        contain(|| set.finish());
    }
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
    spawn_local_request(SpawnRequest::new(FutureBody(future), Options::here()))
}

/// Starts a task with a body of any kind on the local set that is being run on this thread.
///
/// # Panics
/// Outside of [`LocalSet::run_until`].
#[track_caller]
pub fn spawn_local_request<B, H>(request: SpawnRequest<B, H>) -> LocalJoinHandle<B::Output>
where
    B: Body + 'static,
    B::Output: 'static,
    H: BeforeFirstPoll,
{
    let set = CURRENT.with(Cell::get);
    // SAFETY: `enter` sets the pointer for as long as it borrows the set, on this thread.
    match unsafe { set.as_ref() } {
        Some(set) => set.spawn(request),
        None => panic!(
            "spawn_local outside of a local set: run it inside LocalSet::run_until, or use spawn \
             for a future that is Send"
        ),
    }
}

impl Scheduler for LocalTasks {
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
        let tasks = &set.tasks;
        tasks.remember_waker(cx);
        tasks.enter(|| {
            if let Poll::Ready(output) = future.poll(cx) {
                return Poll::Ready(output);
            }
            if tasks.tick() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

/// The frames of this drop are as large as those of so many nested destructors of outputs: it runs
/// the set.
const LEVELS_OF_DROP: u32 = 4;

/// Ends every task of the set, here, on its home thread.
impl Drop for LocalSet {
    fn drop(&mut self) {
        // A task may hold another set, and so on.
        nested_levels(LEVELS_OF_DROP, || match thread::panicking() {
            false => self.tasks.finish(),
            true => self.tasks.finish_but_coroutines(),
        });
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
            .field("suspended", &self.tasks.shard.registry().len())
            .field("inbox", &self.tasks.shared.inbox.len())
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
