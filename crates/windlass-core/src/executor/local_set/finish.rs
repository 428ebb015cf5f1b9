//! How a local set ends: futures are dropped, coroutines unwind, sections are waited for.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::tasks::LocalTasks;
use crate::context::{self, RunsTasks};
use crate::sync::thread::ThreadId;
use crate::sync::{hint, thread, with_world};
use crate::task::{Body, Ending, Entry, RunOutcome, TaskRef};

/// What became of the sections of a set that is being ended.
enum Sections {
    /// There are none that could end.
    Over,
    /// A task can go on.
    Moved,
    /// A task of the worker waits for them.
    HandedOver,
    /// Nothing can wait for them here.
    Leaked,
}

impl LocalTasks {
    /// Ends every task: futures are dropped, coroutines unwind, one that goes on waiting is leaked.
    pub(super) fn finish(self: &Rc<Self>) {
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
            Sections::Leaked => self.leak(),
            Sections::Moved | Sections::Over => self.end_finish(),
        }
        drop(runs_tasks);
    }

    /// Keeps the set for ever: children of a scope borrow from the frame of one of its coroutines,
    /// and nothing can wait for them.
    fn leak(self: &Rc<Self>) {
        self.let_go();
        std::mem::forget(self.clone());
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
            return Sections::Leaked;
        }
        crate::block_anywhere(std::future::poll_fn(|cx| match has_ready(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
        Sections::Moved
    }

    /// As `finish`, while the thread unwinds: a coroutine's own destructors would believe that it
    /// is the coroutine that panics. So those that have begun are left to `finish_orphans`, or to
    /// the end of the thread.
    pub(super) fn finish_but_coroutines(self: &Rc<Self>) {
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
                self.make_orphan();
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
