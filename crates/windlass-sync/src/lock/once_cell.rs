//! A value that is made once, by an async function.

use std::error::Error;
use std::fmt;
use std::future::Future;

use windlass_core::sync::UnsafeCell;
use windlass_core::sync::atomic::{AtomicBool, Ordering};

use super::{Semaphore, TryAcquireError};

/// Holds a value that the first who needs it makes; the others wait for it.
///
/// ```
/// use windlass_sync::lock::OnceCell;
///
/// # windlass_core::block_on(async {
/// let config = OnceCell::new();
/// assert_eq!(*config.get_or_init(async || 42).await, 42);
/// assert_eq!(*config.get_or_init(async || unreachable!()).await, 42);
/// # });
/// ```
pub struct OnceCell<T> {
    /// One permit: the turn to make the value. Closed once it is made.
    turn: Semaphore,
    made: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the holder of the turn writes the value before `made`; afterwards it is only read.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: as above; it is shared once made, and may be made on another thread.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> OnceCell<T> {
    /// An empty cell.
    pub fn new() -> OnceCell<T> {
        OnceCell {
            turn: Semaphore::new(1),
            made: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }
    }

    /// A cell with a value, or an empty one.
    pub fn new_with(value: Option<T>) -> OnceCell<T> {
        match value {
            Some(value) => OnceCell::from(value),
            None => OnceCell::new(),
        }
    }

    /// An empty cell, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new() -> OnceCell<T> {
        OnceCell {
            turn: Semaphore::const_new(1),
            made: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }
    }

    /// A cell with a value, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new_with(value: T) -> OnceCell<T> {
        OnceCell {
            turn: Semaphore::const_new_closed(),
            made: AtomicBool::new(true),
            value: UnsafeCell::new(Some(value)),
        }
    }

    /// True once the value is there.
    pub fn initialized(&self) -> bool {
        // Acquire: pairs with the Release in `fill`.
        self.made.load(Ordering::Acquire)
    }

    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        if !self.initialized() {
            return None;
        }
        // SAFETY: it was made, so no thread writes it any more.
        unsafe { (*self.value.with(|value| value)).as_ref() }
    }

    /// The value, if it is there.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: `&mut self`.
        unsafe { (*self.value.with_mut(|value| value)).as_mut() }
    }

    /// Takes the value out, if it is there; the cell is empty then.
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    /// The value, if it is there.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Sets the value, unless there is one or one is being made: then `value` comes back.
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        match self.turn.try_acquire() {
            Ok(_turn) => {
                self.fill(value);
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => Err(SetError::InitializingError(value)),
            Err(TryAcquireError::Closed) => Err(SetError::AlreadyInitializedError(value)),
        }
    }

    /// Returns the value, which `init` makes if there is none yet.
    ///
    /// Cancel-safe: if the call that runs `init` is dropped, or `init` panics, the next who waits
    /// runs its own.
    pub async fn get_or_init<F, Fut>(&self, init: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        enum Never {}
        let made = self
            .get_or_try_init(async || Ok::<T, Never>(init().await))
            .await;
        match made {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Returns the value, which `init` makes if there is none yet; if it fails, the next who waits
    /// runs its own. Cancel-safe like [`OnceCell::get_or_init`].
    pub async fn get_or_try_init<E, F, Fut>(&self, init: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let Ok(_turn) = self.turn.acquire().await else {
            return Ok(self.made_value());
        };
        let value = init().await?;
        self.fill(value);
        Ok(self.made_value())
    }

    /// The caller has the turn, and there is no other after it.
    fn fill(&self, value: T) {
        // SAFETY: the turn is the right to write, and it was not closed: the value is not made.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        // Release: pairs with the Acquire in `initialized`.
        self.made.store(true, Ordering::Release);
        self.turn.close();
    }

    fn made_value(&self) -> &T {
        match self.get() {
            Some(value) => value,
            None => unreachable!("the turn is closed after the value was made"),
        }
    }
}

/// The value could not be put in, and comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetError<T> {
    /// There is one already.
    AlreadyInitializedError(T),
    /// A value is being made.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// True if the cell has its value already: read it with [`OnceCell::get`].
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, SetError::AlreadyInitializedError(_))
    }

    /// True if a value is being made: wait for it with [`OnceCell::get_or_init`].
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, SetError::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetError::AlreadyInitializedError(_) => "AlreadyInitializedError",
            SetError::InitializingError(_) => "InitializingError",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell")
            .field("value", &self.get())
            .finish()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        let cell = OnceCell::new();
        cell.fill(value);
        cell
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        OnceCell::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &OnceCell<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}
