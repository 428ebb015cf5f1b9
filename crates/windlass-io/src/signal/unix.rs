//! Signals by their kind.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use futures_core::Stream;
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_sync::lock::{Notified, Notify};

use crate::os;

/// Listens to a kind of signal from now on, until the program ends: it no longer does what it did
/// by default.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::signal::unix::{SignalKind, signal};
///
/// Runtime::new()?.block_on(async {
///     let mut hangups = signal(SignalKind::hangup())?;
///     std::process::Command::new("kill")
///         .args(["-HUP", &std::process::id().to_string()])
///         .status()?;
///     hangups.recv().await;
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let counted = count_of(kind)?;
    // Before the handler stands: what comes after that is heard. Acquire: pairs with the Release in
    // `notify`.
    let seen = counted.count.load(Ordering::Acquire);
    os::watch_signal(kind.0, notify)?;
    Ok(Signal {
        kind,
        counted,
        seen,
        waiting: None,
    })
}

/// A kind of signal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignalKind(i32);

/// The usual kinds.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $name:ident = $number:ident;)+) => {
        impl SignalKind {
            $(
                $(#[$doc])+
                pub const fn $name() -> SignalKind {
                    SignalKind(os::$number)
                }
            )+
        }
    };
}

kinds! {
    /// The request to interrupt, as by ctrl-c: SIGINT.
    interrupt = SIGINT;
    /// The polite request to end: SIGTERM.
    terminate = SIGTERM;
    /// The terminal is gone, or the configuration is to be read again: SIGHUP.
    hangup = SIGHUP;
    /// The request to quit with a core dump: SIGQUIT.
    quit = SIGQUIT;
    /// A child has ended: SIGCHLD.
    child = SIGCHLD;
    /// A pipe without a reader: SIGPIPE.
    pipe = SIGPIPE;
    /// The terminal has another size: SIGWINCH.
    window_change = SIGWINCH;
    /// The end of an alarm's time: SIGALRM.
    alarm = SIGALRM;
    /// A descriptor is ready: SIGIO.
    io = SIGIO;
    /// Free for the program: SIGUSR1.
    user_defined1 = SIGUSR1;
    /// Free for the program: SIGUSR2.
    user_defined2 = SIGUSR2;
}

impl SignalKind {
    /// The kind with this number.
    pub const fn from_raw(number: i32) -> SignalKind {
        SignalKind(number)
    }

    /// Returns the number of the signal.
    pub const fn as_raw_value(&self) -> i32 {
        self.0
    }
}

impl From<i32> for SignalKind {
    fn from(number: i32) -> SignalKind {
        SignalKind::from_raw(number)
    }
}

impl From<SignalKind> for i32 {
    fn from(kind: SignalKind) -> i32 {
        kind.as_raw_value()
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalKind({})", self.0)
    }
}

/// How often a signal has come, and who waits for it.
#[derive(Default)]
struct SignalCount {
    count: AtomicU64,
    waiters: Notify,
}

static COUNTS: LazyLock<[SignalCount; os::SIGNALS]> =
    LazyLock::new(|| std::array::from_fn(|_| SignalCount::default()));

fn count_of(kind: SignalKind) -> io::Result<&'static SignalCount> {
    let number = usize::try_from(kind.0).ok();
    number
        .filter(|number| *number > 0 && !os::CANNOT_BE_HEARD.contains(&kind.0))
        .and_then(|number| COUNTS.get(number))
        .ok_or_else(|| {
            let message = format!("signal {} cannot be listened to: choose another", kind.0);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
}

fn notify(signal: i32) {
    if let Ok(counted) = count_of(SignalKind(signal)) {
        // Release: pairs with the Acquire in `signal` and `poll_recv`.
        counted.count.fetch_add(1, Ordering::Release);
        counted.waiters.notify_waiters();
    }
}

/// Tells of the signals of one kind; also a [`Stream`], which never ends.
///
/// Several signals that come before they are received may count as one, as the operating system has
/// it; none is forgotten.
pub struct Signal {
    kind: SignalKind,
    counted: &'static SignalCount,
    seen: u64,
    waiting: Option<Pin<Box<Notified<'static>>>>,
}

impl Signal {
    /// Waits for the next signal, also one that came since the last. Never returns none: the
    /// return type is tokio's. Cancel-safe.
    pub async fn recv(&mut self) -> Option<()> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for what `recv` awaits.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        loop {
            // Made before the look (Acquire: pairs with the Release in `notify`): what comes after
            // it is heard.
            let waiters = &self.counted.waiters;
            let waiting = self
                .waiting
                .get_or_insert_with(|| Box::pin(waiters.notified()));
            let count = self.counted.count.load(Ordering::Acquire);
            if count != self.seen {
                self.seen = count;
                self.waiting = None;
                return Poll::Ready(Some(()));
            }
            std::task::ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
        }
    }
}

impl Stream for Signal {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.poll_recv(cx)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("kind", &self.kind)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
