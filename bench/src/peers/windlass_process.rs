//! Windlass's processes with their default settings: mailboxes of 1024 messages.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use windlass::actor::command::Completer;
use windlass::actor::{
    Actor, ActorError, Address, Context, Event, Events, Host, Output, Process, ProcessContext,
    ProcessHandle, Reply, Status,
};
use windlass::value::{Payload, Payloads};

use super::windlass::Windlass;
use super::{Actors, AsyncPeer};
use crate::countdown::Countdown;
use crate::sample::Sample;
use crate::workloads::actors::handled;
use crate::workloads::yielding::YIELDS;

fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::current().expect("it is running"))
}

struct Counter(u64);

pub enum Count {
    Tell(u64),
    Ask(u64, Reply<u64>),
}

impl Actor for Counter {
    type Message = Count;

    async fn handle(&mut self, message: Count, _: &mut Context<Count>) -> Result<(), ActorError> {
        match message {
            Count::Tell(number) => self.0 += number,
            Count::Ask(number, reply) => {
                self.0 += number;
                reply.send(self.0);
            }
        }
        Ok(())
    }
}

struct Link {
    next: Option<Address<Hop>>,
    tokens: u64,
    end: Arc<Countdown>,
}

pub enum Hop {
    Next(Address<Hop>),
    Token(u64),
    End(Reply<u64>),
}

impl Actor for Link {
    type Message = Hop;

    async fn handle(&mut self, message: Hop, ctx: &mut Context<Hop>) -> Result<(), ActorError> {
        match message {
            Hop::Next(next) => self.next = Some(next),
            Hop::Token(hops_left) => {
                self.tokens += 1;
                match &self.next {
                    Some(next) if hops_left > 1 => next.send(Hop::Token(hops_left - 1)).await?,
                    _ => self.end.done(),
                }
            }
            Hop::End(reply) => {
                reply.send(self.tokens);
                ctx.stop();
            }
        }
        Ok(())
    }
}

impl Actors for Windlass {
    type Runtime = Windlass;
    const UNBOUNDED: bool = false;

    type Counter = ProcessHandle<Count>;

    async fn counter() -> ProcessHandle<Count> {
        host().actor(Counter(0)).expect("there is room")
    }

    async fn tell(counter: &ProcessHandle<Count>, number: u64) {
        counter.send(Count::Tell(number)).await.expect("it lives");
    }

    async fn ask(counter: &ProcessHandle<Count>, number: u64) -> u64 {
        let question = |reply| Count::Ask(number, reply);
        counter.ask(question).await.expect("it lives")
    }

    type Once = ProcessHandle<u64>;

    async fn once(number: u64) -> ProcessHandle<u64> {
        let process = host().spawn(|mut ctx: Context<u64>| async move {
            handled(ctx.recv().await.unwrap_or_default());
        });
        let process = process.expect("there is room");
        process.tell(number).expect("it lives");
        process
    }

    async fn ended(once: ProcessHandle<u64>) {
        once.join().await;
    }

    type Link = Address<Hop>;

    async fn link(end: Arc<Countdown>) -> Address<Hop> {
        let link = Link {
            next: None,
            tokens: 0,
            end,
        };
        host().actor(link).expect("there is room").address()
    }

    async fn connect(link: &Address<Hop>, next: Address<Hop>) {
        link.send(Hop::Next(next)).await.expect("it lives");
    }

    async fn pass(link: &Address<Hop>, hops_left: u64) {
        link.send(Hop::Token(hops_left)).await.expect("it lives");
    }

    async fn end(link: Address<Hop>) -> u64 {
        link.ask(Hop::End).await.expect("it lives")
    }
}

/// What the step machines ask for: an answer at once.
struct Tick(u64);

struct Yielder {
    left: u64,
    sum: u64,
}

impl Process for Yielder {
    fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError> {
        while let Some(event) = events.next() {
            if let Event::YieldComplete {
                result: Ok(value), ..
            } = event
            {
                self.sum += value.as_i64().unwrap_or(0) as u64;
            }
        }
        if self.left == 0 {
            return Ok(Status::Done(Payload::Int(self.sum as i64)));
        }
        self.left -= 1;
        out.request(self.left, Tick(1));
        Ok(Status::Blocked)
    }
}

/// Step machines that ask for something and get it at once; per yield.
pub fn yields(processes: u64) -> Sample {
    static HOST: OnceLock<Host> = OnceLock::new();
    Sample::per_operation(processes * YIELDS, || {
        Windlass::run_on_worker(async move {
            let host = HOST.get_or_init(|| {
                Host::builder()
                    .command(|Tick(number): Tick, completer: Completer| {
                        completer.complete(number as i64);
                    })
                    .build(&windlass::runtime::Handle::current())
                    .expect("a host")
            });
            let start = Instant::now();
            let yielder = || Yielder {
                left: YIELDS,
                sum: 0,
            };
            let running: Vec<_> = (0..processes)
                .map(|_| host.step(yielder()).expect("there is room"))
                .collect();
            for process in running {
                assert_eq!(process.join().await.value, Payload::Int(YIELDS as i64));
            }
            start.elapsed()
        })
    })
}
