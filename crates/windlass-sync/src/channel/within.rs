//! Sending and receiving within a limit: a deadline, a token, or both.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::error::SendError;
use super::sender::Sender;
use super::{mpmc, mpsc};
use crate::limit::{Cut, Limit};

/// The value was not sent within the limit; here it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendWithinError<T> {
    /// The channel is closed.
    Closed(T),
    /// The token was cancelled.
    Cancelled(T),
    /// The deadline has passed.
    TimedOut(T),
}

/// The value was not sent in time; here it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The time is over, and there was no room.
    Timeout(T),
    /// The channel is closed.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout(value) | SendTimeoutError::Closed(value) => value,
        }
    }
}

impl<T> SendWithinError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendWithinError::Closed(value)
            | SendWithinError::Cancelled(value)
            | SendWithinError::TimedOut(value) => value,
        }
    }

    /// True if the deadline has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, SendWithinError::TimedOut(_))
    }
}

impl<T> Sender<T> {
    /// Sends a value as [`Sender::send`] does, for as long as `limit` allows: a duration, an
    /// instant, a token, or a [`Limit`] of several. An error hands the value back.
    pub async fn send_within<'a>(
        &self,
        value: T,
        limit: impl Into<Limit<'a>>,
    ) -> Result<(), SendWithinError<T>> {
        let mut sending = pin!(self.send(value));
        let cut = match limit.into().apply(sending.as_mut()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(SendError(value))) => return Err(SendWithinError::Closed(value)),
            Err(cut) => cut,
        };
        match (sending.cancel(), cut) {
            // Delivered at the last moment.
            (None, _) => Ok(()),
            (Some(value), Cut::Cancelled) => Err(SendWithinError::Cancelled(value)),
            (Some(value), Cut::TimedOut) => Err(SendWithinError::TimedOut(value)),
        }
    }
}

impl<T> Sender<T> {
    /// Sends a value as [`Sender::send`] does, for at most `timeout`. An error hands the value
    /// back.
    pub async fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        match self.send_within(value, timeout).await {
            Ok(()) => Ok(()),
            Err(SendWithinError::Closed(value)) => Err(SendTimeoutError::Closed(value)),
            Err(SendWithinError::Cancelled(value) | SendWithinError::TimedOut(value)) => {
                Err(SendTimeoutError::Timeout(value))
            }
        }
    }
}

impl<T> mpmc::Receiver<T> {
    /// Receives as [`recv`](mpmc::Receiver::recv) does, for as long as `limit` allows. Cancel-safe.
    pub async fn recv_within<'a>(&self, limit: impl Into<Limit<'a>>) -> Result<Option<T>, Cut> {
        receive(self.recv(), limit.into()).await
    }
}

impl<T> mpsc::Receiver<T> {
    /// Receives as [`recv`](mpsc::Receiver::recv) does, for as long as `limit` allows. Cancel-safe.
    pub async fn recv_within<'a>(&mut self, limit: impl Into<Limit<'a>>) -> Result<Option<T>, Cut> {
        receive(self.recv(), limit.into()).await
    }
}

/// A value that arrives at the last moment goes back when the receive is dropped.
async fn receive<T>(
    receiving: impl Future<Output = Option<T>>,
    limit: Limit<'_>,
) -> Result<Option<T>, Cut> {
    limit.apply(pin!(receiving)).await
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "timed out waiting on send operation",
            SendTimeoutError::Closed(_) => "channel closed",
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}

impl<T> fmt::Debug for SendWithinError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendWithinError::Closed(_) => "Closed(..)",
            SendWithinError::Cancelled(_) => "Cancelled(..)",
            SendWithinError::TimedOut(_) => "TimedOut(..)",
        })
    }
}

const CANCELLED: &str = "the token was cancelled while the channel operation waited";
const TIMED_OUT: &str = "the deadline passed while the channel operation waited";

impl<T> fmt::Display for SendWithinError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendWithinError::Closed(_) => "the channel is closed; take the value back",
            SendWithinError::Cancelled(_) => CANCELLED,
            SendWithinError::TimedOut(_) => TIMED_OUT,
        })
    }
}

impl<T> Error for SendWithinError<T> {}
