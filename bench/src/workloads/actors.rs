//! Actors: telling, asking, being started and ending, a ring, and what one costs that waits.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::countdown::Countdown;
use crate::peers::{Actors, AsyncPeer};
use crate::sample::Sample;
use crate::workloads::memory;

/// Actors alive at once in `spawn`.
const BATCH: u64 = 100;
/// Actors of a ring.
const RING: u64 = 100;

/// The sum of what actors for one message have handled.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// An actor for one message has got this one.
pub fn handled(number: u64) {
    HANDLED.fetch_add(number, Ordering::Relaxed);
}

/// One task tells an actor numbers, then asks for their sum. Where telling does not wait, the task
/// gives way now and then, so that the mailbox is not simply filled first.
pub fn tell<A: Actors>(messages: u64) -> Sample {
    Sample::per_operation(messages, || {
        A::Runtime::run_on_worker(async move {
            let counter = A::counter().await;
            let start = Instant::now();
            for number in 1..=messages {
                A::tell(&counter, number).await;
                if A::UNBOUNDED && number % 128 == 0 {
                    A::Runtime::yield_now().await;
                }
            }
            let sum = A::ask(&counter, 0).await;
            let took = start.elapsed();
            assert_eq!(sum, messages * (messages + 1) / 2, "a message was lost");
            took
        })
    })
}

/// One task asks an actor and waits for the answer, again and again.
pub fn ask<A: Actors>(asks: u64) -> Sample {
    Sample::per_operation(asks, || {
        A::Runtime::run_on_worker(async move {
            let counter = A::counter().await;
            let start = Instant::now();
            let mut sum = 0;
            for number in 1..=asks {
                sum += number;
                assert_eq!(A::ask(&counter, number).await, sum);
            }
            start.elapsed()
        })
    })
}

/// Batches of actors that are started, get one message and end.
pub fn spawn<A: Actors>(count: u64) -> Sample {
    let batches = count.div_ceil(BATCH);
    Sample::per_operation(batches * BATCH, || {
        A::Runtime::run_on_worker(async move {
            HANDLED.store(0, Ordering::Relaxed);
            let mut batch = Vec::with_capacity(BATCH as usize);
            let start = Instant::now();
            for _ in 0..batches {
                for _ in 0..BATCH {
                    batch.push(A::once(1).await);
                }
                for actor in batch.drain(..) {
                    A::ended(actor).await;
                }
            }
            let took = start.elapsed();
            assert_eq!(HANDLED.load(Ordering::Relaxed), batches * BATCH);
            took
        })
    })
}

/// A token goes round; per hop. The ring is made before and taken apart after.
pub fn ring<A: Actors>(hops: u64) -> Sample {
    Sample::per_operation(hops, || {
        A::Runtime::run_on_worker(async move {
            let end = Arc::new(Countdown::from(1));
            let mut links = Vec::with_capacity(RING as usize);
            for _ in 0..RING {
                links.push(A::link(Arc::clone(&end)).await);
            }
            for (link, next) in links.iter().zip(links.iter().cycle().skip(1)) {
                A::connect(link, next.clone()).await;
            }
            let start = Instant::now();
            A::pass(&links[0], hops).await;
            end.finished().await;
            let took = start.elapsed();
            // Each has had its share: no hop was left out.
            for (link, place) in links.into_iter().zip(0..) {
                let tokens = hops / RING + u64::from(place < hops % RING);
                assert_eq!(A::end(link).await, tokens);
            }
            took
        })
    })
}

/// What an actor costs that has handled a message and waits for the next one.
///
/// The address is forgotten: an actor may end with its last one, and where one is kept is up to its
/// owner.
pub fn memory<A: Actors>(count: u64) -> Sample {
    A::Runtime::block_on(async {
        memory::growth(count, || {
            A::Runtime::spawn_detached(async {
                let counter = A::counter().await;
                assert_eq!(A::ask(&counter, 1).await, 1);
                mem::forget(counter);
                memory::polled();
            });
        })
    })
}
