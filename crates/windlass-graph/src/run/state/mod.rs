//! What a run remembers from invocation to invocation.

pub(crate) mod cadence;
pub(crate) mod channel;
pub(crate) mod channels;
pub(crate) mod lane;
pub(crate) mod loops;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod trigger;
