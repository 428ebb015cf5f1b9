//! The newest value, with a version: receivers see that it changed, not every change.
//!
//! ```
//! use windlass_sync::channel::watch;
//!
//! # windlass_core::block_on(async {
//! let (sender, mut receiver) = watch::channel("starting");
//! sender.send("running")?;
//! receiver.changed().await.unwrap();
//! assert_eq!(*receiver.borrow_and_update(), "running");
//! # Ok::<(), watch::error::SendError<&str>>(())
//! # }).unwrap();
//! ```
//!
//! # The version One word, `version << 1 | CLOSED`. The version grows under the value's write lock,
//! so a thread that holds a read lock sees a value and its version together. Receivers compare it
//! with the version that they have seen: without any lock as long as nothing has changed and they
//! do not have to wait.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use windlass_core::task::{BudgetUnit, spend};

use self::error::{RecvError, SendError};
use super::end_count::EndCount;
use crate::wait_list::{Node, Notification, Status, WaitList, in_rounds};

const CLOSED: u64 = 1;
const VERSION: u64 = 2;

/// A channel that begins with `value`, which counts as seen.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        value: RwLock::new(ManuallyDrop::new(value)),
        version: AtomicU64::new(0),
        senders: EndCount::new(1),
        receivers: EndCount::new(1),
        waiters: Mutex::new(Waiters {
            receivers: WaitList::new(),
            senders: WaitList::new(),
        }),
    });
    let sender = Sender {
        shared: shared.clone(),
    };
    (sender, Receiver { shared, seen: 0 })
}

struct Shared<T> {
    /// Taken by the destructor, and by nothing else.
    value: RwLock<ManuallyDrop<T>>,
    version: AtomicU64,
    senders: EndCount,
    receivers: EndCount,
    waiters: Mutex<Waiters>,
}

struct Waiters {
    /// Wait for another version than the one in the payload, or for the close.
    receivers: WaitList<u64>,
    /// Wait until there is no receiver.
    senders: WaitList<()>,
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the channel is gone, and the value is not used again.
        let value = unsafe { ManuallyDrop::take(&mut *self.value.write()) };
        super::drop_nested(value);
    }
}

impl<T> Shared<T> {
    /// The version, or the news that nothing comes after it.
    fn version(&self) -> (u64, bool) {
        // Acquire: pairs with the Release in `modify` and in the drop of the last sender.
        let word = self.version.load(Ordering::Acquire);
        (word / VERSION, word & CLOSED != 0)
    }

    /// Changes the value and notifies every receiver, unless `change` says that it did not.
    ///
    /// A panic of `change` leaves the value as it is by then; no receiver is notified.
    fn modify<R>(&self, change: impl FnOnce(&mut T) -> (R, bool)) -> (R, bool) {
        let mut value = self.value.write();
        let (result, changed) = change(&mut value);
        if changed {
            // Release: pairs with the Acquire in `version`. Under the write lock: see the head.
            self.version.fetch_add(VERSION, Ordering::Release);
        }
        drop(value);
        if changed {
            self.notify_receivers();
        }
        (result, changed)
    }

    /// Notifies those who wait for another version than the one they have seen.
    fn notify_receivers(&self) {
        let (version, closed) = self.version();
        in_rounds(&self.waiters, |waiters, wakes| {
            let due = |seen: &u64| closed || *seen < version;
            waiters
                .receivers
                .notify_while(Notification::Served, wakes, due);
        });
    }

    fn subscribe(self: &Arc<Self>) -> Receiver<T> {
        self.receivers.add();
        Receiver {
            shared: self.clone(),
            seen: self.version().0,
        }
    }
}

