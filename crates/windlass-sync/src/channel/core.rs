//! What mpmc and mpsc share: a buffer and three queues of waiters behind one lock.
//!
//! # What holds whenever the lock is free
//! - Receivers wait only while the buffer is empty and no sender waits.
//! - Senders wait only while there is no room for them.
//! - A closed channel has no waiters at all, but for those that [`Core::settle`] is still telling.
//!
//! An operation changes the state and then calls `settle`, which restores this.
//!
//! # Room in an mpsc channel
//! Its receiver takes a *batch* out of the buffer and hands it out without the lock. What is left
//! of the batch still counts against the capacity: it is in the word `batch`,
//! `left << 1 | SENDERS_WAIT`, which the receiver lowers as it hands out. A sender that finds no
//! room sets SENDERS_WAIT and looks at the word once more; a receiver that lowers it and sees the
//! bit takes the lock and lets the sender in. One of the two sees the other: both change the same
//! word. So a sender waits only while the channel is full, and the capacity is never exceeded.
//!
//! All orderings on that word are Relaxed: it carries counts, the values go through the lock.

use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, ready};

use windlass_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use windlass_core::sync::{Mutex, MutexGuard, Padded};
use windlass_core::task::spend;

use super::error::{RecvError, SendError, TryRecvError, TrySendError};
use crate::wait_list::{Node, Notification, Status, WaitList, WakeBatch};

const SENDERS_WAIT: u64 = 1;
const LEFT: u64 = 2;
/// The most that a batch moves under the lock: enough to make the lock cheap per value, and little
/// enough not to hold it for long.
const LONGEST_BATCH: usize = 64;

/// What a channel keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Up to so many values; none at all: a rendezvous.
    Bounded(usize),
    /// The newest value.
    Conflated,
    /// Keeps every value.
    Unlimited,
}

pub(super) struct Core<T> {
    kind: Kind,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// A copy of the state's flag, for those who only ask.
    closed: AtomicBool,
    // Written for every value that is received: not on a line that senders need.
    batch: Padded<AtomicU64>,
    state: Mutex<State<T>>,
    /// Where the one receiver of an mpsc channel waits: an `Arc` pins it, and no wait allocates.
    pub(super) receiver: Padded<Node<Option<T>>>,
}

pub(super) struct State<T> {
    buffer: VecDeque<T>,
    closed: bool,
    /// What was left of the batch when it was last counted under the lock; it can be less by now.
    batch_at_most: usize,
    /// The payload is the value to send; none once it was taken.
    senders: WaitList<Option<T>>,
    /// The payload is the value received.
    receivers: WaitList<Option<T>>,
    /// Those who wait for the end of the channel.
    watchers: WaitList<()>,
}

/// A send that did not wait.
enum Offer<T> {
    /// Sent; the value that it replaced is to be dropped outside of the lock.
    Sent(#[allow(dead_code, reason = "is there to be dropped")] Option<T>),
    Full(T),
    Closed(T),
}

impl<T> Core<T> {
    /// A channel with one sender and one receiver.
    pub(super) fn new(kind: Kind) -> Core<T> {
        Core {
            kind,
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
            closed: AtomicBool::new(false),
            batch: Padded(AtomicU64::new(0)),
            state: Mutex::new(State {
                buffer: VecDeque::new(),
                closed: false,
                batch_at_most: 0,
                senders: WaitList::new(),
                receivers: WaitList::new(),
                watchers: WaitList::new(),
            }),
            receiver: Padded(Node::new(None)),
        }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        match self.kind {
            Kind::Bounded(capacity) => Some(capacity),
            Kind::Conflated => Some(1),
            Kind::Unlimited => None,
        }
    }

    /// Values in the buffer.
    pub(super) fn buffered(&self) -> usize {
        self.state.lock().buffer.len()
    }

