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
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::{Context, Poll, ready};

use windlass_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windlass_core::sync::{Mutex, MutexGuard, Padded};
use windlass_core::task::spend;

use super::end_count::EndCount;
use super::error::{SendError, TryRecvError, TrySendError};
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
    pub(super) senders: EndCount,
    /// They are only counted for users who ask.
    pub(super) weak_senders: EndCount,
    pub(super) receivers: EndCount,
    /// A copy of the state's flag, for those who only ask.
    closed: AtomicBool,
    // Written for every value that is received: not on a line that senders need.
    batch: Padded<AtomicU64>,
    state: Mutex<State<T>>,
    /// Where the one receiver of an mpsc channel waits: an `Arc` pins it, and no wait allocates.
    pub(super) receiver: Padded<Node<Option<T>>>,
}

// A value is in the channel whole or not at all, and values are never touched inside of it: a panic
// of their owner leaves nothing half changed here.
impl<T> UnwindSafe for Core<T> {}
impl<T> RefUnwindSafe for Core<T> {}

pub(super) struct State<T> {
    buffer: VecDeque<T>,
    closed: bool,
    /// No receiver is left: what permits still send is dropped.
    abandoned: bool,
    /// Places that permits hold. A bounded channel keeps them free; a closed one waits for them.
    reserved: usize,
    /// What was left of the batch when it was last counted under the lock; it can be less by now.
    batch_at_most: usize,
    senders: WaitList<Wanted<T>>,
    /// The payload is the value received.
    receivers: WaitList<Option<T>>,
    /// Those who wait for the end of the channel.
    watchers: WaitList<()>,
}

/// What a waiting sender wants.
pub(super) enum Wanted<T> {
    /// The value was taken.
    Nothing,
    /// To send this value.
    Send(T),
    /// So many places, for values that come later.
    Places(usize),
}

