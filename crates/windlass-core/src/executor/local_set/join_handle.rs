//! Awaiting a local task.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::task::{AbortHandle, JoinError, JoinHandle};

/// Awaits a local task's output on its home thread.
pub struct LocalJoinHandle<T> {
    handle: JoinHandle<T>,
    /// `!Send`: the output must not leave its thread (rule 8).
    home: PhantomData<*const ()>,
}

impl<T> LocalJoinHandle<T> {
    pub(super) fn new(handle: JoinHandle<T>) -> LocalJoinHandle<T> {
        LocalJoinHandle {
            handle,
            home: PhantomData,
        }
    }

    /// Asks the task to end; see [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// A handle that can only abort, from any thread.
    pub fn abort_handle(&self) -> AbortHandle {
        self.handle.abort_handle()
    }

    /// True once the output (or the error) is there.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> Future for LocalJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(cx)
    }
}

/// The plain handle of a local task. It may leave the home thread if the output may:
/// `JoinHandle<T>` is `Send` only then.
impl<T> From<LocalJoinHandle<T>> for JoinHandle<T> {
    fn from(local: LocalJoinHandle<T>) -> JoinHandle<T> {
        local.handle
    }
}

impl<T> std::fmt::Debug for LocalJoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}
