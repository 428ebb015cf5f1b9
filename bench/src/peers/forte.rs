//! forte's thread pool, spawning futures.

use forte::{Task, ThreadPool};

use super::{ASYNC, AsyncPeer, Peer, run_async};

pub const PEER: Peer = Peer {
    name: "forte",
    workloads: &[ASYNC],
    run: run_async::<Forte>,
};

static POOL: ThreadPool = ThreadPool::new();

struct Forte;

impl AsyncPeer for Forte {
    type Join<T: Send + 'static> = Task<T>;

    fn start(workers: usize) {
        assert_eq!(
            POOL.resize_to(workers),
            workers,
            "forte starts all its workers"
        );
    }

    /// Outside the pool this only parks: the main thread does not become a worker.
    fn block_on<F>(future: F) -> F::Output
    where
        F: Future + Send,
        F::Output: Send,
    {
        POOL.block_on(future)
    }

    fn spawn<F>(future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        POOL.spawn(future)
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        POOL.spawn(future).detach();
    }

    /// forte's own `yield_now` runs other work inside the caller; for a future it says to wake and return.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}
