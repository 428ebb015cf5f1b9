//! Signals of the operating system, as futures.
//!
//! A handler writes the signal's number into a pipe; a thread of its own, started on first use,
//! reads it and tells everybody who waits. It sleeps in that read and costs nothing meanwhile. In a
//! simulation no signal ever comes.

use std::future::{Future, poll_fn};
use std::io;
use std::task::{Poll, Waker};

use windlass_core::sync::Mutex;

use crate::os;

/// Waits for ctrl-c (SIGINT). From the first call on, the signal no longer ends the program.
/// Cancel-safe.
pub async fn ctrl_c() -> io::Result<()> {
    wait(os::SIGINT)?.await;
    Ok(())
}

/// Waits for the polite request to end (SIGTERM). From the first call on, the signal no longer ends
/// the program. Cancel-safe.
pub async fn terminate() -> io::Result<()> {
    wait(os::SIGTERM)?.await;
    Ok(())
}

/// Waits for either of [`ctrl_c`] and [`terminate`]. Cancel-safe.
pub async fn shutdown() -> io::Result<()> {
    let (mut int, mut term) = (Box::pin(wait(os::SIGINT)?), Box::pin(wait(os::SIGTERM)?));
    poll_fn(|cx| {
        if int.as_mut().poll(cx).is_ready() || term.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    Ok(())
}

/// How often each signal has come, and who waits.
struct Seen {
    counts: [u64; os::SIGNALS],
    waiters: Vec<Waker>,
}

static SEEN: Mutex<Seen> = Mutex::new(Seen {
    counts: [0; os::SIGNALS],
    waiters: Vec::new(),
});

/// Waits for the next `signal` from now on.
fn wait(signal: i32) -> io::Result<impl Future<Output = ()>> {
    os::watch_signal(signal, |signal| {
        let mut seen = SEEN.lock();
        seen.counts[signal as usize % os::SIGNALS] += 1;
        let waiters = std::mem::take(&mut seen.waiters);
        drop(seen);
        waiters.into_iter().for_each(Waker::wake);
    })?;
    let index = signal as usize % os::SIGNALS;
    let before = SEEN.lock().counts[index];
    Ok(poll_fn(move |cx| {
        let mut seen = SEEN.lock();
        if seen.counts[index] != before {
            return Poll::Ready(());
        }
        if !seen.waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            seen.waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }))
}
