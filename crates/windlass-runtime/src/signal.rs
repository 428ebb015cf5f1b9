//! Signals of the operating system, as futures.
//!
//! A handler writes the signal's number into a pipe; a thread of its own, started on first use,
//! reads it and tells everybody who waits. It sleeps in that read and costs nothing meanwhile. In a
//! simulation no signal ever comes.

use std::io;
use std::sync::LazyLock;

use crate::concurrent::race;
use crate::os;
use crate::sync::Notify;

/// Waits for ctrl-c (SIGINT). From the first call on, the signal no longer ends the program.
/// Cancel-safe.
pub async fn ctrl_c() -> io::Result<()> {
    wait(os::SIGINT).await
}

/// Waits for the polite request to end (SIGTERM). From the first call on, the signal no longer ends
/// the program. Cancel-safe.
pub async fn terminate() -> io::Result<()> {
    wait(os::SIGTERM).await
}

/// Waits for either of [`ctrl_c`] and [`terminate`]. Cancel-safe.
pub async fn shutdown() -> io::Result<()> {
    let either = race([wait(os::SIGINT), wait(os::SIGTERM)]);
    either.await.unwrap_or(Ok(()))
}

/// Who waits, per signal.
static COME: LazyLock<[Notify; os::SIGNALS]> =
    LazyLock::new(|| std::array::from_fn(|_| Notify::new()));

fn come(signal: i32) -> &'static Notify {
    &COME[signal as usize % os::SIGNALS]
}

/// Waits for the next `signal` from now on.
async fn wait(signal: i32) -> io::Result<()> {
    // Before the handler stands: what comes after that reaches this wait.
    let notified = come(signal).notified();
    os::watch_signal(signal, |signal| come(signal).notify_waiters())?;
    notified.await;
    Ok(())
}
