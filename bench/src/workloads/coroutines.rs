//! Stackful coroutines: yielding, being made and ending, and what one costs that waits.

use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::workloads::{memory, yielding};

/// What the workloads ask of a runtime with stackful coroutines. It is running.
pub trait Stackful {
    type Join<T: Send + 'static>;

    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Join<T>;
    /// From a coroutine or from the main thread.
    fn join<T: Send + 'static>(coroutine: Self::Join<T>) -> T;
    fn yield_now();
    /// Waits for ever.
    fn park();
}

/// Coroutines alive at once in `create`.
const BATCH: u64 = 50;

pub fn yields<P: Stackful>(count: u64) -> Sample {
    on_worker::<P>(count * yielding::YIELDS, move || {
        let yielder = || {
            let mut yields = 0;
            while yields < yielding::YIELDS {
                P::yield_now();
                yields += 1;
            }
            yields
        };
        let coroutines: Vec<_> = (0..count).map(|_| P::spawn(yielder)).collect();
        for coroutine in coroutines {
            assert_eq!(P::join(coroutine), yielding::YIELDS);
        }
    })
}

/// Batches of coroutines that end at once, so that stacks are used again.
pub fn create<P: Stackful>(count: u64) -> Sample {
    let batches = count.div_ceil(BATCH);
    on_worker::<P>(batches * BATCH, move || {
        for batch in 0..batches {
            let coroutines: Vec<_> = (0..BATCH).map(|_| P::spawn(move || batch)).collect();
            for coroutine in coroutines {
                assert_eq!(P::join(coroutine), batch);
            }
        }
    })
}

pub fn memory<P: Stackful>(count: u64) -> Sample {
    memory::growth(count, || {
        drop(P::spawn(|| {
            memory::polled();
            P::park();
        }));
    })
}

/// Each pass in a coroutine of its own.
fn on_worker<P: Stackful>(operations: u64, pass: impl Fn() + Copy + Send + 'static) -> Sample {
    Sample::per_operation(operations, || -> Duration {
        P::join(P::spawn(move || {
            let start = Instant::now();
            pass();
            start.elapsed()
        }))
    })
}
