//! A socket of the operating system, ready when the driver says so.

use std::io;

use windlass_core::sync::Arc;

use super::{IoDriver, Reality, Registration, Source};
use crate::handle::Handle;

/// A socket and its registration; dropping it takes the socket out of the driver, then closes it.
#[derive(Debug)]
pub struct Registered<S: mio::event::Source> {
    registration: Registration,
    /// None only while `into_socket` hands it out.
    socket: Option<S>,
}

impl<S: mio::event::Source> Registered<S> {
    /// Registers a socket, which is in non-blocking mode and owns its descriptor.
    pub fn new(driver: &Arc<IoDriver>, mut socket: S) -> io::Result<Registered<S>> {
        Ok(Registered {
            registration: Registration::new(driver, &mut socket, false)?,
            socket: Some(socket),
        })
    }

    /// Registers a descriptor that another may close before this is dropped. Each event costs a
    /// lookup more than those of `new`.
    pub fn lent(driver: &Arc<IoDriver>, mut descriptor: S) -> io::Result<Registered<S>> {
        Ok(Registered {
            registration: Registration::new(driver, &mut descriptor, true)?,
            socket: Some(descriptor),
        })
    }

    /// On the runtime this is called in. A simulation has no kernel to ask for events.
    pub fn here(socket: S) -> io::Result<Registered<S>> {
        match &Handle::current_or_default().shared().world {
            Reality::Real(driver) => Registered::new(driver, socket),
            Reality::Simulated(_) => Err(unsupported(
                "a socket of the operating system cannot be used in a simulation: bind or connect \
                 one there",
            )),
        }
    }

    /// Returns the driver that the socket is registered with.
    pub fn driver(&self) -> &Arc<IoDriver> {
        self.registration.driver()
    }

    /// Returns the readiness of the socket.
    pub fn source(&self) -> &Source {
        self.registration.source()
    }

    /// Returns the socket.
    pub fn socket(&self) -> &S {
        match &self.socket {
            Some(socket) => socket,
            None => unreachable!("whoever takes the socket takes all of this"),
        }
    }

    /// The socket, out of the driver and in non-blocking mode.
    pub fn into_socket(mut self) -> S {
        match self.socket.take() {
            Some(mut socket) => {
                self.registration.deregister(&mut socket);
                socket
            }
            None => unreachable!("whoever takes the socket takes all of this"),
        }
    }
}

impl<S: mio::event::Source> Drop for Registered<S> {
    fn drop(&mut self) {
        if let Some(socket) = &mut self.socket {
            self.registration.deregister(socket);
        }
    }
}

/// What can be done in one of the two worlds only.
pub fn unsupported(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, message)
}
