//! The workloads. Those for async runtimes are written once, over
//! [`AsyncPeer`](crate::peers::AsyncPeer); what a peer of another kind needs to do the same work is
//! shared from here.
//!
//! Every workload checks its own result and panics if it is wrong.

pub mod actors;
pub mod chain;
pub mod channels;
pub mod coroutines;
pub mod fork_join;
pub mod graphs;
pub mod idle;
pub mod limits;
pub mod locks;
pub mod memory;
pub mod net;
pub mod ping_pong;
pub mod remote_wake;
pub mod spawn;
pub mod steal;
pub mod timers;
pub mod yielding;
