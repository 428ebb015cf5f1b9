//! The two halves of a stream, for two tasks.
//!
//! [`ReadHalf`] and [`WriteHalf`] borrow the stream; [`OwnedReadHalf`] and [`OwnedWriteHalf`] share
//! it, and can be put together again.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll};

use windlass_core::sync::Arc;

use super::readiness::ready_method;
use super::stream::{
    AsStream, Stream, async_read, async_write, futures_read, futures_write, reading_methods,
    writing_methods,
};
use super::tcp::stream::TcpStream;
use super::unix::stream::UnixStream;
use crate::io::ReadBuf;

/// The reading half of a stream that is borrowed.
#[derive(Debug)]
pub struct ReadHalf<'a, S>(&'a S);

/// The writing half of a stream that is borrowed.
#[derive(Debug)]
pub struct WriteHalf<'a, S>(&'a S);

/// The reading half of a stream that is shared by two owners.
#[derive(Debug)]
pub struct OwnedReadHalf<S> {
    stream: Arc<S>,
}

/// The writing half of a stream that is shared by two owners. Dropping it ends the writing
/// direction: the other side reads to the end.
#[derive(Debug)]
pub struct OwnedWriteHalf<S: AsStream> {
    stream: Arc<S>,
    /// False once the stream goes on without this half.
    ends: bool,
}

pub(super) fn borrowed<S>(stream: &mut S) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf(stream), WriteHalf(stream))
}

pub(super) fn owned<S: AsStream>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    let reading = OwnedReadHalf {
        stream: stream.clone(),
    };
    (reading, OwnedWriteHalf { stream, ends: true })
}

impl<S: AsStream> ReadHalf<'_, S> {
    reading_methods!();
    ready_method!(|this| this.as_stream().source());

    /// The whole stream: its addresses, its options.
    pub fn stream(&self) -> &S {
        self.0
    }
}

impl<S: AsStream> WriteHalf<'_, S> {
    writing_methods!();
    ready_method!(|this| this.as_stream().source());

    /// The whole stream: its addresses, its options.
    pub fn stream(&self) -> &S {
        self.0
    }
}

impl<S: AsStream> OwnedReadHalf<S> {
    reading_methods!();
    ready_method!(|this| this.as_stream().source());

    /// The whole stream: its addresses, its options.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Puts the halves together again; nothing is shut down.
    ///
    /// # Errors
    /// If they are halves of two streams: both come back.
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.stream, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        match Arc::try_unwrap(self.stream) {
            Ok(stream) => Ok(stream),
            Err(_) => unreachable!("a stream has two halves, and both were here"),
        }
    }
}

impl<S: AsStream> OwnedWriteHalf<S> {
    writing_methods!();
    ready_method!(|this| this.as_stream().source());

    /// The whole stream: its addresses, its options.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Puts the halves together again; see [`OwnedReadHalf::reunite`].
    ///
    /// # Errors
    /// If they are halves of two streams: both come back.
    pub fn reunite(self, other: OwnedReadHalf<S>) -> Result<S, ReuniteError<S>> {
        other.reunite(self)
    }

    /// Drops this half without ending the writing direction; that ends with the other half.
    pub fn forget(mut self) {
        self.ends = false;
    }
}

/// The addresses of a half are those of its stream, which the half gives too.
macro_rules! of_the_stream {
    ($stream:ident, $address:ty: $($half:ty),+) => { $(
        impl $half {
            /// Returns this end's address.
            pub fn local_addr(&self) -> io::Result<$address> {
                self.stream().local_addr()
            }

            /// Returns the other end's address.
            pub fn peer_addr(&self) -> io::Result<$address> {
                self.stream().peer_addr()
            }
        }

        impl AsRef<$stream> for $half {
            fn as_ref(&self) -> &$stream {
                self.stream()
            }
        }
    )+ };
}

of_the_stream!(TcpStream, SocketAddr:
    ReadHalf<'_, TcpStream>, WriteHalf<'_, TcpStream>,
    OwnedReadHalf<TcpStream>, OwnedWriteHalf<TcpStream>);
of_the_stream!(UnixStream, crate::net::unix::SocketAddr:
    ReadHalf<'_, UnixStream>, WriteHalf<'_, UnixStream>,
    OwnedReadHalf<UnixStream>, OwnedWriteHalf<UnixStream>);

/// The reading halves of TCP streams peek.
macro_rules! peeking {
    ($($half:ty),+) => { $(
        impl $half {
            /// Reads, but leaves the bytes there for the next read. Cancel-safe.
            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.stream().peek(buf).await
            }

            /// Polls for what `peek` awaits, into the part of `buf` that is not filled; gives how
            /// many bytes that were. The last task that polled is woken.
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_peek(cx, buf)
            }
        }
    )+ };
}

peeking!(ReadHalf<'_, TcpStream>, OwnedReadHalf<TcpStream>);

impl<S: AsStream> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.ends {
            // A connection that has failed has reported that to its readers and writers.
            let _ = self.stream.as_stream().shutdown(Shutdown::Write);
        }
    }
}

impl<S: AsStream> AsStream for ReadHalf<'_, S> {
    fn as_stream(&self) -> &Stream {
        self.0.as_stream()
    }
}

impl<S: AsStream> AsStream for WriteHalf<'_, S> {
    fn as_stream(&self) -> &Stream {
        self.0.as_stream()
    }
}

impl<S: AsStream> AsStream for OwnedReadHalf<S> {
    fn as_stream(&self) -> &Stream {
        self.stream.as_stream()
    }
}

impl<S: AsStream> AsStream for OwnedWriteHalf<S> {
    fn as_stream(&self) -> &Stream {
        self.stream.as_stream()
    }
}

async_read!([S: AsStream] ReadHalf<'_, S>);
async_write!([S: AsStream] WriteHalf<'_, S>);
async_read!([S: AsStream] OwnedReadHalf<S>);
async_write!([S: AsStream] OwnedWriteHalf<S>);
futures_read!([S: AsStream] ReadHalf<'_, S>);
futures_write!([S: AsStream] WriteHalf<'_, S>);
futures_read!([S: AsStream] OwnedReadHalf<S>);
futures_write!([S: AsStream] OwnedWriteHalf<S>);

/// The two halves are of different streams; here they are again.
pub struct ReuniteError<S: AsStream>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

impl<S: AsStream> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReuniteError").finish_non_exhaustive()
    }
}

impl<S: AsStream> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tried to reunite halves that are not from the same socket")
    }
}

impl<S: AsStream> std::error::Error for ReuniteError<S> {}
