//! Signals of the operating system, as futures.
//!
//! A handler writes the signal's number into a pipe; a thread of its own, started on first use,
//! reads it and notifies every waiter. It sleeps in that read and costs nothing meanwhile. In a
//! simulation no signal ever comes.

pub mod unix;

use std::io;

use windlass_runtime::race;

use self::unix::{SignalKind, signal};

/// Waits for ctrl-c (SIGINT). From the first call on, the signal no longer ends the program.
/// Cancel-safe.
pub async fn ctrl_c() -> io::Result<()> {
    next(SignalKind::interrupt()).await
}

/// Waits for the polite request to end (SIGTERM). From the first call on, the signal no longer ends
/// the program. Cancel-safe.
pub async fn terminate() -> io::Result<()> {
    next(SignalKind::terminate()).await
}

/// Waits for either of [`ctrl_c`] and [`terminate`]. Cancel-safe.
pub async fn shutdown() -> io::Result<()> {
    let either = race([next(SignalKind::interrupt()), next(SignalKind::terminate())]);
    either.await.unwrap_or(Ok(()))
}

/// Waits for the next signal of this kind from now on.
async fn next(kind: SignalKind) -> io::Result<()> {
    signal(kind)?.recv().await;
    Ok(())
}