    pub(super) fn is_full(&self) -> bool {
        !self.has_room(&mut self.state.lock())
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    // ---- who holds the channel ----

    pub(super) fn add_sender(&self) {
        // Relaxed: who clones has one, so the count cannot reach zero meanwhile.
        self.senders.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_receiver(&self) {
        // Relaxed: as in `add_sender`.
        self.receivers.fetch_add(1, Ordering::Relaxed);
    }

    /// The last sender closes the channel.
    pub(super) fn drop_sender(&self) {
        // AcqRel: pairs with the same of the others: what they sent is there before the close.
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
        }
    }

    /// The last receiver closes the channel and drops the values that are left.
    pub(super) fn drop_receiver(&self) {
        // AcqRel: as in `drop_sender`.
        if self.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
            let buffer = std::mem::take(&mut self.state.lock().buffer);
            // Users' code: outside of the lock.
            super::drop_nested(buffer);
        }
    }

    /// No more sends; every waiter is notified.
    pub(super) fn close(&self) {
        self.change(|state, _| {
            state.closed = true;
            // Release: pairs with the Acquire in `is_closed`.
            self.closed.store(true, Ordering::Release);
        });
    }

    // ---- changing the state ----

    /// Runs `change` under the lock, settles, and wakes the notified waiters outside of it.
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut State<T>, &mut WakeBatch) -> R) -> R {
        self.change_locked(self.state.lock(), change)
    }

    #[inline]
    fn change_locked<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        change: impl FnOnce(&mut State<T>, &mut WakeBatch) -> R,
    ) -> R {
        let mut wakes = WakeBatch::new();
        let result = change(&mut state, &mut wakes);
        loop {
            self.settle(&mut state, &mut wakes);
            drop(state);
            if !wakes.is_full() {
                wakes.finish();
                return result;
            }
            wakes.wake_all();
            state = self.state.lock();
        }
    }

    /// Lets senders in while there is room; notifies every waiter when the channel is closed. Stops
    /// when the batch is full; the caller comes back.
    #[inline]
    fn settle(&self, state: &mut State<T>, wakes: &mut WakeBatch) {
        if state.closed {
            self.notify_closed(state, wakes);
        } else if !state.senders.is_empty() {
            self.let_senders_in(state, wakes);
        }
    }

    #[cold]
    fn notify_closed(&self, state: &mut State<T>, wakes: &mut WakeBatch) {
        // Senders keep their values. Receivers wait only when nothing is left for them.
        state
            .senders
            .notify_while(Notification::Released, wakes, |_| true);
        state
            .receivers
            .notify_while(Notification::Released, wakes, |_| true);
        state
            .watchers
            .notify_while(Notification::Released, wakes, |_| true);
        self.note_senders(state);
    }

    fn let_senders_in(&self, state: &mut State<T>, wakes: &mut WakeBatch) {
        while !wakes.is_full() && !state.senders.is_empty() && self.has_room(state) {
            let waker = state.take_from_sender();
            if let Some((value, waker)) = waker {
                state.buffer.push_back(value);
                wakes.extend(waker);
            }
        }
        self.note_senders(state);
    }

    fn note_senders(&self, state: &State<T>) {
        if state.senders.is_empty() {
            self.batch.fetch_and(!SENDERS_WAIT, Ordering::Relaxed);
        }
    }

    /// True if one more value may be buffered.
    #[inline]
    fn has_room(&self, state: &mut State<T>) -> bool {
        let Kind::Bounded(capacity) = self.kind else {
            return true;
        };
        if state.buffer.len() + state.batch_at_most < capacity {
            return true;
        }
        let left = self.batch.load(Ordering::Relaxed) / LEFT;
        state.batch_at_most = left as usize;
        state.buffer.len() + state.batch_at_most < capacity
    }

    // ---- sending ----

    fn offer(&self, state: &mut State<T>, wakes: &mut WakeBatch, value: T) -> Offer<T> {
        if state.closed {
            return Offer::Closed(value);
        }
        if !state.receivers.is_empty() {
            let waker = state
                .receivers
                .notify_front(Notification::Served, |place| *place = Some(value));
            wakes.extend(waker.flatten());
            return Offer::Sent(None);
        }
        // No sender overtakes one that waits.
        self.settle(state, wakes);
        if !state.senders.is_empty() || !self.has_room(state) {
            return Offer::Full(value);
        }
        let replaced = match self.kind {
            Kind::Conflated => state.buffer.pop_back(),
            Kind::Bounded(_) | Kind::Unlimited => None,
        };
        state.buffer.push_back(value);
        Offer::Sent(replaced)
    }

    /// True if a value can simply be buffered: there is room, no receiver waits, nothing is
    /// replaced.
    #[inline]
    fn takes_simply(&self, state: &mut State<T>) -> bool {
        !state.closed
            && state.receivers.is_empty()
            && state.senders.is_empty()
            && self.kind != Kind::Conflated
            && self.has_room(state)
    }

    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = self.state.lock();
        if self.takes_simply(&mut state) {
            state.buffer.push_back(value);
            return Ok(());
        }
        self.try_send_locked(state, value)
    }

    #[cold]
    fn try_send_locked<'a>(
        &'a self,
        state: MutexGuard<'a, State<T>>,
        value: T,
    ) -> Result<(), TrySendError<T>> {
        match self.change_locked(state, |state, wakes| self.offer(state, wakes, value)) {
            Offer::Sent(_replaced) => Ok(()),
            Offer::Full(value) => Err(TrySendError::Full(value)),
            Offer::Closed(value) => Err(TrySendError::Closed(value)),
        }
    }

    /// Sends the value in the node's payload.
    ///
    /// # Safety
    /// The caller owns the node and keeps rule 2 of the wait list for it, with `cancel_send` in its
    /// drop. If it is idle, its payload is the value.
    #[inline]
    pub(super) unsafe fn poll_send(
        &self,
        node: &Node<Option<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let spent = ready!(spend(cx));
        let result = match node.status() {
            // SAFETY: as the caller promises.
            Status::Idle => ready!(unsafe { self.send_or_wait(node, cx) }),
            _ => {
                // SAFETY: as the caller promises; it was pushed into this list.
                let notification = ready!(unsafe {
                    node.poll_notified(cx, &self.state, |state| &mut state.senders)
                });
                node.reset();
                match notification {
                    Notification::Served => Ok(()),
                    // SAFETY: rule 4: the node is not linked.
                    Notification::Released => match unsafe { node.payload(Option::take) } {
                        Some(value) => Err(SendError(value)),
                        None => Ok(()),
                    },
                }
            }
        };
        spent.made_progress();
        Poll::Ready(result)
    }

    /// # Safety
    /// As for `poll_send`, and the node is idle.
    unsafe fn send_or_wait(
        &self,
        node: &Node<Option<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        // SAFETY: rule 4: the node is idle.
        let Some(value) = (unsafe { node.payload(Option::take) }) else {
            panic!("a send was polled again after it had ended");
        };
        let mut state = self.state.lock();
        if self.takes_simply(&mut state) {
            state.buffer.push_back(value);
            return Poll::Ready(Ok(()));
        }
        // SAFETY: as the caller promises.
        unsafe { self.send_or_wait_locked(state, node, value, cx) }
    }

    /// # Safety
    /// As for `poll_send`, and the node is idle.
    #[cold]
    unsafe fn send_or_wait_locked<'a>(
        &'a self,
        state: MutexGuard<'a, State<T>>,
        node: &Node<Option<T>>,
        value: T,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        self.change_locked(state, |state, wakes| {
            match self.offer(state, wakes, value) {
                Offer::Sent(replaced) => Poll::Ready(Ok(replaced)),
                Offer::Closed(value) => Poll::Ready(Err(SendError(value))),
                Offer::Full(value) => {
                    // SAFETY: rule 4: the node is idle. A panic of the clone finds the value there.
                    unsafe { node.payload(|place| *place = Some(value)) };
                    let waker = cx.waker().clone();
                    // SAFETY: as the caller promises.
                    unsafe { state.senders.push(node, Some(waker)) };
                    // Before `change` looks for room once more: a batch that shrinks after that
                    // look sees the bit.
                    self.batch.fetch_or(SENDERS_WAIT, Ordering::Relaxed);
                    Poll::Pending
                }
            }
        })
        .map_ok(drop)
    }

    /// Withdraws a send: its value, unless it was delivered.
    ///
    /// # Safety
    /// The caller owns the node.
    pub(super) unsafe fn cancel_send(&self, node: &Node<Option<T>>) -> Option<T> {
        // SAFETY: as the caller promises; it was pushed, if at all, into this list.
        unsafe { node.withdraw(&self.state, |state| &mut state.senders) };
        node.reset();
        // SAFETY: rule 4: it is not linked any more. What was delivered is not there.
        unsafe { node.payload(Option::take) }
    }

    // ---- receiving ----

    /// Receives with `take`, if there is something.
    pub(super) fn try_take(
        &self,
        take: impl FnOnce(&mut State<T>, &mut WakeBatch) -> Option<T>,
    ) -> Result<T, TryRecvError> {
        self.change(|state, wakes| match take(state, wakes) {
            Some(value) => Ok(value),
            None if state.closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        })
    }

    /// Receives with `take`, or waits in the node.
    ///
    /// # Safety
    /// The caller owns the node and keeps rule 2 of the wait list for it, with `cancel_recv` in its
    /// drop.
    #[inline]
    pub(super) unsafe fn poll_recv(
        &self,
        node: &Node<Option<T>>,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut State<T>, &mut WakeBatch) -> Option<T>,
    ) -> Poll<Result<T, RecvError>> {
        let spent = ready!(spend(cx));
        let result = match node.status() {
            Status::Idle => {
                let taken = self.change(|state, wakes| match take(state, wakes) {
                    Some(value) => Some(Ok(value)),
                    None if state.closed => Some(Err(RecvError)),
                    None => {
                        let waker = cx.waker().clone();
                        // SAFETY: as the caller promises; the node is idle.
                        unsafe { state.receivers.push(node, Some(waker)) };
                        None
                    }
                });
                match taken {
                    Some(result) => result,
                    None => return Poll::Pending,
                }
            }
            _ => {
                // SAFETY: as the caller promises; it was pushed into this list.
                ready!(unsafe {
                    node.poll_notified(cx, &self.state, |state| &mut state.receivers)
                });
                node.reset();
                // SAFETY: rule 4: the node is not linked.
                unsafe { node.payload(Option::take) }.ok_or(RecvError)
            }
        };
        spent.made_progress();
        Poll::Ready(result)
    }

    /// Stops waiting; gives a value that had been handed over already.
    ///
    /// # Safety
    /// The caller owns the node.
    pub(super) unsafe fn cancel_recv(&self, node: &Node<Option<T>>) -> Option<T> {
        // SAFETY: as the caller promises; it was pushed, if at all, into this list.
        unsafe { node.withdraw(&self.state, |state| &mut state.receivers) };
        node.reset();
        // SAFETY: rule 4: it is not linked any more.
        unsafe { node.payload(Option::take) }
    }

    /// Puts a value back that its receiver did not take: to the next who waits, or to the front of
    /// the buffer, beyond its capacity if need be.
    pub(super) fn put_back(&self, value: T) {
        let outdated = self.change(|state, wakes| {
            if !state.receivers.is_empty() {
                let waker = state
                    .receivers
                    .notify_front(Notification::Served, |place| *place = Some(value));
                wakes.extend(waker.flatten());
                return None;
            }
            if self.kind == Kind::Conflated && !state.buffer.is_empty() {
                // A newer value is there.
                return Some(value);
            }
            state.buffer.push_front(value);
            None
        });
        drop(outdated);
    }

    // ---- the batch of an mpsc receiver ----

    /// Takes one value, and with it a batch for later; `batch` is empty.
    pub(super) fn take_batch(
        &self,
        state: &mut State<T>,
        wakes: &mut WakeBatch,
        batch: &mut VecDeque<T>,
    ) -> Option<T> {
        match self.kind {
            Kind::Unlimited => std::mem::swap(&mut state.buffer, batch),
            Kind::Bounded(capacity) => {
                let most = (capacity / 2).max(1);
                if state.buffer.len() <= most {
                    std::mem::swap(&mut state.buffer, batch);
                } else {
                    batch.extend(state.buffer.drain(..most.min(LONGEST_BATCH)));
                }
                state.batch_at_most = batch.len().saturating_sub(1);
                // It was 0: the batch was empty.
                let left = state.batch_at_most as u64 * LEFT;
                self.batch.fetch_add(left, Ordering::Relaxed);
            }
            Kind::Conflated => {}
        }
        batch.pop_front().or_else(|| state.take(wakes))
    }

    /// The receiver has taken a value out of its batch: there is room for one more.
    #[inline]
    pub(super) fn batch_shrank(&self) {
        if let Kind::Bounded(_) = self.kind {
            let before = self.batch.fetch_sub(LEFT, Ordering::Relaxed);
            if before & SENDERS_WAIT != 0 {
                // A sender that gave up leaves the bit behind.
                self.change(|state, _| self.note_senders(state));
            }
        }
    }

    /// The receiver has put a value back into its batch.
    pub(super) fn batch_grew(&self) {
        if let Kind::Bounded(_) = self.kind {
            let mut state = self.state.lock();
            state.batch_at_most += 1;
            self.batch.fetch_add(LEFT, Ordering::Relaxed);
        }
    }

    // ---- watching ----

    /// Waits for the close.
    ///
    /// # Safety
    /// The caller owns the node and keeps rule 2 of the wait list for it, with `cancel_watch` in
    /// its drop.
    pub(super) unsafe fn poll_closed(&self, node: &Node<()>, cx: &mut Context<'_>) -> Poll<()> {
        let spent = ready!(spend(cx));
        if node.status() == Status::Idle {
            let waker = cx.waker().clone();
            let mut state = self.state.lock();
            if !state.closed {
                // SAFETY: as the caller promises; the node is idle.
                unsafe { state.watchers.push(node, Some(waker)) };
                return Poll::Pending;
            }
            drop(state);
        } else {
            // SAFETY: as the caller promises; it was pushed into this list.
            ready!(unsafe { node.poll_notified(cx, &self.state, |state| &mut state.watchers) });
            node.reset();
        }
        spent.made_progress();
        Poll::Ready(())
    }

    /// # Safety
    /// The caller owns the node.
    pub(super) unsafe fn cancel_watch(&self, node: &Node<()>) {
        // SAFETY: as the caller promises; it was pushed, if at all, into this list.
        unsafe { node.withdraw(&self.state, |state| &mut state.watchers) };
    }

    pub(super) fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(name);
        out.field("kind", &self.kind)
            .field("closed", &self.is_closed())
            .field("senders", &self.senders.load(Ordering::Relaxed))
            .field("receivers", &self.receivers.load(Ordering::Relaxed));
        if let Some(state) = self.state.try_lock() {
            out.field("buffered", &state.buffer.len())
                .field("waiting_senders", &state.senders.len())
                .field("waiting_receivers", &state.receivers.len());
        }
        out.finish()
    }
}

impl<T> State<T> {
    /// The oldest value: from the buffer, or from the hand of the first sender that waits.
    pub(super) fn take(&mut self, wakes: &mut WakeBatch) -> Option<T> {
        if let Some(value) = self.buffer.pop_front() {
            return Some(value);
        }
        let (value, waker) = self.take_from_sender()?;
        wakes.extend(waker);
        Some(value)
    }

    fn take_from_sender(&mut self) -> Option<(T, Option<std::task::Waker>)> {
        let mut value = None;
        let waker = self
            .senders
            .notify_front(Notification::Served, |place| value = place.take())?;
        Some((value?, waker))
    }
}
