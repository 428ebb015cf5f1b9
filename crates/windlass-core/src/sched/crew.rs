//! The workers of a pool: who is there, who is to come, who is to leave.
//!
//! A pool has a fixed number of *worker ids*, and a worker is a thread that has one. As many as are
//! *wanted* should be able to run tasks. A worker that blocks its thread says so, and if there are
//! too few left another takes a free id; when the first comes back there is one too many, and the
//! worker that first finds nothing to do leaves: it puts what it has queued into the injector and
//! gives up its id. A worker counts as blocked once, however many calls that block are nested on
//! its stack; a coroutine that is suspended inside such a call does not block its worker meanwhile.
//! A resize changes the number that is wanted, and the same happens. A worker with pinned tasks
//! does not leave.
//!
//! Everything here is behind one lock, which is taken when a worker comes, leaves or blocks. That
//! there is one worker too many is a bit beside the phase that every worker looks at anyway.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use crate::context::{self, Exchange};
use crate::sched::config::Hooks;
use crate::sched::pool::{Pool, run_worker};
use crate::sched::remote::Remote;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, thread};

pub(crate) struct Crew {
    /// By worker id; made when the id is first taken.
    remotes: Box<[OnceLock<Arc<Remote>>]>,
    /// The ids below this have been taken at some time.
    used_ids: AtomicUsize,
    roster: Mutex<Roster>,
}

#[derive(Default)]
struct Roster {
    wanted: usize,
    /// Workers that have an id.
    present: usize,
    /// Those of them that block their thread.
    blocked: usize,
    /// Why each worker blocks its thread: calls that are nested on its stack, and one more if it
    /// was replaced by another worker. By worker id.
    reasons: Vec<u32>,
    /// Ids below `used_ids` that no worker has.
    free: Vec<usize>,
    threads: Vec<Option<thread::JoinHandle<()>>>,
    /// Where new threads get theirs from; gone when the pool has ended.
    hooks: Option<Hooks>,
    /// No worker starts any more.
    closed: bool,
    /// Times that no worker could replace one that blocks.
    not_replaced: u64,
}

/// The pool cannot have that many workers.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResizeError {
    /// Without a worker nothing would run.
    Zero,
    /// The pool was built for fewer workers.
    TooMany {
        /// The most there can be.
        most: usize,
    },
    /// The pool is stopping, or it is simulated and always has one worker.
    Stopping,
    /// The operating system refused to start a thread; the pool is as large as before.
    Thread(io::Error),
}

impl std::fmt::Display for ResizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResizeError::Zero => f.write_str("a pool needs at least one worker"),
            ResizeError::TooMany { most } => write!(
                f,
                "the pool was built for {most} workers at most; see Builder::max_workers"
            ),
            ResizeError::Stopping => {
                f.write_str("the pool is shutting down, or is a simulation, and has its size")
            }
            ResizeError::Thread(error) => write!(
                f,
                "a thread could not be started ({error}); the pool is as large as before"
            ),
        }
    }
}

impl std::error::Error for ResizeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ResizeError::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl Crew {
    pub(crate) fn new(capacity: usize, wanted: usize) -> Crew {
        let roster = Roster {
            wanted,
            ..Roster::default()
        };
        Crew {
            remotes: (0..capacity).map(|_| OnceLock::new()).collect(),
            used_ids: AtomicUsize::new(0),
            roster: Mutex::new(roster),
        }
    }

    /// The half of a worker that others may touch, for an id that was taken at some time.
    #[inline]
    pub(crate) fn remote(&self, worker_id: usize) -> &Arc<Remote> {
        self.remotes[worker_id]
            .get()
            .expect("the id was taken once")
    }

    /// Returns how many ids were taken at some time; these are the ids below it.
    #[inline]
    pub(crate) fn used_ids(&self) -> usize {
        // Acquire: pairs with the Release in `take_id`.
        self.used_ids.load(Ordering::Acquire)
    }

    pub(crate) fn remotes(&self) -> impl Iterator<Item = &Arc<Remote>> {
        (0..self.used_ids()).map(|worker_id| self.remote(worker_id))
    }

    /// Returns how many ids there are, taken or not.
    pub(crate) fn capacity(&self) -> usize {
        self.remotes.len()
    }

    /// Returns the ids that workers have now.
    pub(crate) fn taken(&self) -> Vec<usize> {
        let roster = self.roster.lock();
        (0..self.used_ids())
            .filter(|worker_id| !roster.free.contains(worker_id))
            .collect()
    }

