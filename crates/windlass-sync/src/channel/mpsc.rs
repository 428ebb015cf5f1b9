//! Many senders, one receiver.
//!
//! The receiver takes values out of the channel in batches and hands them out without a lock; for
//! all other code they are still in the channel, and count against its capacity.
//!
//! ```
//! use windlass_sync::channel::mpsc;
//!
//! # windlass_core::block_on(async {
//! let (sender, mut receiver) = mpsc::channel(8);
//! sender.send("hello").await?;
//! drop(sender);
//! assert_eq!(receiver.recv().await, Some("hello"));
//! assert_eq!(receiver.recv().await, None);
//! # Ok::<(), mpsc::error::SendError<&str>>(())
//! # }).unwrap();
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use windlass_core::sync::Arc;
use windlass_core::task::spend;

use super::core::{Core, Kind};
use super::error::{SendError, TryRecvError};
use crate::wait_list::Status;

pub use super::permit::{OwnedPermit, Permit, PermitIterator};
pub use super::sender::{Closed, Send, Sender};
pub use super::weak_sender::WeakSender;

/// What can go wrong with a channel.
pub mod error {
    pub use crate::channel::error::{SendError, TryRecvError, TrySendError};
    pub use crate::channel::within::{SendTimeoutError, SendWithinError};
}

/// A channel without a buffer: a send ends when the receiver takes the value from its hand.
pub fn rendezvous<T>() -> (Sender<T>, Receiver<T>) {
    new(Kind::Bounded(0))
}

/// A channel that keeps up to `capacity` values; a send waits while it is full.
///
/// # Panics
/// If `capacity` is 0: that is [`rendezvous`].
#[track_caller]
pub fn buffered<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    new(super::bounded(capacity))
}

/// Makes a bounded channel: [`buffered`], under the name that tokio gives it.
///
/// # Panics
/// If `capacity` is 0: that is [`rendezvous`].
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    buffered(capacity)
}

/// A channel that keeps the newest value only; a send never waits, and replaces a value that was
/// not taken.
pub fn conflated<T>() -> (Sender<T>, Receiver<T>) {
    new(Kind::Conflated)
}

/// A channel that keeps every value; a send never waits, and nothing limits the memory it uses.
pub fn unlimited<T>() -> (Sender<T>, Receiver<T>) {
    new(Kind::Unlimited)
}

/// An [`unlimited`] channel whose `send` is a plain function, under the name that tokio gives it.
///
/// ```
/// use windlass_sync::channel::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// sender.send(7).unwrap();
/// assert_eq!(receiver.try_recv(), Ok(7));
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = unlimited();
    (UnboundedSender(sender), UnboundedReceiver(receiver))
}

fn new<T>(kind: Kind) -> (Sender<T>, Receiver<T>) {
    let core = Arc::new(Core::new(kind));
    let sender = Sender { core: core.clone() };
    let receiver = Receiver {
        core,
        batch: VecDeque::new(),
    };
    (sender, receiver)
}

/// The receiving end of a channel. When it is dropped, the channel is closed and what is in it is
/// dropped too.
pub struct Receiver<T> {
    core: Arc<Core<T>>,
    /// Taken out of the channel, but still counted in it. Empty whenever we wait.
    batch: VecDeque<T>,
}

impl<T> Receiver<T> {
    /// Takes the oldest value, and waits for one if there is none. None says that the channel is
    /// closed and empty.
    ///
    /// Cancel-safe: a value that reached a dropped future is the next one received.
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv { receiver: self }
    }

    /// Takes up to `limit` values at once and appends them; gives how many there were. 0 says that
    /// the channel is closed and empty (or that `limit` is 0).
    ///
    /// Cancel-safe: it waits only while nothing was taken.
    pub async fn recv_many(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        let Some(first) = self.recv().await else {
            return 0;
        };
        values.push(first);
        1 + self.take_more(values, limit - 1)
    }

    /// Takes the oldest value if there is one, also from the hand of a sender that waits.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        // A future that was forgotten instead of dropped may have been handed a value.
        self.stop_waiting();
        match self.take_from_batch() {
            Some(value) => Ok(value),
            None => {
                let Receiver { core, batch } = self;
                core.try_take(|state, wakes| core.take_batch(state, wakes, batch))
            }
        }
    }

    /// Blocks this thread until there is a value.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        windlass_core::block_on(self.recv())
    }

    /// Blocks this thread until there is a value, and takes up to `limit`; see
    /// [`recv_many`](Receiver::recv_many).
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        windlass_core::block_on(self.recv_many(values, limit))
    }

    /// Polls for what [`recv_many`](Receiver::recv_many) awaits.
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        values: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        let Some(first) = ready!(self.poll_recv(cx)) else {
            return Poll::Ready(0);
        };
        values.push(first);
        Poll::Ready(1 + self.take_more(values, limit - 1))
    }

    /// Appends values that are there, and returns how many.
    fn take_more(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        let mut taken = 0;
        while taken < limit
            && let Ok(value) = self.try_recv()
        {
            values.push(value);
            taken += 1;
        }
        taken
    }

    /// Takes the oldest value; what [`Stream`] is made of.
    ///
    /// After it returned pending, the receiver waits until it is polled again or dropped; a sender
    /// may hand it a value meanwhile.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if !self.batch.is_empty() {
            let spent = ready!(spend(cx));
            if let Some(value) = self.take_from_batch() {
                spent.made_progress();
                return Poll::Ready(Some(value));
            }
        }
        let Receiver { core, batch } = self;
        // SAFETY: the core's node is the one receiver's, pinned by the `Arc`, and our drop takes it
        // out.
        unsafe {
            core.poll_recv(&core.receiver, cx, |state, wakes| {
                core.take_batch(state, wakes, batch)
            })
        }
    }

    /// Closes the channel: sends fail from now on, those that wait get their values back, and what
    /// is left can be received.
    pub fn close(&mut self) {
        self.core.close();
    }

    /// True once the channel was closed, or all its senders are gone. Values may be left.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Values in the channel; those in the hands of senders that wait do not count.
    pub fn len(&self) -> usize {
        self.batch.len() + self.core.buffered()
    }

    /// True if no value is in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many values can be sent now without waiting; `usize::MAX` without a limit.
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// Returns how many values the channel keeps; `usize::MAX` without a limit. A rendezvous
    /// keeps 0.
    pub fn max_capacity(&self) -> usize {
        self.core.max_capacity()
    }

    /// Returns the number of senders.
    pub fn sender_strong_count(&self) -> usize {
        self.core.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.core.weak_senders.get()
    }

    #[inline]
    fn take_from_batch(&mut self) -> Option<T> {
        let value = self.batch.pop_front()?;
        self.core.batch_shrank();
        Some(value)
    }

    /// Leaves the queue; a value that was handed over is the next one received.
    fn stop_waiting(&mut self) {
        if self.core.receiver.status() == Status::Idle {
            return;
        }
        // SAFETY: the core's node is the one receiver's.
        if let Some(value) = unsafe { self.core.cancel_recv(&self.core.receiver) } {
            self.batch.push_front(value);
            self.core.batch_grew();
        }
    }
}

