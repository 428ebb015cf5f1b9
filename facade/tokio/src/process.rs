//! Commands of the operating system.

pub use windlass_io::command::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
