//! Every receiver gets every value, as long as it keeps up.
//!
//! The channel keeps the newest `capacity` values, rounded up to a power of two as in tokio. A
//! receiver that is slower than that learns once how many it missed, and goes on with the oldest
//! that is left.
//!
//! A receiver takes several values at once where several wait for it, up to a quarter of the
//! capacity: it visits the lock once for all of them, and what it has taken it cannot miss.
//!
//! ```
//! use windlass_sync::channel::broadcast::{self, error::RecvError};
//!
//! # windlass_core::block_on(async {
//! let (sender, mut first) = broadcast::channel(2);
//! let mut second = sender.subscribe();
//! for value in 1..=3 {
//!     sender.send(value)?;
//! }
//! assert_eq!(first.recv().await, Err(RecvError::Lagged(1)));
//! assert_eq!(first.recv().await, Ok(2));
//! # drop(second);
//! # Ok::<(), broadcast::error::SendError<i32>>(())
//! # }).unwrap();
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::sync::{Arc, Mutex};
use windlass_core::task::spend;

use self::error::{RecvError, SendError, TryRecvError};
use super::end_count::EndCount;
use crate::lock::Notify;
use crate::wait_list::{Node, Notification, Status, WaitList, in_rounds};

/// The most that a receiver takes under the lock at once: enough to make the lock cheap per value,
/// and little enough not to hold it for long.
const LONGEST_BATCH: usize = 16;

/// A channel that keeps the newest `capacity` values, rounded up to a power of two.
///
/// # Panics
/// If `capacity` is 0, or more than `usize::MAX / 2`.
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = with_receivers(capacity, 1);
    let receiver = Receiver::new(sender.shared.clone(), 0);
    (sender, receiver)
}

/// A channel whose `receivers` are made by the caller.
#[track_caller]
fn with_receivers<T>(capacity: usize, receivers: usize) -> Sender<T> {
    assert!(
        capacity > 0,
        "a broadcast channel needs room for at least one value"
    );
    assert!(
        capacity <= usize::MAX / 2,
        "a broadcast channel has room for at most `usize::MAX / 2` values"
    );
    let capacity = capacity.next_power_of_two();
    let shared = Arc::new(Shared {
        capacity,
        longest_batch: (capacity / 4).clamp(1, LONGEST_BATCH),
        senders: EndCount::new(1),
        weak_senders: EndCount::new(0),
        receivers_gone: Notify::new(),
        state: Mutex::new(State {
            slots: VecDeque::new(),
            end: 0,
            receivers,
            closed: false,
            waiters: WaitList::new(),
        }),
    });
    Sender { shared }
}

struct Shared<T> {
    capacity: usize,
    longest_batch: usize,
    senders: EndCount,
    weak_senders: EndCount,
    /// Notified when the last receiver leaves.
    receivers_gone: Notify,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// The newest values, oldest first.
    slots: VecDeque<Slot<T>>,
    /// The position of the next value.
    end: u64,
    receivers: usize,
    closed: bool,
    /// The payload is the position that the receiver waits for; it grows along the list.
    waiters: WaitList<u64>,
}

struct Slot<T> {
    value: Arc<T>,
    /// Receivers that have not seen it.
    unseen: usize,
}

/// What a receiver finds at its position.
enum Lookup<T> {
    Value(Arc<T>),
    Lagged(u64),
    Nothing,
    Closed,
}

impl<T> State<T> {
    /// The position of the oldest value.
    fn begin(&self) -> u64 {
        self.end - self.slots.len() as u64
    }

    /// Takes what is at the receiver's position, and up to `most` values in all: what follows the
    /// first goes to `batch`.
    fn find(&mut self, next: &mut u64, batch: &mut VecDeque<Arc<T>>, most: usize) -> Lookup<T> {
        let begin = self.begin();
        if *next < begin {
            let missed = begin - *next;
            *next = begin;
            return Lookup::Lagged(missed);
        }
        let Some(first) = self.take(next) else {
            return if self.closed {
                Lookup::Closed
            } else {
                Lookup::Nothing
            };
        };
        while batch.len() + 1 < most
            && let Some(value) = self.take(next)
        {
            batch.push_back(value);
        }
        Lookup::Value(first)
    }

    /// Takes the value at `next`, which is not before the oldest.
    fn take(&mut self, next: &mut u64) -> Option<Arc<T>> {
        let index = (*next - self.begin()) as usize;
        let slot = self.slots.get_mut(index)?;
        *next += 1;
        slot.unseen -= 1;
        if slot.unseen > 0 {
            return Some(slot.value.clone());
        }
        // The last one gets the value itself. What all receivers have seen is at the front: a
        // receiver that has seen a value has seen those before it.
        self.slots.pop_front().map(|slot| slot.value)
    }

