//! One work-stealing runtime for every kind of concurrent work.
//!
//! ```
//! #[windlass::main]
//! async fn main() -> windlass::Result<()> {
//!     let answer = windlass::spawn(async { 6 * 7 }).await?;
//!     assert_eq!(answer, 42);
//!     Ok(())
//! }
//! ```
//!
//! Names are those a tokio user guesses: [`spawn`], [`task::JoinHandle`], [`task::yield_now`],
//! [`spawn_blocking`], [`task::LocalSet`]. What is different is written down: see
//! `docs/contracts/engine.md` for the order, delivery and cancellation that the engine promises.
#![forbid(unsafe_code)]

mod macros;

pub use windlass_core::block_on;
pub use windlass_io::{command as process, fs, io, net, signal};
pub use windlass_macros::{main, test};
pub use windlass_runtime::{
    Runtime, TaskGroup, coroutine, dispatch, fork_join, spawn, spawn_blocking, task_local, time,
};
pub use windlass_sync::CancellationToken;

/// Making, finding, resizing and ending a runtime.
pub mod runtime {
    pub use windlass_runtime::{
        Backend, BuildError, Builder, EnterGuard, Graceful, GracefulReport, Handle, Id,
        LocalOptions, LocalRuntime, ResizeError, Runtime, RuntimeFlavor, SchedPolicy,
        ShutdownReport, SpawnBlockingError, Spin, StuckJob, TryCurrentError, TrySpawnError,
    };
}

/// Tasks: handles, local sets, groups, task-locals, and what a running task can ask for.
pub mod task {
    pub use windlass_core::task::JoinHandle;
    pub use windlass_runtime::task::*;
    pub use windlass_runtime::{
        ChildError, LocalKey, NotInScope, SupervisorGroup, TaskGroup, join_all, race, spawn,
        spawn_blocking,
    };

    /// Futures that a caller may want to name.
    pub mod futures {
        pub use windlass_runtime::TaskLocalFuture;
    }
}

/// The deterministic simulator: a runtime on one thread, with virtual time, seeded choices and a
/// simulated network.
pub mod simulator {
    pub use windlass_io::simulated::{DroppedDatagrams, Net, OnHost};
    pub use windlass_runtime::simulator::{ExpectPanics, Step, Trace, expect_panics, explore};
}

/// Channels, locks, meeting points and cancellation, for tasks and plain threads.
pub mod sync {
    pub use windlass_sync::channel::{broadcast, mpmc, mpsc, oneshot, watch};
    pub use windlass_sync::lock::{
        AcquireError, Barrier, BarrierWait, BarrierWaitResult, MappedMutexGuard, Mutex, MutexGuard,
        Notify, OnceCell, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedRwLockMappedWriteGuard,
        OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock,
        RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
        SetError, SetOnce, SetOnceError, TryAcquireError, TryLockError,
    };
    pub use windlass_sync::{CancellationToken, Cancelled, Cut, DropGuard, Limit};

    /// Futures that a caller may want to name.
    pub mod futures {
        pub use windlass_sync::lock::{Notified, OwnedNotified};
    }
}

/// tokio as a guest, for libraries that know no other runtime (feature `tokio-guest`).
#[cfg(feature = "tokio-guest")]
pub use windlass_tokio_guest as tokio_guest;

/// The one value that crosses boundaries: messages, arguments and results of guests, what the edges
/// of graphs carry.
pub mod value {
    pub use windlass_value::{
        Data, DecodeError, Opaque, Payload, PayloadList, PayloadMap, Payloads, Unwritable,
    };
}

/// Recordings of graphs and guests: why one cannot be used, and where a replay differs.
#[cfg(any(feature = "graph", feature = "vm"))]
pub mod record {
    pub use windlass_record::{Difference, RecordingError};
}

