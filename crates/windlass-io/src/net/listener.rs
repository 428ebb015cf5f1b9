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
