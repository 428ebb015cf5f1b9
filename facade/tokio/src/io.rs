//! Reading and writing without blocking: traits, buffers and tools.

pub use windlass_io::io::*;
