//! smol's `Executor`, run by threads that wait in smol's reactor, as in its documentation.

use std::thread;

use smol::{Executor, Task, future};

use super::{ASYNC, AsyncPeer, Peer, run_async};

pub const PEER: Peer = Peer {
    name: "smol",
    workloads: ASYNC,
    run: run_async::<Smol>,
};

static EXECUTOR: Executor<'static> = Executor::new();

struct Smol;

impl AsyncPeer for Smol {
    type Join<T: Send + 'static> = Task<T>;

    fn start(workers: usize) {
        for _ in 0..workers {
            thread::spawn(|| smol::block_on(EXECUTOR.run(future::pending::<()>())));
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        smol::block_on(future)
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
