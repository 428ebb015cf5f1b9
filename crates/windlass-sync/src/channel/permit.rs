//! Places in a channel that are reserved before there is a value.
//!
//! A channel that is closed while permits are out goes on until they are gone: what they send is
//! received.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::sync::Arc;

use super::core::{Core, Wanted};
use super::error::{SendError, TrySendError};
use super::sender::Sender;
use crate::wait_list::{Node, Status};

impl<T> Sender<T> {
    /// Waits for room for one value, and keeps it for the permit. Senders that wait get in in the
    /// order in which they came.
    ///
    /// Cancel-safe: a dropped wait loses its place in the queue, and passes on what it was given.
    ///
    /// # Errors
    /// If the channel is closed.
    ///
    /// # Panics
    /// On a rendezvous channel: it has no room to reserve.
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.wait_for_places(1).await?;
        Ok(Permit { core: &self.core })
    }

    /// Waits for room for `places` values at once. Cancel-safe as [`Sender::reserve`].
    ///
    /// # Errors
    /// If the channel is closed, or never has room for so many.
    ///
    /// # Panics
    /// On a rendezvous channel: it has no room to reserve.
    pub async fn reserve_many(
        &self,
        places: usize,
    ) -> Result<PermitIterator<'_, T>, SendError<()>> {
        if places > self.max_capacity() {
            return Err(SendError(()));
        }
        self.wait_for_places(places).await?;
        Ok(PermitIterator {
            core: &self.core,
            left: places,
        })
    }

    /// Waits for room for one value as [`Sender::reserve`] does; the permit owns the sender, which
    /// comes back when the permit is used. Cancel-safe; the sender is dropped with the wait.
    ///
    /// # Errors
    /// If the channel is closed.
    ///
    /// # Panics
    /// On a rendezvous channel: it has no room to reserve.
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        self.wait_for_places(1).await?;
        Ok(OwnedPermit { sender: Some(self) })
    }

    /// Reserves room for one value if there is some and no sender waits.
    ///
    /// # Errors
    /// If there is no room, or the channel is closed.
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.core.try_reserve(1)?;
        Ok(Permit { core: &self.core })
    }

    /// Reserves room for `places` values if there is so much and no sender waits.
    ///
    /// # Errors
    /// If there is no room, or the channel is closed.
    pub fn try_reserve_many(
        &self,
        places: usize,
    ) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.core.try_reserve(places)?;
        Ok(PermitIterator {
            core: &self.core,
            left: places,
        })
    }

    /// Reserves room for one value as [`Sender::try_reserve`] does; the permit owns the sender.
    ///
    /// # Errors
    /// If there is no room, or the channel is closed: the sender comes back.
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Sender<T>>> {
        match self.core.try_reserve(1) {
            Ok(()) => Ok(OwnedPermit { sender: Some(self) }),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    fn wait_for_places(&self, places: usize) -> Reserve<'_, T> {
        assert!(
            self.max_capacity() > 0,
            "a rendezvous channel has no room to reserve: use send()"
        );
        Reserve {
            core: &self.core,
            node: Node::new(Wanted::Places(places)),
            places,
        }
    }
}

/// The wait for places.
struct Reserve<'a, T> {
    core: &'a Core<T>,
    node: Node<Wanted<T>>,
    places: usize,
}

impl<T> Future for Reserve<'_, T> {
    type Output = Result<(), SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is ours and pinned, our drop takes it out, and it began with the places.
        unsafe { this.core.poll_reserve(&this.node, this.places, cx) }
    }
}

impl<T> Drop for Reserve<'_, T> {
    fn drop(&mut self) {
        if self.node.status() != Status::Idle {
            // SAFETY: the node is ours.
            unsafe { self.core.cancel_reserve(&self.node, self.places) };
        }
    }
}

/// Room for one value in a channel; goes back if it is dropped unused.
#[must_use = "the room goes back when the permit is dropped"]
pub struct Permit<'a, T> {
    core: &'a Core<T>,
}

impl<T> Permit<'_, T> {
    /// Sends a value into the room; never waits. After a close it is still received; without a
    /// receiver it is dropped.
    pub fn send(self, value: T) {
        let core = self.core;
        std::mem::forget(self);
        core.send_reserved(value);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.core.release(1);
    }
}

/// Room for several values in a channel, as one permit after the other; what is left goes back when
/// this is dropped.
#[must_use = "the room goes back when the iterator is dropped"]
pub struct PermitIterator<'a, T> {
    core: &'a Core<T>,
    left: usize,
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.left = self.left.checked_sub(1)?;
        Some(Permit { core: self.core })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> std::iter::FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.core.release(self.left);
        }
    }
}

/// Room for one value in a channel, with the sender that reserved it.
#[must_use = "the room goes back when the permit is dropped"]
pub struct OwnedPermit<T> {
    /// None once the permit was used.
    sender: Option<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// Sends a value into the room and gives the sender back; see [`Permit::send`].
    pub fn send(mut self, value: T) -> Sender<T> {
        let sender = self.take();
        sender.core.send_reserved(value);
        sender
    }

    /// Gives the room back, and the sender.
    pub fn release(mut self) -> Sender<T> {
        let sender = self.take();
        sender.core.release(1);
        sender
    }

    /// True if both permits are of the same channel.
    pub fn same_channel(&self, other: &OwnedPermit<T>) -> bool {
        match &other.sender {
            Some(sender) => self.same_channel_as_sender(sender),
            None => false,
        }
    }

    /// True if the permit is of the channel that `sender` sends into.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        let own = self.sender.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(&own.core, &sender.core))
    }

    fn take(&mut self) -> Sender<T> {
        match self.sender.take() {
            Some(sender) => sender,
            None => unreachable!("a permit is used up by the call that takes its sender"),
        }
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            sender.core.release(1);
        }
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("Permit", f)
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit")
            .field("sender", &self.sender)
            .finish()
    }
}
