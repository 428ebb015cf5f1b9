//! Task groups: children that end before the group does.
//!
//! A group has one parameter, the output of its children, and takes any future with that output.
//! What an output means is asked where the group is joined: `join` waits for values, `try_join`
//! for results whose first error cancels the rest, as `join!` and `try_join!` do.
//!
//! Rejected: a trait `GroupOutput<T, E>`, implemented for every `T` and for every `Result<T, E>`.
//! The two do not overlap, but the compiler cannot choose between them, so each group of results
//! needs its types written out. Rejected: a second constructor for groups of results. A group that
//! was made with the wrong one compiles, and its errors cancel nothing; so does this one if it is
//! joined with the wrong method, but the choice is where the results are used. Rejected: a `spawn`
//! that refuses a child of a cancelled group: every caller unwrapped it.

use std::fmt;
use std::future::{Future, pending};
use std::panic::Location;

use windlass_core::task::{AbortHandle, JoinError, Options};

use crate::handle::Handle;
use crate::join_set::JoinSet;
use windlass_sync::CancellationToken;
use windlass_sync::time::inherit_deadline;

/// Runs children together that end before the group does. The first child that panics cancels the
/// others, and so does the first error in [`try_join`](TaskGroup::try_join).
///
/// Dropping the group cancels the children without waiting for them.
///
/// ```
/// use windlass_runtime::{Runtime, TaskGroup};
///
/// let runtime = Runtime::new()?;
/// let total: u64 = runtime.block_on(async {
///     let mut group = TaskGroup::new();
///     for part in 0..4u64 {
///         group.spawn(async move { part * 10 });
///     }
///     Ok::<_, windlass_runtime::task::JoinError>(group.join().await?.into_iter().sum())
/// })?;
/// assert_eq!(total, 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With children that can fail:
///
/// ```
/// use windlass_runtime::{ChildError, Runtime, TaskGroup};
///
/// async fn page(number: u32) -> Result<u32, String> {
///     if number == 2 { Err(format!("no page {number}")) } else { Ok(number) }
/// }
///
/// let runtime = Runtime::new()?;
/// let failed = runtime.block_on(async {
///     let mut group = TaskGroup::new();
///     for number in 0..4 {
///         group.spawn(page(number));
///     }
///     group.try_join().await
/// });
/// assert!(matches!(failed, Err(ChildError::Failed(text)) if text == "no page 2"));
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct TaskGroup<T> {
    handle: Handle,
    token: CancellationToken,
    children: JoinSet<T>,
}

/// How a child of a group failed.
#[derive(Debug)]
pub enum ChildError<E> {
    /// The child returned an error.
    Failed(E),
    /// The child panicked.
    Panicked(JoinError),
    /// The child was cancelled.
    Cancelled(JoinError),
}

impl<E> ChildError<E> {
    /// Makes one result of how a child ended and of what it returned.
    ///
    /// ```
    /// use windlass_runtime::{ChildError, Runtime, SupervisorGroup};
    ///
    /// let runtime = Runtime::new()?;
    /// let ended = runtime.block_on(async {
    ///     let mut group = SupervisorGroup::new();
    ///     group.spawn(async { Err::<(), _>("broken") });
    ///     group.next().await.map(ChildError::flatten)
    /// });
    /// assert!(matches!(ended, Some(Err(ChildError::Failed("broken")))));
    /// # Ok::<(), windlass_runtime::BuildError>(())
    /// ```
    pub fn flatten<T>(ended: Result<Result<T, E>, JoinError>) -> Result<T, ChildError<E>> {
        match ended {
            Ok(output) => output.map_err(ChildError::Failed),
            Err(error) if error.is_panic() => Err(ChildError::Panicked(error)),
            Err(error) => Err(ChildError::Cancelled(error)),
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, ChildError::Cancelled(_))
    }
}

impl<E: fmt::Display> fmt::Display for ChildError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChildError::Failed(error) => write!(f, "a child of the group failed: {error}"),
            ChildError::Panicked(error) | ChildError::Cancelled(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ChildError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ChildError::Failed(error) => Some(error),
            ChildError::Panicked(error) | ChildError::Cancelled(error) => Some(error),
        }
    }
}

impl<T: Send + 'static> Default for TaskGroup<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + 'static> TaskGroup<T> {
    /// An empty group on the runtime this thread is in, or else on the process-wide default.
    pub fn new() -> Self {
        Self::on(&Handle::current_or_default(), &CancellationToken::new())
    }

    /// An empty group on `handle`'s runtime, cancelled together with `parent`.
    pub fn on(handle: &Handle, parent: &CancellationToken) -> Self {
        TaskGroup {
            handle: handle.clone(),
            token: parent.child(),
            children: JoinSet::new(),
        }
    }

