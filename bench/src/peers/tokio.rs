//! tokio's multi-threaded runtime with its default settings and all its drivers.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::channels::wait_then_send;
use super::{
    ACTORS, ANNOUNCE, ASYNC, Actors, AsyncPeer, Broadcasts, Job, Locks, MPSC, Mpsc, NetPeer,
    Oneshots, Peer, SERVICES, TimePeer, Watches, hello, run_actors, run_whole, sockets,
};
use crate::countdown::Countdown;
use crate::sample::Sample;
use crate::workloads::actors::handled;

pub const PEER: Peer = Peer {
    name: "tokio",
    workloads: &[ASYNC, MPSC, SERVICES, ANNOUNCE, ACTORS],
    run,
};

fn run(job: Job) -> Sample {
    if ACTORS.contains(&job.workload) {
        return run_actors::<Tokio>(job);
    }
    run_whole::<Tokio>(job)
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// tokio's multi-threaded runtime.
pub struct Tokio;

/// A join handle that takes no panic for an answer.
pub struct Join<T>(JoinHandle<T>);

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
                .enable_all()
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

impl TimePeer for Tokio {
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }
}

impl NetPeer for Tokio {
    sockets!();

    async fn serve_hello(listener: TcpListener) {
        loop {
            let stream = Tokio::accept(&listener).await;
            drop(tokio::spawn(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service_fn(hello)),
            ));
        }
    }
}

impl Mpsc for Tokio {
    type Runtime = Tokio;
    type Sender = tokio::sync::mpsc::Sender<u64>;
    type Receiver = tokio::sync::mpsc::Receiver<u64>;
    type UnboundedSender = tokio::sync::mpsc::UnboundedSender<u64>;
    type UnboundedReceiver = tokio::sync::mpsc::UnboundedReceiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        tokio::sync::mpsc::channel(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        tokio::sync::mpsc::unbounded_channel()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await
    }
}

impl Oneshots for Tokio {
    type Runtime = Tokio;
    async fn round(value: u64) -> u64 {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let received = wait_then_send(receiver, || sender.send(value).expect("it waits"));
        received.await.expect("it was sent")
    }
}

impl Watches for Tokio {
    type Runtime = Tokio;
    type Sender = tokio::sync::watch::Sender<u64>;
    type Receiver = tokio::sync::watch::Receiver<u64>;
    fn channel() -> Self::Sender {
        tokio::sync::watch::channel(0).0
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

impl Broadcasts for Tokio {
    type Runtime = Tokio;
    type Sender = tokio::sync::broadcast::Sender<u64>;
    type Receiver = tokio::sync::broadcast::Receiver<u64>;
    fn channel(capacity: usize) -> Self::Sender {
        tokio::sync::broadcast::channel(capacity).0
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

impl Locks for Tokio {
    type Runtime = Tokio;
    type Lock = tokio::sync::Mutex<u64>;
    fn new() -> Self::Lock {
        tokio::sync::Mutex::new(0)
    }
    async fn add_one(lock: &Arc<Self::Lock>) {
        *lock.lock().await += 1;
    }
    async fn count(lock: &Arc<Self::Lock>) -> u64 {
        *lock.lock().await
    }
}

/// What the mailbox of an actor holds.
const MAILBOX: usize = 1024;

pub enum ToCounter {
    Add(u64),
    Ask(u64, oneshot::Sender<u64>),
}

async fn counter(mut mailbox: mpsc::Receiver<ToCounter>) {
    let mut sum = 0;
    while let Some(message) = mailbox.recv().await {
        match message {
            ToCounter::Add(number) => sum += number,
            ToCounter::Ask(number, answer) => {
                sum += number;
                answer.send(sum).expect("somebody asked");
            }
        }
    }
}

pub enum ToLink {
    Next(mpsc::Sender<ToLink>),
    Token(u64),
    End(oneshot::Sender<u64>),
}

async fn link(mut mailbox: mpsc::Receiver<ToLink>, end: Arc<Countdown>) {
    let (mut next, mut tokens) = (None, 0);
    while let Some(message) = mailbox.recv().await {
        match message {
            ToLink::Next(link) => next = Some(link),
            ToLink::Token(hops_left) => {
                tokens += 1;
                if hops_left == 1 {
                    end.done();
                } else {
                    let next = next.as_ref().expect("it has a next one");
                    Tokio::pass(next, hops_left - 1).await;
                }
            }
            ToLink::End(answer) => {
                answer.send(tokens).expect("somebody asked");
                return;
            }
        }
    }
}

/// Not a library but what one writes without one: a task with a channel.
impl Actors for Tokio {
    type Runtime = Tokio;
    const UNBOUNDED: bool = false;

    type Counter = mpsc::Sender<ToCounter>;
    async fn counter() -> Self::Counter {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        tokio::spawn(counter(mailbox));
        sender
    }
    async fn tell(counter: &Self::Counter, number: u64) {
        let message = ToCounter::Add(number);
        counter.send(message).await.expect("it runs");
    }
    async fn ask(counter: &Self::Counter, number: u64) -> u64 {
        let (answer, sum) = oneshot::channel();
        let message = ToCounter::Ask(number, answer);
        counter.send(message).await.expect("it runs");
        sum.await.expect("it answers")
    }

    type Once = JoinHandle<()>;
    async fn once(number: u64) -> Self::Once {
        let (sender, mut mailbox) = mpsc::channel(MAILBOX);
        let task =
            tokio::spawn(async move { handled(mailbox.recv().await.expect("there is a message")) });
        sender.send(number).await.expect("it runs");
        task
    }
    async fn ended(once: Self::Once) {
        once.await.expect("the task does not panic");
    }

    type Link = mpsc::Sender<ToLink>;
    async fn link(end: Arc<Countdown>) -> Self::Link {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        tokio::spawn(link(mailbox, end));
        sender
    }
    async fn connect(link: &Self::Link, next: Self::Link) {
        link.send(ToLink::Next(next)).await.expect("it runs");
    }
    async fn pass(link: &Self::Link, hops_left: u64) {
        link.send(ToLink::Token(hops_left)).await.expect("it runs");
    }
    async fn end(link: Self::Link) -> u64 {
        let (answer, tokens) = oneshot::channel();
        link.send(ToLink::End(answer)).await.expect("it runs");
        tokens.await.expect("it answers")
    }
}
