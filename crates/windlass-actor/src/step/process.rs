//! The trait of step machines.

use windlass_value::Payloads;

use super::{Events, Output, ProcessContext, Status};
use crate::exit::ActorError;

/// A state machine that the runtime drives: it is stepped with events, and writes what it asks for.
///
/// ```
/// use std::time::Duration;
/// use windlass_actor::command::Sleep;
/// use windlass_actor::{ActorError, Event, Events, Host, Output, Process, ProcessContext, Status};
/// use windlass_value::Payloads;
///
/// /// Sleeps, then is done.
/// struct Nap;
///
/// impl Process for Nap {
///     fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
///         Ok(())
///     }
///
///     fn step(
///         &mut self,
///         events: &mut Events<'_>,
///         out: &mut Output,
///     ) -> Result<Status, ActorError> {
///         match events.next() {
///             Some(Event::YieldComplete { tag: 1, .. }) => Ok(Status::Done("rested".into())),
///             Some(_) => Ok(Status::Idle),
///             None => {
///                 out.request(1, Sleep(Duration::from_millis(1)));
///                 Ok(Status::Blocked)
///             }
///         }
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let nap = Host::current()?.step(Nap)?;
/// assert_eq!(nap.join().await.value, "rested".into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Process: Send + 'static {
    /// Its entry points. A spawn that names another one fails.
    fn methods(&self) -> &[&str] {
        &["main"]
    }

    /// Prepares it for one of its entry points. An error fails the spawn.
    fn init(
        &mut self,
        ctx: &ProcessContext,
        method: &str,
        input: Payloads,
    ) -> Result<(), ActorError>;

    /// Goes on. Takes events as long as it likes: what it does not take stays, in its order. Must
    /// not block. The first step comes by itself, without events.
    fn step(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError>;

    /// Releases what it holds. Runs exactly once, whatever the end.
    fn close(&mut self) {}
}
