//! Cancellation tokens: a tree of any depth.
//!
//! Cancelling a node cancels everything below it, and nothing above. Waiters are woken outside of
//! every lock; the tree is walked and freed with loops, so that its depth is not limited by the
//! stack.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::task::{AbortHandle, spend};

use crate::waker_id::WakerId;

/// Asks every holder of a clone or a child of it to stop.
///
/// ```
/// use windlass_sync::CancellationToken;
///
/// let service = CancellationToken::new();
/// let request = service.child();
/// service.cancel();
/// assert!(request.is_cancelled());
/// ```
#[derive(Clone)]
pub struct CancellationToken(Arc<Node>);

struct Node {
    cancelled: AtomicBool,
    inner: Mutex<Inner>,
    parent: Option<Parent>,
}

struct Parent {
    node: Arc<Node>,
    key: u64,
}

#[derive(Default)]
struct Inner {
    next_key: u64,
    // Ordered by age: which waiter is notified first must not depend on a hash.
    children: BTreeMap<u64, Weak<Node>>,
    waiters: BTreeMap<u64, Waiter>,
}

enum Waiter {
    Task(Waker),
    Abort(AbortHandle),
}

impl Waiter {
    fn notify(self) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::Abort(task) => task.abort(),
        }
    }
}

impl Inner {
    fn key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancellationToken {
    /// A token without a parent.
    pub fn new() -> CancellationToken {
        CancellationToken(Arc::new(Node::new(false, None)))
    }

    /// A token that is cancelled with this one, but can also be cancelled alone.
    pub fn child(&self) -> CancellationToken {
        let mut inner = self.0.inner.lock();
        let key = inner.key();
        let parent = Parent {
            node: self.0.clone(),
            key,
        };
        // Under the lock: a cancellation either sees the child or has set the flag before.
        let cancelled = self.is_cancelled();
        let child = Arc::new(Node::new(cancelled, Some(parent)));
        inner.children.insert(key, Arc::downgrade(&child));
        CancellationToken(child)
    }

    /// True once this token or one above it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release store in `cancel`.
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Cancels this token and everything below it. Each waiter is notified exactly once.
    pub fn cancel(&self) {
        let mut nodes = vec![self.0.clone()];
        while let Some(node) = nodes.pop() {
            let mut inner = node.inner.lock();
            // Release: pairs with the Acquire load in `is_cancelled`.
            node.cancelled.store(true, Ordering::Release);
            let waiters = std::mem::take(&mut inner.waiters);
            nodes.extend(inner.children.values().filter_map(Weak::upgrade));
            drop(inner);
            waiters.into_values().for_each(Waiter::notify);
        }
    }

    /// Resolves when the token is cancelled. Cancel-safe: a dropped wait leaves nothing behind.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            token: self.clone(),
            key: None,
            waker: WakerId::NOBODY,
        }
    }

    /// Runs `future` until it ends or the token is cancelled, whichever comes first; the token wins
    /// a tie. A future that lost is dropped.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut cancelled = self.cancelled();
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            if Pin::new(&mut cancelled).poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Aborts `task` when the token is cancelled (at once if it is already).
    pub fn abort_on_cancel(&self, task: AbortHandle) {
        let mut inner = self.0.inner.lock();
        if self.is_cancelled() {
            drop(inner);
            return task.abort();
        }
        // Tasks that ended on their own need not be notified any more.
        let ended = |waiter: &Waiter| matches!(waiter, Waiter::Abort(task) if task.is_finished());
        if inner.waiters.len().is_power_of_two() {
            inner.waiters.retain(|_, waiter| !ended(waiter));
        }
        let key = inner.key();
        inner.waiters.insert(key, Waiter::Abort(task));
    }

    /// Cancels the token when the guard is dropped.
    pub fn drop_guard(self) -> DropGuard {
        DropGuard(Some(self))
    }
}

impl Node {
    fn new(cancelled: bool, parent: Option<Parent>) -> Node {
        Node {
            cancelled: AtomicBool::new(cancelled),
            inner: Mutex::default(),
            parent,
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A loop: a chain of a million tokens must not need a million stack frames.
        let mut parent = self.parent.take();
        while let Some(Parent { node, key }) = parent {
            node.inner.lock().children.remove(&key);
            parent = match Arc::into_inner(node) {
                Some(mut node) => node.parent.take(),
                None => None,
            };
        }
    }
}

/// The future of [`CancellationToken::cancelled`].
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    token: CancellationToken,
    key: Option<u64>,
    /// Whose waker is kept under the key.
    waker: WakerId,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = WakerId::of(cx.waker());
        if self.waker == waker && !self.token.is_cancelled() {
            // It is kept: a cancellation sets the flag before it takes the waiters.
            return Poll::Pending;
        }
        let node = self.token.0.clone();
        let mut inner = node.inner.lock();
        if self.token.is_cancelled() {
            drop(inner);
            self.key = None;
            self.waker = WakerId::NOBODY;
            return match spend(cx) {
                Poll::Ready(spent) => {
                    spent.made_progress();
                    Poll::Ready(())
                }
                Poll::Pending => Poll::Pending,
            };
        }
        let key = match self.key {
            Some(key) => key,
            None => inner.key(),
        };
        self.key = Some(key);
        self.waker = waker;
        let old = match inner.waiters.get_mut(&key) {
            Some(Waiter::Task(waker)) if waker.will_wake(cx.waker()) => None,
            _ => inner.waiters.insert(key, Waiter::Task(cx.waker().clone())),
        };
        drop(inner);
        // Dropped outside of the lock: a waker's drop may run anything.
        drop(old);
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waiter = self.token.0.inner.lock().waiters.remove(&key);
            drop(waiter);
        }
    }
}

/// Cancels its token when dropped.
#[derive(Debug)]
#[must_use = "dropping the guard cancels the token"]
pub struct DropGuard(Option<CancellationToken>);

impl DropGuard {
    /// The token, which is then not cancelled.
    pub fn disarm(mut self) -> CancellationToken {
        self.0.take().unwrap_or_default()
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken")
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled")
            .field("token", &self.token)
            .finish()
    }
}
