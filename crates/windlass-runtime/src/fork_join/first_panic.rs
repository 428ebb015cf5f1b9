//! The panic that comes out of a scope or flow, when everything in it has ended.

use std::panic::resume_unwind;

use windlass_core::sync::Mutex;

use super::forget_payload;
use windlass_core::unwind::PanicPayload;

/// The first panic of several.
#[derive(Default)]
pub(super) struct FirstPanic(Mutex<Option<PanicPayload>>);

impl FirstPanic {
    /// Keeps it, if it is the first.
    pub(super) fn keep(&self, payload: PanicPayload) {
        let mut first = self.0.lock();
        if first.is_none() {
            *first = Some(payload);
        } else {
            drop(first);
            forget_payload(payload);
        }
    }

    /// Goes on with it, if there was one; what `f` drops first is user code.
    pub(super) fn resume(&self, f: impl FnOnce()) {
        let first = self.0.lock().take();
        if let Some(payload) = first {
            windlass_core::task::contain(f);
            resume_unwind(payload);
        }
    }
}
