//! Errors of Lua as text.

use windlass_actor::ActorError;

use crate::native::without_prelude;

/// The message of an error of Lua itself.
pub(super) fn actor_error_of(error: &mlua::Error) -> ActorError {
    ActorError::new(without_prelude(&text_of_error(error)))
}

pub(crate) fn text_of_error(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::RuntimeError(message) | mlua::Error::MemoryError(message) => message.clone(),
        mlua::Error::CallbackError { cause, .. } => text_of_error(cause),
        other => other.to_string(),
    }
}
