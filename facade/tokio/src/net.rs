//! Sockets.

pub use windlass_io::net::*;