impl<T> Wanted<T> {
    /// Takes the value, if there is one to send.
    #[inline]
    pub(super) fn take_value(&mut self) -> Option<T> {
        match std::mem::replace(self, Wanted::Nothing) {
            Wanted::Send(value) => Some(value),
            other => {
                *self = other;
                None
            }
        }
    }
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
            senders: EndCount::new(1),
            weak_senders: EndCount::new(0),
            receivers: EndCount::new(1),
            closed: AtomicBool::new(false),
            batch: Padded(AtomicU64::new(0)),
            state: Mutex::new(State {
                buffer: VecDeque::new(),
                closed: false,
                abandoned: false,
                reserved: 0,
                batch_at_most: 0,
                senders: WaitList::new(),
                receivers: WaitList::new(),
                watchers: WaitList::new(),
            }),
            receiver: Padded(Node::new(None)),
        }
    }

    /// How many values the channel keeps.
    pub(super) fn max_capacity(&self) -> usize {
        match self.kind {
            Kind::Bounded(capacity) => capacity,
            Kind::Conflated => 1,
            Kind::Unlimited => usize::MAX,
        }
    }

    /// How many values could be sent now without waiting.
    pub(super) fn capacity(&self) -> usize {
        let Kind::Bounded(capacity) = self.kind else {
            return self.max_capacity();
        };
        let state = self.state.lock();
        let left = (self.batch.load(Ordering::Relaxed) / LEFT) as usize;
        capacity.saturating_sub(state.buffer.len() + left + state.reserved)
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

    /// The last sender closes the channel.
    pub(super) fn drop_sender(&self) {
        if self.senders.remove() {
            self.close();
        }
    }

    /// The last receiver closes the channel and drops the values that are left.
    pub(super) fn drop_receiver(&self) {
        if self.receivers.remove() {
            self.close();
            let mut state = self.state.lock();
            state.abandoned = true;
            let buffer = std::mem::take(&mut state.buffer);
            drop(state);
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
        // Senders keep their values. Receivers wait only when nothing is left for them, and nothing
        // comes any more from permits.
        state
            .senders
            .notify_while(Notification::Released, wakes, |_| true);
        if state.reserved == 0 {
            state
                .receivers
                .notify_while(Notification::Released, wakes, |_| true);
        }
        state
            .watchers
            .notify_while(Notification::Released, wakes, |_| true);
        self.note_senders(state);
    }

    fn let_senders_in(&self, state: &mut State<T>, wakes: &mut WakeBatch) {
        while !wakes.is_full()
            && let Some(wanted) = state.senders.front()
        {
            let places = match wanted {
                Wanted::Places(places) => *places,
                Wanted::Send(_) | Wanted::Nothing => 1,
            };
            if !self.has_room_for(state, places) {
                break;
            }
            match state.take_from_sender() {
                Some((value, waker)) => {
                    state.buffer.push_back(value);
                    wakes.extend(waker);
                }
                None => {
                    state.reserved += places;
                    let waker = state.senders.notify_front(Notification::Served, |_| ());
                    wakes.extend(waker.flatten());
                }
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
        self.has_room_for(state, 1)
    }

    /// True if so many more values may be buffered.
    #[inline]
    fn has_room_for(&self, state: &mut State<T>, values: usize) -> bool {
        let Kind::Bounded(capacity) = self.kind else {
            return true;
        };
        let taken = state.buffer.len() + state.reserved;
        if taken + state.batch_at_most + values <= capacity {
            return true;
        }
        let left = self.batch.load(Ordering::Relaxed) / LEFT;
        state.batch_at_most = left as usize;
        taken + state.batch_at_most + values <= capacity
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
        node: &Node<Wanted<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let spent = ready!(spend(cx));
        let result = match node.status() {
            // SAFETY: as the caller promises.
            Status::Idle => ready!(unsafe { self.send_or_wait(node, cx) }),
            _ => {
                // SAFETY: as the caller promises; it was pushed by one of these sends.
                match ready!(unsafe { self.poll_sender(node, cx) }) {
                    Notification::Served => Ok(()),
                    // SAFETY: rule 4: the node is not linked.
                    Notification::Released => match unsafe { node.payload(Wanted::take_value) } {
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
        node: &Node<Wanted<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        // SAFETY: rule 4: the node is idle.
        let Some(value) = (unsafe { node.payload(Wanted::take_value) }) else {
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
        node: &Node<Wanted<T>>,
        value: T,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        self.change_locked(state, |state, wakes| {
            match self.offer(state, wakes, value) {
                Offer::Sent(replaced) => Poll::Ready(Ok(replaced)),
                Offer::Closed(value) => Poll::Ready(Err(SendError(value))),
                Offer::Full(value) => {
                    // SAFETY: rule 4: the node is idle. A panic of the clone finds the value there.
                    unsafe { node.payload(|place| *place = Wanted::Send(value)) };
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
    pub(super) unsafe fn cancel_send(&self, node: &Node<Wanted<T>>) -> Option<T> {
        // SAFETY: as the caller promises; it was pushed, if at all, into this list.
        unsafe { node.withdraw(&self.state, |state| &mut state.senders) };
        node.reset();
        // SAFETY: rule 4: it is not linked any more. What was delivered is not there.
        unsafe { node.payload(Wanted::take_value) }
    }

    /// What a sender that waits was told; the node is idle then.
    ///
    /// # Safety
    /// The caller owns the node, and it was pushed into the list of senders.
    #[inline]
    unsafe fn poll_sender(
        &self,
        node: &Node<Wanted<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Notification> {
        // SAFETY: as the caller promises.
        let notification =
            ready!(unsafe { node.poll_notified(cx, &self.state, |state| &mut state.senders) });
        node.reset();
        Poll::Ready(notification)
    }

    // ---- reserving ----

    /// Reserves places if there are enough and no sender waits.
    pub(super) fn try_reserve(&self, places: usize) -> Result<(), TrySendError<()>> {
        self.change(|state, wakes| {
            if state.closed {
                return Err(TrySendError::Closed(()));
            }
            // No sender overtakes one that waits.
            self.settle(state, wakes);
            if !state.senders.is_empty() || !self.has_room_for(state, places) {
                return Err(TrySendError::Full(()));
            }
            state.reserved += places;
            Ok(())
        })
    }

    /// Reserves as many places as the node's payload says, or waits for them.
    ///
    /// # Safety
    /// The caller owns the node and keeps rule 2 of the wait list for it, with `cancel_reserve` in
    /// its drop. If it is idle, its payload is `Wanted::Places(places)`.
    pub(super) unsafe fn poll_reserve(
        &self,
        node: &Node<Wanted<T>>,
        places: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<()>>> {
        let spent = ready!(spend(cx));
        let result = match node.status() {
            // SAFETY: as the caller promises.
            Status::Idle => ready!(unsafe { self.reserve_or_wait(node, places, cx) }),
            _ => {
                // SAFETY: as the caller promises; it was pushed by one of these sends.
                match ready!(unsafe { self.poll_sender(node, cx) }) {
                    // Closed since: the receiver does not wait for what has not begun.
                    Notification::Served if self.is_closed() => {
                        self.release(places);
                        Err(SendError(()))
                    }
                    Notification::Served => Ok(()),
                    Notification::Released => Err(SendError(())),
                }
            }
        };
        spent.made_progress();
        Poll::Ready(result)
    }

    /// # Safety
    /// As for `poll_reserve`, and the node is idle.
    unsafe fn reserve_or_wait(
        &self,
        node: &Node<Wanted<T>>,
        places: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<()>>> {
        // Users' code: before the lock.
        let waker = cx.waker().clone();
        self.change(|state, wakes| {
            if state.closed {
                return Poll::Ready(Err(SendError(())));
            }
            self.settle(state, wakes);
            if state.senders.is_empty() && self.has_room_for(state, places) {
                state.reserved += places;
                return Poll::Ready(Ok(()));
            }
            // SAFETY: as the caller promises.
            unsafe { state.senders.push(node, Some(waker)) };
            // As in `send_or_wait_locked`.
            self.batch.fetch_or(SENDERS_WAIT, Ordering::Relaxed);
            Poll::Pending
        })
    }

    /// Withdraws a wait for places; those that it was given go back.
    ///
    /// # Safety
    /// The caller owns the node.
    pub(super) unsafe fn cancel_reserve(&self, node: &Node<Wanted<T>>, places: usize) {
        // SAFETY: as the caller promises; it was pushed, if at all, into this list. A big request
        // may have held up those behind it: `change` lets them in.
        let waker = self.change(|state, _| unsafe { state.senders.remove(node) });
        drop(waker);
        if node.status() == Status::Notified(Notification::Served) {
            self.release(places);
        }
        node.reset();
    }

    /// Gives reserved places back.
    pub(super) fn release(&self, places: usize) {
        self.change(|state, _| state.reserved -= places);
    }

    /// Sends into a reserved place. Values of permits arrive after a close, too; only without a
    /// receiver they are dropped.
    pub(super) fn send_reserved(&self, value: T) {
        let dropped = self.change(|state, wakes| {
            state.reserved -= 1;
            if state.abandoned {
                return Some(value);
            }
            if !state.receivers.is_empty() {
                let waker = state
                    .receivers
                    .notify_front(Notification::Served, |place| *place = Some(value));
                wakes.extend(waker.flatten());
                return None;
            }
            let replaced = match self.kind {
                Kind::Conflated => state.buffer.pop_back(),
                Kind::Bounded(_) | Kind::Unlimited => None,
            };
            state.buffer.push_back(value);
            replaced
        });
        drop(dropped);
    }

    // ---- receiving ----

    /// Receives with `take`, if there is something.
    pub(super) fn try_take(
        &self,
        take: impl FnOnce(&mut State<T>, &mut WakeBatch) -> Option<T>,
    ) -> Result<T, TryRecvError> {
        self.change(|state, wakes| match take(state, wakes) {
            Some(value) => Ok(value),
            None if state.has_ended() => Err(TryRecvError::Disconnected),
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
    ) -> Poll<Option<T>> {
        let spent = ready!(spend(cx));
        let result = match node.status() {
            Status::Idle => {
                let taken = self.change(|state, wakes| match take(state, wakes) {
                    Some(value) => Some(Some(value)),
                    None if state.has_ended() => Some(None),
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
                unsafe { node.payload(Option::take) }
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
            .field("senders", &self.senders)
            .field("receivers", &self.receivers);
        if let Some(state) = self.state.try_lock() {
            out.field("buffered", &state.buffer.len())
                .field("waiting_senders", &state.senders.len())
                .field("waiting_receivers", &state.receivers.len());
        }
        out.finish()
    }
}

impl<T> State<T> {
    /// True if nothing comes any more, from permits neither.
    fn has_ended(&self) -> bool {
        self.closed && self.reserved == 0
    }

    /// The oldest value: from the buffer, or from the hand of the first sender that waits.
    pub(super) fn take(&mut self, wakes: &mut WakeBatch) -> Option<T> {
        if let Some(value) = self.buffer.pop_front() {
            return Some(value);
        }
        let (value, waker) = self.take_from_sender()?;
        wakes.extend(waker);
        Some(value)
    }

    /// The value of the first sender that waits; none if there is no sender, or it waits for
    /// places.
    fn take_from_sender(&mut self) -> Option<(T, Option<std::task::Waker>)> {
        let value = self.senders.front()?.take_value()?;
        let waker = self.senders.notify_front(Notification::Served, |_| ())?;
        Some((value, waker))
    }
}
