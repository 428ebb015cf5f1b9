//! The methods of sockets that are about readiness, once for all kinds.

/// `ready` of everything that has a socket: `$source` is an expression of `$this`.
macro_rules! ready_method {
    (|$this:ident| $source:expr) => {
        /// Waits until the socket may be ready for something of `interest`; says for what. It may
        /// be a false alarm: follow it with a `try_` method. Cancel-safe.
        pub async fn ready(
            &self,
            interest: $crate::io::Interest,
        ) -> ::std::io::Result<$crate::io::Ready> {
            let $this = self;
            let found = $crate::io::ready::ready_for($source, interest).await?;
            Ok(found.ready)
        }
    };
}

/// The methods of whole sockets, with tokio's names of the two poll functions.
macro_rules! readiness_methods {
    ($read_ready:ident, $write_ready:ident, |$this:ident| $source:expr) => {
        $crate::net::readiness::ready_method!(|$this| $source);

        /// Polls until there may be something to read, or the end, or an error: the last task that
        /// polled is woken.
        pub fn $read_ready(
            &self,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            let $this = self;
            $crate::net::readiness::poll_ready(
                $source,
                ::windlass_runtime::driver::Direction::Read,
                cx,
            )
        }

        /// Polls until there may be room to write, or an error: the last task that polled is woken.
        pub fn $write_ready(
            &self,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            let $this = self;
            $crate::net::readiness::poll_ready(
                $source,
                ::windlass_runtime::driver::Direction::Write,
                cx,
            )
        }

        /// Calls `f`, which does something with the socket that does not block, if that may be
        /// ready. `WouldBlock` from `f` proves that it is not: the next `ready` waits for an event.
        ///
        /// # Errors
        /// `WouldBlock` if the socket is not ready; otherwise what `f` returns.
        pub fn try_io<R>(
            &self,
            interest: $crate::io::Interest,
            f: impl FnOnce() -> ::std::io::Result<R>,
        ) -> ::std::io::Result<R> {
            let $this = self;
            $crate::io::ready::try_io($source, interest, f)
        }

        /// Calls `f` whenever the socket may be ready, until it returns something else than
        /// `WouldBlock`. Cancel-safe if `f` is: the call that succeeds is the last.
        pub async fn async_io<R>(
            &self,
            interest: $crate::io::Interest,
            f: impl FnMut() -> ::std::io::Result<R>,
        ) -> ::std::io::Result<R> {
            let $this = self;
            $crate::io::ready::async_io($source, interest, f).await
        }
    };
}

/// The descriptor of a socket: `$socket` is an expression of `$this`, some socket of the kernel or
/// none.
macro_rules! descriptor {
    ($type:ty, |$this:ident| $socket:expr) => {
        impl ::std::os::fd::AsFd for $type {
            /// # Panics
            /// In a simulation, whose sockets have no descriptors.
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                let $this = self;
                match $socket {
                    Some(socket) => ::std::os::fd::AsFd::as_fd(socket),
                    None => panic!(
                        "a simulated socket has no descriptor: `as_fd` works outside of \
                         simulations only"
                    ),
                }
            }
        }

        impl ::std::os::fd::AsRawFd for $type {
            /// # Panics
            /// In a simulation, whose sockets have no descriptors.
            fn as_raw_fd(&self) -> ::std::os::fd::RawFd {
                ::std::os::fd::AsFd::as_fd(self).as_raw_fd()
            }
        }
    };
}

use std::io;
use std::task::{Context, Poll, ready};

use windlass_runtime::driver::{Direction, Source, shut_down};

/// Polls for readiness in one direction.
pub(super) fn poll_ready(
    source: &Source,
    direction: Direction,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    match ready!(source.poll_ready(direction, cx)) {
        found if found.is_shut() => Poll::Ready(Err(shut_down())),
        _ => Poll::Ready(Ok(())),
    }
}

pub(super) use {descriptor, readiness_methods, ready_method};
