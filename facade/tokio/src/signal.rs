//! Signals of the operating system.

pub use windlass_io::signal::ctrl_c;

/// What only Unix systems have.
pub mod unix {
    use std::io;

    pub use windlass_io::signal::unix::{Signal, SignalKind};

    /// Listens to a kind of signal from now on.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn signal(kind: SignalKind) -> io::Result<Signal> {
        // tokio's listener belongs to a runtime; ours does not, and only checks that there is one.
        crate::runtime::Handle::current();
        windlass_io::signal::unix::signal(kind)
    }
}
