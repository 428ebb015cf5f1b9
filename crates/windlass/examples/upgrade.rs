//! An upgrade in flight: a process goes on with other code in the middle of a stream of messages.
//! It keeps its PID, its name and everything that it has not read.
//!
//! `cargo run --example upgrade`

use windlass::actor::{
    ActorError, Event, Events, Host, Message, Output, Pattern, Process, ProcessContext, Status,
    Upgrade,
};
use windlass::value::{Payload, Payloads};

const BEFORE: i64 = 40;
const ALL: i64 = 100;

/// The next number of the stream. Anything but the one after the last is a loss, or out of order.
fn count(counted: &mut i64, message: &Message) -> Result<(), ActorError> {
    if message.payload == Payload::Int(*counted + 1) {
        *counted += 1;
        return Ok(());
    }
    let text = format!("{:?} came after {counted}", message.payload);
    Err(ActorError::new(text))
}

/// The first version: counts its messages.
#[derive(Default)]
struct V1 {
    begun: bool,
    counted: i64,
}

impl Process for V1 {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
        println!("version 1 begins as {}", ctx.pid());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, _: &mut Output) -> Result<Status, ActorError> {
        // Until it is told to begin it leaves messages alone, so the whole stream waits then.
        self.begun |= events.next_message(&Pattern::exact("begin")).is_some();
        let next = if self.begun {
            Events::next
        } else {
            Events::next_signal
        };
        while let Some(event) = next(events) {
            match event {
                Event::Message(message) if message.topic == "upgrade" => {
                    println!("version 1 counted to {} and hands over", self.counted);
                    let new = Upgrade::to(V2::default()).input(vec![self.counted.into()]);
                    return Ok(Status::Upgrade(new));
                }
                Event::Message(message) => count(&mut self.counted, &message)?,
                Event::Cancel(reason) => return Err(ActorError::cancelled(reason)),
                _ => {}
            }
        }
        Ok(Status::Idle)
    }
}

/// Goes on counting, and sums up what it counts itself.
#[derive(Default)]
struct V2 {
    counted: i64,
    sum: i64,
}

impl Process for V2 {
    fn init(&mut self, ctx: &ProcessContext, _: &str, input: Payloads) -> Result<(), ActorError> {
        let counted = input.first().and_then(Payload::as_i64);
        self.counted = counted.ok_or_else(|| ActorError::new("version 1 left no count"))?;
        println!("version 2 goes on as {} from {}", ctx.pid(), self.counted);
        let owner = ctx.host().whereis("counter");
        assert_eq!(owner, Some(ctx.pid()), "it has kept its name");
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, _: &mut Output) -> Result<Status, ActorError> {
        while let Some(event) = events.next() {
            match event {
                Event::Message(message) if message.topic == "end" => {
                    println!("version 2 counted to {}", self.counted);
                    let result = [("counted", self.counted.into()), ("sum", self.sum.into())];
                    return Ok(Status::Done(Payload::map(result)));
                }
                Event::Message(message) => {
                    count(&mut self.counted, &message)?;
                    self.sum += self.counted;
                }
                Event::Cancel(reason) => return Err(ActorError::cancelled(reason)),
                _ => {}
            }
        }
        Ok(Status::Idle)
    }
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let host = Host::current()?;
    let counter = host.process().name("counter").step(V1::default())?;
    for number in 1..=ALL {
        counter.send(Message::new("number", number)).await?;
        if number == BEFORE {
            counter.send(Message::new("upgrade", ())).await?;
        }
    }
    counter.send(Message::new("begin", ())).await?;
    counter.send(Message::new("end", ())).await?;

    let exit = counter.join().await;
    println!("it ended: {}, with {:?}", exit.reason, exit.value);
    assert!(exit.reason.is_normal(), "{}", exit.reason);
    assert_eq!(exit.pid, counter.pid());
    let of = |name: &str| exit.value.get(name).and_then(Payload::as_i64);
    assert_eq!(of("counted"), Some(ALL), "nothing was lost");
    assert_eq!(of("sum"), Some((BEFORE + 1..=ALL).sum()));
    Ok(())
}
