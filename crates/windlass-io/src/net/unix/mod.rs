//! Unix sockets: streams and datagrams within a host, at paths of the file system.
//!
//! The file of a socket stays after it: remove it before the path is bound again. In a simulation
//! there are no files; each host has its own paths, and a path is free again once its socket is
//! gone.

mod datagram;
mod listener;
mod stream;

use std::io;
use std::os::unix::net::SocketAddr;

use super::simulated::Name;

pub use self::datagram::UnixDatagram;
pub use self::listener::{UnixIncoming, UnixListener};
pub use self::stream::{PeerCredentials, UnixStream};

/// The address by which a simulated socket is known.
fn address_of(name: &Name) -> io::Result<SocketAddr> {
    match name {
        Name::Path { path, .. } => SocketAddr::from_pathname(path),
        // No path is how the standard library spells an unnamed address.
        Name::Socket(_) | Name::Unnamed => SocketAddr::from_pathname(""),
    }
}
