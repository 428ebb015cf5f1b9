//! Task groups: children that end before the group does.

use std::fmt;
use std::future::Future;
use std::panic::Location;

use windlass_core::task::{AbortHandle, JoinError, Options};

use crate::handle::Handle;
use crate::join_set::JoinSet;
use windlass_sync::CancellationToken;
use windlass_sync::time::inherit_deadline;

/// Runs fallible children together: the first failure cancels the others, and `join` waits for all
/// of them before it reports it.
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
///         group.spawn(async move { Ok::<_, std::io::Error>(part * 10) }).unwrap();
///     }
///     group.join().await.unwrap().into_iter().sum()
/// });
/// assert_eq!(total, 60);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct TaskGroup<T, E> {
    handle: Handle,
    token: CancellationToken,
    children: JoinSet<Result<T, E>>,
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
    fn of(error: JoinError) -> Self {
        if error.is_panic() {
            ChildError::Panicked(error)
        } else {
            ChildError::Cancelled(error)
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

/// The group has been cancelled; the future is handed back.
pub struct GroupClosed<F>(pub F);

impl<F> fmt::Debug for GroupClosed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupClosed")
    }
}

impl<F> fmt::Display for GroupClosed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the group has been cancelled and takes no more children")
    }
}

impl<F> std::error::Error for GroupClosed<F> {}

impl<T, E> Default for TaskGroup<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E> TaskGroup<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
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

    /// Starts a child; refused once the group has been cancelled.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> Result<AbortHandle, GroupClosed<F>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let location = Location::caller();
        if self.token.is_cancelled() {
            return Err(GroupClosed(future));
        }
        let task = self.handle.spawn_with(
            inherit_deadline(future),
            Options {
                location,
                ..Options::here()
            },
        );
        let abort = self.children.insert(task);
        self.token.abort_on_cancel(abort.clone());
        Ok(abort)
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
    pub async fn next(&mut self) -> Option<Result<T, ChildError<E>>> {
        let ended = match self.children.join_next().await? {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(ChildError::Failed(error)),
            Err(error) => Err(ChildError::of(error)),
        };
        Some(ended)
    }

    /// Waits for all children. The first failure cancels the others; when they have all ended it is
    /// reported, and a failure or panic is preferred to a cancellation. The values come in the
    /// order in which the children ended.
    pub async fn join(mut self) -> Result<Vec<T>, ChildError<E>> {
        let mut values = Vec::with_capacity(self.children.len());
        let mut first: Option<ChildError<E>> = None;
        while let Some(ended) = self.next().await {
            match ended {
                Ok(value) => values.push(value),
                Err(error) => {
                    self.cancel();
                    if first
                        .as_ref()
                        .is_none_or(|first| first.is_cancelled() && !error.is_cancelled())
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

impl<T, E> Drop for TaskGroup<T, E> {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

impl<T, E> fmt::Debug for TaskGroup<T, E> {
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
///         group.spawn(work).unwrap();
///     }
///     group.join().await
/// });
/// assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct SupervisorGroup<T, E>(TaskGroup<T, E>);

impl<T, E> Default for SupervisorGroup<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E> SupervisorGroup<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    /// An empty group on the runtime this thread is in, or else on the process-wide default.
    pub fn new() -> Self {
        SupervisorGroup(TaskGroup::new())
    }

    /// An empty group on `handle`'s runtime, cancelled together with `parent`.
    pub fn on(handle: &Handle, parent: &CancellationToken) -> Self {
        SupervisorGroup(TaskGroup::on(handle, parent))
    }

    /// Starts a child; refused once the group has been cancelled.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> Result<AbortHandle, GroupClosed<F>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
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
    pub async fn next(&mut self) -> Option<Result<T, ChildError<E>>> {
        self.0.next().await
    }

    /// Waits for all children and gives every result, in the order in which they ended.
    pub async fn join(mut self) -> Vec<Result<T, ChildError<E>>> {
        let mut results = Vec::with_capacity(self.len());
        while let Some(ended) = self.next().await {
            results.push(ended);
        }
        results
    }
}

impl<T, E> fmt::Debug for SupervisorGroup<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SupervisorGroup").field(&self.0).finish()
    }
}
