//! Why a component could not do its work.

use std::error::Error;
use std::fmt;

/// Why a component could not do its work. Any error becomes one with `?`.
pub struct Failure(Box<Inner>);

/// In a box: what is returned when all is well stays one word.
struct Inner {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure with what to tell people.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(Box::new(Inner {
            message: message.into(),
            source: None,
        }))
    }

    /// Returns what happened, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The error that it was made from, if any.
    pub fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|error| error.as_ref() as _)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(Box::new(Inner {
            message: error.to_string(),
            source: Some(Box::new(error)),
        }))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.0.message).finish()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}
