//! A tokio runtime as a guest: libraries that know no other runtime run unmodified.
//!
//! The guest is one thread per runtime, started when the first future asks for it. It drives
//! tokio's sockets and timers, and runs what libraries spawn with `tokio::spawn`: outside of our
//! workers, classes and simulator, but counted in snapshots. The future that asked stays a task of
//! ours: tokio is entered for the length of each of its polls, and never across one.
//!
//! ```
//! use windlass_runtime::Runtime;
//! use windlass_tokio_guest::with_tokio;
//!
//! let runtime = Runtime::new()?;
//! let answer = runtime.spawn(with_tokio(async {
//!     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
//!     tokio::spawn(async { 42 }).await.unwrap()
//! }));
//! assert_eq!(runtime.block_on(answer)?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::sync::oneshot;
use windlass_core::sync::{Arc, Condvar, Mutex, clock, thread};
use windlass_runtime::Handle;
use windlass_runtime::frontend::{FrontEnd, RuntimeStopping, Stopping};
use windlass_runtime::observe::{Cursor, Observe, Page, Sample};

/// Runs `future` with tokio at hand: what it and the libraries below it do with tokio works.
///
/// # Panics
/// When it is first polled outside of a runtime, in a simulation, or while the runtime is shut
/// down; [`try_with_tokio`] says so instead.
pub fn with_tokio<F: Future>(future: F) -> WithTokio<F> {
    WithTokio {
        future: Some(future),
        tokio: None,
    }
}

/// As [`with_tokio`], on the guest of the runtime this thread is in, which is started now if need
/// be.
pub fn try_with_tokio<F: Future>(future: F) -> Result<WithTokio<F>, GuestError> {
    let tokio = current()?;
    Ok(WithTokio {
        future: Some(future),
        tokio: Some(tokio),
    })
}

fn current() -> Result<tokio::runtime::Handle, GuestError> {
    let runtime = Handle::try_current().map_err(|_| GuestError::TryCurrentError)?;
    if runtime.is_simulated() {
        return Err(GuestError::Simulated);
    }
    let slot = match runtime.attached::<Slot>(|_| true) {
        Some(slot) => slot,
        None => runtime
            .attached_or::<Slot>(|_| true, Arc::default())
            .map_err(|RuntimeStopping| GuestError::ShutDown)?,
    };
    slot.get()
}

pin_project! {
    /// The future of [`with_tokio`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct WithTokio<F> {
        // None only while it is dropped.
        #[pin]
        future: Option<F>,
        tokio: Option<tokio::runtime::Handle>,
    }

    impl<F> PinnedDrop for WithTokio<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // What it holds may need tokio to be dropped.
            let _entered = this.tokio.as_ref().map(tokio::runtime::Handle::enter);
            this.future.set(None);
        }
    }
}

impl<F: Future> Future for WithTokio<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let tokio = this
            .tokio
            .get_or_insert_with(|| current().unwrap_or_else(|error| panic!("{error}")));
        let _entered = tokio.enter();
        match this.future.as_pin_mut() {
            Some(future) => future.poll(cx),
            None => unreachable!("only the drop takes it away"),
        }
    }
}

impl<F> fmt::Debug for WithTokio<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithTokio")
            .field("entered", &self.tokio.is_some())
            .finish_non_exhaustive()
    }
}

/// Why there is no tokio.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuestError {
    /// This thread is in no runtime.
    TryCurrentError,
    /// This is a simulation: what tokio does cannot be replayed.
    Simulated,
    /// The runtime is shut down.
    ShutDown,
    /// The guest's thread or its driver did not start.
    Start(io::Error),
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestError::TryCurrentError => f.write_str(
                "tokio was asked for outside of a runtime: spawn the future, or enter a runtime first",
            ),
            GuestError::Simulated => f.write_str(
                "tokio was asked for in a simulation, which cannot replay what it does: use our own types there",
            ),
            GuestError::ShutDown => f.write_str("tokio was asked for while its runtime shuts down"),
            GuestError::Start(error) => write!(
                f,
                "tokio's guest thread did not start ({error}); look at the limits on threads and descriptors"
            ),
        }
    }
}

impl Error for GuestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            GuestError::Start(error) => Some(error),
            _ => None,
        }
    }
}

/// The guest of a runtime: a front end that ends last, because tasks may hold what is tokio's.
#[derive(Default)]
struct Slot(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    NotAsked,
    Running(Guest),
    Closed,
}

struct Guest {
    handle: tokio::runtime::Handle,
    /// Ends it, within the time that it is given.
    stop: oneshot::Sender<Duration>,
    ended: Arc<Ended>,
}

/// Whether the guest's thread is done.
#[derive(Default)]
struct Ended {
    done: Mutex<bool>,
    notified: Condvar,
}

impl Ended {
    fn set(&self) {
        *self.done.lock() = true;
        self.notified.notify_all();
    }

    /// Waits for it until the shutdown's deadline; false: it was not set by then.
    fn wait(&self, timeout: Duration) -> bool {
        let deadline = clock::now().saturating_add(timeout.as_nanos() as u64);
        let mut done = self.done.lock();
        while !*done {
            let left = deadline.saturating_sub(clock::now());
            if left == 0 {
                return false;
            }
            done = self.notified.wait_for(done, Duration::from_nanos(left)).0;
        }
        true
    }
}

impl Slot {
    fn get(&self) -> Result<tokio::runtime::Handle, GuestError> {
        let mut state = self.0.lock();
        match &*state {
            State::Running(guest) => return Ok(guest.handle.clone()),
            State::Closed => return Err(GuestError::ShutDown),
            State::NotAsked => {}
        }
        let guest = Guest::start().map_err(GuestError::Start)?;
        let handle = guest.handle.clone();
        *state = State::Running(guest);
        Ok(handle)
    }

    /// Ends the guest. False: it did not end within `timeout`, and its thread is left alone.
    fn end(&self, timeout: Duration) -> bool {
        let state = std::mem::replace(&mut *self.0.lock(), State::Closed);
        let State::Running(guest) = state else {
            return true;
        };
        // If no thread takes it, the thread has ended.
        let _ = guest.stop.send(timeout);
        guest.ended.wait(timeout)
    }
}

impl FrontEnd for Slot {
    fn stop(self: Arc<Self>, _timeout: Duration) -> Stopping {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn closes_last(&self) -> bool {
        true
    }

    fn close(&self, timeout: Duration) -> Vec<String> {
        match self.end(timeout) {
            true => Vec::new(),
            false => vec!["the tokio guest: something in it blocks its thread".to_owned()],
        }
    }
}

impl Observe for Slot {
    fn source(&self) -> &'static str {
        "tokio_guest"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        if let State::Running(guest) = &*self.0.lock() {
            take(Sample::gauge(
                "tasks",
                guest.handle.metrics().num_alive_tasks(),
            ));
        }
    }

    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

impl Guest {
    fn start() -> io::Result<Guest> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("windlass-tokio-blocking")
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let ended = Arc::new(Ended::default());
        let end = ended.clone();
        // Detached: `ended` says when it is done, and it may have to be left alone.
        drop(thread::spawn("windlass-tokio".into(), 0, move || {
            // A dropped sender: the runtime was forgotten instead of shut down.
            let timeout = runtime.block_on(stopped).unwrap_or(Duration::ZERO);
            runtime.shutdown_timeout(timeout);
            end.set();
        })?);
        Ok(Guest {
            handle,
            stop,
            ended,
        })
    }
}