    /// Times that no worker could replace one that blocks.
    pub(crate) fn not_replaced(&self) -> u64 {
        self.roster.lock().not_replaced
    }

    /// Takes an id for a worker that has no thread of its own.
    pub(crate) fn join_threadless(&self) -> usize {
        let mut roster = self.roster.lock();
        self.take_id(&mut roster).expect("there is a free id")
    }

    fn take_id(&self, roster: &mut Roster) -> Option<usize> {
        let worker_id = match roster.free.pop() {
            Some(worker_id) => worker_id,
            None => {
                let next = self.used_ids.load(Ordering::Relaxed);
                self.remotes
                    .get(next)?
                    .get_or_init(|| Arc::new(Remote::new()));
                // Release: pairs with the Acquire in `used_ids`.
                self.used_ids.store(next + 1, Ordering::Release);
                next
            }
        };
        roster.present += 1;
        Some(worker_id)
    }

    /// The first workers come.
    pub(crate) fn start(&self, pool: &Arc<Pool>, hooks: &Hooks) -> io::Result<()> {
        let mut roster = self.roster.lock();
        roster.hooks = Some(hooks.clone());
        while roster.present < roster.wanted {
            self.start_one(pool, &mut roster)?;
        }
        Ok(())
    }

    /// Starts one more worker, if there is a free id.
    fn start_one(&self, pool: &Arc<Pool>, roster: &mut Roster) -> io::Result<()> {
        let no_id = || io::Error::other("the pool has as many workers as it can have");
        let hooks = roster.hooks.clone().ok_or_else(no_id)?;
        let worker_id = self.take_id(roster).ok_or_else(no_id)?;
        // Before the thread runs: from now on it counts as awake, and a shutdown waits for it.
        pool.stop.join(worker_id);
        pool.idle.join();
        let (inside, name) = (pool.clone(), format!("{}-{worker_id}", pool.config.name));
        let thread = thread::spawn(name, pool.config.stack_size, move || {
            run_worker(&inside, worker_id, &hooks);
            drop(hooks);
            inside.crew.release_id(worker_id);
        });
        match thread {
            Ok(thread) => {
                if roster.threads.len() <= worker_id {
                    roster.threads.resize_with(worker_id + 1, || None);
                }
                // A thread that had this id before has ended, or is about to.
                roster.threads[worker_id] = Some(thread);
                Ok(())
            }
            Err(error) => {
                pool.idle.leave(false);
                pool.stop.drained(worker_id);
                roster.present -= 1;
                roster.free.push(worker_id);
                Err(error)
            }
        }
    }

    /// A thread ends that has left before, or that ends with the pool.
    fn release_id(&self, worker_id: usize) {
        let mut roster = self.roster.lock();
        if !roster.closed {
            roster.free.push(worker_id);
        }
    }

    /// A worker is about to block its thread, or does not come back from what it runs. It may be
    /// there for several reasons at once, and counts as blocked while there is one.
    fn begin_block(&self, pool: &Arc<Pool>, worker: usize) {
        let mut roster = self.roster.lock();
        let reasons = roster.reasons(worker);
        *reasons += 1;
        if *reasons > 1 {
            return;
        }
        roster.blocked += 1;
        if roster.is_short() && !roster.closed && self.start_one(pool, &mut roster).is_err() {
            roster.not_replaced += 1;
        }
    }

    /// One reason less; after the last one the worker's thread no longer blocks.
    fn end_block(&self, pool: &Pool, worker: usize) {
        let mut roster = self.roster.lock();
        let reasons = roster.reasons(worker);
        *reasons -= 1;
        if *reasons == 0 {
            roster.blocked -= 1;
            self.ask_to_leave(pool, &roster);
        }
    }

    /// From now on so many workers are wanted.
    pub(crate) fn resize(&self, pool: &Arc<Pool>, wanted: usize) -> Result<(), ResizeError> {
        let mut roster = self.roster.lock();
        let most = pool.config.max_workers;
        if wanted == 0 {
            return Err(ResizeError::Zero);
        }
        if wanted > most {
            return Err(ResizeError::TooMany { most });
        }
        if roster.closed || pool.config.simulated || pool.stop.is_stopping() {
            return Err(ResizeError::Stopping);
        }
        if pool.config.current_thread {
            // One worker, whoever it is; and its notice is about roots.
            return Ok(());
        }
        let before = std::mem::replace(&mut roster.wanted, wanted);
        while roster.is_short() {
            if let Err(error) = self.start_one(pool, &mut roster) {
                roster.wanted = before;
                self.ask_to_leave(pool, &roster);
                return Err(ResizeError::Thread(error));
            }
        }
        self.ask_to_leave(pool, &roster);
        drop(roster);
        // A sleeping worker may be the one to leave.
        pool.unpark_all();
        Ok(())
    }

