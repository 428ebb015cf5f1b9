//! TCP: the halves of a stream, and the stream of incoming connections.

pub(super) mod listener;
pub(super) mod socket;
pub(super) mod stream;

use std::io;
use std::net::SocketAddr;

use super::simulated::Name;

pub use self::listener::TcpIncoming;
use self::stream::TcpStream;
use super::split;

/// The reading half of a stream that is borrowed.
pub type ReadHalf<'a> = split::ReadHalf<'a, TcpStream>;

/// The writing half of a stream that is borrowed.
pub type WriteHalf<'a> = split::WriteHalf<'a, TcpStream>;

/// The reading half of a stream that is shared by two owners.
pub type OwnedReadHalf = split::OwnedReadHalf<TcpStream>;

/// The writing half of a stream that is shared by two owners. Dropping it ends the writing
/// direction.
pub type OwnedWriteHalf = split::OwnedWriteHalf<TcpStream>;

/// The error of halves that are of two streams; both are in it.
pub type ReuniteError = split::ReuniteError<TcpStream>;

fn address_of(name: &Name) -> io::Result<SocketAddr> {
    match name {
        Name::Socket(address) => Ok(*address),
        Name::Path { .. } | Name::Unnamed => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}
