//! Why a task has no output.

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::sync::with_world;
use crate::task::header::Header;
use crate::task::meta::{Name, TaskId};

/// The task ended without an output.
pub struct JoinError(Box<Inner>);

struct Inner {
    id: TaskId,
    name: Option<Name>,
    kind: Kind,
}

enum Kind {
    Cancelled,
    Expired,
    Panicked(ContainedPayload),
}

/// What happened to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinErrorKind {
    /// The task was aborted, its group or runtime ended, or it was spawned after shutdown.
    Cancelled,
    /// The task waited in a blocking queue for longer than its deadline and was not started.
    Expired,
    /// The task's body panicked.
    Panicked,
}

/// The payload with which a cancelled body unwinds. It is no panic: no hook is called, and the task
/// counts as cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwound;

/// A panic payload: dropped under `catch_unwind`, because its destructor is user code.
struct ContainedPayload(ManuallyDrop<Box<dyn Any + Send>>);

// SAFETY: no shared reference to the payload is ever given out, except for the check of
// whether it is a string in `message`, and `&'static str` and `String` are `Sync`.
unsafe impl Sync for ContainedPayload {}

impl Drop for ContainedPayload {
    fn drop(&mut self) {
        // SAFETY: taken once, in drop.
        drop_payload(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Runs foreign code whose panic must not go any further; none: it panicked.
pub fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            drop_payload(payload);
            None
        }
    }
}

/// Drops a panic payload; a payload that panics when dropped is leaked.
pub fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

impl JoinError {
    fn new(header: &Header, kind: Kind) -> JoinError {
        let name = header.meta().name().cloned();
        JoinError(Box::new(Inner {
            id: header.id(),
            name,
            kind,
        }))
    }

    pub(crate) fn cancelled(header: &Header) -> JoinError {
        JoinError::new(header, Kind::Cancelled)
    }

    pub(crate) fn expired(header: &Header) -> JoinError {
        JoinError::new(header, Kind::Expired)
    }

    /// The error of a task that panicked. A simulation keeps it in mind until a join handle gives
    /// it out ([`observed`](JoinError::observed)).
    pub(crate) fn panicked(header: &Header, payload: Box<dyn Any + Send>) -> JoinError {
        let error = JoinError::new(
            header,
            Kind::Panicked(ContainedPayload(ManuallyDrop::new(payload))),
        );
        with_world(|world| {
            if let Some(world) = world {
                let location = header.meta().location();
                let what = || format!("{error}, spawned at {location}");
                world.note_panic(block_and_number(header), what);
            }
        });
        error
    }

    /// The join handle of this task gives the error out.
    pub(crate) fn observed(&self, header: &Header) {
        if self.is_panic() {
            with_world(|world| {
                if let Some(world) = world {
                    world.panic_observed(block_and_number(header));
                }
            });
        }
    }

    /// Returns how the task ended.
    pub fn kind(&self) -> JoinErrorKind {
        match self.0.kind {
            Kind::Cancelled => JoinErrorKind::Cancelled,
            Kind::Expired => JoinErrorKind::Expired,
            Kind::Panicked(_) => JoinErrorKind::Panicked,
        }
    }

    /// True if the task was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == JoinErrorKind::Cancelled
    }

    /// True if the task panicked.
    pub fn is_panic(&self) -> bool {
        self.kind() == JoinErrorKind::Panicked
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.0.id
    }

    /// The task's name.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Returns the panic's payload.
    ///
    /// # Panics
    /// If the task did not panic: ask [`JoinError::is_panic`] first.
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("`JoinError` reason is not a panic: {error}"),
        }
    }

    /// Returns the panic's payload, or the error if the task did not panic.
    pub fn try_into_panic(mut self) -> Result<Box<dyn Any + Send>, JoinError> {
        match std::mem::replace(&mut self.0.kind, Kind::Cancelled) {
            Kind::Panicked(payload) => {
                let mut payload = ManuallyDrop::new(payload);
                // SAFETY: taken once; the wrapper's drop does not run.
                Ok(unsafe { ManuallyDrop::take(&mut payload.0) })
            }
            kind => {
                self.0.kind = kind;
                Err(self)
            }
        }
    }

    /// Goes on panicking here with the task's payload; gives the error back if it did not panic.
    pub fn resume_panic(self) -> JoinError {
        match self.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(error) => error,
        }
    }

    /// The panic's message, where it is a string.
    fn message(&self) -> Option<&str> {
        let Kind::Panicked(payload) = &self.0.kind else {
            return None;
        };
        panic_message(&**payload.0)
    }
}

/// What tells a task from others in a simulation.
fn block_and_number(header: &Header) -> (usize, u64) {
    (std::ptr::from_ref(header).addr(), header.id().get())
}

/// The message of a panic, where it is a string.
pub fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.0.id)?;
        if let Some(name) = &self.0.name {
            write!(f, " ({name})")?;
        }
        match self.kind() {
            JoinErrorKind::Cancelled => f.write_str(" was cancelled"),
            JoinErrorKind::Expired => f.write_str(" waited past its deadline and was not started"),
            JoinErrorKind::Panicked => match self.message() {
                // The text of tokio, which programs look for.
                Some(message) => write!(f, " panicked with message {message:?}"),
                None => f.write_str(" panicked"),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0.id;
        match (self.kind(), self.message()) {
            (JoinErrorKind::Cancelled, _) => write!(f, "JoinError::Cancelled({id:?})"),
            (JoinErrorKind::Expired, _) => write!(f, "JoinError::Expired({id:?})"),
            (JoinErrorKind::Panicked, Some(message)) => {
                write!(f, "JoinError::Panic({id:?}, {message:?}, ...)")
            }
            (JoinErrorKind::Panicked, None) => write!(f, "JoinError::Panic({id:?}, ...)"),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> std::io::Error {
        std::io::Error::other(match error.kind() {
            JoinErrorKind::Cancelled => "task was cancelled",
            JoinErrorKind::Expired => "task was not started in time",
            JoinErrorKind::Panicked => "task panicked",
        })
    }
}
