//! A value that is set once, and that others wait for.

use std::error::Error;
use std::fmt;
use std::pin::pin;

use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::sync::{Mutex, UnsafeCell};

use super::Notify;

/// Holds a value that is set once; tasks wait until it is there.
///
/// ```
/// use windlass_sync::lock::SetOnce;
///
/// # windlass_core::block_on(async {
/// let answer = SetOnce::new();
/// answer.set(42).unwrap();
/// assert_eq!(*answer.wait().await, 42);
/// assert_eq!(answer.set(43).unwrap_err().0, 43);
/// # });
/// ```
pub struct SetOnce<T> {
    /// The turn to set the value.
    turn: Mutex<()>,
    is_set: AtomicBool,
    value: UnsafeCell<Option<T>>,
    notify: Notify,
}

// SAFETY: the holder of the turn writes the value before `is_set`; afterwards it is only read.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: as above; it is shared once set, and may be set on another thread.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// An empty cell.
    pub fn new() -> SetOnce<T> {
        SetOnce::new_with(None)
    }

    /// A cell with a value, or an empty one.
    pub fn new_with(value: Option<T>) -> SetOnce<T> {
        SetOnce {
            turn: Mutex::new(()),
            is_set: AtomicBool::new(value.is_some()),
            value: UnsafeCell::new(value),
            notify: Notify::new(),
        }
    }

    /// An empty cell, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new() -> SetOnce<T> {
        SetOnce {
            turn: Mutex::new(()),
            is_set: AtomicBool::new(false),
            value: UnsafeCell::new(None),
            notify: Notify::const_new(),
        }
    }

    /// A cell with a value, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new_with(value: T) -> SetOnce<T> {
        SetOnce {
            turn: Mutex::new(()),
            is_set: AtomicBool::new(true),
            value: UnsafeCell::new(Some(value)),
            notify: Notify::const_new(),
        }
    }

    /// True once the value is there.
    pub fn initialized(&self) -> bool {
        // Acquire: pairs with the Release in `set`.
        self.is_set.load(Ordering::Acquire)
    }

    /// Returns the value, if it is there.
    pub fn get(&self) -> Option<&T> {
        if !self.initialized() {
            return None;
        }
        // SAFETY: it was set, so no thread writes it any more.
        unsafe { (*self.value.with(|value| value)).as_ref() }
    }

    /// Sets the value and wakes every waiter.
    ///
    /// # Errors
    /// If there is a value already: `value` comes back.
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        let turn = self.turn.lock();
        // Relaxed: it is written only by holders of the turn.
        if self.is_set.load(Ordering::Relaxed) {
            drop(turn);
            return Err(SetOnceError(value));
        }
        // SAFETY: the turn is the right to write, and the value is not set: no thread reads it.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        // Release: pairs with the Acquire in `initialized`.
        self.is_set.store(true, Ordering::Release);
        drop(turn);
        self.notify.notify_waiters();
        Ok(())
    }

    /// Waits until the value is there. Cancel-safe.
    pub async fn wait(&self) -> &T {
        loop {
            // Before the look: `notify_waiters` reaches the future from here on.
            let notified = pin!(self.notify.notified());
            if let Some(value) = self.get() {
                return value;
            }
            notified.await;
        }
    }

    /// Consumes the cell and returns its value, if it is there.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        SetOnce::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        SetOnce::new_with(Some(value))
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        SetOnce::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &SetOnce<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce")
            .field("value", &self.get())
            .finish()
    }
}

/// The cell has a value already; the refused one comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetOnceError")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}