    /// Starts a child. A group that has been cancelled drops the future before its first poll, and
    /// the child has ended as cancelled.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        let options = Options {
            location: Location::caller(),
            ..Options::here()
        };
        let task = if self.token.is_cancelled() {
            drop(future);
            self.handle.spawn_with(pending(), options)
        } else {
            self.handle.spawn_with(inherit_deadline(future), options)
        };
        let abort = self.children.insert(task);
        self.token.abort_on_cancel(abort.clone());
        abort
    }

    /// Children that have not been taken out yet.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The group's token: children may look at it, and cancelling it ends the group.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Cancels every child and refuses new ones.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// The next child that ends, in the order of ending; none when no child is left.
    ///
    /// Cancel-safe: a dropped wait loses no child.
    pub async fn next(&mut self) -> Option<Result<T, JoinError>> {
        self.children.join_next().await
    }

    /// Waits for all children and gives their outputs, in the order in which they ended. The first
    /// child that panics or is aborted cancels the others; when they have all ended it is reported,
    /// and a panic is preferred to a cancellation.
    ///
    /// An output that is an error is an output here; see [`try_join`](TaskGroup::try_join).
    pub async fn join(self) -> Result<Vec<T>, JoinError> {
        self.join_by(|ended| ended, |error| !error.is_panic()).await
    }

    /// Waits for all children. `result` tells how a child ended; `is_cancelled` says which failures
    /// others are preferred to.
    async fn join_by<V, F>(
        mut self,
        result: impl Fn(Result<T, JoinError>) -> Result<V, F>,
        is_cancelled: impl Fn(&F) -> bool,
    ) -> Result<Vec<V>, F> {
        let mut values = Vec::with_capacity(self.children.len());
        let mut first: Option<F> = None;
        while let Some(ended) = self.next().await {
            match result(ended) {
                Ok(value) => values.push(value),
                Err(error) => {
                    self.cancel();
                    if first
                        .as_ref()
                        .is_none_or(|first| is_cancelled(first) && !is_cancelled(&error))
                    {
                        first = Some(error);
                    }
                }
            }
        }
        match first {
            None => Ok(values),
            Some(error) => Err(error),
        }
    }
}

impl<T, E> TaskGroup<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
{
    /// Waits for all children. The first that returns an error, panics or is aborted cancels the
    /// others; when they have all ended it is reported, and a failure or panic is preferred to a
    /// cancellation. The values come in the order in which the children ended.
    pub async fn try_join(self) -> Result<Vec<T>, ChildError<E>> {
        self.join_by(ChildError::flatten, ChildError::is_cancelled)
            .await
    }
}

impl<T> Drop for TaskGroup<T> {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

impl<T> fmt::Debug for TaskGroup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup")
            .field("children", &self.children.len())
            .field("token", &self.token)
            .finish()
    }
}

/// Runs children together that do not affect each other: one that fails leaves its siblings alone.
///
/// `join` waits for all of them and gives every result. Dropping the group, or cancelling its
/// token, cancels all children.
///
/// ```
/// use windlass_runtime::{Runtime, SupervisorGroup};
///
/// let runtime = Runtime::new()?;
/// let results = runtime.block_on(async {
///     let mut group = SupervisorGroup::new();
///     for part in 0..4u64 {
///         let work = async move { if part == 2 { Err("broken") } else { Ok(part) } };
///         group.spawn(work);
///     }
///     group.join().await
/// });
/// assert_eq!(results.iter().filter(|ended| matches!(ended, Ok(Ok(_)))).count(), 3);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct SupervisorGroup<T>(TaskGroup<T>);

impl<T: Send + 'static> Default for SupervisorGroup<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + 'static> SupervisorGroup<T> {
    /// An empty group on the runtime this thread is in, or else on the process-wide default.
    pub fn new() -> Self {
        SupervisorGroup(TaskGroup::new())
    }

    /// An empty group on `handle`'s runtime, cancelled together with `parent`.
    pub fn on(handle: &Handle, parent: &CancellationToken) -> Self {
        SupervisorGroup(TaskGroup::on(handle, parent))
    }

    /// Starts a child. A group that has been cancelled drops the future before its first poll, and
    /// the child has ended as cancelled.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.0.spawn(future)
    }

    /// Children that have not been taken out yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The group's token: children may look at it, and cancelling it ends the group.
    pub fn token(&self) -> &CancellationToken {
        self.0.token()
    }

    /// Cancels every child and refuses new ones.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// The next child that ends, in the order of ending; none when no child is left. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<T, JoinError>> {
        self.0.next().await
    }

    /// Waits for all children and gives every result, in the order in which they ended.
    pub async fn join(mut self) -> Vec<Result<T, JoinError>> {
        let mut results = Vec::with_capacity(self.len());
        while let Some(ended) = self.next().await {
            results.push(ended);
        }
        results
    }
}

impl<T> fmt::Debug for SupervisorGroup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SupervisorGroup").field(&self.0).finish()
    }
}
