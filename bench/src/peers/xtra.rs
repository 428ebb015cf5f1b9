//! xtra's actors on tokio, with mailboxes without a limit, as in its examples.
//!
//! Its mailbox is a heap: what has the same priority is handled in no particular order. What has to
//! come first has a higher one or is waited for.

use std::sync::Arc;

use xtra::{Actor, Address, Context, Handler, Mailbox, spawn_tokio};

use super::tokio::Tokio;
use super::{ACTORS, Actors, Peer, run_actors};
use crate::countdown::Countdown;
use crate::workloads::actors::handled;

pub const PEER: Peer = Peer {
    name: "xtra",
    workloads: &[ACTORS],
    run: run_actors::<Xtra>,
};

struct Xtra;

#[derive(Actor)]
struct Counter(u64);

struct Add(u64);

impl Handler<Add> for Counter {
    type Return = u64;

    async fn handle(&mut self, Add(number): Add, _: &mut Context<Self>) -> u64 {
        self.0 += number;
        self.0
    }
}

#[derive(Actor)]
struct Once;

impl Handler<u64> for Once {
    type Return = ();

    async fn handle(&mut self, number: u64, context: &mut Context<Self>) {
        handled(number);
        context.stop_self();
    }
}

#[derive(Actor)]
struct Link {
    next: Option<Address<Link>>,
    tokens: u64,
    end: Arc<Countdown>,
}

struct Next(Address<Link>);

impl Handler<Next> for Link {
    type Return = ();

    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

struct Token(u64);

impl Handler<Token> for Link {
    type Return = ();

    async fn handle(&mut self, Token(hops_left): Token, _: &mut Context<Self>) {
        self.tokens += 1;
        if hops_left == 1 {
            self.end.done();
        } else {
            let next = self.next.as_ref().expect("it has a next one");
            Xtra::pass(next, hops_left - 1).await;
        }
    }
}

struct End;

impl Handler<End> for Link {
    type Return = u64;

    async fn handle(&mut self, End: End, context: &mut Context<Self>) -> u64 {
        context.stop_self();
        self.tokens
    }
}

/// What `detach` gives is the answer. Nobody waits for it.
impl Actors for Xtra {
    type Runtime = Tokio;
    const UNBOUNDED: bool = true;

    type Counter = Address<Counter>;
    async fn counter() -> Self::Counter {
        spawn_tokio(Counter(0), Mailbox::unbounded())
    }
    async fn tell(counter: &Self::Counter, number: u64) {
        // Before the ask that is sent after it.
        let sending = counter.send(Add(number)).priority(1).detach();
        drop(sending.await.expect("it runs"));
    }
    async fn ask(counter: &Self::Counter, number: u64) -> u64 {
        counter.send(Add(number)).await.expect("it answers")
    }

    type Once = Address<Once>;
    async fn once(number: u64) -> Self::Once {
        let address = spawn_tokio(Once, Mailbox::unbounded());
        drop(address.send(number).detach().await.expect("it runs"));
        address
    }
    async fn ended(once: Self::Once) {
        once.join().await;
    }

    type Link = Address<Link>;
    async fn link(end: Arc<Countdown>) -> Self::Link {
        let link = Link {
            next: None,
            tokens: 0,
            end,
        };
        spawn_tokio(link, Mailbox::unbounded())
    }
    async fn connect(link: &Self::Link, next: Self::Link) {
        link.send(Next(next)).await.expect("it runs");
    }
    async fn pass(link: &Self::Link, hops_left: u64) {
        drop(link.send(Token(hops_left)).detach().await.expect("it runs"));
    }
    async fn end(link: Self::Link) -> u64 {
        link.send(End).await.expect("it answers")
    }
}
