//! async-executor's `StaticExecutor`, run by threads that only park: the fastest way to use it.

use std::future::pending;
use std::thread;

use async_executor::{StaticExecutor, Task};
use futures_lite::future;

use super::{ASYNC, AsyncPeer, Peer, run_async};

pub const PEER: Peer = Peer {
    name: "async-executor",
    workloads: &[ASYNC],
    run: run_async::<AsyncExecutor>,
};

static EXECUTOR: StaticExecutor = StaticExecutor::new();

struct AsyncExecutor;

impl AsyncPeer for AsyncExecutor {
    type Join<T: Send + 'static> = Task<T>;

    fn start(workers: usize) {
        for _ in 0..workers {
            thread::spawn(|| future::block_on(EXECUTOR.run(pending::<()>())));
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        future::block_on(future)
    }

    fn spawn<F>(future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        EXECUTOR.spawn(future)
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        EXECUTOR.spawn(future).detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }
}
