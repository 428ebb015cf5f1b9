//! Many tasks that do nothing but yield.

use std::time::Instant;

use crate::peers::AsyncPeer;
use crate::sample::Sample;

/// How often each task yields.
pub const YIELDS: u64 = 1_000;

pub fn many<P: AsyncPeer>(tasks: u64) -> Sample {
    Sample::per_operation(tasks * YIELDS, || {
        P::run_on_worker(async move {
            let start = Instant::now();
            let tasks: Vec<P::Join<u64>> = (0..tasks).map(|_| P::spawn(yielder::<P>())).collect();
            for task in tasks {
                assert_eq!(task.await, YIELDS);
            }
            start.elapsed()
        })
    })
}

async fn yielder<P: AsyncPeer>() -> u64 {
    let mut yields = 0;
    while yields < YIELDS {
        P::yield_now().await;
        yields += 1;
    }
    yields
}
