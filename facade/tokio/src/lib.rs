//! Windlass under tokio's name and in tokio's layout.
//!
//! A program that is built with this package in the place of tokio runs on Windlass. Modules
//! re-export what Windlass has with the same name and shape. Where a name or a signature differs,
//! a thin wrapper stands between. What Windlass lacks is not here.
//!
//! **Never publish this package**: its name belongs to tokio.

pub mod fs;
pub mod io;
mod macros;
pub mod net;
pub mod process;
pub mod runtime;
pub mod signal;
pub mod sync;
pub mod task;
pub mod time;

pub use task::spawn;
pub use windlass_macros::{tokio_main as main, tokio_test as test};

/// The paths that the macros expand to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use windlass_macros::{join_in, select_in, try_join_in};
    pub use windlass_runtime::coop::poll_budget;
    pub use windlass_runtime::task_local;

    /// Returns the branch at which a fair `select!` begins.
    pub fn start(branches: usize) -> usize {
        (windlass_core::sync::random() % branches as u64) as usize
    }

    /// Returns the branch at a place of the round.
    pub fn wrap(place: usize, branches: usize) -> usize {
        place % branches
    }
}
