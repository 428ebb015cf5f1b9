//! Typed messages inside untyped ones.

use windlass_core::sync::Mutex;
use windlass_value::Payload;

/// A typed message inside an untyped one. The lock makes it shareable; one reader takes it out.
pub(super) struct CarriedMessage<M>(Mutex<Option<M>>);

impl<M> CarriedMessage<M> {
    /// Takes the message out; none if that was done before.
    pub(super) fn take(&self) -> Option<M> {
        self.0.lock().take()
    }
}

/// A message of any type as the payload of an untyped one, for processes that take that type.
pub fn carry<M: Send + 'static>(message: M) -> Payload {
    Payload::opaque(CarriedMessage(Mutex::new(Some(message))))
}
