//! smol's `Executor`, run by threads that wait in smol's reactor, as in its documentation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::{TcpListener, TcpStream};
use smol::{Executor, Task, future};
use smol_hyper::rt::{FuturesIo, SmolTimer};

use super::{
    ASYNC, AsyncPeer, Job, Locks, MPSC, Mpsc, NetPeer, Peer, SERVICES, TimePeer, cannot, hello,
    run_async, run_mpsc, run_net, run_time, sockets,
};
use crate::sample::Sample;
use crate::workload::Workload;

pub const PEER: Peer = Peer {
    name: "smol",
    workloads: &[ASYNC, MPSC, SERVICES],
    run,
};

static EXECUTOR: Executor<'static> = Executor::new();

struct Smol;

fn run(job: Job) -> Sample {
    if ASYNC.contains(&job.workload) {
        return run_async::<Smol>(job);
    }
    Smol::start(job.workers);
    if job.workload == Workload::MutexContended {
        return crate::workloads::locks::contended::<Smol>(job.size);
    }
    run_time::<Smol>(job)
        .or_else(|| run_mpsc::<Smol>(job))
        .or_else(|| run_net::<Smol>(job))
        .unwrap_or_else(|| cannot(job.workload))
}

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

impl TimePeer for Smol {
    async fn sleep(time: Duration) {
        smol::Timer::after(time).await;
    }
}

impl NetPeer for Smol {
    sockets!();

    async fn serve_hello(listener: TcpListener) {
        loop {
            let stream = Smol::accept(&listener).await;
            let serve = http1::Builder::new()
                .timer(SmolTimer::new())
                .serve_connection(FuturesIo::new(stream), service_fn(hello));
            EXECUTOR.spawn(serve).detach();
        }
    }
}

impl Mpsc for Smol {
    type Runtime = Smol;
    type Sender = smol::channel::Sender<u64>;
    type Receiver = smol::channel::Receiver<u64>;
    type UnboundedSender = smol::channel::Sender<u64>;
    type UnboundedReceiver = smol::channel::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        smol::channel::bounded(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        smol::channel::unbounded()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.try_send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
}

impl Locks for Smol {
    type Runtime = Smol;
    type Lock = smol::lock::Mutex<u64>;
    fn new() -> Self::Lock {
        smol::lock::Mutex::new(0)
    }
    async fn add_one(lock: &Arc<Self::Lock>) {
        *lock.lock().await += 1;
    }
    async fn count(lock: &Arc<Self::Lock>) -> u64 {
        *lock.lock().await
    }
}
