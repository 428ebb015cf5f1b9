//! The runtime on the engine: builder, handles, blocking pool, cancellation, groups, diagnostics.
//!
//! Applications use the `windlass` crate, which re-exports all of this.

mod blocking;
mod builder;
mod cancel;
mod concurrent;
mod diagnose;
mod driver;
mod graceful;
mod group;
mod handle;
pub mod net;
mod os;
mod place;
mod runtime;
pub mod signal;
pub mod simulator;
pub mod task;
mod task_local;
pub mod time;

pub use blocking::{BlockingSnapshot, SpawnBlockingError, StuckJob};
pub use builder::{BuildError, Builder, Spin};
pub use cancel::{CancellationToken, Cancelled, DropGuard};
pub use concurrent::{join_all, race};
pub use diagnose::RuntimeSnapshot;
pub use graceful::{Graceful, GracefulReport};
pub use group::{ChildError, GroupClosed, SupervisorGroup, TaskGroup};
pub use handle::{EnterGuard, Handle, NoRuntime, TrySpawnError, spawn, spawn_blocking};
pub use runtime::{Runtime, ShutdownReport};
pub use task_local::{NotInScope, Scoped, TaskLocal};
