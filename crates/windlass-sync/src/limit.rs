//! How long an operation may wait: a deadline, a token, or both.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::cancel::CancellationToken;
use crate::time::{Instant, sleep_until};

/// How long an operation may wait. A duration, an instant or a token can stand for one.
///
/// When several things have happened at once the operation itself comes first, then the
/// cancellation, then the deadline.
///
/// ```
/// use std::time::Duration;
/// use windlass_sync::{CancellationToken, Limit, channel::mpmc};
///
/// # windlass_core::block_on(async {
/// let (sender, receiver) = mpmc::buffered::<u32>(1);
/// let stop = CancellationToken::new();
/// let limit = Limit::after(Duration::from_millis(5)).or_cancelled(&stop);
/// assert!(receiver.recv_within(limit).await.unwrap_err().is_timeout());
/// sender.send_within(1, Duration::from_millis(5)).await.unwrap();
/// let refused = sender.send_within(2, Duration::from_millis(5)).await.unwrap_err();
/// assert_eq!(refused.into_inner(), 2, "the sender keeps the value");
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct Limit<'a> {
    deadline: Option<Instant>,
    token: Option<&'a CancellationToken>,
}

impl<'a> Limit<'a> {
    /// Limits an operation to the time until `deadline`.
    pub fn until(deadline: Instant) -> Limit<'a> {
        Limit {
            deadline: Some(deadline),
            token: None,
        }
    }

    /// For `time` from now on.
    pub fn after(time: Duration) -> Limit<'a> {
        Limit::until(Instant::now() + time)
    }

    /// Limits an operation to the time until `token` is cancelled.
    pub fn cancelled(token: &'a CancellationToken) -> Limit<'a> {
        Limit::default().or_cancelled(token)
    }

    /// Also until `token` is cancelled.
    pub fn or_cancelled(mut self, token: &'a CancellationToken) -> Limit<'a> {
        self.token = Some(token);
        self
    }

    /// Runs an operation within the limit. It is not dropped: the caller may still have to take
    /// something back from it.
    pub async fn apply<F: Future>(self, mut operation: Pin<&mut F>) -> Result<F::Output, Cut> {
        let mut cancelled = self.token.map(CancellationToken::cancelled);
        let mut timer = pin!(self.deadline.map(sleep_until));
        poll_fn(|cx| {
            if let Poll::Ready(output) = operation.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if let Some(cancelled) = &mut cancelled
                && Pin::new(cancelled).poll(cx).is_ready()
            {
                return Poll::Ready(Err(Cut::Cancelled));
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(cx).map(|()| Err(Cut::TimedOut)),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Which part of a limit ended an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The token was cancelled.
    Cancelled,
    /// The deadline has passed.
    TimedOut,
}

impl Cut {
    /// True if the deadline has passed.
    pub fn is_timeout(self) -> bool {
        self == Cut::TimedOut
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cut::Cancelled => "the token was cancelled while the operation waited",
            Cut::TimedOut => "the deadline passed while the operation waited",
        })
    }
}

impl Error for Cut {}

impl From<Duration> for Limit<'_> {
    fn from(time: Duration) -> Self {
        Limit::after(time)
    }
}

impl From<Instant> for Limit<'_> {
    fn from(deadline: Instant) -> Self {
        Limit::until(deadline)
    }
}

impl<'a> From<&'a CancellationToken> for Limit<'a> {
    fn from(token: &'a CancellationToken) -> Self {
        Limit::cancelled(token)
    }
}
