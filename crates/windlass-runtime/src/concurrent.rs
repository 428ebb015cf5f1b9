//! Several futures on one task: all of them, or the first.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::sync::{Arc, Mutex, random};
use windlass_core::task::Budget;

/// Waits for all `futures` and gives their outputs in the same order.
///
/// They run on this task; only those that were woken are polled. For work that should run in
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

/// Futures of which only those are polled that were woken.
struct Set<F> {
    futures: Vec<Option<(Pin<Box<F>>, Waker)>>,
    woken: Arc<Woken>,
}

/// Which of them were woken, and whom to tell.
#[derive(Default)]
struct Woken(Mutex<(VecDeque<usize>, Option<Waker>)>);

struct MemberWaker {
    index: usize,
    woken: Arc<Woken>,
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.0.lock();
        woken.0.push_back(self.index);
        let waker = woken.1.take();
        drop(woken);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<F: Future> Set<F> {
    /// `start` says which is polled first.
    fn new<I: IntoIterator<Item = F>>(futures: I, start: usize) -> Set<F> {
        let woken = Arc::new(Woken::default());
        let futures: Vec<_> = futures
            .into_iter()
            .enumerate()
            .map(|(index, future)| {
                let waker = Waker::from(Arc::new(MemberWaker {
                    index,
                    woken: woken.clone(),
                }));
                Some((Box::pin(future), waker))
            })
            .collect();
        let count = futures.len();
        if count > 0 {
            let all = (0..count).map(|step| (start % count + step) % count);
            woken.0.lock().0.extend(all);
        }
        Set { futures, woken }
    }

    fn len(&self) -> usize {
        self.futures.len()
    }

    /// The next one that is ready, with its place.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(usize, F::Output)> {
        loop {
            // Without any budget left they would all report pending and ask to be looked at again.
            if Budget::current().remaining() == Some(0) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut woken = self.woken.0.lock();
            let Some(index) = woken.0.pop_front() else {
                let old = woken.1.replace(cx.waker().clone());
                drop(woken);
                drop(old);
                return Poll::Pending;
            };
            drop(woken);
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
