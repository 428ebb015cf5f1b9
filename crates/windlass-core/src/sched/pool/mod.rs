//! The pool: workers with their queues and idle set; one engine instance.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::sync::{OnceLock, Weak};
use std::time::Duration;

use crate::context;
use crate::observe::{
    Counters, Event, LeakedTask, PoolSnapshot, Pulse, Recorder, Recording, StuckWorker,
    WorkerSnapshot, WorkerState,
};
use crate::queue::{Batch, Classes, Closed, Deque, Injector, Linked, Ring, Slot};
pub use crate::sched::config::{Config, EventHook, Hooks, Spin, StallHook, ThreadHook};
use crate::sched::crew::Crew;
use crate::sched::driver::{Driver, DriverLock};
use crate::sched::idle::Idle;
use crate::sched::stop::{Phase, Stop};
use crate::sched::watchdog::{self, Watchdog};
use crate::sched::worker::Worker;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Padded, Parker, UnfinishedThread, Wakeup, clock, thread};
use crate::task::state::Home;
use crate::task::{
    Body, Class, Entry, Header, JoinHandle, Options, Registry, TaskId, block_cache, contain,
};
use crate::tuning;

/// The half of a worker that others may touch.
pub(crate) struct Remote {
    pub(crate) ring: Ring<Header>,
    pub(crate) slot: Slot<Header>,
    /// Tasks that only this worker may run, woken by others.
    pub(crate) inbox: Injector<Header>,
    /// Jobs of the fork-joins that it is in.
    pub(crate) forks: Deque,
    pub(crate) parker: Padded<Parker>,
    /// Where it sleeps until a latch is set.
    pub(crate) joiner: Padded<Parker>,
    pub(crate) counters: Padded<Counters>,
    pub(crate) pulse: Padded<Pulse>,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Arc<Registry>,
    pub(crate) interval: AtomicU32,
    /// A thief took something since this worker last asked.
    pub(crate) robbed: AtomicBool,
    /// The same for jobs.
    pub(crate) forks_robbed: AtomicBool,
    /// The longest poll the watchdog saw.
    pub(crate) stalled_ns: AtomicU64,
}

impl Remote {
    pub(crate) fn new() -> Remote {
        Remote {
            ring: Ring::new(),
            slot: Slot::default(),
            inbox: Injector::default(),
            forks: Deque::new(),
            parker: Padded(Parker::new()),
            joiner: Padded(Parker::new()),
            counters: Padded::default(),
            pulse: Padded::default(),
            recorder: Recorder::default(),
            registry: Registry::new(),
            interval: AtomicU32::new(0),
            robbed: AtomicBool::new(false),
            forks_robbed: AtomicBool::new(false),
            stalled_ns: AtomicU64::new(0),
        }
    }
}

impl Linked for Header {
    fn link(&self) -> &AtomicPtr<Header> {
        &self.link
    }
}

/// Workers, queues and idle set.
pub struct Pool {
    pub(crate) config: Config,
    /// Tells it from every other pool of the program, also from those that have ended. From 1.
    pub(crate) number: usize,
    pub(crate) crew: Crew,
    pub(crate) injector: Injector<Header>,
    // Read by every worker before every poll and written rarely: on lines of their own.
    pub(crate) classes: Padded<Classes>,
    pub(crate) stop: Padded<Stop>,
    pub(crate) idle: Idle,
    pub(crate) watchdog: Watchdog,
    recording: AtomicU8,
    outside: Padded<Outside>,
    driver: Option<Arc<dyn Driver>>,
    driver_lock: DriverLock,
    /// This pool's address as its `Arc` has it: a pointer that comes from a reference to the pool
    /// may not be used to count one more reference.
    address: AtomicPtr<Pool>,
    watchdog_thread: Mutex<Option<thread::JoinHandle<()>>>,
    /// What the runtime above wants to find again from a worker.
    attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
}

/// Numbers that threads outside the pool write.
#[derive(Debug, Default)]
struct Outside {
    ids: AtomicU64,
    submitted: AtomicU64,
    refused: AtomicU64,
}

