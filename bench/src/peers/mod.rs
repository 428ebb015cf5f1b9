//! The runtimes that are compared, and what they have in common.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};

use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::coroutines::Stackful;

mod async_executor;
mod channels;
mod chili;
#[cfg(feature = "forte")]
mod forte;
mod machine;
mod may;
mod rayon;
mod smol;
mod tokio;
#[cfg(feature = "windlass")]
mod windlass;

pub use channels::{Broadcasts, Locks, Mpsc, Oneshots, Watches};

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

/// An async runtime with timers.
pub trait TimePeer: AsyncPeer {
    fn sleep(time: std::time::Duration) -> impl Future<Output = ()> + Send;
}

/// An async runtime with sockets, and hyper on them.
pub trait NetPeer: AsyncPeer {
    type Listener: Send + Sync + 'static;
    type Stream: Send + 'static;

    /// Listens on a free port of this machine.
    fn bind() -> impl Future<Output = (Self::Listener, SocketAddr)> + Send;
    fn accept(listener: &Self::Listener) -> impl Future<Output = Self::Stream> + Send;
    fn connect(address: SocketAddr) -> impl Future<Output = Self::Stream> + Send;
    fn read_exact(stream: &mut Self::Stream, buffer: &mut [u8]) -> impl Future<Output = ()> + Send;
    fn write_all(stream: &mut Self::Stream, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    /// Answers every request with [`hello`], for ever.
    fn serve_hello(listener: Self::Listener) -> impl Future<Output = ()> + Send;
}

/// The sockets of a [`NetPeer`]: tokio, smol and we have the same names for them.
macro_rules! sockets {
    () => {
        type Listener = TcpListener;
        type Stream = TcpStream;

        async fn bind() -> (TcpListener, SocketAddr) {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            (listener, address)
        }

        async fn accept(listener: &TcpListener) -> TcpStream {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("an option");
            stream
        }

        async fn connect(address: SocketAddr) -> TcpStream {
            let stream = TcpStream::connect(address).await.expect("a connection");
            stream.set_nodelay(true).expect("an option");
            stream
        }

        async fn read_exact(stream: &mut TcpStream, buffer: &mut [u8]) {
            stream.read_exact(buffer).await.expect("bytes");
        }

        async fn write_all(stream: &mut TcpStream, bytes: &[u8]) {
            stream.write_all(bytes).await.expect("written");
        }
    };
}
use sockets;

/// What the HTTP servers answer.
async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(
        b"Hello, World!",
    ))))
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
    pub workloads: &'static [&'static [Workload]],
    pub run: fn(Job) -> Sample,
}

impl Peer {
    pub fn can(&self, workload: Workload) -> bool {
        self.workloads.iter().any(|group| group.contains(&workload))
    }
}

/// What every async runtime can do.
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

/// What runs closures that borrow.
const CLOSURES: &[Workload] = &[Workload::ForkJoin, Workload::CpuTasks];

/// What stackful coroutines can do.
const STACKFUL: &[Workload] = &[
    Workload::CoroutineYield,
    Workload::CoroutineCreate,
    Workload::CoroutineMemory,
];

/// What channels can do.
const MPSC: &[Workload] = &[
    Workload::MpscBounded,
    Workload::MpscBounded8,
    Workload::MpscUnbounded,
    Workload::MpscUnbounded8,
];

/// What runtimes with timers, locks and sockets can do: smol, too.
const SERVICES: &[Workload] = &[
    Workload::TimerCancel,
    Workload::TimerSleep,
    Workload::TimerSleepCpu,
    Workload::MutexContended,
    Workload::TcpEcho,
    Workload::HttpHello,
];

/// What smol has no equivalent of.
const ANNOUNCE: &[Workload] = &[Workload::Oneshot, Workload::Watch, Workload::Broadcast];

/// Everything but fork-join: ours and tokio.
const WHOLE: &[&[Workload]] = &[ASYNC, MPSC, SERVICES, ANNOUNCE];

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
    chili::PEER,
    channels::flume::PEER,
    channels::async_channel::PEER,
    channels::kanal::PEER,
    channels::crossfire::PEER,
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

/// Measures timers.
fn run_time<P: TimePeer>(job: Job) -> Option<Sample> {
    use crate::workloads::timers;
    Some(match job.workload {
        Workload::TimerCancel => timers::cancel::<P>(job.size),
        Workload::TimerSleep => timers::sleep::<P>(job.size),
        Workload::TimerSleepCpu => timers::sleep_cpu::<P>(job.size),
        _ => return None,
    })
}

/// Measures stackful coroutines.
fn run_stackful<P: Stackful>(job: Job) -> Option<Sample> {
    use crate::workloads::coroutines;
    Some(match job.workload {
        Workload::CoroutineYield => coroutines::yields::<P>(job.size),
        Workload::CoroutineCreate => coroutines::create::<P>(job.size),
        Workload::CoroutineMemory => coroutines::memory::<P>(job.size),
        _ => return None,
    })
}

/// Measures sockets.
fn run_net<P: NetPeer>(job: Job) -> Option<Sample> {
    use crate::workloads::net;
    Some(match job.workload {
        Workload::TcpEcho => net::echo::<P>(job.size),
        Workload::HttpHello => net::hello::<P>(job.size),
        _ => return None,
    })
}

/// Measures channels from many to one.
fn run_mpsc<C: Mpsc>(job: Job) -> Option<Sample> {
    use crate::workloads::channels;
    Some(match job.workload {
        Workload::MpscBounded => channels::bounded::<C>(4, job.size),
        Workload::MpscBounded8 => channels::bounded::<C>(8, job.size),
        Workload::MpscUnbounded => channels::unbounded::<C>(4, job.size),
        Workload::MpscUnbounded8 => channels::unbounded::<C>(8, job.size),
        _ => return None,
    })
}

/// Measures a runtime with everything.
fn run_whole<P>(job: Job) -> Sample
where
    P: TimePeer + NetPeer + Mpsc + Oneshots + Watches + Broadcasts + Locks,
{
    use crate::workloads::{channels, locks};
    if ASYNC.contains(&job.workload) {
        return run_async::<P>(job);
    }
    P::start(job.workers);
    let sample = run_time::<P>(job)
        .or_else(|| run_mpsc::<P>(job))
        .or_else(|| run_net::<P>(job));
    if let Some(sample) = sample {
        return sample;
    }
    match job.workload {
        Workload::MutexContended => locks::contended::<P>(job.size),
        Workload::Oneshot => channels::oneshot::<P>(job.size),
        Workload::Watch => channels::watch::<P>(job.size),
        Workload::Broadcast => channels::broadcast::<P>(job.size),
        other => cannot(other),
    }
}

/// The parent never asks a peer for what it cannot do; a person at the command line might.
fn cannot(workload: Workload) -> ! {
    panic!("this peer does not run {}", workload.facts().name)
}