    /// Sets the bit if there is a worker too many, and wakes one that may then leave.
    fn ask_to_leave(&self, pool: &Pool, roster: &Roster) {
        let too_many = roster.is_crowded();
        pool.stop.set_crowded(too_many);
        if too_many && let Some(sleeper) = pool.idle.claim() {
            pool.unpark(sleeper);
        }
    }

    /// A worker offers to leave. True: it does, and is not counted any more.
    pub(crate) fn may_leave(&self, pool: &Pool) -> bool {
        let mut roster = self.roster.lock();
        let leaves = roster.is_crowded() && !roster.closed;
        if leaves {
            roster.present -= 1;
        }
        pool.stop.set_crowded(roster.is_crowded());
        leaves
    }

    /// Takes the thread of the first worker, which had none: the end of the pool joins it.
    pub(crate) fn adopt(&self, thread: thread::JoinHandle<()>) {
        self.roster.lock().threads = vec![Some(thread)];
    }

    /// Starts no more workers, and returns the threads to be joined.
    pub(crate) fn close(&self) -> Vec<Option<thread::JoinHandle<()>>> {
        let mut roster = self.roster.lock();
        roster.closed = true;
        let hooks = roster.hooks.take();
        let threads = std::mem::take(&mut roster.threads);
        drop(roster);
        // User code may go with them.
        drop(hooks);
        threads
    }
}

impl Roster {
    /// Why this worker blocks its thread.
    fn reasons(&mut self, worker: usize) -> &mut u32 {
        if self.reasons.len() <= worker {
            self.reasons.resize(worker + 1, 0);
        }
        &mut self.reasons[worker]
    }

    fn is_short(&self) -> bool {
        self.present < self.wanted + self.blocked
    }

    fn is_crowded(&self) -> bool {
        self.present > self.wanted + self.blocked
    }
}

/// Runs `f`, which may block this thread. If it is a worker's, another takes its place meanwhile;
/// what is pinned to this one waits. No worker replaces one that keeps an order: what
/// comes next waits for it.
pub fn while_blocked<R>(f: impl FnOnce() -> R) -> R {
    let is_replaceable =
        context::with_worker(|worker| worker.is_some_and(|worker| worker.pool.has_many_threads()));
    if !is_replaceable {
        return f();
    }
    context::installed(&BlockedHere(Cell::new(false)), f)
}

/// The thread's worker counts as blocked while this is exchanged in. Inside a coroutine that is
/// suspended meanwhile, it is exchanged out: its worker runs others.
struct BlockedHere(Cell<bool>);

impl Exchange for BlockedHere {
    fn exchange(&self) {
        let begins = !self.0.get();
        self.0.set(begins);
        context::with_worker(|worker| {
            let Some(worker) = worker else { return };
            if begins {
                worker.pool.crew.begin_block(&worker.pool, worker.index);
            } else {
                worker.pool.crew.end_block(&worker.pool, worker.index);
            }
        });
    }
}

/// Another worker is in the place of one that does not come back, until this is dropped; see
/// [`Pool::replace_worker`].
#[derive(Debug)]
#[must_use = "the worker leaves when this is dropped"]
pub struct Replacement {
    pool: Arc<Pool>,
    worker: usize,
}

impl Drop for Replacement {
    fn drop(&mut self) {
        self.pool.crew.end_block(&self.pool, self.worker);
    }
}

impl Pool {
    /// Lets another worker take the place of `worker`, which does not come back from what it runs,
    /// as [`while_blocked`] does for the thread that calls it: for another thread that has noticed
    /// that. None if the pool keeps an order, is simulated or ends.
    pub fn replace_worker(self: &Arc<Pool>, worker: usize) -> Option<Replacement> {
        if !self.has_many_threads() || self.is_stopping() || worker >= self.crew.used_ids() {
            return None;
        }
        self.crew.begin_block(self, worker);
        Some(Replacement {
            pool: self.clone(),
            worker,
        })
    }

    /// From now on so many workers run tasks. More are there before this returns; those that are
    /// too many leave when they have a moment, the ones with pinned tasks excepted.
    pub fn resize(self: &Arc<Pool>, workers: usize) -> Result<(), ResizeError> {
        self.crew.resize(self, workers)
    }
}
