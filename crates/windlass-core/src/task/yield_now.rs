//! Giving way to the other ready tasks.

use std::future::poll_fn;
use std::task::Poll;

/// Gives every other ready task a turn: the task goes to the tail of its worker's queue.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
