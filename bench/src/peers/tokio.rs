//! tokio's multi-threaded runtime with its default settings.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::{ASYNC, AsyncPeer, Peer, run_async};

pub const PEER: Peer = Peer {
    name: "tokio",
    workloads: ASYNC,
    run: run_async::<Tokio>,
};

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

struct Tokio;

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

impl AsyncPeer for Tokio {
    type Join<T: Send + 'static> = Join<T>;

    fn start(workers: usize) {
        RUNTIME.get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(workers)
                .build()
                .expect("tokio starts")
        });
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        RUNTIME.get().expect("tokio was started").block_on(future)
    }

    fn spawn<F>(future: F) -> Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Join(tokio::spawn(future))
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(tokio::spawn(future));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}
