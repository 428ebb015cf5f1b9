//! Threads for what blocks: elastic, capped, retired when idle.
//!
//! They run closures (`spawn_blocking`) and give turns to the tasks of the io dispatcher, which have a
//! limit of their own: of the threads, so many at most are inside a task's turn. A coroutine that has begun
//! on one of them goes on there only, so each thread has an inbox, and stays while it is needed.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::context::{self, RunsTasks};
use windlass_core::sync::{Condvar, Mutex, MutexGuard, clock, thread};
use windlass_core::task::{Entry, Header, Job, JoinHandle, Options, Ran, Scheduler, TaskRef};
use windlass_core::tuning::GRACE_NS;

use crate::handle::Handle;

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    /// Threads that give turns to tasks at the same time.
    pub(crate) max_turns: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: usize,
    pub(crate) name: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_threads: 512,
            max_turns: std::thread::available_parallelism().map_or(64, |cores| cores.get().max(64)),
            keep_alive: Duration::from_secs(10),
            stack_size: 0,
            name: "windlass-blocking".into(),
        }
    }
}

/// The blocking pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockingSnapshot {
    /// Threads.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Jobs ever submitted.
    pub submitted: u64,
    /// Jobs and tasks that were not run because they waited past their deadline.
    pub expired: u64,
    /// Tasks of the io dispatcher that have not ended.
    pub io_tasks: usize,
    /// Turns that tasks of the io dispatcher have had.
    pub io_turns: u64,
}

/// A blocking closure that did not end in time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StuckJob {
    /// Its name.
    pub name: Option<String>,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
}

impl StuckJob {
    pub(crate) fn of(task: &TaskRef) -> StuckJob {
        let meta = task.header().meta();
        StuckJob {
            name: meta.name().map(|name| name.to_string()),
            location: meta.location(),
        }
    }
}

impl fmt::Display for StuckJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(unnamed)");
        write!(
            f,
            "blocking job {name}, spawned at {}, did not return",
            self.location
        )
    }
}

/// A closure could not be handed to a blocking thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnBlockingError {
    /// There is no blocking thread, and the operating system refused to start one.
    NoThread(io::Error),
}

impl fmt::Display for SpawnBlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpawnBlockingError::NoThread(error) = self;
        write!(
            f,
            "no blocking thread could be started ({error}); lower max_blocking_threads or the \
             stack size, or raise the process's limits"
        )
    }
}

impl std::error::Error for SpawnBlockingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let SpawnBlockingError::NoThread(error) = self;
        Some(error)
    }
}

#[derive(Debug)]
pub(crate) struct BlockingPool {
    config: Config,
    state: Mutex<State>,
    /// A job was queued, or the pool closes.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Queued>,
    /// Tasks that are ready while as many as may are having their turn.
    held_back: VecDeque<Queued>,
    /// Turns that are queued or under way, those of `held_back` and of pinned tasks not counted.
    turns: usize,
    turns_had: u64,
    /// Tasks that have begun on one thread, by the slot of the thread.
    inboxes: HashMap<u16, VecDeque<Entry>>,
    /// Posts that were given up.
    free_slots: Vec<u16>,
    next_slot: u16,
    /// Tasks of the io dispatcher that have not ended.
    tasks: HashMap<u64, TaskRef>,
    threads: usize,
    /// Threads that have not looked at the queue for the first time; one at most. It starts the next one if
    /// there is more to do: whoever submits does not wait for the system to make threads.
    starting: usize,
    idle: usize,
    /// Idle threads that have been told and not yet woken: they are spoken for.
    told: usize,
    started: u64,
    submitted: u64,
    expired: u64,
    closed: bool,
    running: HashMap<u64, TaskRef>,
}

#[derive(Debug)]
struct Queued {
    work: Work,
    start_by: Option<u64>,
}

#[derive(Debug)]
enum Work {
    Job(Job),
    Turn(Entry),
}

