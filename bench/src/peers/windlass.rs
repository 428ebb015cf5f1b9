//! Windlass with its default settings.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use windlass::{JoinHandle, Runtime};

use super::{ASYNC, AsyncPeer, OURS, Peer, run_async};

pub const PEER: Peer = Peer {
    name: OURS,
    workloads: ASYNC,
    run: run_async::<Windlass>,
};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

struct Windlass;

/// A join handle that takes no panic for an answer.
struct Join<T>(JoinHandle<T>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|result| result.expect("the task does not panic"))
    }
}

impl AsyncPeer for Windlass {
    type Join<T: Send + 'static> = Join<T>;

    fn start(workers: usize) {
        RUNTIME.get_or_init(|| {
            Runtime::builder()
                .workers(workers)
                .build()
                .expect("windlass starts")
        });
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        RUNTIME
            .get()
            .expect("windlass was started")
            .block_on(future)
    }

    fn spawn<F>(future: F) -> Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Join(windlass::spawn(future))
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(windlass::spawn(future));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        windlass::yield_now()
    }
}
