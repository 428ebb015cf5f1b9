//! Channels and locks: tokio's, smol's, and the libraries that people use beside a runtime, which
//! run on tokio.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::tokio::Tokio;
use super::{AsyncPeer, Job, MPSC, Peer, cannot, run_mpsc};
use crate::sample::Sample;

/// A channel from many to one, and the runtime it is measured on.
pub trait Mpsc: 'static {
    type Runtime: AsyncPeer;
    type Sender: Clone + Send + Sync + 'static;
    type Receiver: Send + 'static;
    type UnboundedSender: Clone + Send + Sync + 'static;
    type UnboundedReceiver: Send + 'static;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, value: u64) -> impl Future<Output = ()> + Send;
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send;

    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver);
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64);
    fn receive_unbounded(
        receiver: &mut Self::UnboundedReceiver,
    ) -> impl Future<Output = Option<u64>> + Send;
}

/// A channel for one value.
pub trait Oneshots: 'static {
    type Runtime: AsyncPeer;
    /// Makes one, waits for it, sends and receives.
    fn round(value: u64) -> impl Future<Output = u64> + Send;
}

/// A value and its changes.
pub trait Watches: 'static {
    type Runtime: AsyncPeer;
    type Sender: Send + Sync + 'static;
    type Receiver: Send + 'static;
    fn channel() -> Self::Sender;
    fn subscribe(sender: &Self::Sender) -> Self::Receiver;
    fn set(sender: &Self::Sender, value: u64);
    /// Waits for a change and gives the value.
    fn changed(receiver: &mut Self::Receiver) -> impl Future<Output = u64> + Send;
}

/// Everything to everybody.
pub trait Broadcasts: 'static {
    type Runtime: AsyncPeer;
    type Sender: Send + Sync + 'static;
    type Receiver: Send + 'static;
    fn channel(capacity: usize) -> Self::Sender;
    fn subscribe(sender: &Self::Sender) -> Self::Receiver;
    fn send(sender: &Self::Sender, value: u64);
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = u64> + Send;
}

/// A lock around a number.
pub trait Locks: 'static {
    type Runtime: AsyncPeer;
    type Lock: Send + Sync + 'static;
    fn new() -> Self::Lock;
    fn add_one(lock: &Arc<Self::Lock>) -> impl Future<Output = ()> + Send;
    fn count(lock: &Arc<Self::Lock>) -> impl Future<Output = u64> + Send;
}

/// Polls a receiver while nothing is there, so that it waits, then sends and receives.
pub async fn wait_then_send<T>(receiver: impl Future<Output = T>, send: impl FnOnce()) -> T {
    let mut receiver = pin!(receiver);
    poll_fn(|context| {
        assert!(receiver.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    send();
    receiver.await
}

macro_rules! library {
    ($module:ident, $name:literal) => {
        pub mod $module {
            use super::*;
            pub const PEER: Peer = Peer {
                name: $name,
                workloads: &[MPSC],
                run,
            };

            fn run(job: Job) -> Sample {
                Tokio::start(job.workers);
                run_mpsc::<super::$module::Channel>(job).unwrap_or_else(|| cannot(job.workload))
            }

            pub struct Channel;
        }
    };
}

library!(flume, "flume");
library!(async_channel, "async-channel");
library!(kanal, "kanal");
library!(crossfire, "crossfire");

impl Mpsc for flume::Channel {
    type Runtime = Tokio;
    type Sender = ::flume::Sender<u64>;
    type Receiver = ::flume::Receiver<u64>;
    type UnboundedSender = ::flume::Sender<u64>;
    type UnboundedReceiver = ::flume::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        ::flume::bounded(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send_async(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv_async().await.ok()
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        ::flume::unbounded()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv_async().await.ok()
    }
}

impl Mpsc for async_channel::Channel {
    type Runtime = Tokio;
    type Sender = ::async_channel::Sender<u64>;
    type Receiver = ::async_channel::Receiver<u64>;
    type UnboundedSender = ::async_channel::Sender<u64>;
    type UnboundedReceiver = ::async_channel::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        ::async_channel::bounded(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        ::async_channel::unbounded()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.try_send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
}

impl Mpsc for kanal::Channel {
    type Runtime = Tokio;
    type Sender = ::kanal::AsyncSender<u64>;
    type Receiver = ::kanal::AsyncReceiver<u64>;
    type UnboundedSender = ::kanal::AsyncSender<u64>;
    type UnboundedReceiver = ::kanal::AsyncReceiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        ::kanal::bounded_async(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        ::kanal::unbounded_async()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.try_send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
}

impl Mpsc for crossfire::Channel {
    type Runtime = Tokio;
    type Sender = ::crossfire::MAsyncTx<::crossfire::mpsc::Array<u64>>;
    type Receiver = ::crossfire::AsyncRx<::crossfire::mpsc::Array<u64>>;
    type UnboundedSender = ::crossfire::MTx<::crossfire::mpsc::List<u64>>;
    type UnboundedReceiver = ::crossfire::AsyncRx<::crossfire::mpsc::List<u64>>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        ::crossfire::mpsc::bounded_async(capacity)
    }
    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("it is open");
    }
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        ::crossfire::mpsc::unbounded_async()
    }
    fn send_unbounded(sender: &Self::UnboundedSender, value: u64) {
        sender.send(value).expect("it is open");
    }
    async fn receive_unbounded(receiver: &mut Self::UnboundedReceiver) -> Option<u64> {
        receiver.recv().await.ok()
    }
}
