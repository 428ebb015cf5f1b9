//! Timers: made and dropped before they fire, around work that is in time, and fired.

mod support;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use windlass::time::{self, sleep};
use windlass::{spawn, task};

use support::measure;

const TIMERS: u64 = 1_000;
const LONG: Duration = Duration::from_secs(60);

fn main() {
    divan::main();
}

/// Timers that wait and are dropped long before they are due.
#[divan::bench(max_time = 5)]
fn dropped(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(TIMERS), TIMERS, || async {
        let mut waiting = 0;
        for _ in 0..TIMERS {
            let mut timer = pin!(sleep(LONG));
            let polled = poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx))).await;
            waiting += u64::from(polled.is_pending());
        }
        waiting
    });
}

/// A limit around work that yields once, so that the timer is set.
#[divan::bench(max_time = 5)]
fn timeout_in_time(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(TIMERS), TIMERS, || async {
        let mut in_time = 0;
        for _ in 0..TIMERS {
            let work = async {
                task::yield_now().await;
                black_box(1)
            };
            in_time += time::timeout(LONG, work).await.expect("it is in time");
        }
        in_time
    });
}

/// As many tasks that sleep for a millisecond at the same time: one is the least there can be.
#[divan::bench(max_time = 5)]
fn fired(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(TIMERS), TIMERS, || async {
        let tasks: Vec<_> = (0..TIMERS)
            .map(|_| spawn(sleep(Duration::from_millis(1))))
            .collect();
        let mut fired = 0;
        for task in tasks {
            task.await.expect("it ends");
            fired += 1;
        }
        fired
    });
}
