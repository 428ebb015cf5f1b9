//! The program's output and error output.
//!
//! A write to a pipe that is not read blocks its thread, so writes run on blocking threads. As with
//! files, and unlike in tokio, a write is reported when the operating system has the bytes: nothing
//! is lost at an exit without a flush. What becomes of a dropped write is as for
//! [`fs::File`](crate::fs::File).

use std::future::Future;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::task::JoinHandle;
use windlass_runtime::Handle;

use super::{AsyncWrite, refuse_in_simulation};

/// The most that one operation moves.
const MOST: usize = 1 << 20;

/// A write that runs, or is done and was not reported.
#[derive(Debug)]
enum UnderWay {
    Nothing,
    Write(JoinHandle<(io::Result<()>, Vec<u8>)>),
    Written(Vec<u8>),
}

impl UnderWay {
    /// Waits for a write that runs; keeps what it wrote, to be reported.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let UnderWay::Write(write) = self else {
            return Poll::Ready(Ok(()));
        };
        let joined = ready!(Pin::new(write).poll(cx));
        *self = UnderWay::Nothing;
        let (result, bytes) = joined.map_err(io::Error::other)?;
        result?;
        *self = UnderWay::Written(bytes);
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        write: fn(&[u8]) -> io::Result<()>,
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            ready!(self.poll_written(cx))?;
            if let UnderWay::Written(written) = std::mem::replace(self, UnderWay::Nothing)
                && bytes.starts_with(&written)
            {
                return Poll::Ready(Ok(written.len()));
            }
            let copy = bytes[..bytes.len().min(MOST)].to_vec();
            let job = Handle::current_or_default()
                .try_spawn_blocking(move || (write(&copy), copy))
                .map_err(io::Error::other)?;
            *self = UnderWay::Write(job);
        }
    }
}

/// An output of the program.
macro_rules! output {
    ($(#[$doc:meta])+ $type:ident, $(#[$make_doc:meta])+ $make:ident, $name:literal) => {
        $(#[$doc])+
        #[derive(Debug)]
        pub struct $type(UnderWay);

        $(#[$make_doc])+
        pub fn $make() -> $type {
            $type(UnderWay::Nothing)
        }

        impl AsyncWrite for $type {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                refuse_in_simulation($name)?;
                self.0.poll_write(cx, buf, |bytes| {
                    let mut output = io::$make().lock();
                    output.write_all(bytes)?;
                    output.flush()
                })
            }

            fn poll_flush(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                self.0.poll_written(cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }
        }

        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                io::$make().as_raw_fd()
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                // The standard library's output lives as long as the program.
                static OUTPUT: std::sync::LazyLock<io::$type> =
                    std::sync::LazyLock::new(io::$make);
                OUTPUT.as_fd()
            }
        }
    };
}

output! {
    /// The program's output; made by [`stdout`].
    ///
    /// A write is reported when the operating system has the bytes. Writes of several tasks do not
    /// mix within one call of `write`, but those of one `write_all` can. In a simulation each write
    /// fails with `Unsupported`.
    Stdout,
    /// Returns the program's output.
    stdout, "`stdout`"
}

output! {
    /// The program's error output; made by [`stderr`].
    ///
    /// A write is reported when the operating system has the bytes. In a simulation each write
    /// fails with `Unsupported`.
    Stderr,
    /// Returns the program's error output.
    stderr, "`stderr`"
}
