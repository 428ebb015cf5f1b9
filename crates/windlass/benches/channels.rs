//! Values through each kind of channel, from one task to another.

mod support;

use divan::Bencher;
use divan::counter::ItemsCount;
use windlass::spawn;
use windlass::sync::{broadcast, mpmc, mpsc, oneshot, watch};

use support::measure;

const VALUES: u64 = 1_000;
const SUM: u64 = VALUES * (VALUES - 1) / 2;

fn main() {
    divan::main();
}

/// One sender and one receiver, with a buffer of so many values.
#[divan::bench(max_time = 3, args = [1, 16, 256])]
fn mpsc_buffered(bencher: Bencher<'_, '_>, capacity: usize) {
    measure(bencher, ItemsCount::new(VALUES), SUM, move || async move {
        let (sender, mut receiver) = mpsc::channel(capacity);
        let sending = spawn(async move {
            for value in 0..VALUES {
                sender.send(value).await.expect("it is open");
            }
        });
        let mut sum = 0;
        while let Some(value) = receiver.recv().await {
            sum += value;
        }
        sending.await.expect("it ends");
        sum
    });
}

/// Four senders and one receiver, without a limit.
#[divan::bench(max_time = 3)]
fn mpsc_unbounded(bencher: Bencher<'_, '_>) {
    const SENDERS: u64 = 4;
    measure(
        bencher,
        ItemsCount::new(SENDERS * VALUES),
        SENDERS * SUM,
        || async {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            for _ in 0..SENDERS {
                let sender = sender.clone();
                spawn(async move {
                    for value in 0..VALUES {
                        sender.send(value).expect("it is open");
                    }
                });
            }
            drop(sender);
            let mut sum = 0;
            while let Some(value) = receiver.recv().await {
                sum += value;
            }
            sum
        },
    );
}

/// One sender and four receivers that compete.
#[divan::bench(max_time = 3)]
fn mpmc_shared(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(VALUES), SUM, || async {
        let (sender, receiver) = mpmc::buffered(16);
        let receiving: Vec<_> = (0..4)
            .map(|_| {
                let receiver: mpmc::Receiver<u64> = receiver.clone();
                spawn(async move {
                    let mut sum = 0;
                    while let Some(value) = receiver.recv().await {
                        sum += value;
                    }
                    sum
                })
            })
            .collect();
        for value in 0..VALUES {
            sender.send(value).await.expect("it is open");
        }
        drop(sender);
        let mut sum = 0;
        for receiver in receiving {
            sum += receiver.await.expect("it ends");
        }
        sum
    });
}

/// A question and an answer, each over a channel of its own.
#[divan::bench(max_time = 3)]
fn oneshot_answer(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(VALUES), SUM, || async {
        let (ask, mut asked) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(1);
        let answering = spawn(async move {
            while let Some((question, answer)) = asked.recv().await {
                answer.send(question).expect("it is awaited");
            }
        });
        let mut sum = 0;
        for question in 0..VALUES {
            let (answer, answered) = oneshot::channel();
            ask.send((question, answer)).await.expect("it is open");
            sum += answered.await.expect("it is answered");
        }
        drop(ask);
        answering.await.expect("it ends");
        sum
    });
}

/// One sender; four receivers get every value.
#[divan::bench(max_time = 3)]
fn broadcast_to_four(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(4 * VALUES), 4 * SUM, || async {
        let (sender, first) = broadcast::channel(VALUES as usize);
        let mut receivers = vec![first];
        receivers.resize_with(4, || sender.subscribe());
        let receiving: Vec<_> = receivers
            .into_iter()
            .map(|mut receiver| {
                spawn(async move {
                    let mut sum = 0;
                    while let Ok(value) = receiver.recv().await {
                        sum += value;
                    }
                    sum
                })
            })
            .collect();
        for value in 0..VALUES {
            sender.send(value).expect("there are receivers");
        }
        drop(sender);
        let mut sum = 0;
        for receiver in receiving {
            sum += receiver.await.expect("it ends");
        }
        sum
    });
}

/// A receiver that sees the newest value, and at the end the last one.
#[divan::bench(max_time = 3)]
fn watch_newest(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(VALUES), VALUES, || async {
        let (sender, mut receiver) = watch::channel(0);
        let receiving = spawn(async move {
            while receiver.changed().await.is_ok() {
                drop(receiver.borrow_and_update());
            }
            *receiver.borrow()
        });
        for value in 1..=VALUES {
            sender.send_replace(value);
        }
        drop(sender);
        receiving.await.expect("it ends")
    });
}
