//! One value, once: one allocation and no lock.
//!
//! # The state
//! | bit | set by | means |
//! |---|---|---|
//! | DONE | sender, once | it sent, or is gone without sending; the value's cell is the receiver's |
//! | CLOSED | receiver, once | it takes nothing that was not sent before |
//! | RECEIVER_WAITS | receiver | its waker's cell is filled and may be read by who sets DONE |
//! | SENDER_WAITS | sender | its waker's cell is filled and may be read by who sets CLOSED |
//!
//! # The rules
//! 1. The value's cell is the sender's until DONE is set, and the receiver's from then on. The
//!    sender sets DONE only if CLOSED is not set; otherwise the value goes back to its caller.
//! 2. A side's waker cell is written by that side only, and only while its WAITS bit is clear and
//!    it has not seen the other side's final bit (DONE for the receiver, CLOSED for the sender).
//! 3. The other side reads that cell once: if it saw the WAITS bit in the very operation that set
//!    its own final bit. A side that clears its WAITS bit and finds the final bit set leaves the
//!    cell alone.
//! 4. Cells are dropped with the block.
//!
//! | state | send | drop of the receiver | poll of the receiver |
//! |---|---|---|---|
//! | nothing | DONE | CLOSED | fills the cell, RECEIVER_WAITS |
//! | RECEIVER_WAITS | DONE, wakes | CLOSED | the same waker: nothing; a new one: clears, fills, sets |
//! | DONE | - | CLOSED, drops the value | takes the value, or learns that there is none |
//! | CLOSED | the value comes back | - | learns that there is none |

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::sync::atomic::{AtomicU8, Ordering};
use windlass_core::sync::{Arc, UnsafeCell};
use windlass_core::task::spend;

use self::error::{RecvError, TryRecvError};

const DONE: u8 = 1;
const CLOSED: u8 = 2;
const RECEIVER_WAITS: u8 = 4;
const SENDER_WAITS: u8 = 8;

/// A channel for one value.
///
/// ```
/// use windlass_sync::channel::oneshot;
///
/// # windlass_core::block_on(async {
/// let (sender, receiver) = oneshot::channel();
/// sender.send(42).unwrap();
/// assert_eq!(receiver.await, Ok(42));
/// # });
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let block = Arc::new(Block {
        state: AtomicU8::new(0),
        value: UnsafeCell::new(None),
        receiver: UnsafeCell::new(None),
        sender: UnsafeCell::new(None),
    });
    let sender = Sender {
        block: Some(block.clone()),
    };
    (
        sender,
        Receiver {
            block,
            is_terminated: false,
        },
    )
}

struct Block<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
    receiver: UnsafeCell<Option<Waker>>,
    sender: UnsafeCell<Option<Waker>>,
}

// SAFETY: rules 1 to 3: the state hands every cell from one side to the other.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; no code gets a shared reference to the value.
unsafe impl<T: Send> Sync for Block<T> {}

/// Which of the two cells a waker is in.
#[derive(Clone, Copy)]
enum Side {
    Receiver,
    Sender,
}

impl Side {
    fn waits(self) -> u8 {
        match self {
            Side::Receiver => RECEIVER_WAITS,
            Side::Sender => SENDER_WAITS,
        }
    }

    /// The bit that ends this side's wait.
    fn end(self) -> u8 {
        match self {
            Side::Receiver => DONE,
            Side::Sender => CLOSED,
        }
    }
}

impl<T> Block<T> {
    fn load(&self) -> u8 {
        // Acquire: pairs with the Release in `send`, `finish` and `close`.
        self.state.load(Ordering::Acquire)
    }

    fn cell(&self, side: Side) -> &UnsafeCell<Option<Waker>> {
        match side {
            Side::Receiver => &self.receiver,
            Side::Sender => &self.sender,
        }
    }

