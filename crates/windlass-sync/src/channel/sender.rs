//! The sending half of mpmc and mpsc channels, and its futures.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::sync::Arc;

use super::core::{Core, Wanted};
use super::error::{SendError, TrySendError};
use super::weak_sender::WeakSender;
use crate::wait_list::{Node, Status};

/// Sends into a channel; clones send into the same one. The last one that is dropped closes it.
pub struct Sender<T> {
    pub(super) core: Arc<Core<T>>,
}

impl<T> Sender<T> {
    /// Sends a value, and waits for room if there is none; senders get in in the order in which
    /// they came. An error hands the value back: the channel is closed.
    ///
    /// Cancel-safe in the sense that a dropped send has either delivered its value or drops it;
    /// [`Send::cancel`] hands it back instead.
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send {
            core: &self.core,
            node: Node::new(Wanted::Send(value)),
        }
    }

    /// Sends a value if a receiver waits or there is room for it.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.core.try_send(value)
    }

    /// Blocks this thread until the value is sent.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        windlass_core::block_on(self.send(value))
    }

    /// Closes the channel: sends fail from now on, those that wait get their values back, and
    /// receivers get what is left.
    pub fn close(&self) {
        self.core.close();
    }

    /// True once the channel was closed, or all its receivers are gone.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Waits until the channel is closed or all its receivers are gone. Cancel-safe.
    pub fn closed(&self) -> Closed<'_, T> {
        Closed {
            core: &self.core,
            node: Node::new(()),
        }
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

    /// Makes a sender that does not keep the channel open.
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.core.clone())
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.core.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.core.weak_senders.get()
    }

    /// True if the channel keeps as many values as it may: `try_send` would hand the value back,
    /// unless a receiver waits.
    pub fn is_full(&self) -> bool {
        self.core.is_full()
    }

    /// True if both send into the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.core.senders.add();
        Sender {
            core: self.core.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.core.drop_sender();
    }
}

/// The future of [`Sender::send`].
#[must_use = "futures do nothing unless awaited"]
pub struct Send<'a, T> {
    core: &'a Core<T>,
    node: Node<Wanted<T>>,
}

impl<T> Send<'_, T> {
    /// Withdraws the send and hands its value back; none if it was delivered. The future must not
    /// be polled again.
    pub fn cancel(self: Pin<&mut Self>) -> Option<T> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is ours.
        unsafe { this.core.cancel_send(&this.node) }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is ours and pinned, our drop takes it out, and it began with the value.
        unsafe { this.core.poll_send(&this.node, cx) }
    }
}

impl<T> Drop for Send<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.node.status() != Status::Idle {
            // SAFETY: the node is ours.
            drop(unsafe { self.core.cancel_send(&self.node) });
        }
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    core: &'a Core<T>,
    node: Node<()>,
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is ours and pinned, and our drop takes it out.
        unsafe { this.core.poll_closed(&this.node, cx) }
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the node is ours.
        unsafe { self.core.cancel_watch(&self.node) };
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Sender", f)
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Send", f)
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Closed", f)
    }
}
