//! Suspending until another thread resumes the coroutine.

use std::sync::Arc;

use super::{frame, wait};
use windlass_sync::lock::Notify;

/// A coroutine that can be unparked, from anywhere.
#[derive(Debug, Clone)]
pub struct CoroutineRef(Arc<Notify>);

impl CoroutineRef {
    /// Ends the coroutine's [`park`], or its next one if it is not parked; several count as one.
    pub fn unpark(&self) {
        self.0.notify_one();
    }
}

/// The coroutine that is running here.
///
/// # Panics
/// Outside of a coroutine.
#[track_caller]
pub fn current() -> CoroutineRef {
    match frame::running() {
        Some(frame) => CoroutineRef(frame.parking().clone()),
        None => panic!("coroutine::current outside of a coroutine"),
    }
}

/// Suspends the coroutine until [`CoroutineRef::unpark`] is called; returns at once if it was.
///
/// ```
/// use windlass_runtime::{Runtime, coroutine};
/// use windlass_sync::channel;
///
/// let runtime = Runtime::new()?;
/// let _entered = runtime.enter();
/// let (sender, receiver) = channel::oneshot::channel();
/// let parked = coroutine::spawn(move || {
///     sender.send(coroutine::current()).expect("the receiver waits");
///     coroutine::park();
///     "unparked"
/// });
/// coroutine::wait(receiver)?.unpark();
/// assert_eq!(coroutine::wait(parked)?, "unparked");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Outside of a coroutine.
#[track_caller]
pub fn park() {
    let parking = current().0;
    wait(parking.notified());
}