/// The time `limit` from now; centuries are as good as for ever.
fn from_now(limit: Duration) -> u64 {
    clock::now().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

thread_local! {
    /// The pool whose thread this is.
    static OWN: Cell<*const BlockingPool> = const { Cell::new(std::ptr::null()) };
}

impl BlockingPool {
    pub(crate) fn new(config: Config) -> Arc<BlockingPool> {
        Arc::new(BlockingPool {
            config,
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            ended: Condvar::new(),
        })
    }

    /// Queues a closure, and starts a thread for it if none is free.
    pub(crate) fn spawn<T, F>(
        self: &Arc<Self>,
        runtime: &Handle,
        f: F,
        options: Options,
        start_within: Option<Duration>,
    ) -> Result<JoinHandle<T>, SpawnBlockingError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let start_by = start_within.map(from_now);
        let mut state = self.state.lock();
        state.submitted += 1;
        let (job, handle) = Job::new(f, state.submitted, options);
        if state.closed {
            drop(state);
            // Dropping the job resolves the handle with `Cancelled`.
            drop(job);
            return Ok(handle);
        }
        let work = Work::Job(job);
        state.queue.push_back(Queued { work, start_by });
        if let Err(error) = self.find_thread(&mut state, runtime) {
            // Nobody would ever run it.
            let refused = state.queue.pop_back();
            drop(state);
            drop(refused);
            return Err(SpawnBlockingError::NoThread(error));
        }
        Ok(handle)
    }

    /// Sees to it that somebody looks at the queue; an error if there is nobody at all.
    fn find_thread(self: &Arc<Self>, state: &mut State, runtime: &Handle) -> io::Result<()> {
        if state.idle > state.told {
            state.told += 1;
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

    /// The number of the next task of the io dispatcher.
    pub(crate) fn next_task(&self) -> u64 {
        let mut state = self.state.lock();
        state.submitted += 1;
        state.submitted
    }

    /// Notes a task of the io dispatcher until `forget`; false: the pool is closed.
    pub(crate) fn remember(&self, number: u64, task: TaskRef) -> bool {
        let mut state = self.state.lock();
        if !state.closed {
            state.tasks.insert(number, task);
        }
        !state.closed
    }

    /// A task of the io dispatcher has ended.
    pub(crate) fn forget(&self, number: u64) {
        let mut state = self.state.lock();
        let forgotten = state.tasks.remove(&number);
        let was_last = state.closed && state.tasks.is_empty();
        drop(state);
        // Not under the lock.
        drop(forgotten);
        if was_last {
            // Threads of a closed pool wait for it.
            self.work.notify_all();
        }
    }

    /// Queues a turn of a task of the io dispatcher; the task is dropped if nobody can ever run it.
    pub(crate) fn submit(
        self: &Arc<Self>,
        runtime: &Handle,
        entry: Entry,
        start_within: Option<Duration>,
    ) {
        let mut state = self.state.lock();
        if let Some(thread_slot) = entry.header().state().pinned_to() {
            state.leave_for(thread_slot, entry);
            drop(state);
            // Only one of them can take it.
            return self.work.notify_all();
        }
        let queued = Queued {
            work: Work::Turn(entry),
            start_by: start_within.map(from_now),
        };
        if state.turns >= self.config.max_turns {
            return state.held_back.push_back(queued);
        }
        state.turns += 1;
        state.queue.push_back(queued);
        if self.find_thread(&mut state, runtime).is_err() {
            state.turns -= 1;
            let refused = state.queue.pop_back();
            drop(state);
            if let Some(Queued {
                work: Work::Turn(entry),
                ..
            }) = refused
            {
                entry.refuse();
            }
        }
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
            drop(runs_tasks);
            drop(entered);
            pool.leave(thread_slot);
        })?;
        Ok(())
    }

    /// There is more to do than there are threads for: starts one. Not under the lock, for which all wait.
    fn start_next<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        if state.closed || state.queue.is_empty() || state.idle > state.told {
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
        let mut state = self.state.lock();
        state.starting -= 1;
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
                return;
            }
            state.idle += 1;
            if state.closed {
                // Tasks that are being cancelled may still need a thread.
                state = self.work.wait(state);
                state.idle -= 1;
                state.told = state.told.saturating_sub(1);
                continue;
            }
            // The limit retires the thread; nobody polls for work here. It counts from its last work, not
            // from a call that was for another.
            let left = retires_at.saturating_sub(clock::now());
            let (woken, timed_out) = self.work.wait_for(state, Duration::from_nanos(left));
            state = woken;
            state.idle -= 1;
            if state.told > 0 {
                state.told -= 1;
            } else if timed_out && state.queue.is_empty() {
                if context::pinned_here() == 0 {
                    return;
                }
                retires_at = from_now(self.config.keep_alive);
            }
        }
    }

    fn run_one<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        queued: Queued,
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

    /// A task of the io dispatcher has its turn.
    fn give_turn(&self, entry: Entry) {
        let pinned = entry.header().state().pinned_to().is_some();
        let again = match entry.run(self) {
            Ran::Again(entry) => Some(entry),
            Ran::Idle | Ran::Complete => None,
        };
        if pinned {
            let mut state = self.state.lock();
            state.turns_had += 1;
            if let Some(entry) = again
                && let Some(thread_slot) = entry.header().state().pinned_to()
            {
                state.leave_for(thread_slot, entry);
            }
        } else {
            self.turn_is_over(again);
        }
    }

    /// The next that was held back may have its turn; one that wants another goes to the tail.
    fn turn_is_over(&self, again: Option<Entry>) {
        let mut state = self.state.lock();
        state.turns -= 1;
        state.turns_had += 1;
        if let Some(entry) = again {
            match entry.header().state().pinned_to() {
                // It has begun here.
                Some(thread_slot) => state.leave_for(thread_slot, entry),
                None => state.held_back.push_back(Queued {
                    work: Work::Turn(entry),
                    start_by: None,
                }),
            }
        }
        if state.turns < self.config.max_turns
            && let Some(next) = state.held_back.pop_front()
        {
            // This thread looks at the queue when it is done here.
            state.turns += 1;
            state.queue.push_back(next);
        }
    }

    fn leave(&self, thread_slot: u16) {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.free_slots.push(thread_slot);
        drop(state);
        self.ended.notify_all();
    }

    /// True on one of this pool's threads.
    pub(crate) fn is_current(&self) -> bool {
        OWN.with(|own| std::ptr::eq(own.get(), self))
    }

    /// Refuses new jobs, drops those that have not begun, and cancels tasks.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let (turns, jobs): (VecDeque<Queued>, VecDeque<Queued>) = std::mem::take(&mut state.queue)
            .into_iter()
            .partition(|queued| matches!(queued.work, Work::Turn(_)));
        state.queue = turns;
        let tasks: Vec<TaskRef> = state.tasks.values().cloned().collect();
        drop(state);
        self.work.notify_all();
        drop(jobs);
        // Those that are idle are queued by this, and a thread drops or unwinds them.
        tasks.iter().for_each(TaskRef::cancel);
    }

    /// Waits for the threads; names the jobs that do not end within `limit`.
    pub(crate) fn join(&self, limit: Duration) -> Vec<StuckJob> {
        if !self.wait_for_threads(from_now(limit)) {
            let state = self.state.lock();
            let tasks: Vec<TaskRef> = state.tasks.values().cloned().collect();
            drop(state);
            // Shields no longer count.
            tasks.iter().for_each(TaskRef::cancel_by_force);
            self.wait_for_threads(clock::now() + GRACE_NS);
        }
        let state = self.state.lock();
        state.running.values().map(StuckJob::of).collect()
    }

    /// True: all have ended.
    fn wait_for_threads(&self, deadline: u64) -> bool {
        let mut state = self.state.lock();
        while state.threads > 0 {
            let now = clock::now();
            if now >= deadline {
                return false;
            }
            state = self
                .ended
                .wait_for(state, Duration::from_nanos(deadline - now))
                .0;
        }
        true
    }

    pub(crate) fn snapshot(&self) -> BlockingSnapshot {
        let state = self.state.lock();
        BlockingSnapshot {
            threads: state.threads,
            idle: state.idle,
            queued: state.queue.len(),
            submitted: state.submitted,
            expired: state.expired,
            io_tasks: state.tasks.len(),
            io_turns: state.turns_had,
        }
    }
}

