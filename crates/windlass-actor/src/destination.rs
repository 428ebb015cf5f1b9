//! Where typed messages go.

use std::future::Future;
use std::time::Duration;

use crate::address::{Address, Reply};
use crate::error::{AskError, SendError};

/// Where messages of type `M` go: what a handle that [`messages`](crate::Methods) makes sends to,
/// and what a function that only sends can be generic over.
///
/// ```
/// use windlass_actor::{Context, Destination, SendError};
///
/// async fn count_to<D: Destination<u32>>(destination: &D, last: u32) -> Result<(), SendError<u32>> {
///     for number in 1..=last {
///         destination.send(number).await?;
///     }
///     Ok(())
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let sum = windlass_actor::spawn(|mut ctx: Context<u32>| async move {
///     assert_eq!(ctx.recv().await, Some(1));
/// })?;
/// count_to(&sum.address(), 1).await?;
/// assert!(sum.join().await.reason.is_normal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Destination<M: Send + 'static>: Send + Sync {
    /// Sends a message now, or hands it back.
    fn tell(&self, message: M) -> Result<(), SendError<M>>;

    /// Sends a message, and waits until there is room for it.
    fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + Send;

    /// Asks a question, and waits for its answer for so long; the wait for room is included.
    fn ask_within<R: Send>(
        &self,
        deadline: Duration,
        question: impl FnOnce(Reply<R>) -> M + Send,
    ) -> impl Future<Output = Result<R, AskError>> + Send;
}

impl<M: Send + 'static> Destination<M> for Address<M> {
    #[inline]
    fn tell(&self, message: M) -> Result<(), SendError<M>> {
        Address::tell(self, message)
    }

    #[inline]
    fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + Send {
        Address::send(self, message)
    }

    #[inline]
    fn ask_within<R: Send>(
        &self,
        deadline: Duration,
        question: impl FnOnce(Reply<R>) -> M + Send,
    ) -> impl Future<Output = Result<R, AskError>> + Send {
        Address::ask_within(self, deadline, question)
    }
}
