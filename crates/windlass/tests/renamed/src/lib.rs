//! Every exported macro works for a package that knows the library as `windlass2`.
#![cfg(test)]
#![forbid(unsafe_code)]

use std::time::Duration;

use windlass2::sync::oneshot;
use windlass2::time::{self, Instant};

windlass2::task_local! {
    static REQUEST: u32;
}

#[test]
fn main_takes_the_name_of_the_library() {
    #[windlass2::main(crate = "windlass2", flavor = "current_thread")]
    async fn main() -> u32 {
        windlass2::spawn(async { 42 }).await.unwrap()
    }
    assert_eq!(main(), 42);
}

#[windlass2::test(crate = "windlass2")]
async fn select_waits_for_the_first() {
    let (sender, mut receiver) = oneshot::channel();
    sender.send(1).unwrap();
    let first = windlass2::select! {
        number = &mut receiver => number.unwrap(),
        () = std::future::pending() => 0,
    };
    assert_eq!(first, 1);
}

#[windlass2::test(crate = windlass2, simulated, seeds = 2)]
async fn joins_wait_for_all() {
    assert_eq!(windlass2::join!(async { 1 }, async { 2 }), (1, 2));
    let both = windlass2::try_join!(async { Ok::<_, ()>(1) }, async { Err::<u32, ()>(()) });
    assert_eq!(both, Err(()));
}

#[windlass2::test(crate = "windlass2")]
async fn values_are_pinned_and_belong_to_tasks() {
    let answer = REQUEST.scope(7, async { REQUEST.get() });
    windlass2::pin!(answer);
    assert_eq!((&mut answer).await, 7);
}

#[windlass2::test(crate = "windlass2", start_paused = true)]
async fn a_paused_clock_moves_when_it_is_told() {
    let began = Instant::now();
    time::advance(Duration::from_secs(60)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}