/// Changes the value; clones change the same one. The last one that is dropped closes the channel.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Makes a channel that begins with `init`, without a receiver.
    pub fn new(init: T) -> Sender<T> {
        channel(init).0
    }

    /// Makes `value` the newest one. If there is no receiver, it comes back and nothing changes.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if !self.shared.receivers.any() {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Makes `value` the newest one, also without receivers; gives the one before.
    pub fn send_replace(&self, value: T) -> T {
        self.shared
            .modify(|place| (std::mem::replace(place, value), true))
            .0
    }

    /// Changes the value in place, also without receivers.
    ///
    /// A panic of `modify` goes on; it leaves the value as it is by then, releases the lock and
    /// notifies no receiver.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.shared.modify(|value| (modify(value), true));
    }

    /// Changes the value in place; receivers are notified if `modify` says that it did. Gives what
    /// it said. A panic is treated as in [`Sender::send_modify`].
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        self.shared.modify(|value| ((), modify(value))).1
    }

    /// The value. It cannot change while the result is held: let go of it soon, never keep it
    /// across an await, and do not send while holding it.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref {
            value: self.shared.value.read(),
            changed: false,
        }
    }

    /// A receiver for which the value there is now counts as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.subscribe()
    }

    /// Returns the number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers.get()
    }

    /// Returns the number of senders.
    pub fn sender_count(&self) -> usize {
        self.shared.senders.get()
    }

    /// True while there is no receiver.
    pub fn is_closed(&self) -> bool {
        !self.shared.receivers.any()
    }

    /// Waits until there is no receiver. Cancel-safe.
    pub fn closed(&self) -> Closed<'_, T> {
        Closed {
            shared: &self.shared,
            node: Node::new(()),
        }
    }

    /// True if both change the same value.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Sender::new(T::default())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.add();
        Sender {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.remove() {
            // Release: pairs with the Acquire in `version`.
            self.shared.version.fetch_or(CLOSED, Ordering::Release);
            self.shared.notify_receivers();
        }
    }
}

/// Sees the newest value; clones have seen what this one has.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version seen last.
    seen: u64,
}

impl<T> Receiver<T> {
    /// The value; whether it counts as seen does not change. It cannot change while the result is
    /// held: let go of it soon, and never keep it across an await.
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let changed = self.shared.version().0 != self.seen;
        Ref { value, changed }
    }

    /// The value, which counts as seen from now on. For the result see [`Receiver::borrow`].
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let (version, _) = self.shared.version();
        let changed = std::mem::replace(&mut self.seen, version) != version;
        Ref { value, changed }
    }

    /// True if there is a value that was not seen. Takes no lock.
    ///
    /// # Errors
    /// If all senders are gone, also with a value that was not seen: `borrow_and_update` has it.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        match self.shared.version() {
            (_, true) => Err(RecvError(())),
            (version, false) => Ok(version != self.seen),
        }
    }

    /// Counts the value as not seen.
    pub fn mark_changed(&mut self) {
        self.seen = self.shared.version().0.wrapping_sub(1);
    }

    /// Counts the value as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.version().0;
    }

    /// Waits for a value that was not seen, and counts it as seen. An error says that all senders
    /// are gone and everything was seen.
    ///
    /// Cancel-safe: a dropped future has seen nothing.
    pub fn changed(&mut self) -> Changed<'_, T> {
        Changed {
            shared: &self.shared,
            seen: &mut self.seen,
            node: Node::new(0),
        }
    }

    /// Waits until the value, beginning with the one there is now, is what `wanted` asks for. It
    /// counts as seen. Cancel-safe: values looked at count as seen, and the newest is never missed.
    pub async fn wait_for(
        &mut self,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        // Before the first look only: a wait between a change and the look at it would lose that
        // change for `changed` if the future is dropped there.
        poll_fn(|cx| spend(cx).map(BudgetUnit::made_progress)).await;
        loop {
            let shared = &self.shared;
            // Before the value: what is sent after this look is reported by `changed`.
            let closed = shared.version().1;
            {
                let value = shared.value.read();
                let (version, _) = shared.version();
                let changed = std::mem::replace(&mut self.seen, version) != version;
                if wanted(&value) {
                    return Ok(Ref { value, changed });
                }
            }
            if closed {
                return Err(RecvError(()));
            }
            let seen = &mut self.seen;
            let node = Node::new(0);
            // An error is looked at above: the last value may have come with the close.
            let _ = Changed { shared, seen, node }.await;
        }
    }

    /// Blocks this thread until there is a value that was not seen.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_changed(&mut self) -> Result<(), RecvError> {
        windlass_core::block_on(self.changed())
    }

    /// True once all senders are gone; there may be a value that was not seen.
    pub fn is_closed(&self) -> bool {
        self.shared.version().1
    }

    /// True if both see the same value.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.add();
        Receiver {
            shared: self.shared.clone(),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.shared.receivers.remove() {
            in_rounds(&self.shared.waiters, |waiters, wakes| {
                waiters
                    .senders
                    .notify_while(Notification::Served, wakes, |()| true);
            });
        }
    }
}

