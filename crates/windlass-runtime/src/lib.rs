//! The runtime on the engine: builder, handles, driver, dispatchers, coroutines, fork-join, I/O,
//! groups, simulator, diagnostics.
//!
//! Applications use the `windlass` crate, which re-exports all of this. Locks, channels,
//! cancellation and timers are in `windlass-sync`.

mod blocking;
mod builder;
mod concurrent;
pub mod coop;
pub mod coroutine;
mod current_thread;
pub mod dispatch;
pub mod driver;
mod event_log;
pub mod fork_join;
pub mod frontend;
mod future_request;
mod graceful;
mod group;
mod handle;
mod hooks;
mod identity;
mod join_set;
mod local_runtime;
pub mod observe;
mod os;
mod ready_set;
mod runtime;
pub mod simulator;
pub mod task;
mod task_local;
#[cfg(feature = "tracing")]
mod task_span;
pub mod time;

pub use blocking::{BlockingSnapshot, SpawnBlockingError, StuckJob};
pub use builder::{Backend, BuildError, Builder, SchedPolicy, Spin};
pub use concurrent::{join_all, race};
pub use graceful::{Graceful, GracefulReport};
pub use group::{ChildError, SupervisorGroup, TaskGroup};
pub use handle::{EnterGuard, Handle, TryCurrentError, TrySpawnError, spawn, spawn_blocking};
pub use identity::{Id, RuntimeFlavor};
pub use local_runtime::{LocalOptions, LocalRuntime};
pub use observe::RuntimeSnapshot;
pub use runtime::{Runtime, ShutdownReport};
pub use task_local::{LocalKey, NotInScope, TaskLocalFuture};
pub use windlass_core::sched::ResizeError;
/// What the macros expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use windlass_core::context::FrameLocal;
}
