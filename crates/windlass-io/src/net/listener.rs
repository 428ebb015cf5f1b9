//! Accepting connections, over any kind of stream socket.

use std::io;
use std::task::{Context, Poll};

use super::simulated::{self, Name};
use super::stream::{Kind, Stream};
use windlass_runtime::driver::{Direction, Registered, Source, unsupported};

const NOT_REAL: &str = "a simulated listener is none of the operating system's: this works outside of simulations only";

/// A listening socket of the kernel.
pub(super) trait ListeningSocket: mio::event::Source + Sized {
    /// A connection that was accepted, before it is registered with the driver.
    type Connected: mio::event::Source;
    type Address;

    fn accept(&self) -> io::Result<(Self::Connected, Self::Address)>;
    fn local_addr(&self) -> io::Result<Self::Address>;
    fn kind(connected: Registered<Self::Connected>) -> Kind;
    /// The address that a name of the simulated network stands for.
    fn address_of(name: &Name) -> io::Result<Self::Address>;
}

/// A listener of the kernel or of a simulation.
#[derive(Debug)]
pub(super) enum Listener<S: mio::event::Source> {
    Real(Registered<S>),
    Simulated(simulated::Listener),
}

impl<S: ListeningSocket> Listener<S> {
    pub(super) async fn accept(&self) -> io::Result<(Stream, S::Address)> {
        let accepted = self.source().io(Direction::Read, || self.accept_now());
        accepted.await
    }

    pub(super) fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Stream, S::Address)>> {
        self.source()
            .poll_io(Direction::Read, cx, || self.accept_now())
    }

    pub(super) fn local_addr(&self) -> io::Result<S::Address> {
        match self {
            Listener::Real(listener) => listener.socket().local_addr(),
            Listener::Simulated(listener) => S::address_of(listener.name()),
        }
    }

    /// Returns the socket of the kernel.
    pub(super) fn socket(&self) -> io::Result<&S> {
        match self {
            Listener::Real(listener) => Ok(listener.socket()),
            Listener::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// Takes the socket of the kernel out of the driver.
    pub(super) fn into_socket(self) -> io::Result<S> {
        match self {
            Listener::Real(listener) => Ok(listener.into_socket()),
            Listener::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Listener::Real(listener) => listener.source(),
            Listener::Simulated(listener) => listener.source(),
        }
    }

    fn accept_now(&self) -> io::Result<(Stream, S::Address)> {
        match self {
            Listener::Real(listener) => {
                let (socket, from) = listener.socket().accept()?;
                let registered = Registered::new(listener.driver(), socket)?;
                Ok((Stream(S::kind(registered)), from))
            }
            Listener::Simulated(listener) => {
                let stream = listener.accept()?;
                let from = S::address_of(stream.peer())?;
                Ok((Stream(Kind::Simulated(stream)), from))
            }
        }
    }
}

/// What a listener `$Listener(Listener)` of streams `$Stream` and the socket `$std` have in common.
macro_rules! listener_methods {
    ($Listener:ident, $std:ty => $Stream:ident, $address:ty) => {
        /// Takes over a listener of the standard library, on the runtime this is called in.
        ///
        /// # Errors
        /// `Unsupported` in a simulation.
        pub fn from_std(listener: $std) -> ::std::io::Result<$Listener> {
            listener.set_nonblocking(true)?;
            let socket = ::mio::net::$Listener::from_std(listener);
            let registered = ::windlass_runtime::driver::Registered::here(socket)?;
            Ok($Listener($crate::net::listener::Listener::Real(registered)))
        }

        /// Takes the listener out of the runtime. It is in non-blocking mode: call
        /// `set_nonblocking(false)` to wait in its methods.
        ///
        /// # Errors
        /// `Unsupported` in a simulation.
        pub fn into_std(self) -> ::std::io::Result<$std> {
            Ok(self.0.into_socket()?.into())
        }

        /// Polls for what `accept` awaits: the last task that polled is woken.
        pub fn poll_accept(
            &self,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<($Stream, $address)>> {
            let accepted = ::std::task::ready!(self.0.poll_accept(cx));
            ::std::task::Poll::Ready(accepted.map(|(stream, from)| ($Stream::new(stream), from)))
        }

        /// Returns the address that the listener is bound to.
        pub fn local_addr(&self) -> ::std::io::Result<$address> {
            self.0.local_addr()
        }
    };
}

/// The stream `$Incoming` of the connections `$Stream` of a `$Listener`.
macro_rules! incoming {
    ($Incoming:ident of $Listener:ident => $Stream:ident) => {
        impl $Listener {
            /// The connections as they come, as a stream that never ends. Errors are items, as
            /// those of `accept`.
            pub fn incoming(&self) -> $Incoming<'_> {
                $Incoming(self)
            }
        }

        #[doc = concat!("Connections as they come; see [`", stringify!($Listener), "::incoming`].")]
        #[derive(Debug)]
        #[must_use = "streams do nothing unless polled"]
        pub struct $Incoming<'a>(&'a $Listener);

        impl ::futures_core::Stream for $Incoming<'_> {
            type Item = ::std::io::Result<$Stream>;

            fn poll_next(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<Option<Self::Item>> {
                let accepted = ::std::task::ready!(self.0.poll_accept(cx));
                ::std::task::Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
            }
        }
    };
}

pub(super) use {incoming, listener_methods};
