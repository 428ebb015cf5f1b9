//! Options of simulated sockets: they change nothing, and are remembered.

use std::time::Duration;

/// The options that a socket of the operating system would have.
#[derive(Debug, Clone, Copy)]
pub(in crate::net) struct Options {
    pub(in crate::net) nodelay: bool,
    pub(in crate::net) keepalive: Option<Duration>,
    pub(in crate::net) linger: Option<Duration>,
    pub(in crate::net) ttl: u32,
    pub(in crate::net) broadcast: bool,
}

impl Default for Options {
    /// As of a fresh socket on Linux.
    fn default() -> Options {
        Options {
            nodelay: false,
            keepalive: None,
            linger: None,
            ttl: 64,
            broadcast: false,
        }
    }
}
