//! Sending and receiving within a limit: a deadline, a token, or both.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::pin;

use super::error::{RecvError, SendError};
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

/// No value was received within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecvWithinError {
    /// The channel is closed and empty.
    Closed,
    /// The token was cancelled.
    Cancelled,
    /// The deadline has passed.
    TimedOut,
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

impl RecvWithinError {
    /// True if the deadline has passed.
    pub fn is_timeout(&self) -> bool {
        *self == RecvWithinError::TimedOut
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

impl<T> mpmc::Receiver<T> {
    /// Receives as [`recv`](mpmc::Receiver::recv) does, for as long as `limit` allows. Cancel-safe.
    pub async fn recv_within<'a>(&self, limit: impl Into<Limit<'a>>) -> Result<T, RecvWithinError> {
        receive(self.recv(), limit.into()).await
    }
}

impl<T> mpsc::Receiver<T> {
    /// Receives as [`recv`](mpsc::Receiver::recv) does, for as long as `limit` allows. Cancel-safe.
    pub async fn recv_within<'a>(
        &mut self,
        limit: impl Into<Limit<'a>>,
    ) -> Result<T, RecvWithinError> {
        receive(self.recv(), limit.into()).await
    }
}

/// A value that arrives at the last moment goes back when the receive is dropped.
async fn receive<T>(
    receiving: impl Future<Output = Result<T, RecvError>>,
    limit: Limit<'_>,
) -> Result<T, RecvWithinError> {
    match limit.apply(pin!(receiving)).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(RecvError)) => Err(RecvWithinError::Closed),
        Err(Cut::Cancelled) => Err(RecvWithinError::Cancelled),
        Err(Cut::TimedOut) => Err(RecvWithinError::TimedOut),
    }
}

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

impl fmt::Display for RecvWithinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvWithinError::Closed => "the channel is closed and empty; stop receiving",
            RecvWithinError::Cancelled => CANCELLED,
            RecvWithinError::TimedOut => TIMED_OUT,
        })
    }
}

impl<T> Error for SendWithinError<T> {}
impl Error for RecvWithinError {}
