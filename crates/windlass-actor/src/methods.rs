//! Actors whose messages are calls of their methods.

use std::error::Error;
use std::fmt;
use std::future::Future;

use crate::actor::Context;
use crate::error::AskError;
use crate::exit::ActorError;

/// A type whose methods are messages. The attribute `windlass::actor::messages` implements it.
///
/// [`dispatch`](Methods::dispatch) is for actors that receive by themselves: a loop with `select!`,
/// or an [`Actor`](crate::Actor) with hooks of its own.
pub trait Methods: Send + 'static {
    /// The calls as a type.
    type Message: Send + 'static;

    /// Calls the method that the message stands for, and answers. The error ends the process if it
    /// is handed on.
    fn dispatch(
        &mut self,
        message: Self::Message,
        ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;
}

/// Why the call of a method that returns a `Result` gave no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError<E> {
    /// The method returned this error.
    Failed(E),
    /// There was no answer.
    Ask(AskError),
}

impl<E> CallError<E> {
    /// Makes one result of an answer and of what is in it.
    #[doc(hidden)]
    pub fn flatten<R>(answer: Result<R, AskError>) -> Result<R::Value, CallError<E>>
    where
        R: Results<Error = E>,
    {
        let returned = answer.map_err(CallError::Ask)?;
        returned.into_result().map_err(CallError::Failed)
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Failed(error) => error.fmt(f),
            CallError::Ask(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CallError::Failed(error) => Some(error),
            CallError::Ask(error) => Some(error),
        }
    }
}

/// The parts of a `Result` that a method returns, whatever alias it is written with.
#[doc(hidden)]
pub trait Results {
    /// The type of the value.
    type Value;
    /// The type of the error.
    type Error;

    /// Returns the `Result` itself.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
}

impl<T, E> Results for Result<T, E> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Result<T, E> {
        self
    }
}
