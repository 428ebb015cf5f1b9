//! The runtime on the engine: builder, handles, time, driver, locks, channels, cancellation, groups,
//! simulator, diagnostics.
//!
//! Applications use the `windlass` crate, which re-exports all of this. The model checkers build
//! the locks, the channels, the timers and the word of a resource's readiness only: the rest starts
//! real threads or asks the kernel.

/// What the model checkers leave out.
macro_rules! outside_of_models {
    ($($item:item)*) => { $(#[cfg(not(any(windlass_loom, windlass_shuttle)))] $item)* };
}

pub mod channel;
pub mod sync;
pub mod time;

outside_of_models! {
    mod blocking;
    mod builder;
    mod cancel;
    pub mod command;
    mod concurrent;
    pub mod coroutine;
    mod diagnose;
    pub mod dispatch;
    mod driver;
    pub mod fork_join;
    pub mod front;
    pub mod fs;
    mod graceful;
    mod group;
    mod handle;
    mod limit;
    mod narrate;
    pub mod net;
    mod os;
    mod place;
    mod runtime;
    pub mod signal;
    pub mod simulator;
    pub mod task;
    mod task_local;
    #[cfg(feature = "tracing")]
    mod task_span;
    #[cfg(feature = "tokio-guest")]
    mod tokio_guest;
    #[cfg(feature = "tokio-io")]
    mod tokio_io;
    mod waker_id;
    mod woken;

    pub use blocking::{BlockingSnapshot, SpawnBlockingError, StuckJob};
    pub use builder::{Backend, BuildError, Builder, SchedPolicy, Spin};
    pub use cancel::{CancellationToken, Cancelled, DropGuard};
    pub use concurrent::{join_all, race};
    pub use diagnose::RuntimeSnapshot;
    pub use graceful::{Graceful, GracefulReport};
    pub use group::{ChildError, GroupClosed, SupervisorGroup, TaskGroup};
    pub use handle::{EnterGuard, Handle, NoRuntime, TrySpawnError, spawn, spawn_blocking};
    pub use limit::Limit;
    pub use runtime::{Runtime, ShutdownReport};
    pub use windlass_core::sched::ResizeError;
    pub use task_local::{NotInScope, Scoped, TaskLocal};
    #[cfg(feature = "tokio-guest")]
    pub use tokio_guest::{GuestError, WithTokio, try_with_tokio, with_tokio};
}

/// What the macros expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use windlass_core::context::Lent;
}
