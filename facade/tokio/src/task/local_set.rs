//! Local sets, with the runtime of this crate in their signatures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::executor::local_set::{self, RunUntil};

pub use windlass_core::executor::local_set::LocalEnterGuard;

use super::JoinHandle;
use crate::runtime::Runtime;

/// Starts a task on the local set that runs here.
///
/// # Panics
/// Outside of a local set.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    local_set::spawn_local(future)
}

/// Runs `!Send` futures on the thread that made it.
#[derive(Debug, Default)]
pub struct LocalSet(local_set::LocalSet);

impl LocalSet {
    /// Makes an empty set, at home on this thread.
    pub fn new() -> LocalSet {
        LocalSet::default()
    }

    /// Starts a task on this thread. It runs while the set is awaited.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.0.spawn_local(future)
    }

    /// Makes this set the one that [`spawn_local`] finds, until the guard is dropped.
    pub fn enter(&self) -> LocalEnterGuard {
        self.0.enter()
    }

    /// Awaits `future`, and runs the set's tasks meanwhile.
    pub fn run_until<F: Future>(&self, future: F) -> RunUntil<'_, F> {
        self.0.run_until(future)
    }

    /// Runs `future` on this thread, and the set's tasks meanwhile.
    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }
}

/// Runs the set's tasks until all of them have ended.
impl Future for LocalSet {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
