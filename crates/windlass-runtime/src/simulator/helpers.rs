//! Blocking closures in a simulation: a thread each, in lock-step.
//!
//! A helper runs only while it has the turn, and the simulation waits meanwhile. It hands the turn
//! back when its closure ends or waits in `block_on`; the code that wakes that wait makes it
//! runnable, and the dice decide when it goes on.
//!
//! ```text
//! Unbegun --------go_on--> Running --block_on waits--> Waiting --wake--> Runnable --go_on-->
//!    Running \--dismiss--> Dismissed   \------closure ended--> Ended
//! ```
//! At the end those that have not begun are dismissed: their closures are dropped. One that waits
//! for something that never comes is left to itself, and named.

use std::cell::Cell;

use windlass_core::Signal;
use windlass_core::sync::{Arc, Condvar, Mutex, World, clock, thread};
use windlass_core::task::{Job, TaskRef};

use crate::blocking::StuckJob;
use crate::handle::Handle;

thread_local! {
    static OWN: Cell<*const Helpers> = const { Cell::new(std::ptr::null()) };
}

#[derive(Debug)]
pub(super) struct Helpers {
    world: Arc<World>,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    all: Vec<Arc<Helper>>,
    closed: bool,
}

/// One closure's thread.
#[derive(Debug)]
struct Helper {
    state: Mutex<State>,
    changed: Condvar,
    job: Option<TaskRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its closure has not begun; it may when it is chosen.
    Unbegun,
    /// Its closure is not to begin.
    Dismissed,
    /// It may go on when it is chosen.
    Runnable,
    /// It has the turn.
    Running,
    /// As `Running`, and its next wait returns at once.
    RunningWoken,
    /// It waits in `block_on`.
    Waiting,
    /// Its closure has ended.
    Ended,
}

impl Helpers {
    pub(super) fn new(world: Arc<World>) -> Arc<Helpers> {
        Arc::new(Helpers {
            world,
            list: Mutex::default(),
        })
    }

    /// Gives a closure a thread, which waits to be chosen. If that cannot be started the closure is
    /// dropped, and its handle resolves with `Cancelled`.
    pub(super) fn start(self: &Arc<Self>, runtime: &Handle, job: Job, start_by: Option<u64>) {
        let mut list = self.list.lock();
        if list.closed {
            drop(list);
            return drop(job);
        }
        let helper = Arc::new(Helper {
            state: Mutex::new(State::Unbegun),
            changed: Condvar::new(),
            job: job.task(),
        });
        let (own, helpers, runtime) = (helper.clone(), self.clone(), runtime.clone());
        let started = thread::spawn("windlass-helper".into(), 0, move || {
            if !own.wait_to_begin() {
                drop((job, runtime));
                return own.change(State::Ended);
            }
            OWN.with(|pool| pool.set(Arc::as_ptr(&helpers)));
            windlass_core::set_signal(Some(own.clone()));
            let world = helpers.world.clone();
            world.enter(|| {
                let _entered = runtime.enter();
                drop(runtime);
                run(job, start_by);
            });
            own.change(State::Ended);
        });
        if started.is_ok() {
            list.all.push(helper);
        }
    }

    /// True on a helper's thread.
    pub(super) fn is_current(&self) -> bool {
        OWN.with(|own| std::ptr::eq(own.get(), self))
    }

    /// No closure begins any more; those that have not are dropped.
    pub(super) fn close(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        let all = std::mem::take(&mut list.all);
        drop(list);
        // Not under the lock: dropping a closure runs users' code.
        let begun = all.into_iter().filter(|helper| !helper.dismiss());
        let mut begun: Vec<_> = begun.collect();
        self.list.lock().all.append(&mut begun);
    }

    /// Closures that wait for something that has not come.
    pub(super) fn stuck(&self) -> Vec<StuckJob> {
        let list = self.list.lock();
        let jobs = list.all.iter().filter_map(|helper| helper.job.as_ref());
        jobs.map(StuckJob::of).collect()
    }

    /// How many helpers may go on.
    pub(super) fn runnable(&self) -> usize {
        let list = self.list.lock();
        list.all
            .iter()
            .filter(|helper| helper.is_runnable())
            .count()
    }

    /// Gives the turn to one of those that may go on, and waits until it comes back.
    pub(super) fn go_on(&self, which: usize) {
        let mut list = self.list.lock();
        let Some((index, helper)) = list
            .all
            .iter()
            .enumerate()
            .filter(|(_, helper)| helper.is_runnable())
            .nth(which)
            .map(|(index, helper)| (index, helper.clone()))
        else {
            return;
        };
        // Not under the lock: the closure may start others.
        drop(list);
        if helper.give_turn() == State::Ended {
            list = self.list.lock();
            // Only the simulation's thread removes, so the index still holds.
            list.all.remove(index);
        }
    }
}

fn run(job: Job, start_by: Option<u64>) {
    if start_by.is_some_and(|start_by| clock::now() > start_by) {
        job.expire();
    } else {
        job.run();
    }
}

impl Helper {
    fn is_runnable(&self) -> bool {
        matches!(*self.state.lock(), State::Unbegun | State::Runnable)
    }

    /// Ends a helper that has not begun, and waits for that. False: it has.
    fn dismiss(&self) -> bool {
        let mut state = self.state.lock();
        if *state != State::Unbegun {
            return false;
        }
        *state = State::Dismissed;
        self.changed.notify_all();
        while *state != State::Ended {
            state = self.changed.wait(state);
        }
        true
    }

    fn change(&self, to: State) {
        *self.state.lock() = to;
        self.changed.notify_all();
    }

    /// The simulation's side: until the helper hands the turn back.
    fn give_turn(&self) -> State {
        let mut state = self.state.lock();
        *state = State::Running;
        self.changed.notify_all();
        while matches!(*state, State::Running | State::RunningWoken) {
            state = self.changed.wait(state);
        }
        *state
    }

    /// The helper's side. False: it is not to begin.
    fn wait_to_begin(&self) -> bool {
        let mut state = self.state.lock();
        while *state == State::Unbegun {
            state = self.changed.wait(state);
        }
        *state == State::Running
    }
}

impl Signal for Helper {
    fn wait(&self) {
        let mut state = self.state.lock();
        if *state == State::RunningWoken {
            // Woken before it waited: still its turn to be chosen for.
            *state = State::Runnable;
        } else {
            *state = State::Waiting;
        }
        self.changed.notify_all();
        while *state != State::Running {
            state = self.changed.wait(state);
        }
    }

    fn wake(&self) {
        let mut state = self.state.lock();
        *state = match *state {
            State::Waiting => State::Runnable,
            State::Running => State::RunningWoken,
            other => other,
        };
    }
}
