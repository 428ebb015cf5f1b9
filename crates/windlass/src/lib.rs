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
//! Names are those a tokio user guesses: [`spawn`], [`JoinHandle`], [`task::yield_now`],
//! [`spawn_blocking`], [`task::LocalSet`]. What is different is written down: see
//! `docs/contracts/engine.md` for the order, delivery and cancellation that the engine promises.
#![forbid(unsafe_code)]

pub use windlass_io::{command, fs, net, signal};
pub use windlass_macros::{join, main, select, test, try_join};
pub use windlass_runtime::{
    Backend, BlockingSnapshot, BuildError, Builder, ChildError, EnterGuard, Graceful,
    GracefulReport, GroupClosed, Handle, NoRuntime, NotInScope, ResizeError, Runtime,
    RuntimeSnapshot, SchedPolicy, ShutdownReport, SpawnBlockingError, Spin, StuckJob,
    SupervisorGroup, TaskGroup, TaskLocal, TrySpawnError, coroutine, dispatch, fork_join, join_all,
    race, spawn, spawn_blocking, task, task_local, time,
};
pub use windlass_sync::{CancellationToken, Cancelled, DropGuard, Limit, channel};

/// The deterministic simulator: a runtime on one thread, with virtual time, seeded choices and a
/// simulated network.
pub mod simulator {
    pub use windlass_io::simulated::{DroppedDatagrams, Net, OnHost};
    pub use windlass_runtime::simulator::{ExpectPanics, Step, Trace, expect_panics, explore};
}

/// Locks and meeting points for tasks and plain threads, and the channels under the names that
/// tokio gives them.
pub mod sync {
    pub use windlass_sync::channel::{broadcast, mpmc, mpsc, oneshot, watch};
    pub use windlass_sync::lock::*;
}

#[cfg(feature = "tokio-guest")]
pub use windlass_tokio_guest::{GuestError, TokioCompat, WithTokio, try_with_tokio, with_tokio};

/// Processes: PIDs, mailboxes, commands, links, monitors, supervisors.
pub use windlass_actor as process;

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

pub use windlass_core::block_on;
pub use windlass_core::task::{AbortHandle, JoinError, JoinHandle};
pub use windlass_runtime::task::{shield, spawn_local, yield_now};

/// Seeing inside: snapshots, entities, events, stalls.
pub mod observe {
    pub use windlass_core::observe::{
        Event, EventKind, PoolSnapshot, Recording, Stall, StuckWorker, WorkerSnapshot, WorkerState,
    };
    pub use windlass_runtime::observe::{
        Cursor, Entity, Observe, Page, Query, Sample, SampleKind, SourceSnapshot,
    };
}

/// What the macros expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
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

/// What most programs import.
pub mod prelude {
    pub use crate::{
        CancellationToken, JoinHandle, Runtime, TaskGroup, spawn, spawn_blocking, yield_now,
    };
}

/// An error of any kind, for programs that only report it.
pub type Error = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A result whose error can be any error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
