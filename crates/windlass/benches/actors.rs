//! Processes: their beginning and end, messages to them, and questions that they answer.

mod support;

use divan::Bencher;
use divan::counter::ItemsCount;
use windlass::actor::{self, Context, ProcessHandle, Reply};

use support::measure;

const MESSAGES: u64 = 1_000;
const SUM: u64 = MESSAGES * (MESSAGES - 1) / 2;

enum Adder {
    Add(u64),
    Sum(Reply<u64>),
}

fn main() {
    divan::main();
}

fn adder() -> ProcessHandle<Adder> {
    actor::spawn(|mut context: Context<Adder>| async move {
        let mut sum = 0;
        while let Some(message) = context.recv().await {
            match message {
                Adder::Add(number) => sum += number,
                Adder::Sum(reply) => reply.send(sum),
            }
        }
    })
    .expect("there is room for a process")
}

/// Messages to one process, and at last a question.
#[divan::bench(max_time = 5)]
fn messages(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(MESSAGES), SUM, || async {
        let adder = adder();
        for number in 0..MESSAGES {
            adder.send(Adder::Add(number)).await.expect("it lives");
        }
        let sum = adder.ask(Adder::Sum).await.expect("it answers");
        adder.cancel("the measurement is over");
        adder.join().await;
        sum
    });
}

/// Questions, each asked when the one before was answered.
#[divan::bench(max_time = 5)]
fn questions(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(MESSAGES), 7 * MESSAGES, || async {
        let adder = adder();
        adder.send(Adder::Add(7)).await.expect("it lives");
        let mut sum = 0;
        for _ in 0..MESSAGES {
            sum += adder.ask(Adder::Sum).await.expect("it answers");
        }
        adder.cancel("the measurement is over");
        adder.join().await;
        sum
    });
}

/// Processes that begin, answer once, and are cancelled.
#[divan::bench(max_time = 5)]
fn lives(bencher: Bencher<'_, '_>) {
    const LIVES: u64 = 100;
    measure(bencher, ItemsCount::new(LIVES), LIVES, || async {
        let mut lived = 0;
        for _ in 0..LIVES {
            let adder = adder();
            adder.send(Adder::Add(1)).await.expect("it lives");
            lived += adder.ask(Adder::Sum).await.expect("it answers");
            adder.cancel("it is enough");
            adder.join().await;
        }
        lived
    });
}
