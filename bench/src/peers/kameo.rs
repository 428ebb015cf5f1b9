//! kameo's actors on tokio, as they come: their mailboxes hold 64 messages.

use std::sync::Arc;

use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};

use super::tokio::Tokio;
use super::{ACTORS, Actors, Peer, run_actors};
use crate::countdown::Countdown;
use crate::workloads::actors::handled;

pub const PEER: Peer = Peer {
    name: "kameo",
    workloads: &[ACTORS],
    run: run_actors::<Kameo>,
};

struct Kameo;

#[derive(Actor)]
struct Counter(u64);

struct Add(u64);

impl Message<Add> for Counter {
    type Reply = u64;

    async fn handle(&mut self, Add(number): Add, _: &mut Context<Self, u64>) -> u64 {
        self.0 += number;
        self.0
    }
}

#[derive(Actor)]
struct Once;

impl Message<u64> for Once {
    type Reply = ();

    async fn handle(&mut self, number: u64, context: &mut Context<Self, ()>) {
        handled(number);
        context.stop();
    }
}

#[derive(Actor)]
struct Link {
    next: Option<ActorRef<Link>>,
    tokens: u64,
    end: Arc<Countdown>,
}

struct Next(ActorRef<Link>);

impl Message<Next> for Link {
    type Reply = ();

    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self, ()>) {
        self.next = Some(next);
    }
}

struct Token(u64);

impl Message<Token> for Link {
    type Reply = ();

    async fn handle(&mut self, Token(hops_left): Token, _: &mut Context<Self, ()>) {
        self.tokens += 1;
        if hops_left == 1 {
            self.end.done();
        } else {
            let next = self.next.as_ref().expect("it has a next one");
            Kameo::pass(next, hops_left - 1).await;
        }
    }
}

struct End;

impl Message<End> for Link {
    type Reply = u64;

    async fn handle(&mut self, End: End, context: &mut Context<Self, u64>) -> u64 {
        context.stop();
        self.tokens
    }
}

impl Actors for Kameo {
    type Runtime = Tokio;
    const UNBOUNDED: bool = false;

    type Counter = ActorRef<Counter>;
    async fn counter() -> Self::Counter {
        Counter::spawn(Counter(0))
    }
    async fn tell(counter: &Self::Counter, number: u64) {
        counter.tell(Add(number)).await.expect("it runs");
    }
    async fn ask(counter: &Self::Counter, number: u64) -> u64 {
        counter.ask(Add(number)).await.expect("it answers")
    }

    type Once = ActorRef<Once>;
    async fn once(number: u64) -> Self::Once {
        let actor = Once::spawn(Once);
        actor.tell(number).await.expect("it runs");
        actor
    }
    async fn ended(once: Self::Once) {
        once.wait_for_shutdown().await;
    }

    type Link = ActorRef<Link>;
    async fn link(end: Arc<Countdown>) -> Self::Link {
        Link::spawn(Link {
            next: None,
            tokens: 0,
            end,
        })
    }
    async fn connect(link: &Self::Link, next: Self::Link) {
        link.tell(Next(next)).await.expect("it runs");
    }
    async fn pass(link: &Self::Link, hops_left: u64) {
        link.tell(Token(hops_left)).await.expect("it runs");
    }
    async fn end(link: Self::Link) -> u64 {
        link.ask(End).await.expect("it answers")
    }
}
