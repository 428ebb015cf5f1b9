//! Giving up after a while.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::time::{Instant, Sleep, sleep, sleep_until};

/// Runs `future` for at most `time`; a future that is too slow is dropped. The future wins a tie.
pub fn timeout<F: IntoFuture>(time: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep(time),
    }
}

/// Runs `future` until `deadline` at most.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep_until(deadline),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`]. Cancel-safe if the inner future is.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

impl<F> Timeout<F> {
    /// Returns the future inside.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns the future inside, to change it.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Takes the future out.
    pub fn into_inner(self) -> F {
        self.future
    }
}

/// The time was over before the future was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    _private: (),
}

impl Elapsed {
    pub(crate) const fn new() -> Elapsed {
        Elapsed { _private: () }
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> io::Error {
        io::ErrorKind::TimedOut.into()
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        // A future that uses up the budget must not hold back its own deadline: the sleep is then
        // pending for want of budget, and has asked for the next poll.
        this.sleep.poll(cx).map(|()| Err(Elapsed::new()))
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("sleep", &self.sleep)
            .finish_non_exhaustive()
    }
}