/// A thread that is to be started.
#[derive(Debug, Clone, Copy)]
struct Start {
    number: u64,
    thread_slot: u16,
}

impl State {
    /// The thread was not started.
    fn take_back(&mut self, start: Start) {
        self.free_slots.push(start.thread_slot);
        self.threads -= 1;
        self.starting -= 1;
    }

    /// Queues a task that only one thread may run.
    fn leave_for(&mut self, thread_slot: usize, entry: Entry) {
        // It was made from one.
        let thread_slot = thread_slot as u16;
        self.inboxes
            .entry(thread_slot)
            .or_default()
            .push_back(entry);
    }

    fn take_pinned(&mut self, thread_slot: u16) -> Option<Queued> {
        // Nearly always there are none.
        if self.inboxes.is_empty() {
            return None;
        }
        let inbox = self.inboxes.get_mut(&thread_slot)?;
        let entry = inbox.pop_front();
        if inbox.is_empty() {
            self.inboxes.remove(&thread_slot);
        }
        Some(Queued {
            work: Work::Turn(entry?),
            start_by: None,
        })
    }
}

impl Work {
    fn task(&self) -> Option<TaskRef> {
        match self {
            Work::Job(job) => job.task(),
            Work::Turn(entry) => Some(entry.task()),
        }
    }
}

/// What a task's turn needs from the thread that gives it.
impl Scheduler for BlockingPool {
    fn register(&self, _header: &Header) {
        // `remember` has noted it.
    }

    fn is_stopping(&self) -> bool {
        self.state.lock().closed
    }
}