/// `try_spawn` did not take the task.
pub enum TrySpawnError<B> {
    /// The injector is at its capacity.
    Full(B),
    /// The pool is stopping.
    Stopping(B),
}

impl<B> std::fmt::Debug for TrySpawnError<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TrySpawnError::Full(_) => "Full",
            TrySpawnError::Stopping(_) => "Stopping",
        })
    }
}

/// A task that a stopping pool did not take, if it did not. Dropping this drops the task, and its
/// handle resolves.
#[derive(Debug)]
#[must_use = "dropping it runs the task's destructors"]
pub struct Refused(Option<Entry>);

impl Drop for Refused {
    #[inline]
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.refuse();
        }
    }
}

/// How a shutdown went.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// Workers that were still inside a poll at the deadline; their threads are detached.
    pub stuck: Vec<StuckWorker>,
    /// Tasks that were suspended and could not be dropped, because no worker was left to do it.
    pub leaked_tasks: usize,
    /// The first of them, at most [`tuning::NAMED_LEAKS`].
    pub leaked: Vec<LeakedTask>,
    /// Threads that did not end, although their worker had left; they are detached.
    pub unfinished_threads: Vec<UnfinishedThread>,
}

impl StopReport {
    /// Adds what another pool reports.
    pub fn merge(&mut self, other: StopReport) {
        self.stuck.extend(other.stuck);
        self.leaked_tasks += other.leaked_tasks;
        self.leaked.extend(other.leaked);
        self.unfinished_threads.extend(other.unfinished_threads);
    }
}

impl Pool {
    /// Starts the workers. If a thread cannot be started, those that were are stopped again.
    pub fn start(
        config: Config,
        hooks: Hooks,
        driver: Option<Arc<dyn Driver>>,
    ) -> io::Result<Arc<Pool>> {
        let pool = Pool::assemble(config, driver);
        if hooks.on_events.is_some() {
            pool.set_recording(Recording::Full);
        }
        if let Err(error) = pool.crew.start(&pool, &hooks) {
            pool.shutdown(None);
            return Err(error);
        }
        if cfg!(not(any(windlass_loom, windlass_shuttle))) {
            match watchdog::start(pool.clone(), hooks.stall_threshold, hooks.on_stall) {
                Ok(thread) => *pool.watchdog_thread.lock() = Some(thread),
                Err(error) => {
                    pool.shutdown(None);
                    return Err(error);
                }
            }
        }
        Ok(pool)
    }

    /// A pool that a simulation runs.
    pub(crate) fn without_threads(config: Config) -> Arc<Pool> {
        let pool = Pool::assemble(config, None);
        pool.crew.sit();
        pool.idle.join();
        pool
    }

    fn assemble(config: Config, driver: Option<Arc<dyn Driver>>) -> Arc<Pool> {
        let seats = config.seats();
        let pool = Arc::new(Pool {
            number: next_number(),
            crew: Crew::new(seats, config.workers),
            injector: Injector::default(),
            classes: Padded::default(),
            stop: Padded(Stop::new(seats)),
            idle: Idle::with_seats(seats),
            watchdog: Watchdog::default(),
            recording: AtomicU8::new(config.recording as u8),
            outside: Padded::default(),
            driver,
            driver_lock: DriverLock::default(),
            address: AtomicPtr::new(std::ptr::null_mut()),
            watchdog_thread: Mutex::default(),
            attachment: OnceLock::new(),
            config,
        });
        // Relaxed: whoever gets the pool gets it from this thread.
        pool.address
            .store(Arc::as_ptr(&pool).cast_mut(), Ordering::Relaxed);
        pool
    }

    /// The pool as the home of its tasks: a pointer that a reference can be counted with.
    #[inline]
    pub(crate) fn as_home(&self) -> *const () {
        self.address.load(Ordering::Relaxed).cast_const().cast()
    }