/// Processes: PIDs, mailboxes, commands, links, monitors, supervisors.
pub mod actor {
    #[doc(inline)]
    pub use windlass_actor::*;
    /// ```
    /// use windlass::actor::{Context, Host, messages};
    ///
    /// struct Till { sum: u32 }
    ///
    /// #[messages]
    /// impl Till {
    ///     /// Returns nothing: the handle sends.
    ///     pub fn take(&mut self, money: u32) { self.sum += money; }
    ///
    ///     /// Returns a result: the handle asks.
    ///     pub async fn pay_out(&mut self, money: u32) -> Result<u32, String> {
    ///         self.sum = self.sum.checked_sub(money).ok_or("not enough")?;
    ///         Ok(self.sum)
    ///     }
    ///
    ///     /// Answers, and ends the process.
    ///     pub fn close(&mut self, ctx: &mut Context<TillMessage>) -> u32 {
    ///         ctx.stop();
    ///         self.sum
    ///     }
    /// }
    ///
    /// # #[windlass::main]
    /// # async fn main() -> windlass::Result<()> {
    /// let till = TillHandle::from(Host::current()?.actor(Till { sum: 0 })?.address());
    /// till.take(5).await?;
    /// assert!(till.pay_out(7).await.is_err());
    /// assert_eq!(till.close().await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An argument is owned, because it is sent:
    ///
    /// ```compile_fail
    /// struct Till;
    ///
    /// #[windlass::actor::messages]
    /// impl Till {
    ///     pub fn note(&mut self, text: &str) {}
    /// }
    /// ```
    ///
    /// A method that takes the actor itself is no message; `ctx.stop()` ends a process:
    ///
    /// ```compile_fail
    /// struct Till;
    ///
    /// #[windlass::actor::messages]
    /// impl Till {
    ///     pub fn close(self) {}
    /// }
    /// ```
    ///
    /// A message has no parameters of its own; those of the actor are fine:
    ///
    /// ```compile_fail
    /// struct Till;
    ///
    /// #[windlass::actor::messages]
    /// impl Till {
    ///     pub fn take<M: Into<u32> + Send>(&mut self, money: M) {}
    /// }
    /// ```
    pub use windlass_macros::messages;
}

/// Dataflow graphs: files that are checked, compiled, run and explained (feature `graph`).
#[cfg(feature = "graph")]
pub use windlass_graph as graph;

/// Component types for graphs: files, sockets, HTTP, expressions, windows, commands (feature
/// `components`).
#[cfg(feature = "components")]
pub use windlass_components as components;

/// Guest VMs: the trait, the reactor, preemption, record and replay (feature `vm`).
#[cfg(feature = "vm")]
pub use windlass_vm as vm;

/// Lua: preempted, supervised, sandboxed processes, and components of graphs (feature `lua`).
#[cfg(feature = "lua")]
pub use windlass_lua as lua;

/// HTTP servers and clients (feature `http`).
#[cfg(feature = "http")]
pub use windlass_http as http;

/// Seeing inside: snapshots, entities, events, stalls.
pub mod observe {
    pub use windlass_core::observe::{
        Event, EventKind, PoolSnapshot, Recording, Stall, StuckWorker, WorkerSnapshot, WorkerState,
    };
    pub use windlass_runtime::BlockingSnapshot;
    pub use windlass_runtime::observe::{
        Cursor, Entity, Observe, Page, Query, RuntimeSnapshot, Sample, SampleKind, SourceSnapshot,
    };
}

/// What the macros expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use windlass_macros::{join_in, select_in, try_join_in};
    pub use windlass_runtime::coop::poll_budget;

    /// Returns the branch at which a fair `select!` begins.
    pub fn start(branches: usize) -> usize {
        (windlass_core::sync::random() % branches as u64) as usize
    }

    /// The branch at a place of the round.
    pub fn wrap(place: usize, branches: usize) -> usize {
        place % branches
    }

    /// What a simulated test may return.
    pub trait Outcome {
        /// Panics if it is a failure.
        fn check(self);
    }

    impl Outcome for () {
        fn check(self) {}
    }

    impl<T, E: std::fmt::Debug> Outcome for Result<T, E> {
        fn check(self) {
            if let Err(error) = self {
                panic!("the test returned an error: {error:?}");
            }
        }
    }
}

/// An error of any kind, for programs that only report it.
pub type Error = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A result whose error can be any error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The page for those who come from tokio: its samples are compiled and run.
#[cfg(all(doctest, feature = "test-util"))]
#[doc = include_str!("../../../docs/adopt/porting.md")]
mod porting {}
