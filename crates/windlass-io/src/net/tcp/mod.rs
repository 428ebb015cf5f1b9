//! TCP: listeners and streams.

mod listener;
mod stream;

use std::io;
use std::net::SocketAddr;

use super::simulated::Name;

pub use listener::{TcpIncoming, TcpListener};
pub use stream::TcpStream;

fn address_of(name: &Name) -> io::Result<SocketAddr> {
    match name {
        Name::Socket(address) => Ok(*address),
        Name::Path { .. } | Name::Unnamed => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}
