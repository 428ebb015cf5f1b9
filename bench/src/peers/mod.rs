//! The runtimes that are compared, and what they have in common.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};

use crate::countdown::Countdown;
use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::coroutines::Stackful;

#[cfg(feature = "actix")]
mod actix;
mod async_executor;
mod channels;
mod chili;
#[cfg(feature = "forte")]
mod forte;
mod kameo;
mod machine;
mod may;
mod mlua;
mod ractor;
mod rayon;
mod smol;
mod tokio;
#[cfg(feature = "windlass")]
mod windlass;
#[cfg(feature = "windlass")]
mod windlass_graph;
#[cfg(feature = "windlass")]
mod windlass_guest;
#[cfg(feature = "windlass")]
mod windlass_lane;
#[cfg(feature = "windlass")]
mod windlass_lua;
#[cfg(feature = "windlass")]
mod windlass_process;
mod xtra;

pub use channels::{Broadcasts, Locks, Mpsc, Oneshots, Watches};

/// The name of our own peer. It is compared with the best of the others.
pub const OURS: &str = "windlass";

/// An async runtime, started once per process.
///
/// All functions are static: a sample has its process for itself, and tasks spawn without carrying
/// a handle, as they do in a program that uses the runtime.
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

/// Actors, and the runtime they are measured on.
///
/// The actors are concrete, so that each peer writes them as its users do. Types are addresses.
pub trait Actors: 'static {
    type Runtime: AsyncPeer;
    /// Whether telling never waits. The producer then gives way now and then.
    const UNBOUNDED: bool;

    /// An actor that adds up numbers. It need not end when its address is dropped.
    type Counter: Send + Sync + 'static;
    fn counter() -> impl Future<Output = Self::Counter> + Send;
    fn tell(counter: &Self::Counter, number: u64) -> impl Future<Output = ()> + Send;
    /// Sends a number and waits for the sum, which includes it.
    fn ask(counter: &Self::Counter, number: u64) -> impl Future<Output = u64> + Send;

    /// An actor for one message, or what waits for its end.
    type Once: Send + 'static;
    /// Starts an actor and sends it a number. It calls
    /// [`handled`](crate::workloads::actors::handled) with it and ends.
    fn once(number: u64) -> impl Future<Output = Self::Once> + Send;
    fn ended(once: Self::Once) -> impl Future<Output = ()> + Send;

    /// An actor of a ring. It knows the next one and counts the tokens that it gets.
    type Link: Clone + Send + Sync + 'static;
    /// Starts one that has no next one yet.
    fn link(end: Arc<Countdown>) -> impl Future<Output = Self::Link> + Send;
    fn connect(link: &Self::Link, next: Self::Link) -> impl Future<Output = ()> + Send;
    /// Sends the token, which says how many hops are left, this one included. With 1 the link calls
    /// `end.done()`, with more the next one gets one less.
    fn pass(link: &Self::Link, hops_left: u64) -> impl Future<Output = ()> + Send;
    /// Ends it and answers how many tokens it got.
    fn end(link: Self::Link) -> impl Future<Output = u64> + Send;
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

/// What closures can do for graphs.
const GRAPHS: &[Workload] = &[
    Workload::GraphChain,
    Workload::GraphWave,
    Workload::GraphTree,
];

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

/// What actors can do.
const ACTORS: &[Workload] = &[
    Workload::ActorTell,
    Workload::ActorAsk,
    Workload::ActorSpawn,
    Workload::ActorRing,
    Workload::ProcessMemory,
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
    mlua::PEER,
    rayon::PEER,
    chili::PEER,
    channels::flume::PEER,
    channels::async_channel::PEER,
    channels::kanal::PEER,
    channels::crossfire::PEER,
    ractor::PEER,
    kameo::PEER,
    #[cfg(feature = "actix")]
    actix::PEER,
    xtra::PEER,
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

/// Measures the workloads of timers.
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

/// Measures the workloads of sockets.
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

/// Measures the workloads of actors.
fn run_actors<A: Actors>(job: Job) -> Sample {
    use crate::workloads::actors;
    A::Runtime::start(job.workers);
    match job.workload {
        Workload::ActorTell => actors::tell::<A>(job.size),
        Workload::ActorAsk => actors::ask::<A>(job.size),
        Workload::ActorSpawn => actors::spawn::<A>(job.size),
        Workload::ActorRing => actors::ring::<A>(job.size),
        Workload::ProcessMemory => actors::memory::<A>(job.size),
        other => cannot(other),
    }
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