    /// Leaves something for [`attachment`](Pool::attachment) to find; once. Held weakly, so that
    /// freeing the pool frees nothing of its owner's.
    pub fn attach(&self, attachment: Weak<dyn Any + Send + Sync>) {
        let _ = self.attachment.set(attachment);
    }

    /// What was attached, while it is alive.
    pub fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.attachment.get()?.upgrade()
    }

    /// Whether a task could find itself on another thread from one turn to the next.
    pub(crate) fn has_many_threads(&self) -> bool {
        !self.config.in_order && !self.config.simulated
    }

    /// Workers there are.
    pub fn workers(&self) -> usize {
        self.idle.workers()
    }

    // ---- spawning -------------------------------------------------------------------------

    /// Starts a task. Never refused while the pool runs; once it is stopping the task is dropped
    /// and its handle resolves with `Cancelled`.
    #[inline]
    pub fn spawn<B>(&self, body: B, options: Options) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_or_refuse(body, options).0
    }

    /// As `spawn`; a task that is refused comes back and is dropped by the caller, who may want to
    /// let go of something before user code runs.
    #[inline]
    pub fn spawn_or_refuse<B>(&self, body: B, options: Options) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_known(body, options, |_| {})
    }

    /// As `spawn_or_refuse`; `know` is told of the task before it can run.
    #[inline]
    pub fn spawn_known<B>(
        &self,
        body: B,
        options: Options,
        know: impl FnOnce(&Entry),
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        context::with_worker(|worker| match worker {
            Some(worker) if std::ptr::eq(&raw const *worker.pool, self) => {
                let (entry, handle) = self.make(body, || worker.next_id(), options);
                know(&entry);
                if self.stop.is_stopping() {
                    return (handle, Refused(Some(entry)));
                }
                worker.spawn(entry);
                (handle, Refused(None))
            }
            _ => self.spawn_known_from_outside(body, options, know),
        })
    }

    /// As `spawn_or_refuse`, for a thread that is none of the pool's workers.
    #[inline]
    pub fn spawn_from_outside<B>(
        &self,
        body: B,
        options: Options,
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_known_from_outside(body, options, |_| {})
    }

    #[inline]
    fn spawn_known_from_outside<B>(
        &self,
        body: B,
        options: Options,
        know: impl FnOnce(&Entry),
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.outside.submitted.fetch_add(1, Ordering::Relaxed);
        let (entry, handle) = self.make(body, || self.next_id(), options);
        know(&entry);
        if self.stop.is_stopping() {
            return (handle, Refused(Some(entry)));
        }
        (handle, Refused(self.try_inject(entry).err()))
    }

    /// Starts a task unless the injector is full or the pool is stopping; hands the body back then.
    pub fn try_spawn<B>(
        &self,
        body: B,
        options: Options,
    ) -> Result<JoinHandle<B::Output>, TrySpawnError<B>>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        if self.stop.is_stopping() {
            return Err(TrySpawnError::Stopping(body));
        }
        if self.injector.len() >= self.config.injector_capacity {
            self.outside.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TrySpawnError::Full(body));
        }
        Ok(self.spawn(body, options))
    }

    #[inline]
    fn make<B>(
        &self,
        body: B,
        id: impl FnOnce() -> TaskId,
        options: Options,
    ) -> (Entry, JoinHandle<B::Output>)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        let home = self.as_home();
        let numbered = options.numbered || self.config.simulated;
        let options = Options {
            numbered,
            in_order: self.config.in_order,
            ..options
        };
        let entry = crate::task::allocate(body, Home::Pool, home, id, options, true);
        // SAFETY: rules 2 and 7: the task was made joinable, so this reference is counted.
        let handle = unsafe { JoinHandle::from_raw(entry.as_ptr()) };
        (entry, handle)
    }

    pub(crate) fn next_id(&self) -> TaskId {
        TaskId::numbered(
            u16::MAX,
            self.outside.ids.fetch_add(1, Ordering::Relaxed) + 1,
        )
    }

    // ---- waking ---------------------------------------------------------------------------

    /// Queues a task that was just moved from IDLE to HELD: on this thread's worker if it is one
    /// of the task's own pool, through the injector otherwise.
    ///
    /// # Safety
    /// Rule 6: `pool` is the task's pool and `entry` has not been queued yet.
    #[inline]
    pub(crate) unsafe fn submit_woken(pool: *const Pool, entry: Entry) {
        context::with_worker(|worker| match worker {
            Some(worker) if std::ptr::eq(&raw const *worker.pool, pool) => worker.wake(entry),
            // SAFETY: passed on.
            _ => unsafe { submit_from_outside(pool, entry) },
        });
    }

    /// Queues a task that is no pool's, for any worker.
    pub fn adopt(&self, entry: Entry) {
        self.inject(entry);
    }

    /// Queues a task for any worker; once the pool is gone the task goes too.
    pub(crate) fn inject(&self, entry: Entry) {
        if let Err(entry) = self.try_inject(entry) {
            entry.refuse();
        }
    }

    fn try_inject(&self, entry: Entry) -> Result<(), Entry> {
        if let Some(worker) = entry.header().state().pinned_to() {
            return self.leave_for(worker, entry);
        }
        let class = entry.header().state().class();
        let pushed = match class {
            Class::Normal => {
                // SAFETY: rule 1: the entry is ours to queue and keeps the task alive.
                let pushed = unsafe { self.injector.push(entry.into_raw()) };
                // SAFETY: rule 1: a closed queue gives the entry back.
                pushed.map_err(|Closed(item)| unsafe { Entry::from_raw(item) })
            }
            _ => self.classes.push(class, entry, clock::now()),
        };
        pushed?;
        self.announce();
        Ok(())
    }

    /// Queues a task that only `worker` may run, and tells it.
    #[cold]
    fn leave_for(&self, worker: usize, entry: Entry) -> Result<(), Entry> {
        // SAFETY: rule 1: the entry is ours to queue and keeps the task alive.
        let pushed = unsafe { self.crew.remote(worker).inbox.push(entry.into_raw()) };
        // SAFETY: rule 1: a closed queue gives the entry back.
        pushed.map_err(|Closed(item)| unsafe { Entry::from_raw(item) })?;
        if self.idle.call(worker) {
            self.unpark(worker);
        }
        Ok(())
    }

    pub(crate) fn inject_batch(&self, batch: Batch<Header>) {
        if let Err(Closed(batch)) = self.injector.push_batch(batch) {
            // Only a worker that was stuck past the deadline comes here.
            batch.for_each(|item| {
                // SAFETY: rule 1: a closed queue gives the entries back.
                unsafe { Entry::from_raw(item) }.refuse();
            });
        }
    }

    /// Tells a sleeper, if there is one and nobody searches.
    #[inline]
    pub(crate) fn announce(&self) {
        if let Some(worker) = self.idle.announce() {
            self.unpark(worker);
        }
    }

    /// Posts the token of a claimed worker.
    pub(crate) fn unpark(&self, worker: usize) {
        if self.crew.remote(worker).parker.unpark() == Wakeup::Elsewhere
            && let Some(driver) = &self.driver
        {
            driver.ring();
        }
    }

    pub(crate) fn unpark_all(&self) {
        // Pairs with the fence in `Idle::publish`: a worker that is not seen parked sees the
        // phase that was set before.
        crate::sync::atomic::fence(Ordering::SeqCst);
        for worker in 0..self.crew.known() {
            if self.idle.claim_worker(worker) {
                self.unpark(worker);
            }
        }
    }

    /// Whether `worker` would find anything in any source.
    pub(crate) fn has_work(&self, worker: usize) -> bool {
        if !self.injector.is_empty() || self.classes.any() {
            return true;
        }
        if !self.config.stealing {
            let own = self.crew.remote(worker);
            return !own.ring.is_empty() || !own.slot.is_empty();
        }
        // Workers of a pool that stops take no jobs.
        let jobs = !self.stop.is_stopping();
        self.crew.remotes().any(|remote| {
            !remote.ring.is_empty() || !remote.slot.is_empty() || (jobs && !remote.forks.is_empty())
        })
    }

    // ---- the driver -----------------------------------------------------------------------

    /// Sleeps in the driver if no other thread has it. False: sleep elsewhere. Afterwards the worker is
    /// awake and counted.
    pub(crate) fn sleep_in_driver(&self, worker: usize) -> bool {
        let Some(driver) = &self.driver else {
            return false;
        };
        let Some(guard) = self.driver_lock.try_take() else {
            return false;
        };
        let parker = &self.crew.remote(worker).parker;
        self.idle.set_in_driver(Some(worker));
        if parker.sleep_elsewhere() {
            driver.sleep();
            parker.back_from_elsewhere();
        }
        self.idle.set_in_driver(None);
        if !self.idle.withdraw(worker) {
            // Claimed: the token is there or on its way.
            parker.park();
        }
        // Awake and searching from here on: what is delivered goes into our own slot and ring, and
        // if that is more than one task, the end of the search wakes another worker.
        driver.deliver();
        drop(guard);
        true
    }

    /// A busy worker's look into the driver.
    pub(crate) fn poll_driver(&self, now: u64) {
        let Some(driver) = &self.driver else { return };
        if self.driver_lock.is_deserted()
            && let Some(_guard) = self.driver_lock.try_take()
        {
            driver.poll(now);
        }
    }

    /// A worker leaves. True: nobody is in the driver now, and others may have parked elsewhere.
    pub(crate) fn leave_idle_set(&self, was_searching: bool) -> bool {
        self.driver_lock.leave(&self.idle, was_searching) && self.driver.is_some()
    }

    /// True if there is a driver and nobody is in it.
    pub(crate) fn driver_is_deserted(&self) -> bool {
        self.driver.is_some() && self.driver_lock.is_deserted()
    }

    /// Turns that all workers have given.
    pub(crate) fn polls(&self) -> u64 {
        let polls = |remote: &Arc<Remote>| remote.pulse.polls();
        self.crew.remotes().map(polls).fold(0, u64::wrapping_add)
    }

    /// True if every worker sleeps, and none in the driver: nobody will hear of timers and sockets.
    /// A worker that is about to park, to take the driver or to leave does not sleep; but this looks at
    /// one after the other, so it may say so of workers that take turns.
    pub(crate) fn driver_is_lost(&self) -> bool {
        self.driver_is_deserted() && self.idle.counts().unparked == 0 && {
            let here = self.crew.taken();
            !here.is_empty()
                && here
                    .iter()
                    .all(|id| self.crew.remote(*id).parker.is_asleep())
        }
    }

    /// True if nobody sits in the driver and events may be waiting there.
    pub(crate) fn events_are_unattended(&self) -> bool {
        let Some(driver) = &self.driver else {
            return false;
        };
        self.driver_lock.is_deserted() && driver.has_sources()
    }

    // ---- ending ---------------------------------------------------------------------------

    /// True from the start of the shutdown on.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_stopping()
    }

    /// True on one of this pool's workers.
    pub fn is_current(&self) -> bool {
        context::with_worker(|worker| {
            worker.is_some_and(|worker| std::ptr::eq(&raw const *worker.pool, self))
        })
    }

    /// Cancels and drops every task and joins the threads. Shielded sections may run on until
    /// `limit`; then they are dropped too, and threads that stay inside one poll for another 100 ms
    /// are detached and named.
    ///
    /// Must not be called on one of the pool's own workers, which would wait for itself.
    pub fn shutdown(&self, limit: Option<Duration>) -> StopReport {
        let mut report = StopReport::default();
        if !self.stop.advance(Phase::Stopping) {
            return report;
        }
        self.cancel_where_nobody_is();
        self.unpark_all();
        let deadline = limit.map(|limit| after(clock::now(), limit));
        let nothing_left = || self.close_if_empty();
        if !self.stop.wait(deadline, nothing_left) {
            self.stop.advance(Phase::Forced);
            self.unpark_all();
            self.force();
            report.stuck = self.wait_for_all_but_stuck(nothing_left);
            self.stop.shut_gates();
            report.leaked_tasks = self
                .crew
                .remotes()
                .map(|remote| remote.registry.len())
                .sum();
            let leaked = self.suspended(tuning::NAMED_LEAKS);
            report.leaked = leaked.iter().map(LeakedTask::of).collect();
        }
        self.stop.advance(Phase::Exiting);
        self.unpark_all();
        self.join_threads(&mut report, deadline);
        report
    }

    /// Ends the queues if nothing is in them and no task is suspended that could come.
    pub(crate) fn close_if_empty(&self) -> bool {
        self.crew.remotes().all(|remote| remote.registry.is_empty())
            && self.injector.close_if_empty()
            && self.classes.close_if_empty()
    }

    /// Past the deadline: waits as long as somebody still makes progress, and names those who have
    /// been inside one poll for a whole grace period.
    fn wait_for_all_but_stuck(&self, nothing_left: impl Fn() -> bool) -> Vec<StuckWorker> {
        let give_up = clock::now() + tuning::FORCE_LIMIT_NS;
        loop {
            let before: Vec<u64> = self
                .crew
                .remotes()
                .map(|remote| remote.pulse.polls())
                .collect();
            let grace = clock::now() + tuning::GRACE_NS;
            if self.stop.wait(Some(grace), &nothing_left) {
                return Vec::new();
            }
            let hangs = |index: &usize| {
                let pulse = &self.crew.remote(*index).pulse;
                pulse.is_busy() && before.get(*index) == Some(&pulse.polls())
            };
            let stuck: Vec<usize> = self.stop.in_turn().into_iter().filter(hangs).collect();
            if stuck == self.stop.not_drained() || clock::now() > give_up {
                return stuck
                    .into_iter()
                    .map(|worker| self.describe_stuck(worker))
                    .collect();
            }
        }
    }

    /// Also reaches the shards of workers that cannot do it themselves.
    fn force(&self) {
        for remote in self.crew.remotes() {
            remote.registry.walk(|task| {
                task.cancel_by_force();
                true
            });
        }
    }

    /// Tasks that were registered by workers that have left since, or are about to. Those of the others
    /// are cancelled by themselves, and it does not matter who is first.
    fn cancel_where_nobody_is(&self) {
        for remote in self.crew.remotes() {
            remote.registry.walk(|task| {
                task.cancel();
                true
            });
        }
    }

    fn describe_stuck(&self, worker: usize) -> StuckWorker {
        let beat = self.crew.remote(worker).pulse.read();
        StuckWorker {
            worker,
            task: beat.id,
            name: beat.name,
            location: beat.location,
        }
    }

    /// Waits for the threads until the deadline, or for a grace period if that is later: destructors
    /// of thread-locals, and the hook of the watchdog, are code of others.
    fn join_threads(&self, report: &mut StopReport, deadline: Option<u64>) {
        self.watchdog.stop();
        let deadline = deadline.map(|deadline| deadline.max(clock::now() + tuning::GRACE_NS));
        let is_stuck = |index| report.stuck.iter().any(|stuck| stuck.worker == index);
        let threads = self.crew.close().into_iter().enumerate();
        let workers: Vec<_> = threads
            .filter(|(index, _)| !is_stuck(*index))
            .filter_map(|(_, thread)| thread)
            .collect();
        let watchdog = self.watchdog_thread.lock().take();
        for thread in workers.into_iter().chain(watchdog) {
            // A worker catches the panics of its tasks; its own would have aborted.
            if let Err(unfinished) = thread::join_by(thread, deadline) {
                report.unfinished_threads.push(unfinished);
            }
        }
    }

    // ---- looking inside -------------------------------------------------------------------

    /// What the flight recorders record from now on (each worker notices within a tick).
    pub fn set_recording(&self, recording: Recording) {
        self.recording.store(recording as u8, Ordering::Relaxed);
    }

    /// What the flight recorders record.
    pub fn recording(&self) -> Recording {
        Recording::from_u8(self.recording.load(Ordering::Relaxed))
    }

    /// The events that the flight recorders still hold, oldest first.
    pub fn events(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.watchdog.slow_polls().1;
        for (index, remote) in self.crew.remotes().enumerate() {
            events.extend(remote.recorder.read(index));
        }
        events.sort_by_key(|event| event.at);
        events
    }

    /// Polls that the watchdog found to be slow.
    pub fn slow_polls(&self) -> u64 {
        self.watchdog.slow_polls().0
    }

    /// References to suspended tasks, `most` at most: for dumps.
    pub fn suspended(&self, most: usize) -> Vec<crate::task::TaskRef> {
        let mut tasks = Vec::new();
        for remote in self.crew.remotes() {
            if tasks.len() < most {
                remote.registry.walk(|task| {
                    tasks.push(task);
                    tasks.len() < most
                });
            }
        }
        tasks
    }

    /// Everything the pool counts, as plain data. Blocks nobody.
    pub fn snapshot(&self) -> PoolSnapshot {
        let counts = self.idle.counts();
        PoolSnapshot {
            workers: self.worker_snapshots(),
            injector_len: self.injector.len(),
            inject_queue_overflows: self.outside.refused.load(Ordering::Relaxed),
            tasks_submitted_outside: self.outside.submitted.load(Ordering::Relaxed),
            class_len: [Class::High, Class::Low, Class::Background]
                .map(|class| self.classes.len(class)),
            searching: counts.searching,
            unparked: counts.unparked,
            suspended_tasks: self
                .crew
                .remotes()
                .map(|remote| remote.registry.len())
                .sum(),
            blocked_without_spare: self.crew.not_replaced(),
            tasks_rescued: self.watchdog.rescued(),
            driver_rescues: self.watchdog.driver_rescues(),
            block_depot_bytes: block_cache().depot_bytes,
        }
    }

    fn worker_snapshots(&self) -> Vec<WorkerSnapshot> {
        let taken = self.crew.taken();
        (0..self.crew.known())
            .map(|seat| {
                let mut snapshot = self.worker_snapshot(seat);
                if !taken.contains(&seat) {
                    snapshot.state = WorkerState::Gone;
                }
                snapshot
            })
            .collect()
    }

    fn worker_snapshot(&self, index: usize) -> WorkerSnapshot {
        let remote = self.crew.remote(index);
        let beat = remote.pulse.read();
        let counters = &remote.counters;
        let longest = counters
            .longest_ns
            .get()
            .max(remote.stalled_ns.load(Ordering::Relaxed));
        let mean = counters
            .run_ns
            .get()
            .checked_div(counters.run_polls.get())
            .unwrap_or(0);
        WorkerSnapshot {
            index,
            state: match (beat.busy, beat.parked) {
                (_, true) => WorkerState::Parked,
                (true, false) => WorkerState::Running,
                (false, false) => WorkerState::Searching,
            },
            ring_len: remote.ring.len(),
            slot_full: !remote.slot.is_empty(),
            task: beat.id,
            task_location: beat.location,
            task_name: beat.name,
            tasks_submitted: counters.submitted.get(),
            tasks_completed: counters.completed.get(),
            polls: beat.polls,
            steal_attempts: counters.steals_tried.get(),
            steal_successes: counters.steals_made.get(),
            tasks_stolen: counters.tasks_stolen.get(),
            forks_len: remote.forks.len(),
            forks_stolen: counters.forks_stolen.get(),
            slot_polls: counters.slot_polls.get(),
            overflows: counters.overflows.get(),
            park_events: counters.parks.get(),
            unpark_events: counters.unparks.get(),
            searches: counters.searches.get(),
            budget_exhaustions: counters.budget_exhaustions.get(),
            aging_interventions: counters.aged.get(),
            panics: counters.panics.get(),
            cancels: counters.cancels.get(),
            pinned_tasks: counters.pinned.get(),
            max_run: Duration::from_nanos(longest),
            avg_run: Duration::from_nanos(mean),
            injector_interval: remote.interval.load(Ordering::Relaxed),
            events_recorded: remote.recorder.recorded(),
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rings: Vec<usize> = self
            .crew
            .remotes()
            .map(|remote| remote.ring.len())
            .collect();
        f.debug_struct("Pool")
            .field("name", &self.config.name)
            .field("rings", &rings)
            .field("injector", &self.injector.len())
            .field("idle", &self.idle.counts())
            .field("phase", &self.stop.phase())
            .finish()
    }
}

