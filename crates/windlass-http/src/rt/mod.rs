//! What hyper asks of a runtime: where its tasks run, its clock, and its streams.

mod executor;
mod io;
mod timer;

pub use self::executor::Executor;
pub use self::io::Io;
pub use self::timer::Timer;
