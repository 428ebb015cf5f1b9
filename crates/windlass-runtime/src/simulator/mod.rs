//! The deterministic simulator: a runtime on one thread, with virtual time, seeded choices and a
//! simulated network.
//!
//! ```
//! use std::time::Duration;
//! use windlass_runtime::{Runtime, time};
//!
//! // An hour passes in no time, and always in the same way for the same seed.
//! let runtime = Runtime::simulated(42);
//! let took = runtime.block_on(async {
//!     let began = time::Instant::now();
//!     time::sleep(Duration::from_secs(3600)).await;
//!     began.elapsed()
//! });
//! assert_eq!(took, Duration::from_secs(3600));
//! ```
//! It replaces clock, randomness and network, and nothing else: tasks, timers, channels and groups
//! are the real ones. The promise that a seed reproduces a run covers programs whose only inputs
//! are the runtime's: their own threads, clocks, random hash maps and files are beyond it.

mod explore;
mod helpers;
mod part;

use std::fmt::Write;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use windlass_core::sched::pool::{Config, Pool, StopReport};
use windlass_core::sched::simulate::{Outside, Root, Simulation, Stuck};
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::sync::{Arc, Mutex, World};
use windlass_core::task::Job;

pub use windlass_core::sched::simulate::{Step, Trace};

pub use self::explore::{ExpectPanics, expect_panics, explore};
use self::helpers::Helpers;
pub use self::part::Part;
use self::part::Parts;
use crate::blocking::StuckJob;
use crate::handle::Handle;
use windlass_sync::time::Timers;

/// Suspended tasks that are named when a simulation is stuck.
const TASKS_NAMED: usize = 16;

/// A simulated world and what runs in it.
pub struct Simulator {
    seed: u64,
    world: Arc<World>,
    core: Mutex<Simulation>,
    pool: Arc<Pool>,
    timers: Timers,
    parts: Parts,
    helpers: Arc<Helpers>,
}

impl Simulator {
    pub(crate) fn new(seed: u64) -> Arc<Simulator> {
        let world = Arc::new(World::new(seed));
        let config = Config {
            seed,
            ..Config::default()
        };
        let core = Simulation::new(config, world.clone());
        Arc::new(Simulator {
            seed,
            pool: core.pool().clone(),
            core: Mutex::new(core),
            timers: Timers::new(1, || {}),
            parts: Parts::default(),
            helpers: Helpers::new(world.clone()),
            world,
        })
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Returns the part of type `T` of this world. The first call makes it with `make`, which gets
    /// the world's clock and dice.
    pub fn part<T: Part>(&self, make: impl FnOnce(Arc<World>) -> T) -> Arc<T> {
        self.parts.get(&self.world, make)
    }

    /// What has happened so far.
    ///
    /// # Panics
    /// Inside the simulation.
    pub(crate) fn trace(&self) -> Trace {
        match self.core.try_lock() {
            Some(core) => core.trace().clone(),
            None => panic!("the trace of a simulation is complete only outside of its block_on"),
        }
    }

    pub(crate) fn spawn_blocking(&self, runtime: &Handle, job: Job, start_by: Option<u64>) {
        self.helpers.start(runtime, job, start_by);
    }

    /// The next number of the dice.
    pub(crate) fn random(&self) -> u64 {
        self.world.random()
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        self.helpers.is_current()
    }

    /// Runs everything until `future` has ended.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        if self.helpers.is_current() {
            // A helper waits by handing its turn back.
            return windlass_core::block_on(future);
        }
        let _waiting = windlass_core::begin_wait();
        match self.run(future) {
            Ok(output) => output,
            Err(Some(stuck)) => panic!("{}", self.describe(stuck)),
            Err(None) => panic!(
                "this simulation is running on another thread: a simulated runtime has one thread, \
                 the one that called block_on first"
            ),
        }
    }

    /// As `block_on`, where nothing may panic: none if the simulation cannot run here, or gets
    /// stuck.
    pub(crate) fn try_block_on<F: Future>(&self, future: F) -> Option<F::Output> {
        self.run(future).ok()
    }

    /// Runs everything until `future` has ended, or nothing happens any more; the error is none if
    /// another thread runs it.
    fn run<F: Future>(&self, future: F) -> Result<F::Output, Option<Stuck>> {
        let mut core = self.core.try_lock().ok_or(None)?;
        let signal = Arc::new(RootSignal(AtomicBool::new(true)));
        let mut root = RootFuture {
            future: pin!(future),
            waker: Waker::from(signal.clone()),
            signal,
            output: None,
        };
        self.inside(|| core.run(&mut root, self)).map_err(Some)?;
        Ok(root.output.expect("the root has ended"))
    }

    /// Runs `f` in this world, with its clock, dice and timers.
    fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(Option<Arc<windlass_sync::time::Shard>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                windlass_sync::time::set_shard(self.0.take());
            }
        }
        let shard = self.timers.of_worker(0).clone();
        let _leave = Leave(windlass_sync::time::set_shard(Some(shard)));
        self.world.enter(f)
    }

    /// Ends everything; names the blocking closures that wait for something that has not come.
    pub(crate) fn shutdown(&self, limit: Duration) -> (StopReport, Vec<StuckJob>) {
        let Some(mut core) = self.core.try_lock() else {
            return (StopReport::default(), Vec::new());
        };
        self.helpers.close();
        let report = self.inside(|| core.shutdown(limit, self));
        self.timers.close();
        (report, self.helpers.stuck())
    }

    fn describe(&self, stuck: Stuck) -> String {
        let mut text = match stuck {
            Stuck::Deadlock => format!(
                "deadlock at {:?} in the simulation with seed {}: the future in block_on waits, no \
                 task is ready, no timer is set and no message is on its way",
                Duration::from_nanos(self.world.now()),
                self.seed
            ),
            Stuck::Livelock => format!(
                "livelock at {:?} in the simulation with seed {}: ten million \
                 steps, and nothing but tasks that wake each other or themselves",
                Duration::from_nanos(self.world.now()),
                self.seed
            ),
        };
        for task in self.pool.suspended(TASKS_NAMED) {
            let meta = task.header().meta();
            let name = meta.name().map_or("(unnamed)", |name| name);
            let _ = write!(text, "\n  waiting: {name}, spawned at {}", meta.location());
        }
        text
    }
}

impl Outside for Simulator {
    fn next(&self) -> Option<u64> {
        [self.timers.next(), self.parts.next()]
            .into_iter()
            .flatten()
            .min()
    }

    fn happen(&self, now: u64) {
        self.timers.expire(now);
        self.parts.happen(now);
    }

    fn runnable(&self) -> usize {
        self.helpers.runnable()
    }

    fn go_on(&self, which: usize) {
        self.helpers.go_on(which);
    }
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator")
            .field("seed", &self.seed)
            .field("now", &Duration::from_nanos(self.world.now()))
            .finish_non_exhaustive()
    }
}

/// The future in `block_on`.
struct RootFuture<'a, F: Future> {
    future: Pin<&'a mut F>,
    signal: Arc<RootSignal>,
    waker: Waker,
    output: Option<F::Output>,
}

struct RootSignal(AtomicBool);

impl Wake for RootSignal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl<F: Future> Root for RootFuture<'_, F> {
    fn is_woken(&self) -> bool {
        self.signal.0.load(Ordering::Acquire)
    }

    fn poll(&mut self) -> bool {
        self.signal.0.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&self.waker);
        match self.future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => {
                self.output = Some(output);
                true
            }
            Poll::Pending => false,
        }
    }
}