/// A look at the value; it does not change meanwhile.
#[derive(Debug)]
#[must_use = "the value cannot change while this is held"]
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, ManuallyDrop<T>>,
    changed: bool,
}

impl<T> Ref<'_, T> {
    /// True if the receiver had not seen this value before; false for a sender.
    pub fn has_changed(&self) -> bool {
        self.changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// The future of [`Receiver::changed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Changed<'a, T> {
    shared: &'a Shared<T>,
    seen: &'a mut u64,
    node: Node<u64>,
}

impl<T> Changed<'_, T> {
    fn look(&mut self) -> Poll<Result<(), RecvError>> {
        match self.shared.version() {
            (version, _) if version != *self.seen => {
                *self.seen = version;
                Poll::Ready(Ok(()))
            }
            (_, true) => Poll::Ready(Err(RecvError(()))),
            (_, false) => Poll::Pending,
        }
    }

    /// Looks once more under the waiters' lock, and waits. Who changes the version afterwards takes
    /// that lock and finds us.
    fn look_or_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RecvError>> {
        let waker = cx.waker().clone();
        let mut waiters = self.shared.waiters.lock();
        let looked = self.look();
        if looked.is_ready() {
            drop(waiters);
            return looked;
        }
        // SAFETY: rule 4: the node is ours and idle.
        unsafe { self.node.payload(|seen| *seen = *self.seen) };
        // SAFETY: the node is pinned in this future, whose drop takes it out; it is idle.
        unsafe { waiters.receivers.push(&self.node, Some(waker)) };
        Poll::Pending
    }
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let spent = ready!(spend(cx));
        // SAFETY: the node is not moved out of the pinned future.
        let this = unsafe { self.get_unchecked_mut() };
        if this.node.status() != Status::Idle {
            let lock = &this.shared.waiters;
            // SAFETY: the node is ours and was pushed into this list.
            ready!(unsafe {
                this.node
                    .poll_notified(cx, lock, |waiters| &mut waiters.receivers)
            });
            this.node.reset();
        }
        let looked = match this.look() {
            Poll::Ready(looked) => looked,
            Poll::Pending => ready!(this.look_or_wait(cx)),
        };
        spent.made_progress();
        Poll::Ready(looked)
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        let lock = &self.shared.waiters;
        // SAFETY: the node is ours and was pushed, if at all, into this list.
        unsafe { self.node.withdraw(lock, |waiters| &mut waiters.receivers) };
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    shared: &'a Shared<T>,
    node: Node<()>,
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        let lock = &this.shared.waiters;
        if this.node.status() == Status::Idle {
            let waker = cx.waker().clone();
            let mut waiters = lock.lock();
            // Under the lock: the last receiver takes it after it has counted itself out.
            if this.shared.receivers.any() {
                // SAFETY: the node is pinned in this future, whose drop takes it out; it is idle.
                unsafe { waiters.senders.push(&this.node, Some(waker)) };
                return Poll::Pending;
            }
            drop(waiters);
        } else {
            // SAFETY: the node is ours and was pushed into this list.
            ready!(unsafe {
                this.node
                    .poll_notified(cx, lock, |waiters| &mut waiters.senders)
            });
            this.node.reset();
        }
        spent.made_progress();
        Poll::Ready(())
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        let lock = &self.shared.waiters;
        // SAFETY: the node is ours and was pushed, if at all, into this list.
        unsafe { self.node.withdraw(lock, |waiters| &mut waiters.senders) };
    }
}

impl<T> Shared<T> {
    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, closed) = self.version();
        f.debug_struct(name)
            .field("version", &version)
            .field("closed", &closed)
            .field("receivers", &self.receivers)
            .finish()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.debug("Sender", f)
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.debug("Receiver", f)
    }
}

impl<T> fmt::Debug for Changed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.debug("Changed", f)
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.debug("Closed", f)
    }
}

/// What can go wrong with a watch channel.
pub mod error {
    use std::error::Error;
    use std::fmt;

    pub use crate::channel::error::SendError;

    /// All senders are gone, and everything was seen.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}
}
