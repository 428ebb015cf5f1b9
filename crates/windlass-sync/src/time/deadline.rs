//! Deadlines that everything inside inherits.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use windlass_core::context::{self, Exchange};

use crate::time::{Elapsed, Instant, Sleep, sleep_until};

thread_local! {
    static CURRENT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `future` until `at`, or until the deadline it is already inside of if that comes first.
/// Everything inside sees it: see [`current_deadline`]. Groups made inside hand it on to
/// their children.
///
/// ```
/// use std::time::Duration;
/// use windlass_runtime::{Runtime, time};
///
/// let runtime = Runtime::new()?;
/// runtime.block_on(async {
///     let at = time::Instant::now() + Duration::from_secs(5);
///     let seen = time::deadline(at, async {
///         // A later deadline inside does not prolong the one outside.
///         let later = at + Duration::from_secs(60);
///         time::deadline(later, async { time::current_deadline() }).await
///     });
///     assert_eq!(seen.await, Ok(Ok(Some(at))));
/// });
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub fn deadline<F: Future>(at: Instant, future: F) -> Deadline<F> {
    let at = current_deadline().map_or(at, |outer| outer.min(at));
    Deadline {
        future,
        at,
        sleep: sleep_until(at),
    }
}

/// The deadline that the running code is inside of.
pub fn current_deadline() -> Option<Instant> {
    CURRENT.with(Cell::get)
}

pin_project! {
    /// The future of [`deadline`]. Cancel-safe if the inner future is.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Deadline<F> {
        #[pin]
        future: F,
        at: Instant,
        #[pin]
        sleep: Sleep,
    }
}

impl<F: Future> Future for Deadline<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match inside(Some(*this.at), || this.future.poll(cx)) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => this.sleep.poll(cx).map(|()| Err(Elapsed::new())),
        }
    }
}

impl<F> fmt::Debug for Deadline<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// Lets a child see the deadline that its parent is inside of. The parent enforces it: when its
/// time is over it drops the group, and the group cancels the child.
pub fn inherit_deadline<F: Future>(future: F) -> Inherit<F> {
    Inherit {
        future,
        at: current_deadline(),
    }
}

pin_project! {
    /// The future of a group's child.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Inherit<F> {
        #[pin]
        future: F,
        at: Option<Instant>,
    }
}

impl<F: Future> Future for Inherit<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        inside(*this.at, || this.future.poll(cx))
    }
}

/// Runs `f` inside of a deadline. Outside of `f` the deadline is not seen, not even while a
/// coroutine is suspended inside of it.
fn inside<R>(at: Option<Instant>, f: impl FnOnce() -> R) -> R {
    struct Inside(Cell<Option<Instant>>);
    impl Exchange for Inside {
        fn exchange(&self) {
            CURRENT.with(|current| current.swap(&self.0));
        }
    }
    context::installed(&Inside(Cell::new(at)), f)
}
