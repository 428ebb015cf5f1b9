//! ractor's actors on tokio, as they come: their mailboxes have no limit.

use std::sync::Arc;

use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

use super::tokio::Tokio;
use super::{ACTORS, Actors, Peer, run_actors};
use crate::countdown::Countdown;
use crate::workloads::actors::handled;

pub const PEER: Peer = Peer {
    name: "ractor",
    workloads: &[ACTORS],
    run: run_actors::<Ractor>,
};

struct Ractor;

struct Counter;

enum ToCounter {
    Add(u64),
    Ask(u64, RpcReplyPort<u64>),
}

impl Actor for Counter {
    type Msg = ToCounter;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<ToCounter>, _: ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<ToCounter>,
        message: ToCounter,
        sum: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ToCounter::Add(number) => *sum += number,
            ToCounter::Ask(number, answer) => {
                *sum += number;
                answer.send(*sum)?;
            }
        }
        Ok(())
    }
}

struct Once;

impl Actor for Once {
    type Msg = u64;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<u64>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<u64>,
        number: u64,
        _: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        handled(number);
        myself.stop(None);
        Ok(())
    }
}

struct Link;

enum ToLink {
    Next(ActorRef<ToLink>),
    Token(u64),
    End(RpcReplyPort<u64>),
}

struct LinkState {
    next: Option<ActorRef<ToLink>>,
    tokens: u64,
    end: Arc<Countdown>,
}

impl Actor for Link {
    type Msg = ToLink;
    type State = LinkState;
    type Arguments = Arc<Countdown>;

    async fn pre_start(
        &self,
        _: ActorRef<ToLink>,
        end: Arc<Countdown>,
    ) -> Result<LinkState, ActorProcessingErr> {
        Ok(LinkState {
            next: None,
            tokens: 0,
            end,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ToLink>,
        message: ToLink,
        state: &mut LinkState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ToLink::Next(next) => state.next = Some(next),
            ToLink::Token(hops_left) => {
                state.tokens += 1;
                if hops_left == 1 {
                    state.end.done();
                } else {
                    let next = state.next.as_ref().expect("it has a next one");
                    next.cast(ToLink::Token(hops_left - 1))?;
                }
            }
            ToLink::End(answer) => {
                answer.send(state.tokens)?;
                myself.stop(None);
            }
        }
        Ok(())
    }
}

impl Actors for Ractor {
    type Runtime = Tokio;
    const UNBOUNDED: bool = true;

    type Counter = ActorRef<ToCounter>;
    async fn counter() -> Self::Counter {
        let (actor, _) = Actor::spawn(None, Counter, ()).await.expect("it starts");
        actor
    }
    async fn tell(counter: &Self::Counter, number: u64) {
        counter.cast(ToCounter::Add(number)).expect("it runs");
    }
    async fn ask(counter: &Self::Counter, number: u64) -> u64 {
        call!(counter, ToCounter::Ask, number).expect("it answers")
    }

    type Once = JoinHandle<()>;
    async fn once(number: u64) -> Self::Once {
        let (actor, task) = Actor::spawn(None, Once, ()).await.expect("it starts");
        actor.cast(number).expect("it runs");
        task
    }
    async fn ended(once: Self::Once) {
        once.await.expect("the actor does not panic");
    }

    type Link = ActorRef<ToLink>;
    async fn link(end: Arc<Countdown>) -> Self::Link {
        let (actor, _) = Actor::spawn(None, Link, end).await.expect("it starts");
        actor
    }
    async fn connect(link: &Self::Link, next: Self::Link) {
        link.cast(ToLink::Next(next)).expect("it runs");
    }
    async fn pass(link: &Self::Link, hops_left: u64) {
        link.cast(ToLink::Token(hops_left)).expect("it runs");
    }
    async fn end(link: Self::Link) -> u64 {
        call!(link, ToLink::End).expect("it answers")
    }
}
