//! Input and output on the Windlass runtime: sockets, files, commands, signals.
//!
//! | module | what it has |
//! |---|---|
//! | [`net`] | TCP, UDP and Unix sockets, of the kernel or of a simulation |
//! | [`io`] | traits of readers and writers, buffers, tools |
//! | [`fs`] | files and folders |
//! | [`command`] | programs that are started, and their pipes |
//! | [`signal`] | signals of the operating system |
//! | [`simulated`] | the network of a simulation: hosts, latency, partitions, loss |
//!
//! Applications use the `windlass` crate, which re-exports all of this. A simulation's network is a
//! part of its world ([`windlass_runtime::simulator::Part`]): the simulator knows nothing of it.

pub mod command;
pub mod fs;
pub mod io;
pub mod net;
mod os;
pub mod signal;

/// The network of a simulation: hosts, latency, partitions, loss.
pub mod simulated {
    pub use crate::net::simulated::{DroppedDatagrams, Net, OnHost};
}
