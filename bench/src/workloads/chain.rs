//! A chain of tasks: each spawns the next one and ends.

use std::sync::Arc;
use std::time::Instant;

use crate::countdown::Countdown;
use crate::peers::AsyncPeer;
use crate::sample::Sample;

pub fn spawn<P: AsyncPeer>(depth: u64) -> Sample {
    Sample::per_operation(depth, || {
        P::run_on_worker(async move {
            let start = Instant::now();
            let end = Arc::new(Countdown::from(1));
            link::<P>(depth, Arc::clone(&end));
            end.finished().await;
            start.elapsed()
        })
    })
}

fn link<P: AsyncPeer>(left: u64, end: Arc<Countdown>) {
    P::spawn_detached(async move {
        if left == 1 {
            end.done();
        } else {
            link::<P>(left - 1, end);
        }
    });
}
