//! Unix sockets: streams and datagrams within a host, at paths of the file system.
//!
//! The file of a socket stays after it: remove it before the path is bound again. In a simulation
//! there are no files; each host has its own paths, and a path is free again once its socket is
//! gone.

mod address;
pub(super) mod datagram;
pub(super) mod listener;
pub mod pipe;
pub(super) mod socket;
pub(super) mod stream;

use std::io;

use windlass_core::sync::Arc;
use windlass_runtime::Handle;
use windlass_runtime::driver::{IoDriver, Reality, unsupported};

use super::simulated::Name;

pub use self::address::SocketAddr;
pub use self::listener::UnixIncoming;
pub use self::stream::UCred;
use self::stream::UnixStream;
use super::split;

/// The type of user numbers.
#[expect(non_camel_case_types, reason = "tokio's name, which is the system's")]
pub type uid_t = u32;

/// The type of group numbers.
#[expect(non_camel_case_types, reason = "tokio's name, which is the system's")]
pub type gid_t = u32;

/// The type of process numbers.
#[expect(non_camel_case_types, reason = "tokio's name, which is the system's")]
pub type pid_t = i32;

/// The reading half of a stream that is borrowed.
pub type ReadHalf<'a> = split::ReadHalf<'a, UnixStream>;

/// The writing half of a stream that is borrowed.
pub type WriteHalf<'a> = split::WriteHalf<'a, UnixStream>;

/// The reading half of a stream that is shared by two owners.
pub type OwnedReadHalf = split::OwnedReadHalf<UnixStream>;

/// The writing half of a stream that is shared by two owners. Dropping it ends the writing
/// direction.
pub type OwnedWriteHalf = split::OwnedWriteHalf<UnixStream>;

/// The error of halves that are of two streams; both are in it.
pub type ReuniteError = split::ReuniteError<UnixStream>;

/// The driver for a socket whose address is no path.
fn driver_of_names(handle: &Handle) -> io::Result<Arc<IoDriver>> {
    match handle.reality() {
        Reality::Real(driver) => Ok(driver.clone()),
        Reality::Simulated(_) => Err(unsupported(
            "a simulation has Unix sockets at paths only: bind or connect one there",
        )),
    }
}

/// The address by which a simulated socket is known.
fn address_of(name: &Name) -> io::Result<SocketAddr> {
    match name {
        Name::Path { path, .. } => std::os::unix::net::SocketAddr::from_pathname(path),
        // No path is how the standard library spells an unnamed address.
        Name::Socket(_) | Name::Unnamed => std::os::unix::net::SocketAddr::from_pathname(""),
    }
    .map(SocketAddr)
}
