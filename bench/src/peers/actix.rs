//! actix's actors, all of them on one thread.
//!
//! An actor stays on the arbiter (a thread with a tokio runtime of its own) that it was started on,
//! by default that of whoever starts it. One arbiter for each worker was slower: with the actor on
//! another one than its client a message took 128 ns instead of 77, and an ask 91 us instead of
//! 0.3, because each wakes a thread.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context as TaskContext, Poll};
use std::thread;

use actix::prelude::*;
use tokio::sync::oneshot;

use super::{ACTORS, Actors, AsyncPeer, Peer, run_actors};
use crate::countdown::Countdown;
use crate::workloads::actors::handled;

pub const PEER: Peer = Peer {
    name: "actix",
    workloads: &[ACTORS],
    run: run_actors::<Actix>,
};

static ARBITER: OnceLock<ArbiterHandle> = OnceLock::new();

struct Actix;

/// An arbiter answers nothing: the task sends its result.
struct Join<T>(oneshot::Receiver<T>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<T> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|result| result.expect("the task does not panic"))
    }
}

impl AsyncPeer for Actix {
    type Join<T: Send + 'static> = Join<T>;

    fn start(_: usize) {
        ARBITER.get_or_init(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            thread::spawn(move || {
                let system = System::new();
                sender.send(Arbiter::current()).expect("somebody waits");
                system.run().expect("actix runs");
            });
            receiver.recv().expect("actix starts")
        });
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        futures_lite::future::block_on(future)
    }

    fn spawn<F>(future: F) -> Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        Self::spawn_detached(async move {
            // Nobody may wait for it.
            let _ = sender.send(future.await);
        });
        Join(receiver)
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let arbiter = ARBITER.get().expect("actix was started");
        assert!(arbiter.spawn(future), "the arbiter runs");
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}

struct Counter(u64);

impl Actor for Counter {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(u64)]
struct Add(u64);

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, Add(number): Add, _: &mut Context<Self>) -> u64 {
        self.0 += number;
        self.0
    }
}

/// Sends nothing: it is dropped with the actor.
struct Once(#[expect(dead_code, reason = "only dropped")] oneshot::Sender<()>);

impl Actor for Once {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype("()")]
struct Last(u64);

impl Handler<Last> for Once {
    type Result = ();

    fn handle(&mut self, Last(number): Last, context: &mut Context<Self>) {
        handled(number);
        context.stop();
    }
}

struct Link {
    next: Option<Addr<Link>>,
    tokens: u64,
    end: Arc<Countdown>,
}

impl Actor for Link {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype("()")]
struct Next(Addr<Link>);

impl Handler<Next> for Link {
    type Result = ();

    fn handle(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

#[derive(Message)]
#[rtype("()")]
struct Token(u64);

impl Handler<Token> for Link {
    type Result = ();

    fn handle(&mut self, Token(hops_left): Token, _: &mut Context<Self>) {
        self.tokens += 1;
        if hops_left == 1 {
            self.end.done();
        } else {
            let next = self.next.as_ref().expect("it has a next one");
            next.do_send(Token(hops_left - 1));
        }
    }
}

#[derive(Message)]
#[rtype(u64)]
struct End;

impl Handler<End> for Link {
    type Result = u64;

    fn handle(&mut self, End: End, context: &mut Context<Self>) -> u64 {
        context.stop();
        self.tokens
    }
}

/// `do_send` goes past the limit of the mailbox. `try_send` keeps it, but does not wait.
impl Actors for Actix {
    type Runtime = Actix;
    const UNBOUNDED: bool = true;

    type Counter = Addr<Counter>;
    async fn counter() -> Self::Counter {
        Counter(0).start()
    }
    async fn tell(counter: &Self::Counter, number: u64) {
        counter.do_send(Add(number));
    }
    async fn ask(counter: &Self::Counter, number: u64) -> u64 {
        counter.send(Add(number)).await.expect("it answers")
    }

    type Once = oneshot::Receiver<()>;
    async fn once(number: u64) -> Self::Once {
        let (alive, ended) = oneshot::channel();
        Once(alive).start().do_send(Last(number));
        ended
    }
    async fn ended(once: Self::Once) {
        assert!(once.await.is_err());
    }

    type Link = Addr<Link>;
    async fn link(end: Arc<Countdown>) -> Self::Link {
        Link {
            next: None,
            tokens: 0,
            end,
        }
        .start()
    }
    async fn connect(link: &Self::Link, next: Self::Link) {
        link.do_send(Next(next));
    }
    async fn pass(link: &Self::Link, hops_left: u64) {
        link.do_send(Token(hops_left));
    }
    async fn end(link: Self::Link) -> u64 {
        link.send(End).await.expect("it answers")
    }
}
