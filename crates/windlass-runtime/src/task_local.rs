//! Values that belong to a task, not to a thread.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;
use windlass_core::context::FrameLocal;

/// Declares values that a future sees while it runs inside [`LocalKey::scope`].
///
/// ```
/// windlass_runtime::task_local! {
///     static REQUEST: u64;
/// }
///
/// windlass_core::block_on(async {
///     let seen = REQUEST.scope(7, async { REQUEST.with(|id| *id) });
///     assert_eq!(seen.await, 7);
///     assert!(REQUEST.try_with(|_| ()).is_err());
/// });
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty);* $(;)?) => {
        $($(#[$attribute])*
        $visibility static $name: $crate::LocalKey<$type> = {
            ::std::thread_local! {
                static VALUE: $crate::__private::FrameLocal<$type> =
                    const { $crate::__private::FrameLocal::new() };
            }
            $crate::LocalKey::__new(&VALUE)
        };)*
    };
}

/// A value that belongs to a task; made by [`task_local!`](crate::task_local).
pub struct LocalKey<T: 'static>(&'static thread::LocalKey<FrameLocal<T>>);

/// The code does not run inside a scope of this value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotInScope {
    _private: (),
}

impl fmt::Display for NotInScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task-local value is not set here: run the code inside its scope()")
    }
}

impl std::error::Error for NotInScope {}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(key: &'static thread::LocalKey<FrameLocal<T>>) -> Self {
        LocalKey(key)
    }

    /// Runs `future` with the value set. Tasks that it spawns do not inherit it.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            local: self,
            value: Some(value),
            future,
        }
    }

    /// Runs `f` with the value set.
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        FrameLocal::lend(self.0, &value, f)
    }

    /// Calls `f` with the value.
    ///
    /// # Panics
    /// Outside of its scope.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with the value, if it is set.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, NotInScope> {
        FrameLocal::with(self.0, |value| match value {
            Some(value) => Ok(f(value)),
            None => Err(NotInScope { _private: () }),
        })
    }

    /// A copy of the value.
    ///
    /// # Panics
    /// Outside of its scope.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// A copy of the value, if it is set.
    pub fn try_get(&'static self) -> Result<T, NotInScope>
    where
        T: Clone,
    {
        self.try_with(T::clone)
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey")
    }
}

pin_project! {
    /// The future of [`LocalKey::scope`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskLocalFuture<T: 'static, F> {
        local: &'static LocalKey<T>,
        // None once it was taken.
        value: Option<T>,
        #[pin]
        future: F,
    }
}

impl<T, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        match this.value {
            Some(value) => FrameLocal::lend(this.local.0, value, || future.poll(cx)),
            None => future.poll(cx),
        }
    }
}

impl<T, F> TaskLocalFuture<T, F> {
    /// Takes the value out; none if it was taken before. The future runs without it from then on.
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskLocalFuture")
    }
}