/// The values in the batch are moved, never pinned.
impl<T> Unpin for Receiver<T> {}

// SAFETY: no method of a shared receiver gives out, reads or drops a value of the batch; the core
// may be shared as it is.
unsafe impl<T: std::marker::Send> Sync for Receiver<T> {}

// As the core of the channel: values are moved and never touched.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.stop_waiting();
        self.core.drop_receiver();
        super::drop_nested(std::mem::take(&mut self.batch));
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

/// The future of [`Receiver::recv`].
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.receiver.poll_recv(cx)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.stop_waiting();
    }
}

/// The receiver of [`unbounded_channel`]; its methods are those of [`Receiver`].
///
/// A type of its own, as in tokio: programs implement traits for both.
pub struct UnboundedReceiver<T>(Receiver<T>);

impl<T> UnboundedReceiver<T> {
    /// Takes the oldest value; see [`Receiver::recv`]. Cancel-safe.
    pub fn recv(&mut self) -> Recv<'_, T> {
        self.0.recv()
    }

    /// Takes up to `limit` values; see [`Receiver::recv_many`]. Cancel-safe.
    pub async fn recv_many(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        self.0.recv_many(values, limit).await
    }

    /// Takes the oldest value if there is one.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.0.try_recv()
    }

    /// Blocks this thread until there is a value.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        self.0.blocking_recv()
    }

    /// Blocks this thread until there is a value, and takes up to `limit`.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, values: &mut Vec<T>, limit: usize) -> usize {
        self.0.blocking_recv_many(values, limit)
    }

    /// Polls for what [`recv`](UnboundedReceiver::recv) awaits.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }

    /// Polls for what [`recv_many`](UnboundedReceiver::recv_many) awaits.
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        values: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.0.poll_recv_many(cx, values, limit)
    }

    /// Closes the channel: sends fail from now on, and what is left can be received.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// True once the channel was closed, or all its senders are gone. Values may be left.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns the number of values in the channel.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no value is in the channel.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of senders.
    pub fn sender_strong_count(&self) -> usize {
        self.0.sender_strong_count()
    }

    /// Returns the number of weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.0.sender_weak_count()
    }
}

/// The same channel as one whose receiver knows limits, too.
impl<T> From<UnboundedReceiver<T>> for Receiver<T> {
    fn from(receiver: UnboundedReceiver<T>) -> Receiver<T> {
        receiver.0
    }
}

impl<T> Stream for UnboundedReceiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.core.debug("UnboundedReceiver", f)
    }
}

/// Sends into an [`unbounded_channel`]; clones send into the same one.
pub struct UnboundedSender<T>(Sender<T>);

impl<T> UnboundedSender<T> {
    /// Sends a value; never waits. An error hands it back: the channel is closed.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0
            .try_send(value)
            .map_err(|refused| SendError(refused.into_inner()))
    }

    /// Closes the channel: sends fail from now on, and what is left can be received.
    pub fn close(&self) {
        self.0.close();
    }

    /// True once the channel was closed, or its receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until the channel is closed or its receiver is gone. Cancel-safe.
    pub fn closed(&self) -> Closed<'_, T> {
        self.0.closed()
    }

    /// Makes a sender that does not keep the channel open.
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender(self.0.downgrade())
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.0.strong_count()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }

    /// True if both send into the same channel.
    pub fn same_channel(&self, other: &UnboundedSender<T>) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        UnboundedSender(self.0.clone())
    }
}

/// Gives an [`UnboundedSender`] while there is another one; does not keep the channel open.
pub struct WeakUnboundedSender<T>(WeakSender<T>);

impl<T> WeakUnboundedSender<T> {
    /// Returns a sender; none if the last one is gone.
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.0.upgrade().map(UnboundedSender)
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.0.strong_count()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        WeakUnboundedSender(self.0.clone())
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakUnboundedSender").field(&self.0).finish()
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.core.debug("UnboundedSender", f)
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Receiver", f)
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.receiver.core.debug("Recv", f)
    }
}
