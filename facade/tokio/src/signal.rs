//! Signals of the operating system.

pub use windlass_io::signal::ctrl_c;

/// What only Unix systems have.
pub mod unix {
    use std::io;
    use std::task::{Context, Poll};

    pub use windlass_io::signal::SignalKind;

    /// Listens to one kind of signal; made by [`signal`].
    #[derive(Debug)]
    pub struct Signal(windlass_io::signal::Signals);

    /// Listens to a kind of signal from now on.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn signal(kind: SignalKind) -> io::Result<Signal> {
        // tokio's listener belongs to a runtime; ours does not, and only checks that there is one.
        crate::runtime::Handle::current();
        windlass_io::signal::listen(kind).map(Signal)
    }

    impl Signal {
        /// Waits for the next signal, also one that came since the last.
        pub async fn recv(&mut self) -> Option<()> {
            self.0.recv().await;
            Some(())
        }

        /// Polls for what `recv` awaits.
        pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
            self.0.poll_recv(cx).map(Some)
        }
    }
}