/// The number of the next pool.
fn next_number() -> usize {
    #![allow(
        clippy::disallowed_types,
        reason = "no model depends on it, and the model checkers have no statics"
    )]
    use std::sync::atomic;
    static POOLS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
    // Relaxed: the number is all there is to it.
    POOLS.fetch_add(1, atomic::Ordering::Relaxed) + 1
}

fn after(now: u64, limit: Duration) -> u64 {
    now.saturating_add(limit.as_nanos().min(u64::MAX as u128) as u64)
}

/// A worker's thread, from its first task to its last.
pub(crate) fn run_worker(pool: &Arc<Pool>, seat: usize, hooks: &Hooks) {
    call_hook(&hooks.on_start, seat);
    let worker = Worker::new(pool.clone(), seat, hooks.on_events.clone());
    context::enter_worker(&worker, || worker.run());
    drop(worker);
    call_hook(&hooks.on_stop, seat);
}

fn call_hook(hook: &Option<ThreadHook>, index: usize) {
    if let Some(hook) = hook {
        // A panicking hook must not take the worker's tasks with it.
        contain(|| hook(index));
    }
}

// ---- waking from outside ------------------------------------------------------------------

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    /// The pool this thread woke last. It keeps the pool's memory (not its threads) alive, so that
    /// a wake may still look for sleepers after its push, when the task may already be complete
    /// and the pool shut down. One clone per change of pool, not two shared counts per wake.
    static LAST_POOL: Cell<Option<Arc<Pool>>> = const { Cell::new(None) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static LAST_POOL: Cell<Option<Arc<Pool>>> = Cell::new(None);
}