    /// A receiver leaves: what only it had not seen is taken out, to be dropped by the caller.
    fn leave(&mut self, next: u64) -> VecDeque<Slot<T>> {
        self.receivers -= 1;
        let first = next.saturating_sub(self.begin()) as usize;
        for slot in self.slots.iter_mut().skip(first) {
            slot.unseen -= 1;
        }
        if self.receivers == 0 {
            return std::mem::take(&mut self.slots);
        }
        let seen = self.slots.iter().take_while(|slot| slot.unseen == 0);
        let count = seen.count();
        self.slots.drain(..count).collect()
    }
}

impl<T> Shared<T> {
    /// A receiver of what is sent from now on.
    fn subscribe(self: &Arc<Self>) -> Receiver<T> {
        let mut state = self.state.lock();
        state.receivers += 1;
        let next = state.end;
        drop(state);
        Receiver::new(self.clone(), next)
    }

    /// Notifies those who wait for a position before `end`.
    fn notify(&self, end: u64) {
        in_rounds(&self.state, |state, wakes| {
            state
                .waiters
                .notify_while(Notification::Served, wakes, |next| *next < end);
        });
    }
}

/// Sends to every receiver; clones send into the same channel. The last one that is dropped closes
/// it.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Makes a channel without a receiver that keeps the newest `capacity` values, rounded up to a
    /// power of two.
    ///
    /// # Panics
    /// If `capacity` is 0, or more than `usize::MAX / 2`.
    #[track_caller]
    pub fn new(capacity: usize) -> Sender<T> {
        with_receivers(capacity, 0)
    }

    /// Waits until there is no receiver. Cancel-safe.
    pub async fn closed(&self) {
        loop {
            // Made before the look: it hears of a receiver that leaves after it.
            let gone = self.shared.receivers_gone.notified();
            if self.receiver_count() == 0 {
                return;
            }
            gone.await;
        }
    }

    /// Makes a sender that does not keep the channel open.
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.shared.clone())
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.shared.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.shared.weak_senders.get()
    }

    /// Sends a value to all receivers; gives how many there are. Never waits: the oldest value
    /// makes room. If there are none, the value comes back.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        // Allocated before the lock.
        let value = Arc::new(value);
        let mut state = self.shared.state.lock();
        let receivers = state.receivers;
        if receivers == 0 {
            drop(state);
            return match Arc::into_inner(value) {
                Some(value) => Err(SendError(value)),
                None => Ok(0),
            };
        }
        let oldest = if state.slots.len() == self.shared.capacity {
            state.slots.pop_front()
        } else {
            None
        };
        state.slots.push_back(Slot {
            value,
            unseen: receivers,
        });
        state.end += 1;
        let (end, nobody_waits) = (state.end, state.waiters.is_empty());
        drop(state);
        // Users' code: outside of the lock.
        drop(oldest);
        if !nobody_waits {
            // A receiver that comes to wait from now on has seen this value.
            self.shared.notify(end);
        }
        Ok(receivers)
    }

    /// A receiver of what is sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.subscribe()
    }

    /// Returns the number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Values that some receiver has not taken.
    pub fn len(&self) -> usize {
        self.shared.state.lock().slots.len()
    }

    /// True if every receiver has taken everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if both send into the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
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
            self.shared.state.lock().closed = true;
            self.shared.notify(u64::MAX);
        }
    }
}

/// Gives a [`Sender`] while there is another one; does not keep the channel open by itself.
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    fn new(shared: Arc<Shared<T>>) -> WeakSender<T> {
        shared.weak_senders.add();
        WeakSender { shared }
    }

    /// Returns a sender; none if the last one is gone.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.shared.senders.add_if_any().then(|| Sender {
            shared: self.shared.clone(),
        })
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.shared.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.shared.weak_senders.get()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(self.shared.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        let _last = self.shared.weak_senders.remove();
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender")
            .field("strong_count", &self.strong_count())
            .finish_non_exhaustive()
    }
}

/// Receives every value that is sent after it was made.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position of the next value to take.
    next: u64,
    /// Taken, and not handed out yet.
    batch: VecDeque<Arc<T>>,
}

impl<T> Receiver<T> {
    fn new(shared: Arc<Shared<T>>, next: u64) -> Receiver<T> {
        Receiver {
            shared,
            next,
            batch: VecDeque::new(),
        }
    }

    /// Returns the number of senders.
    pub fn sender_strong_count(&self) -> usize {
        self.shared.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak_senders.get()
    }

    /// A receiver of what is sent from now on.
    pub fn resubscribe(&self) -> Receiver<T> {
        self.shared.subscribe()
    }

    /// Values that wait for this receiver, those it has missed included.
    pub fn len(&self) -> usize {
        self.batch.len() + (self.shared.state.lock().end - self.next) as usize
    }

