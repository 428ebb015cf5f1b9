//! Waiting for a moment.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use windlass_core::sync::{Arc, clock};
use windlass_core::task::spend;

use crate::time::timers::Shard;
use crate::time::wheel::{Entry, TimerState};
use crate::time::{Instant, thread_shard};
use crate::waker_id::WakerId;

/// Waits for `time`; never less. Cancel-safe: a dropped sleep leaves nothing behind.
pub fn sleep(time: Duration) -> Sleep {
    let now = Instant::now();
    let mut sleep = sleep_until(now + time);
    if !time.is_zero() {
        sleep.begun = now.nanos();
    }
    sleep
}

/// Waits until `deadline`; returns at once if that has passed. Cancel-safe.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline: deadline.nanos(),
        begun: 0,
        shard: None,
        waker: WakerId::NOBODY,
        entry: Entry::new(),
    }
}

/// The future of [`sleep`] and [`sleep_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: u64,
    /// A moment before the deadline at which the clock was looked at already: the first poll
    /// need not. If it comes so late that the deadline has passed, the wheel fires at once.
    begun: u64,
    /// Where the entry is linked, from the first poll that was too early until the timer fires.
    shard: Option<Arc<Shard>>,
    /// Whose waker the wheel has, to compare without the lock.
    waker: WakerId,
    entry: Entry,
}

impl Sleep {
    /// The moment it waits for.
    pub fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline)
    }

    /// True if that moment has passed.
    pub fn is_elapsed(&self) -> bool {
        clock::now() >= self.deadline
    }

    /// Waits for another moment instead, whether or not the first has come. It has to be polled
    /// after this.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        this.leave();
        this.begun = 0;
        this.deadline = deadline.nanos();
    }

    /// Takes the entry out of its wheel.
    fn leave(&mut self) {
        if let Some(shard) = self.shard.take() {
            if self.entry.state() == TimerState::Waiting {
                // SAFETY: rule 2 of the wheel: registered there, and alive.
                unsafe { shard.cancel(&self.entry) };
            }
            self.entry.renew();
        }
    }

    /// Puts the entry into the wheel of this thread.
    fn enter(&mut self, now: u64, cx: &Context<'_>) {
        let (entry, deadline) = (&self.entry, self.deadline);
        let shard = thread_shard::with_shard(|shard| {
            // SAFETY: rule 2 of the wheel: we are pinned, not linked, and `leave` before the end.
            unsafe { shard.register(entry, deadline, now, cx.waker().clone()) }
                .then(|| shard.clone())
        });
        self.waker = WakerId::of(cx.waker());
        self.shard = Some(shard.unwrap_or_else(|| {
            // This runtime has ended; the program's own lives on.
            let shard = thread_shard::default_shard();
            // SAFETY: as above.
            let taken = unsafe { shard.register(entry, deadline, now, cx.waker().clone()) };
            debug_assert!(taken, "the default runtime does not end");
            shard
        }));
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let spent = ready!(spend(cx));
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        if let Some(shard) = &this.shard {
            if this.entry.state() == TimerState::Waiting && this.waker != WakerId::of(cx.waker()) {
                // SAFETY: rule 2 of the wheel: registered there, and alive.
                unsafe { shard.set_waker(&this.entry, cx.waker()) };
                this.waker = WakerId::of(cx.waker());
            }
            match this.entry.state() {
                TimerState::Waiting => return Poll::Pending,
                // The runtime whose wheel it was has ended: wait elsewhere.
                TimerState::Due | TimerState::Closed => this.leave(),
            }
        }
        let now = match std::mem::take(&mut this.begun) {
            0 => clock::now(),
            begun => begun,
        };
        if now >= this.deadline {
            spent.made_progress();
            return Poll::Ready(());
        }
        this.enter(now, cx);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
