//! Messages from several tasks to one, or from one to several.

use std::time::{Duration, Instant};

use crate::peers::{AsyncPeer, Broadcasts, Mpsc, Oneshots, Watches};
use crate::sample::Sample;

/// What a bounded channel holds.
const CAPACITY: usize = 128;
/// Receivers of a broadcast or watch channel.
const RECEIVERS: u64 = 4;

/// `messages` in all from `producers` tasks to one, through a channel of 128.
pub fn bounded<C: Mpsc>(producers: u64, messages: u64) -> Sample {
    Sample::per_operation(messages, || {
        C::Runtime::run_on_worker(async move {
            let (sender, mut receiver) = C::bounded(CAPACITY);
            let start = Instant::now();
            for _ in 0..producers {
                let sender = sender.clone();
                C::Runtime::spawn_detached(async move {
                    for number in 0..messages / producers {
                        C::send(&sender, number).await;
                    }
                });
            }
            drop(sender);
            let mut received = 0;
            while C::receive(&mut receiver).await.is_some() {
                received += 1;
            }
            assert_eq!(received, messages / producers * producers);
            start.elapsed()
        })
    })
}

/// The same through a channel without a limit. Producers give way now and then, so that the queue
/// is not simply filled first.
pub fn unbounded<C: Mpsc>(producers: u64, messages: u64) -> Sample {
    Sample::per_operation(messages, || {
        C::Runtime::run_on_worker(async move {
            let (sender, mut receiver) = C::unbounded();
            let start = Instant::now();
            for _ in 0..producers {
                let sender = sender.clone();
                C::Runtime::spawn_detached(async move {
                    for number in 0..messages / producers {
                        C::send_unbounded(&sender, number);
                        if number % 128 == 127 {
                            C::Runtime::yield_now().await;
                        }
                    }
                });
            }
            drop(sender);
            let mut received = 0;
            while C::receive_unbounded(&mut receiver).await.is_some() {
                received += 1;
            }
            assert_eq!(received, messages / producers * producers);
            start.elapsed()
        })
    })
}

/// A oneshot is made, waited for, sent and received.
pub fn oneshot<C: Oneshots>(count: u64) -> Sample {
    Sample::per_operation(count, || {
        C::Runtime::run_on_worker(async move {
            let start = Instant::now();
            for number in 0..count {
                assert_eq!(C::round(number).await, number);
                if number % 64 == 63 {
                    C::Runtime::yield_now().await;
                }
            }
            start.elapsed()
        })
    })
}

/// One task sets a value, four wait for each change; per set.
pub fn watch<C: Watches>(sets: u64) -> Sample {
    Sample::per_operation(sets, || {
        C::Runtime::run_on_worker(async move {
            let sender = C::channel();
            let start = Instant::now();
            let watchers: Vec<_> = (0..RECEIVERS)
                .map(|_| {
                    let mut receiver = C::subscribe(&sender);
                    C::Runtime::spawn(
                        async move { while C::changed(&mut receiver).await < sets {} },
                    )
                })
                .collect();
            for value in 1..=sets {
                C::set(&sender, value);
                C::Runtime::yield_now().await;
            }
            for watcher in watchers {
                watcher.await;
            }
            start.elapsed()
        })
    })
}

/// One task sends, four receive everything; per delivery.
pub fn broadcast<C: Broadcasts>(messages: u64) -> Sample {
    Sample::per_operation(messages * RECEIVERS, || {
        C::Runtime::run_on_worker(broadcast_once::<C>(messages))
    })
}

async fn broadcast_once<C: Broadcasts>(messages: u64) -> Duration {
    // Room for all of them: nobody may lag.
    let sender = C::channel(messages as usize);
    let start = Instant::now();
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|_| {
            let mut receiver = C::subscribe(&sender);
            C::Runtime::spawn(async move {
                for expected in 0..messages {
                    assert_eq!(C::receive(&mut receiver).await, expected);
                }
            })
        })
        .collect();
    for number in 0..messages {
        C::send(&sender, number);
        if number % 16 == 15 {
            C::Runtime::yield_now().await;
        }
    }
    for receiver in receivers {
        receiver.await;
    }
    start.elapsed()
}
