//! Windlass with its default settings.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use windlass::http::{serve, service_fn};
use windlass::io::{AsyncReadExt, AsyncWriteExt};
use windlass::net::{TcpListener, TcpStream};
use windlass::task::JoinHandle;
use windlass::{Runtime, coroutine};

use super::channels::wait_then_send;
use super::{
    ACTORS, ANNOUNCE, ASYNC, AsyncPeer, Broadcasts, CLOSURES, GRAPHS, Job, Locks, MPSC, Mpsc,
    NetPeer, OURS, Oneshots, Peer, SERVICES, STACKFUL, TimePeer, Watches, hello, run_actors,
    run_stackful, run_whole, sockets, windlass_graph, windlass_guest, windlass_lane, windlass_lua,
    windlass_process,
};
use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::coroutines::Stackful;
use crate::workloads::{fork_join, steal};

pub const PEER: Peer = Peer {
    name: OURS,
    workloads: &[
        ASYNC,
        MPSC,
        SERVICES,
        ANNOUNCE,
        CLOSURES,
        STACKFUL,
        ACTORS,
        GRAPHS,
        &[
            Workload::StealAwake,
            Workload::ProcessYield,
            Workload::GraphMessage,
            Workload::GraphParallel,
            Workload::LaneJitter,
            Workload::GuestSpawnAwait,
            Workload::GuestPingPong,
            Workload::LuaLoop,
            Workload::LuaMessage,
        ],
    ],
    run,
};

fn run(job: Job) -> Sample {
    match job.workload {
        Workload::ForkJoin => {
            Windlass::start(job.workers);
            fork_join::joins(job.size, |n| {
                Windlass::run_on_worker(async move { fork_join::timed(|| fib(n)) })
            })
        }
        Workload::CpuTasks => {
            Windlass::start(job.workers);
            let size = job.size;
            Windlass::run_on_worker(async move { fork_join::batches(size, batch) })
        }
        Workload::StealAwake => {
            start(
                Runtime::builder()
                    .workers(job.workers)
                    .spin(windlass::runtime::Spin::Rounds {
                        tight: 1_000_000,
                        yields: 0,
                    }),
            );
            steal::tasks::<Windlass>(job.size)
        }
        Workload::ProcessYield => {
            Windlass::start(job.workers);
            windlass_process::yields(job.size)
        }
        Workload::GraphMessage => {
            Windlass::start(job.workers);
            windlass_graph::messages(job.size)
        }
        Workload::GraphParallel => {
            Windlass::start(job.workers);
            windlass_graph::parallel(job.size)
        }
        Workload::LaneJitter => {
            Windlass::start(job.workers);
            windlass_lane::jitter(Duration::from_millis(job.size))
        }
        Workload::GuestSpawnAwait => {
            Windlass::start(job.workers);
            windlass_guest::spawn_await(job.size, job.workers)
        }
        Workload::GuestPingPong => {
            Windlass::start(job.workers);
            windlass_guest::ping_pong(job.size, job.workers)
        }
        Workload::LuaLoop => {
            Windlass::start(job.workers);
            windlass_lua::run_loop(job.size)
        }
        Workload::LuaMessage => {
            Windlass::start(job.workers);
            windlass_lua::messages(job.size)
        }
        workload if GRAPHS.contains(&workload) => {
            Windlass::start(job.workers);
            windlass_graph::plan(workload, job.size)
        }
        workload if ACTORS.contains(&workload) => run_actors::<Windlass>(job),
        _ => {
            Windlass::start(job.workers);
            run_stackful::<Windlass>(job).unwrap_or_else(|| run_whole::<Windlass>(job))
        }
    }
}

fn start(builder: &mut windlass::runtime::Builder) {
    RUNTIME.get_or_init(|| builder.build().expect("windlass starts"));
}

impl Stackful for Windlass {
    type Join<T: Send + 'static> = JoinHandle<T>;

    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        if coroutine::is_inside() {
            return coroutine::spawn(f);
        }
        let runtime = RUNTIME.get().expect("it is running");
        coroutine::Builder::new().spawn_on(runtime.handle(), f)
    }
    fn join<T: Send + 'static>(coroutine: JoinHandle<T>) -> T {
        coroutine::wait(coroutine).expect("the coroutine does not panic")
    }
    fn yield_now() {
        coroutine::yield_now();
    }
    fn park() {
        coroutine::wait(std::future::pending())
    }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, two) = windlass::fork_join::join(|| fib(n - 1), || fib(n - 2));
    one + two
}

fn batch(sum: &std::sync::atomic::AtomicU64) {
    windlass::fork_join::scope(|scope| {
        for seed in 0..fork_join::BATCH {
            scope.spawn(move |_| fork_join::add(sum, seed));
        }
    });
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

pub(super) struct Windlass;

/// A join handle that takes no panic for an answer.
pub(super) struct Join<T>(JoinHandle<T>);

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
        start(Runtime::builder().workers(workers));
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
        windlass::task::yield_now()
    }
}

impl TimePeer for Windlass {
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        windlass::time::sleep(time)
    }
}

impl NetPeer for Windlass {
    sockets!();

    async fn serve_hello(listener: TcpListener) {
        serve(listener, service_fn(hello))
            .await
            .expect("it listens");
    }
}

impl Mpsc for Windlass {
    type Runtime = Windlass;
    type Sender = windlass::sync::mpsc::Sender<u64>;
    type Receiver = windlass::sync::mpsc::Receiver<u64>;
    type UnboundedSender = windlass::sync::mpsc::UnboundedSender<u64>;
    type UnboundedReceiver = windlass::sync::mpsc::UnboundedReceiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        windlass::sync::mpsc::channel(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        windlass::sync::mpsc::unbounded_channel()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await
    }
}

impl Oneshots for Windlass {
    type Runtime = Windlass;
    async fn round(value: u64) -> u64 {
        let (sender, receiver) = windlass::sync::oneshot::channel();
        let received = wait_then_send(receiver, || sender.send(value).expect("it waits"));
        received.await.expect("it was sent")
    }
}

impl Watches for Windlass {
    type Runtime = Windlass;
    type Sender = windlass::sync::watch::Sender<u64>;
    type Receiver = windlass::sync::watch::Receiver<u64>;
    fn channel() -> Self::Sender {
        windlass::sync::watch::channel(0).0
    }
    fn subscribe(sender: &Self::Sender) -> Self::Receiver {
        sender.subscribe()
    }
    fn set(sender: &Self::Sender, value: u64) {
        let _ = sender.send(value);
    }
    async fn changed(receiver: &mut Self::Receiver) -> u64 {
        receiver.changed().await.expect("the sender is there");
        *receiver.borrow_and_update()
    }
}

impl Broadcasts for Windlass {
    type Runtime = Windlass;
    type Sender = windlass::sync::broadcast::Sender<u64>;
    type Receiver = windlass::sync::broadcast::Receiver<u64>;
    fn channel(capacity: usize) -> Self::Sender {
        windlass::sync::broadcast::channel(capacity).0
    }
    fn subscribe(sender: &Self::Sender) -> Self::Receiver {
        sender.subscribe()
    }
    fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).expect("somebody listens");
    }
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().await.expect("nobody lags")
    }
}

impl Locks for Windlass {
    type Runtime = Windlass;
    type Lock = windlass::sync::Mutex<u64>;
    fn new() -> Self::Lock {
        windlass::sync::Mutex::new(0)
    }
    async fn add_one(lock: &Arc<Self::Lock>) {
        *lock.lock().await += 1;
    }
    async fn count(lock: &Arc<Self::Lock>) -> u64 {
        *lock.lock().await
    }
}
