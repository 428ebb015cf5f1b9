//! Async processes: a context to receive with, a trait for those who like one, and their runner.

mod body;
mod context;
mod event;
mod subscription;
mod timers;

use std::future::{Future, poll_fn};
use std::sync::Arc;

pub(crate) use self::body::ActorBody;
pub use self::context::Context;
pub use self::event::Event;
pub use self::subscription::SubscriptionId;
pub use self::timers::{MOST_TIMERS, Timer, TooManyTimers};
use crate::exit::{ActorError, Exited};

/// A process with a type for its messages and a method for each event.
///
/// ```
/// use windlass_actor::{Actor, ActorError, Context, Reply};
///
/// struct Counter(u64);
///
/// enum Count { Up, Read(Reply<u64>) }
///
/// impl Actor for Counter {
///     type Message = Count;
///
///     async fn handle(
///         &mut self,
///         message: Count,
///         _: &mut Context<Count>,
///     ) -> Result<(), ActorError> {
///         match message {
///             Count::Up => self.0 += 1,
///             Count::Read(reply) => reply.send(self.0),
///         }
///         Ok(())
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let counter = windlass_actor::Host::current()?.actor(Counter(0))?;
/// counter.tell(Count::Up)?;
/// assert_eq!(counter.ask(Count::Read).await?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Actor: Send + 'static {
    /// The type of its messages.
    type Message: Send + 'static;

    /// Runs before the first message.
    fn started(
        &mut self,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send {
        async { Ok(()) }
    }

    /// Handles one message. An error ends the actor.
    fn handle(
        &mut self,
        message: Self::Message,
        ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// The end of a process that it monitors, or is linked to and traps links.
    fn exited(
        &mut self,
        _exited: Exited,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send {
        async { Ok(()) }
    }

    /// After the last message, unless it is killed or panics: time to clean up. `cancelled` is the
    /// reason of the cancel, if there was one.
    fn stopped(
        &mut self,
        _cancelled: Option<&str>,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// An actor as an async process.
///
/// One block that captures both, not an `async fn`: what that takes is kept twice, and there are
/// many actors.
#[expect(clippy::manual_async_fn, reason = "see above")]
pub(crate) fn run_actor<A: Actor>(
    mut actor: A,
    mut ctx: Context<A::Message>,
) -> impl Future<Output = Result<(), ActorError>> + Send {
    async move {
        // Why it ends: an error, or a cancel, or neither.
        let end: Result<Option<Arc<str>>, ActorError> = 'life: {
            if let Err(error) = actor.started(&mut ctx).await {
                break 'life Err(error);
            }
            while !ctx.stopping {
                // Not `event`: that answer is large, and would be kept over the wait.
                let message = poll_fn(|cx| ctx.poll_message(cx)).await;
                let handled = match message {
                    Some(message) => actor.handle(message, &mut ctx).await,
                    None => match ctx.other_event() {
                        Some(Ok(exited)) => actor.exited(*exited, &mut ctx).await,
                        Some(Err(reason)) => break 'life Ok(Some(reason)),
                        None => Ok(()),
                    },
                };
                if let Err(error) = handled {
                    break 'life Err(error);
                }
            }
            Ok(None)
        };
        let cancelled = end.as_ref().ok().and_then(Option::as_deref);
        actor.stopped(cancelled, &mut ctx).await;
        match end {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(ActorError::cancelled(reason)),
            Err(error) => Err(error),
        }
    }
}
