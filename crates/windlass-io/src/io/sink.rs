//! A writer that forgets.

use std::fmt;

/// The `AsyncWrite` of what takes every write and forgets it.
macro_rules! forgets_writes {
    ($type:ty) => {
        impl $crate::io::AsyncWrite for $type {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::io::always_ready(cx).map(|()| Ok(buf.len()))
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bufs: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::io::always_ready(cx).map(|()| Ok(bufs.iter().map(|buf| buf.len()).sum()))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::io::always_ready(cx).map(Ok)
            }

            fn poll_shutdown(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::io::always_ready(cx).map(Ok)
            }
        }
    };
}

pub(super) use forgets_writes;

/// A writer that takes every write and forgets it; made by [`sink`].
pub struct Sink(());

/// Makes a writer that takes every write and forgets it.
pub fn sink() -> Sink {
    Sink(())
}

forgets_writes!(Sink);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Sink { .. }")
    }
}
