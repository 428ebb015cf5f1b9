//! Ending a service well: stop, drain, and say what did not stop.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use windlass_core::task::{AbortHandle, JoinHandle, Options};

use crate::handle::Handle;
use crate::time::{Instant, timeout_at};
use windlass_sync::CancellationToken;

/// The parts of a service, which are asked to stop together and given time to do so.
///
/// ```
/// use std::time::Duration;
/// use windlass_runtime::{Graceful, Runtime, time};
///
/// let runtime = Runtime::new()?;
/// let report = runtime.block_on(async {
///     let mut service = Graceful::new(Duration::from_millis(200));
///     let stop = service.token().clone();
///     service.spawn("polite", async move { stop.cancelled().await });
///     service.spawn("deaf", std::future::pending());
///     // In a real service: windlass::signal::shutdown()
///     service.run_until(time::sleep(Duration::from_millis(10))).await
/// });
/// assert_eq!(report.stopped, ["polite"]);
/// assert_eq!(report.aborted, ["deaf"]);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct Graceful {
    handle: Handle,
    token: CancellationToken,
    parts: Vec<(String, JoinHandle<()>)>,
    aborts: Vec<AbortHandle>,
    drain: Duration,
}

/// The report of a service's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GracefulReport {
    /// Parts that stopped by themselves.
    pub stopped: Vec<String>,
    /// Parts that were still running at the deadline, and were aborted.
    pub aborted: Vec<String>,
    /// Parts that panicked.
    pub panicked: Vec<String>,
}

impl GracefulReport {
    /// True if every part stopped by itself.
    pub fn is_clean(&self) -> bool {
        self.aborted.is_empty() && self.panicked.is_empty()
    }
}

impl fmt::Display for GracefulReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stopped", self.stopped.len())?;
        for (what, names) in [("aborted", &self.aborted), ("panicked", &self.panicked)] {
            if !names.is_empty() {
                write!(f, "; {what}: {}", names.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Graceful {
    /// A service without parts, whose parts get `drain` to stop when they are asked to.
    pub fn new(drain: Duration) -> Graceful {
        Graceful {
            handle: Handle::current_or_default(),
            token: CancellationToken::new(),
            parts: Vec::new(),
            aborts: Vec::new(),
            drain,
        }
    }

    /// Cancelled when the service ends: parts watch it.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Starts a part.
    #[track_caller]
    pub fn spawn<F>(&mut self, name: &str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = Options {
            name: Some(name.into()),
            location: Location::caller(),
            ..Options::here()
        };
        let task = self.handle.spawn_with(future, options);
        self.aborts.push(task.abort_handle());
        self.parts.push((name.to_owned(), task));
    }

    /// Runs until `stop` is ready or every part has ended; then asks all parts to stop, waits for
    /// them for as long as they are given, and aborts the rest.
    pub async fn run_until<F: Future>(mut self, stop: F) -> GracefulReport {
        let mut report = GracefulReport::default();
        let parts = std::mem::take(&mut self.parts);
        let watched = parts.into_iter().map(|(name, mut task)| {
            let (token, drain) = (self.token.clone(), self.drain);
            async move {
                if let Some(ended) = token.run_until_cancelled(&mut task).await {
                    return (name, Some(ended));
                }
                // The time of the cancellation, give or take a poll.
                let ended = timeout_at(Instant::now() + drain, &mut task).await;
                if ended.is_err() {
                    task.abort();
                    // Until its future has been dropped.
                    let _ = task.await;
                }
                (name, ended.ok())
            }
        });
        let all = crate::concurrent::join_all(watched);
        let (mut all, mut stop) = (std::pin::pin!(all), std::pin::pin!(stop));
        let mut asked = false;
        let ended = std::future::poll_fn(|cx| {
            if !asked && stop.as_mut().poll(cx).is_ready() {
                asked = true;
                self.token.cancel();
            }
            all.as_mut().poll(cx)
        })
        .await;
        for (name, ended) in ended {
            match ended {
                Some(Ok(())) => report.stopped.push(name),
                Some(Err(error)) if error.is_panic() => report.panicked.push(name),
                Some(Err(_)) | None => report.aborted.push(name),
            }
        }
        report
    }
}

impl Drop for Graceful {
    fn drop(&mut self) {
        // A service that is dropped midway ends like a group; after `run_until` nothing is left.
        self.token.cancel();
        self.aborts.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Graceful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Graceful").field("parts", &names).finish()
    }
}