    /// Waits for the other side's final bit; ready when it is set. What came with it is seen after
    /// another `load`.
    fn poll_end(&self, side: Side, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.load();
        if state & (side.waits() | side.end()) == side.waits() {
            // SAFETY: rule 2: only we write this cell; the other side at most reads it.
            let same = self.cell(side).with(|waker| unsafe {
                (*waker)
                    .as_ref()
                    .is_some_and(|waker| waker.will_wake(cx.waker()))
            });
            if same {
                return Poll::Pending;
            }
            // Relaxed: it only decides who may touch the cell. What the end brings is acquired by
            // the load that follows it.
            state = self.state.fetch_and(!side.waits(), Ordering::Relaxed);
        }
        if state & side.end() != 0 {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        // SAFETY: rule 2: our bit is clear and the final one was not set when it was cleared.
        let old = self
            .cell(side)
            .with_mut(|place| unsafe { (*place).replace(waker) });
        // Release: publishes the waker; pairs with the Acquire in `finish` and `close`.
        let state = self.state.fetch_or(side.waits(), Ordering::Release);
        drop(old);
        if state & side.end() != 0 {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Wakes `side` if it waited when the final bit was set: `before` is the state until then.
    fn wake(&self, side: Side, before: u8) {
        if before & (side.waits() | side.end()) == side.waits() {
            // SAFETY: rule 3: we set the final bit and saw theirs.
            self.cell(side).with(|waker| unsafe {
                if let Some(waker) = &*waker {
                    waker.wake_by_ref();
                }
            });
        }
    }

    /// Sets DONE, unless the receiver closed; gives the state before.
    fn finish(&self) -> u8 {
        let mut now = self.state.load(Ordering::Relaxed);
        while now & CLOSED == 0 {
            // AcqRel: publishes the value (pairs with the Acquire of the receiver), and sees the
            // waker.
            match self.state.compare_exchange_weak(
                now,
                now | DONE,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(before) => {
                    self.wake(Side::Receiver, before);
                    return before;
                }
                Err(changed) => now = changed,
            }
        }
        now
    }

    /// Sets CLOSED; gives the state before.
    fn close(&self) -> u8 {
        // AcqRel: sees the value and the sender's waker.
        let before = self.state.fetch_or(CLOSED, Ordering::AcqRel);
        if before & DONE == 0 {
            self.wake(Side::Sender, before);
        }
        before
    }

    /// The value; the caller is the receiver and saw DONE.
    fn take(&self) -> Option<T> {
        // SAFETY: rule 1.
        self.value.with_mut(|value| unsafe { (*value).take() })
    }

    /// Returns true if the value was sent and not taken; the caller is the receiver and has seen
    /// DONE.
    fn has_value(&self) -> bool {
        // SAFETY: rule 1; taking the value needs the receiver mutably, so nothing writes meanwhile.
        self.value.with(|value| unsafe { (*value).is_some() })
    }
}

/// Sends the value.
pub struct Sender<T> {
    /// None once it was used.
    block: Option<Arc<Block<T>>>,
}

impl<T> Sender<T> {
    /// Sends the value; it comes back if the receiver is gone or closed the channel.
    pub fn send(mut self, value: T) -> Result<(), T> {
        let Some(block) = self.block.take() else {
            return Err(value);
        };
        // SAFETY: rule 1: DONE is not set.
        block
            .value
            .with_mut(|place| unsafe { *place = Some(value) });
        if block.finish() & CLOSED == 0 {
            return Ok(());
        }
        // SAFETY: rule 1: DONE was not set.
        match block.value.with_mut(|place| unsafe { (*place).take() }) {
            Some(value) => Err(value),
            None => Ok(()),
        }
    }

    /// Returns true once the value can no longer be received.
    pub fn is_closed(&self) -> bool {
        self.block
            .as_ref()
            .is_none_or(|block| block.load() & CLOSED != 0)
    }

    /// Waits until the receiver is gone or closed the channel. Cancel-safe.
    pub async fn closed(&mut self) {
        std::future::poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Ready once the receiver is gone or closed the channel.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let spent = ready!(spend(cx));
        if let Some(block) = &self.block {
            ready!(block.poll_end(Side::Sender, cx));
        }
        spent.made_progress();
        Poll::Ready(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(block) = &self.block {
            block.finish();
        }
    }
}

/// The future of the value; an error says that the sender is gone without sending.
///
/// Cancel-safe: it can be polled by reference and polled again later.
#[must_use = "futures do nothing unless awaited"]
pub struct Receiver<T> {
    block: Arc<Block<T>>,
    /// The value was taken, or it was told that there is none.
    is_terminated: bool,
}

impl<T> Receiver<T> {
    /// The value, if it was sent.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let state = self.block.load();
        if state & (DONE | CLOSED) == 0 {
            return Err(TryRecvError::Empty);
        }
        self.is_terminated = true;
        let value = match state & DONE != 0 {
            true => self.block.take(),
            false => None,
        };
        value.ok_or(TryRecvError::Closed)
    }

    /// Returns true once the value was taken, or an error was given because there is none.
    pub fn is_terminated(&self) -> bool {
        self.is_terminated
    }

    /// Returns true if no value can be taken now.
    pub fn is_empty(&self) -> bool {
        self.block.load() & DONE == 0 || !self.block.has_value()
    }

    /// Blocks this thread until the value is there.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        windlass_core::block_on(self)
    }

    /// Refuses a value that was not sent yet; one that was can still be taken.
    pub fn close(&mut self) {
        self.block.close();
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let spent = ready!(spend(cx));
        // If we closed, nothing comes any more: only what was sent before counts.
        if self.block.load() & (CLOSED | DONE) != CLOSED {
            ready!(self.block.poll_end(Side::Receiver, cx));
        }
        let value = if self.block.load() & DONE != 0 {
            self.block.take()
        } else {
            None
        };
        spent.made_progress();
        self.is_terminated = true;
        Poll::Ready(value.ok_or(RecvError(())))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // A sender that is done does not care whether a receiver is left.
        if self.block.load() & DONE != 0 || self.block.close() & DONE != 0 {
            super::drop_nested(self.block.take());
        }
    }
}

fn debug<T>(name: &str, block: Option<&Block<T>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let state = block.map_or(DONE, |block| block.state.load(Ordering::Relaxed));
    f.debug_struct(name)
        .field("done", &(state & DONE != 0))
        .field("closed", &(state & CLOSED != 0))
        .finish()
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Sender", self.block.as_deref(), f)
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Receiver", Some(&self.block), f)
    }
}

/// What can go wrong with a oneshot channel.
pub mod error {
    use std::error::Error;
    use std::fmt;

    /// The sender is gone and has sent nothing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct RecvError(pub(super) ());

    /// There is no value to be had at once.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TryRecvError {
        /// Nothing was sent yet.
        Empty,
        /// The sender is gone and has sent nothing, or the value was taken.
        Closed,
    }

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                TryRecvError::Empty => "channel empty",
                TryRecvError::Closed => "channel closed",
            })
        }
    }

    impl Error for RecvError {}
    impl Error for TryRecvError {}
}