/// # Safety
/// Rule 6: `pool` is the task's pool and `entry` has not been queued yet.
#[cold]
unsafe fn submit_from_outside(pool: *const Pool, entry: Entry) {
    // Taken out for the duration: a wake from within finds none and makes a reference of its own.
    // On a thread that is ending there is no place to keep one.
    let last = LAST_POOL.try_with(Cell::take).ok().flatten();
    let pool = match last {
        Some(last) if std::ptr::eq(&raw const *last, pool) => last,
        // SAFETY: rule 6: the pool waits for this task.
        _ => unsafe { retain_pool(pool) },
    };
    pool.inject(entry);
    let _ = LAST_POOL.try_with(|last| last.set(Some(pool)));
}

/// # Safety
/// `pool` is alive and was made by `Pool::start`, in an `Arc`.
unsafe fn retain_pool(pool: *const Pool) -> Arc<Pool> {
    // SAFETY: says the caller.
    unsafe {
        Arc::increment_strong_count(pool);
        Arc::from_raw(pool)
    }
}

/// The pool whose worker this thread is.
pub fn current() -> Option<Arc<Pool>> {
    context::with_worker(|worker| worker.map(|worker| worker.pool.clone()))
}

/// The pool whose worker this thread is, and which of its workers.
pub fn current_worker() -> Option<(Arc<Pool>, usize)> {
    context::with_worker(|worker| worker.map(|worker| (worker.pool.clone(), worker.index)))
}

/// True on a worker of any pool.
#[inline]
pub fn on_worker() -> bool {
    context::with_worker(|worker| worker.is_some())
}

/// Starts a task on the pool whose worker this thread is.
///
/// # Panics
/// Elsewhere; see [`on_worker`].
#[inline]
pub fn spawn_here<B>(body: B, options: Options) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    context::with_worker(|worker| match worker {
        Some(worker) => worker.pool.spawn(body, options),
        None => panic!("spawn_here on a thread that is no worker"),
    })
}
