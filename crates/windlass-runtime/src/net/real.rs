//! Sockets of the operating system, ready when the driver says so.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll, ready};

use windlass_core::sync::Arc;

use crate::driver::{Direction, IoDriver, Registration, shut_down};

/// A socket and its registration; dropping it takes the socket out of the driver, then closes it.
#[derive(Debug)]
struct Registered<S: mio::event::Source> {
    registration: Registration,
    socket: S,
}

impl<S: mio::event::Source> Registered<S> {
    fn new(driver: &Arc<IoDriver>, mut socket: S) -> io::Result<Registered<S>> {
        Ok(Registered {
            registration: Registration::new(driver, &mut socket)?,
            socket,
        })
    }

    /// Tries `attempt` whenever the socket may be ready, until it does not block.
    fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let found = ready!(self.registration.source().poll_ready(direction, cx));
            if found.is_shut() {
                return Poll::Ready(Err(shut_down()));
            }
            match attempt(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.registration.source().clear(direction, found);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl<S: mio::event::Source> Drop for Registered<S> {
    fn drop(&mut self) {
        self.registration.deregister(&mut self.socket);
    }
}

/// Tries the addresses in turn; the last error if none will do.
fn first_of<R>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R> {
    let mut last = no_address();
    for address in addresses {
        match attempt(*address) {
            Ok(result) => return Ok(result),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        "the name stands for no address: check its spelling and the resolver",
    )
}

#[derive(Debug)]
pub(super) struct Listener(Registered<mio::net::TcpListener>);

impl Listener {
    pub(super) fn bind(driver: &Arc<IoDriver>, addresses: &[SocketAddr]) -> io::Result<Listener> {
        let socket = first_of(addresses, mio::net::TcpListener::bind)?;
        Ok(Listener(Registered::new(driver, socket)?))
    }

    pub(super) fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Stream, SocketAddr)>> {
        let accepted = self
            .0
            .poll_io(Direction::Read, cx, mio::net::TcpListener::accept);
        let (socket, from) = ready!(accepted)?;
        let driver = self.0.registration.driver();
        Poll::Ready(Registered::new(driver, socket).map(|socket| (Stream(socket), from)))
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }
}

#[derive(Debug)]
pub(super) struct Stream(Registered<mio::net::TcpStream>);

impl Stream {
    pub(super) async fn connect(
        driver: &Arc<IoDriver>,
        addresses: &[SocketAddr],
    ) -> io::Result<Stream> {
        let mut last = no_address();
        for address in addresses {
            match Stream::connect_to(driver, *address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect_to(driver: &Arc<IoDriver>, address: SocketAddr) -> io::Result<Stream> {
        let socket = mio::net::TcpStream::connect(address)?;
        let stream = Stream(Registered::new(driver, socket)?);
        poll_fn(|cx| {
            stream.0.poll_io(Direction::Write, cx, |socket| {
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
                match socket.peer_addr() {
                    Ok(_) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    Err(error) => Err(error),
                }
            })
        })
        .await?;
        Ok(stream)
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.0
            .poll_io(Direction::Read, cx, |mut socket| socket.read(buffer))
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0
            .poll_io(Direction::Write, cx, |mut socket| socket.write(bytes))
    }

    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        self.0.socket.shutdown(Shutdown::Write)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.peer_addr()
    }
}
