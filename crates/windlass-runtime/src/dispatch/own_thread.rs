//! One future on a thread of its own, with the attributes of that thread: for loops that follow the
//! clock.
//!
//! A worker of a pool is shared by tasks, looked after by a watchdog, and woken by the driver. This
//! thread has no other task: its future may sleep in place
//! ([`block_until_or`](crate::time::precise::block_until_or)), and nothing is between the kernel's
//! timer and what it does then.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::sync::{Parker, thread};
use windlass_core::task::contain;

use super::attributes::{AttributeError, Attributes, OnRefusal};
use super::private::DispatcherError;
use crate::handle::Handle;
use windlass_sync::channel::oneshot;

/// A future that runs on a thread of its own, from [`Builder::run_in`](super::Builder::run_in). Its
/// output can be awaited. If this is dropped before, the future is dropped, too, the next time it
/// is pending; a future that sleeps in place needs something that ends its sleep.
#[must_use = "the future is dropped with this"]
pub struct OwnThread<T> {
    bed: Arc<Bed>,
    attributes: Attributes,
    output: oneshot::Receiver<Outcome<T>>,
}

type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// Where the thread sleeps.
struct Bed {
    parker: Parker,
    dropped: AtomicBool,
}

impl Wake for Bed {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let _ = self.parker.unpark();
    }
}

/// Starts the thread, waits until it has looked at its attributes, and lets it begin unless one was
/// refused that must not be.
pub(super) fn start<F>(
    name: String,
    attributes: Attributes,
    on_refusal: OnRefusal,
    runtime: &Handle,
    future: F,
) -> Result<OwnThread<F::Output>, DispatcherError>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let bed = Arc::new(Bed {
        parker: Parker::new(),
        dropped: AtomicBool::new(false),
    });
    let (send, output) = oneshot::channel();
    let (reply, mut replied) = oneshot::channel::<(Attributes, Option<AttributeError>)>();
    let (own, runtime) = (bed.clone(), runtime.clone());
    thread::spawn(name, 0, move || {
        let (found, refused) = attributes.apply();
        for error in &refused {
            tracing::warn!(target: "windlass::dispatch", "{error}");
        }
        let refused = refused.into_iter().next();
        let stays = refused.is_none() || on_refusal == OnRefusal::Warn;
        let _ = reply.send((found, refused));
        if stays {
            let _entered = runtime.enter();
            run(&own, future, send);
        }
    })
    .map_err(DispatcherError::Threads)?;
    // The thread has just been started, and says this first of all.
    let replied = windlass_core::block_anywhere(Pin::new(&mut replied));
    let (attributes, refused) = replied.map_err(|_| DispatcherError::Threads(gone()))?;
    match (refused, on_refusal) {
        (Some(error), OnRefusal::Strict) => Err(DispatcherError::Attribute(error)),
        _ => Ok(OwnThread {
            bed,
            attributes,
            output,
        }),
    }
}

fn gone() -> std::io::Error {
    std::io::Error::other("the thread ended before it began")
}

/// Polls the future until it is ready, or its handle is gone.
fn run<F: Future>(bed: &Arc<Bed>, future: F, send: oneshot::Sender<Outcome<F::Output>>) {
    let waker = Waker::from(bed.clone());
    let mut cx = Context::from_waker(&waker);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut future = pin!(future);
        loop {
            // Acquire: pairs with the Release in `drop`.
            if bed.dropped.load(Ordering::Acquire) {
                return None;
            }
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return Some(output),
                Poll::Pending => bed.parker.park(),
            }
        }
    }));
    let output = match ended {
        Ok(None) => return,
        Ok(Some(output)) => Ok(output),
        Err(panic) => Err(panic),
    };
    // No task may want it any more; its destructor is user code.
    contain(|| drop(send.send(output)));
}

impl<T> OwnThread<T> {
    /// What the thread was found to have, of what was asked for.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }
}

impl<T> Future for OwnThread<T> {
    type Output = T;

    /// # Panics
    /// With what the future panicked.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match Pin::new(&mut self.output).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(Ok(output))) => Poll::Ready(output),
            Poll::Ready(Ok(Err(panic))) => resume_unwind(panic),
            Poll::Ready(Err(_)) => resume_unwind(Box::new("the thread of a future has gone")),
        }
    }
}

impl<T> Drop for OwnThread<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `run`.
        self.bed.dropped.store(true, Ordering::Release);
        let _ = self.bed.parker.unpark();
    }
}

impl<T> fmt::Debug for OwnThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnThread")
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}
