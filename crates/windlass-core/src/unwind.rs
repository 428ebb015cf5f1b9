//! Panics: what they carry, and frames that nothing may unwind out of.

use std::any::Any;

/// What a panic carries, as `catch_unwind` returns it. Its destructor is user code.
pub type PanicPayload = Box<dyn Any + Send>;

/// Ends the process if a panic unwinds through the frame that holds this. Other threads work with
/// what such a frame has lent them, so it may return only when they have ended.
///
/// It is a backstop: no panic gets there by design, and one that does is a bug of this library.
#[derive(Debug)]
#[must_use = "the guard ends with `disarm`"]
pub struct NoUnwind(&'static str);

impl NoUnwind {
    /// From now on a panic ends the process; `frame` is what the message calls the frame.
    #[inline]
    pub fn arm(frame: &'static str) -> NoUnwind {
        NoUnwind(frame)
    }

    /// What the frame has lent has come back.
    #[inline]
    pub fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for NoUnwind {
    #[cold]
    fn drop(&mut self) {
        eprintln!(
            "windlass: a panic left {} while other threads still used what it had lent them. \
             This is a bug in windlass; the process ends before memory is corrupted.",
            self.0
        );
        std::process::abort();
    }
}
