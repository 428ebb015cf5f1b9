//! Waiting for a future on a plain thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use crate::context;
use crate::sync::{Arc, Parker};

struct Signal(Parker);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Nobody sleeps elsewhere here.
        let _ = self.0.unpark();
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static WAITING: Cell<bool> = const { Cell::new(false) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static WAITING: Cell<bool> = Cell::new(false);
}

/// Runs `future` on this thread, which sleeps while it is pending.
///
/// # Panics
/// Inside a task or inside another `block_on`: it would block what is running there.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !context::in_task(),
        "block_on inside a task would block its worker: await the future instead, or move the \
         blocking call into spawn_blocking"
    );
    assert!(
        !WAITING.with(Cell::get),
        "block_on inside another block_on on the same thread would block it: await the future \
         instead, or move the blocking call into spawn_blocking"
    );
    struct Waiting;
    impl Drop for Waiting {
        fn drop(&mut self) {
            WAITING.with(|waiting| waiting.set(false));
        }
    }
    WAITING.with(|waiting| waiting.set(true));
    let _waiting = Waiting;

    let signal = Arc::new(Signal(Parker::new()));
    let waker = Waker::from(signal.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => signal.0.park(),
        }
    }
}
