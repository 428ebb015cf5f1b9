//! Several futures on one task: all of them, or the first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::sync::{Arc, random};

use crate::ready_set::ReadySet;

/// Waits for all `futures` and gives their outputs in the same order.
///
/// They run on this task; only those that were ready are polled. For work that should run in
/// parallel use a [`TaskGroup`](crate::TaskGroup). Cancel-safe if all the futures are.
///
/// ```
/// let squares = (1..=4u32).map(|n| async move { n * n });
/// assert_eq!(windlass_core::block_on(windlass_runtime::join_all(squares)), [1, 4, 9, 16]);
/// ```
pub async fn join_all<I>(futures: I) -> Vec<<I::Item as Future>::Output>
where
    I: IntoIterator,
    I::Item: Future,
{
    let mut set = Set::new(futures, 0);
    let mut outputs: Vec<_> = (0..set.len()).map(|_| None).collect();
    for _ in 0..outputs.len() {
        let (index, output) = std::future::poll_fn(|cx| set.poll_next(cx)).await;
        outputs[index] = Some(output);
    }
    outputs.into_iter().flatten().collect()
}

/// Waits for the first of `futures` to be ready and drops the others; none if there are none.
///
/// Which of several that are ready at once wins is chosen fairly. Cancel-safe if all the futures
/// are.
///
/// ```
/// use std::future::{Future, pending, ready};
/// use std::pin::Pin;
///
/// let both: [Pin<Box<dyn Future<Output = u32>>>; 2] = [Box::pin(pending()), Box::pin(ready(7))];
/// assert_eq!(windlass_core::block_on(windlass_runtime::race(both)), Some(7));
/// ```
pub async fn race<I>(futures: I) -> Option<<I::Item as Future>::Output>
where
    I: IntoIterator,
    I::Item: Future,
{
    let mut set = Set::new(futures, random() as usize);
    if set.len() == 0 {
        return None;
    }
    let (_, output) = std::future::poll_fn(|cx| set.poll_next(cx)).await;
    Some(output)
}

/// Futures of which only those are polled that were ready.
struct Set<F> {
    futures: Vec<Option<(Pin<Box<F>>, Waker)>>,
    ready: Arc<ReadySet>,
}

impl<F: Future> Set<F> {
    /// `start` says which is polled first.
    fn new<I: IntoIterator<Item = F>>(futures: I, start: usize) -> Set<F> {
        let mut pinned: Vec<_> = futures.into_iter().map(|f| Some(Box::pin(f))).collect();
        let count = pinned.len();
        let ready = Arc::new(ReadySet::default());
        let mut futures: Vec<_> = (0..count).map(|_| None).collect();
        for index in (0..count).map(|step| (start % count + step) % count) {
            let waker = ready.join(index as u64);
            futures[index] = pinned[index].take().map(|future| (future, waker));
        }
        Set { futures, ready }
    }

    fn len(&self) -> usize {
        self.futures.len()
    }

    /// The next one that is ready, with its place.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(usize, F::Output)> {
        loop {
            let index = ready!(self.ready.poll_next(cx)) as usize;
            let Some((future, waker)) = &mut self.futures[index] else {
                continue;
            };
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                self.futures[index] = None;
                return Poll::Ready((index, output));
            }
        }
    }
}
