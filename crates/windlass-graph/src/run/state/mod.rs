//! What a run remembers from invocation to invocation.

pub(crate) mod channel;
pub(crate) mod channels;
pub(crate) mod lanes;
pub(crate) mod loop_buffer;
pub(crate) mod loops;
pub(crate) mod members;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod triggers;
