//! Files and directories.

pub use windlass_io::fs::*;