    /// True if nothing waits for this receiver.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True once all senders are gone. Values may be left.
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }

    /// True if both receive from the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T: Clone> Receiver<T> {
    /// The next value, and waits for one if there is none.
    ///
    /// Cancel-safe: a dropped future has taken nothing.
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv {
            receiver: self,
            node: Node::new(0),
        }
    }

    /// The next value, if there is one.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if let Some(value) = self.batch.pop_front() {
            return Ok(own(value));
        }
        let Receiver {
            shared,
            next,
            batch,
        } = self;
        let found = shared.state.lock().find(next, batch, shared.longest_batch);
        match found {
            Lookup::Value(value) => Ok(own(value)),
            Lookup::Lagged(missed) => Err(TryRecvError::Lagged(missed)),
            Lookup::Nothing => Err(TryRecvError::Empty),
            Lookup::Closed => Err(TryRecvError::Closed),
        }
    }

    /// Blocks this thread until there is a value.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        windlass_core::block_on(self.recv())
    }
}

/// The value itself for the last who has it, a clone for the others. Users' code: outside of the
/// lock.
fn own<T: Clone>(value: Arc<T>) -> T {
    Arc::try_unwrap(value).unwrap_or_else(|shared| T::clone(&shared))
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let unseen = state.leave(self.next);
        let is_last = state.receivers == 0;
        drop(state);
        if is_last {
            self.shared.receivers_gone.notify_waiters();
        }
        // Users' code: outside of the lock.
        super::drop_nested((unseen, std::mem::take(&mut self.batch)));
    }
}

/// The future of [`Receiver::recv`].
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
    node: Node<u64>,
}

impl<T> Recv<'_, T> {
    /// Looks, and waits if there is nothing.
    fn find_or_wait(
        receiver: &mut Receiver<T>,
        node: &Node<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<Lookup<T>> {
        let Receiver {
            shared,
            next,
            batch,
        } = receiver;
        let mut state = shared.state.lock();
        let found = state.find(next, batch, shared.longest_batch);
        if !matches!(found, Lookup::Nothing) {
            return Poll::Ready(found);
        }
        let waker = cx.waker().clone();
        // SAFETY: rule 4: the node is ours and idle.
        unsafe { node.payload(|waits_for| *waits_for = *next) };
        // SAFETY: the node is pinned in its `Recv`, whose drop takes it out; it is idle.
        unsafe { state.waiters.push(node, Some(waker)) };
        Poll::Pending
    }
}

impl<T: Clone> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let spent = ready!(spend(cx));
        // SAFETY: the node is not moved out of the pinned future.
        let this = unsafe { self.get_unchecked_mut() };
        if let Some(value) = this.receiver.batch.pop_front() {
            spent.made_progress();
            return Poll::Ready(Ok(own(value)));
        }
        if this.node.status() != Status::Idle {
            let lock = &this.receiver.shared.state;
            // SAFETY: the node is ours and was pushed into this list.
            ready!(unsafe {
                this.node
                    .poll_notified(cx, lock, |state| &mut state.waiters)
            });
            this.node.reset();
        }
        let found = ready!(Self::find_or_wait(this.receiver, &this.node, cx));
        spent.made_progress();
        Poll::Ready(match found {
            Lookup::Value(value) => Ok(own(value)),
            Lookup::Lagged(missed) => Err(RecvError::Lagged(missed)),
            Lookup::Nothing | Lookup::Closed => Err(RecvError::Closed),
        })
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        let lock = &self.receiver.shared.state;
        // SAFETY: the node is ours and was pushed, if at all, into this list.
        unsafe { self.node.withdraw(lock, |state| &mut state.waiters) };
    }
}

impl<T> Shared<T> {
    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(name);
        out.field("capacity", &self.capacity);
        if let Some(state) = self.state.try_lock() {
            out.field("kept", &state.slots.len())
                .field("receivers", &state.receivers)
                .field("waiting", &state.waiters.len())
                .field("closed", &state.closed);
        }
        out.finish()
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

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.receiver.shared.debug("Recv", f)
    }
}

/// What can go wrong with a broadcast channel.
pub mod error {
    use std::error::Error;
    use std::fmt;

    pub use crate::channel::error::SendError;

    /// Why there is no value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RecvError {
        /// All senders are gone, and everything was received.
        Closed,
        /// The receiver was too slow and missed this many values; it goes on with the oldest left.
        Lagged(u64),
    }

    /// Why there is no value at once.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is no value now.
        Empty,
        /// All senders are gone, and everything was received.
        Closed,
        /// The receiver was too slow and missed this many values; it goes on with the oldest left.
        Lagged(u64),
    }

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            TryRecvError::from(*self).fmt(f)
        }
    }

    impl From<RecvError> for TryRecvError {
        fn from(error: RecvError) -> Self {
            match error {
                RecvError::Closed => TryRecvError::Closed,
                RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
            }
        }
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                TryRecvError::Empty => f.write_str("channel empty"),
                TryRecvError::Closed => f.write_str("channel closed"),
                TryRecvError::Lagged(missed) => write!(f, "channel lagged by {missed}"),
            }
        }
    }

    impl Error for RecvError {}
    impl Error for TryRecvError {}
}
