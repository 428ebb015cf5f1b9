//! The runtimes that are compared, and what they have in common.

use std::future::Future;

use crate::sample::Sample;
use crate::workload::Workload;

mod async_executor;
#[cfg(feature = "forte")]
mod forte;
mod machine;
mod may;
mod rayon;
mod smol;
mod tokio;
#[cfg(feature = "windlass")]
mod windlass;

/// The name of our own peer. It is compared with the best of the others.
pub const OURS: &str = "windlass";

/// An async runtime, started once per process.
///
/// All functions are static: a sample has its process for itself, and tasks spawn without carrying a handle, as they do
/// in a program that uses the runtime.
pub trait AsyncPeer: 'static {
    /// A spawned task; resolves to its result. Dropping it need not detach the task.
    type Join<T: Send + 'static>: Future<Output = T> + Send + 'static;

    /// Starts the runtime with this many workers. Called once, first.
    fn start(workers: usize);

    /// Runs a future on the main thread, which is not one of the workers.
    fn block_on<F>(future: F) -> F::Output
    where
        F: Future + Send,
        F::Output: Send;

    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static;

    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Runs a future as a task on a worker and waits for it on the main thread.
    fn run_on_worker<F>(future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Self::block_on(async { Self::spawn(future).await })
    }
}

/// One measurement to make in this process.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub workload: Workload,
    pub workers: usize,
    pub size: u64,
}

/// A column of the table.
pub struct Peer {
    pub name: &'static str,
    pub workloads: &'static [Workload],
    pub run: fn(Job) -> Sample,
}

impl Peer {
    pub fn can(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }
}

/// Everything an async runtime can do: all workloads but the limits of the machine.
const ASYNC: &[Workload] = &[
    Workload::SpawnExternal,
    Workload::SpawnInternal,
    Workload::SpawnDetached,
    Workload::YieldMany,
    Workload::PingPongPairs,
    Workload::PingPongOne,
    Workload::ChainedSpawn,
    Workload::ForkJoinTasks,
    Workload::RemoteWake,
    Workload::StealLatency,
    Workload::Idle,
    Workload::Memory,
];

/// All peers of this build, ours first.
pub const ALL: &[Peer] = &[
    #[cfg(feature = "windlass")]
    windlass::PEER,
    tokio::PEER,
    async_executor::PEER,
    smol::PEER,
    #[cfg(feature = "forte")]
    forte::PEER,
    may::PEER,
    rayon::PEER,
    machine::PEER,
];

/// The peer of this name.
pub fn named(name: &str) -> Option<&'static Peer> {
    ALL.iter().find(|peer| peer.name == name)
}

/// Measures one workload on an async runtime.
fn run_async<P: AsyncPeer>(job: Job) -> Sample {
    use crate::workloads::*;
    P::start(job.workers);
    let size = job.size;
    match job.workload {
        Workload::SpawnExternal => spawn::external::<P>(size),
        Workload::SpawnInternal => spawn::internal::<P>(size),
        Workload::SpawnDetached => spawn::detached::<P>(size),
        Workload::YieldMany => yielding::many::<P>(size),
        Workload::PingPongPairs => ping_pong::pairs::<P>(size),
        Workload::PingPongOne => ping_pong::one::<P>(size),
        Workload::ChainedSpawn => chain::spawn::<P>(size),
        Workload::ForkJoinTasks => fork_join::tasks::<P>(size),
        Workload::RemoteWake => remote_wake::tasks::<P>(size),
        Workload::StealLatency => steal::tasks::<P>(size),
        Workload::Idle => idle::tasks::<P>(size),
        Workload::Memory => memory::tasks::<P>(size),
        other => cannot(other),
    }
}

/// The parent never asks a peer for what it cannot do; a person at the command line might.
fn cannot(workload: Workload) -> ! {
    panic!("this peer does not run {}", workload.facts().name)
}
