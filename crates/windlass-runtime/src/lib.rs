//! The runtime on the engine: builder, handles, blocking pool, cancellation, groups, diagnostics.
//!
//! Applications use the `windlass` crate, which re-exports all of this.

mod blocking;
mod builder;
mod cancel;
mod diagnose;
mod driver;
mod group;
mod handle;
pub mod net;
mod os;
mod place;
mod runtime;
pub mod simulator;
pub mod task;
pub mod time;

pub use blocking::{BlockingSnapshot, SpawnBlockingError, StuckJob};
pub use builder::{BuildError, Builder, Spin};
pub use cancel::{CancellationToken, Cancelled, DropGuard};
pub use diagnose::RuntimeSnapshot;
pub use group::{ChildError, GroupClosed, TaskGroup};
pub use handle::{EnterGuard, Handle, NoRuntime, TrySpawnError, spawn, spawn_blocking};
pub use runtime::{Runtime, ShutdownReport};
