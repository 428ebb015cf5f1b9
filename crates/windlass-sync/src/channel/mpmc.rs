//! Many senders, many receivers; each value goes to one of them.
//!
//! ```
//! use windlass_sync::channel::mpmc;
//!
//! # windlass_core::block_on(async {
//! let (jobs, worker) = mpmc::buffered(8);
//! let other_worker = worker.clone();
//! jobs.send("sweep").await?;
//! jobs.send("scrub").await?;
//! assert_eq!(worker.recv().await, Some("sweep"));
//! assert_eq!(other_worker.recv().await, Some("scrub"));
//! # Ok::<(), mpmc::error::SendError<&str>>(())
//! # }).unwrap();
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use windlass_core::sync::Arc;

use super::core::{Core, Kind};
use super::error::TryRecvError;
use crate::wait_list::{Node, Status};

pub use super::permit::{OwnedPermit, Permit, PermitIterator};
pub use super::sender::{Closed, Send, Sender};
pub use super::weak_sender::WeakSender;

/// What can go wrong with a channel.
pub mod error {
    pub use crate::channel::error::{SendError, TryRecvError, TrySendError};
    pub use crate::channel::within::{SendTimeoutError, SendWithinError};
}

/// A channel without a buffer: a send ends when a receiver takes the value from its hand.
pub fn rendezvous<T>() -> (Sender<T>, Receiver<T>) {
    channel(Kind::Bounded(0))
}

/// A channel that keeps up to `capacity` values; a send waits while it is full.
///
/// # Panics
/// If `capacity` is 0: that is [`rendezvous`].
#[track_caller]
pub fn buffered<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel(super::bounded(capacity))
}

/// A channel that keeps the newest value only; a send never waits, and replaces a value that was
/// not taken.
pub fn conflated<T>() -> (Sender<T>, Receiver<T>) {
    channel(Kind::Conflated)
}

/// A channel that keeps every value; a send never waits, and nothing limits the memory it uses.
pub fn unlimited<T>() -> (Sender<T>, Receiver<T>) {
    channel(Kind::Unlimited)
}

fn channel<T>(kind: Kind) -> (Sender<T>, Receiver<T>) {
    let core = Arc::new(Core::new(kind));
    let sender = Sender { core: core.clone() };
    let receiver = Receiver { core, node: None };
    (sender, receiver)
}

/// Receives from a channel; clones compete for its values. The last one that is dropped closes it.
pub struct Receiver<T> {
    core: Arc<Core<T>>,
    /// Where `poll_recv` waits; made when it first has to. Not shared: `&mut self` is needed.
    node: Option<Pin<Box<Node<Option<T>>>>>,
}

impl<T> Receiver<T> {
    /// Takes the oldest value, and waits for one if there is none; receivers are served in the
    /// order in which they came. None says that the channel is closed and empty.
    ///
    /// Cancel-safe: a value that reached a dropped future goes to the next receiver, or back to the
    /// front of the channel.
    pub fn recv(&self) -> Recv<'_, T> {
        Recv {
            core: &self.core,
            node: Node::new(None),
        }
    }

    /// Takes the oldest value if there is one, also from the hand of a sender that waits.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.core.try_take(|state, wakes| state.take(wakes))
    }

    /// Blocks this thread until there is a value.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        windlass_core::block_on(self.recv())
    }

    /// Takes the oldest value; what [`Stream`] is made of.
    ///
    /// A receiver that returned pending keeps its place in the queue until it is polled again or
    /// dropped, and a value may be handed to it meanwhile. Where the wait may be given up, use
    /// [`Receiver::recv`].
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let node = self.node.get_or_insert_with(|| Box::pin(Node::new(None)));
        // SAFETY: the node is ours and pinned by its box, and our drop takes it out.
        unsafe {
            self.core
                .poll_recv(node, cx, |state, wakes| state.take(wakes))
        }
    }

    /// Closes the channel: sends fail from now on, those that wait get their values back, and
    /// receivers get what is left.
    pub fn close(&self) {
        self.core.close();
    }

    /// True once the channel was closed, or all its senders are gone. Values may be left.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Values in the buffer; those in the hands of senders that wait do not count.
    pub fn len(&self) -> usize {
        self.core.buffered()
    }

    /// True if the buffer is empty.
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

    /// True if both receive from the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.core.receivers.add();
        Receiver {
            core: self.core.clone(),
            node: None,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Some(node) = &self.node {
            // SAFETY: the node is ours.
            if let Some(value) = unsafe { self.core.cancel_recv(node) } {
                self.core.put_back(value);
            }
        }
        self.core.drop_receiver();
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
    core: &'a Core<T>,
    node: Node<Option<T>>,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is ours and pinned, and our drop takes it out.
        unsafe {
            this.core
                .poll_recv(&this.node, cx, |state, wakes| state.take(wakes))
        }
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.node.status() == Status::Idle {
            return;
        }
        // SAFETY: the node is ours.
        if let Some(value) = unsafe { self.core.cancel_recv(&self.node) } {
            self.core.put_back(value);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Receiver", f)
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Recv", f)
    }
}
