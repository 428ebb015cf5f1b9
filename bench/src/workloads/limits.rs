//! What the machine allows: no runtime can be faster than these.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::futex;

use crate::sample::{Sample, time};

/// How long the thread has slept before [`futex_wake`] wakes it.
const IDLE: Duration = Duration::from_micros(100);

/// An uncontended read-modify-write.
pub fn fetch_add(count: u64) -> Sample {
    let counter = AtomicU64::new(0);
    Sample::per_operation(count, || {
        let before = counter.load(Ordering::Relaxed);
        let time = time(|| {
            (0..count).for_each(|_| _ = black_box(&counter).fetch_add(1, Ordering::SeqCst))
        });
        assert_eq!(counter.load(Ordering::Relaxed) - before, count);
        time
    })
}

/// An uncontended compare-and-swap that succeeds.
pub fn compare_exchange(count: u64) -> Sample {
    Sample::per_operation(count, || {
        let counter = AtomicU64::new(0);
        let swap =
            |i| black_box(&counter).compare_exchange(i, i + 1, Ordering::SeqCst, Ordering::SeqCst);
        let time = time(|| (0..count).for_each(|i| assert!(swap(i).is_ok())));
        assert_eq!(counter.into_inner(), count);
        time
    })
}

/// A cache line to another thread and back: both spin and take turns to count.
pub fn cache_line(round_trips: u64) -> Sample {
    Sample::per_operation(round_trips, || {
        let turn = AtomicU64::new(0);
        let play = |first: u64| {
            for i in 0..round_trips {
                // No spin hint: on some machines it takes longer than the line does.
                while turn.load(Ordering::Acquire) != 2 * i + first {}
                turn.store(2 * i + first + 1, Ordering::Release);
            }
        };
        let time = thread::scope(|scope| {
            scope.spawn(|| play(1));
            time(|| play(0))
        });
        assert_eq!(turn.into_inner(), 2 * round_trips);
        time
    })
}

/// From a futex wake until the woken thread runs.
pub fn futex_wake(repetitions: u64) -> Sample {
    let word = Arc::new(AtomicU32::new(0));
    let (sender, receiver) = mpsc::channel();
    let sleeper = thread::spawn({
        let word = Arc::clone(&word);
        move || {
            for i in 0..repetitions as u32 {
                while word.load(Ordering::Acquire) == i {
                    // An error means that the word has changed or a signal came: look again.
                    let _ = futex::wait(&word, futex::Flags::PRIVATE, i, None);
                }
                sender.send(Instant::now()).expect("the waker listens");
            }
        }
    });
    let latencies: Vec<Duration> = (1..=repetitions as u32)
        .map(|i| {
            thread::sleep(IDLE);
            let woken = Instant::now();
            word.store(i, Ordering::Release);
            futex::wake(&word, futex::Flags::PRIVATE, 1).expect("a futex can be woken");
            receiver.recv().expect("the sleeper answers") - woken
        })
        .collect();
    sleeper.join().expect("the sleeper does not panic");
    Sample::latencies(&latencies)
}

/// malloc and free of 128 bytes that are in the cache.
pub fn malloc(count: u64) -> Sample {
    Sample::per_operation(count, || {
        time(|| (0..count).for_each(|_| drop(black_box(Box::<[u8; 128]>::new_uninit()))))
    })
}

/// A reading of the clock.
pub fn instant_now(count: u64) -> Sample {
    Sample::per_operation(count, || {
        time(|| (0..count).for_each(|_| _ = black_box(Instant::now())))
    })
}
