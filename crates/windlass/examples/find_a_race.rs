//! A race that the simulator finds, names by a seed, and replays.
//!
//! `cargo run --example find_a_race`

use std::sync::Arc;
use windlass::sync::Mutex;
use windlass::task::yield_now;
use windlass::{Runtime, spawn};

/// Two withdrawals of 60 from an account of 100. The balance is looked at and changed in two steps,
/// with a lock that is let go in between.
async fn withdraw_twice() -> i64 {
    let balance = Arc::new(Mutex::new(100));
    let withdraw = |balance: Arc<Mutex<i64>>| async move {
        let enough = *balance.lock().await >= 60;
        yield_now().await; // as good as asking another service
        if enough {
            *balance.lock().await -= 60;
        }
    };
    let tasks = [
        spawn(withdraw(balance.clone())),
        spawn(withdraw(balance.clone())),
    ];
    for task in tasks {
        task.await.expect("it does not panic");
    }
    *balance.lock().await
}

fn main() {
    let run = |seed| {
        let runtime = Runtime::simulated(seed);
        let left = runtime.block_on(withdraw_twice());
        (left, runtime.trace().map(|trace| trace.hash))
    };
    let Some(seed) = (0..1000).find(|seed| run(*seed).0 < 0) else {
        return println!("no seed below 1000 overdraws the account");
    };
    println!("seed {seed} overdraws the account: {} left", run(seed).0);
    let (first, second) = (run(seed), run(seed));
    println!("replayed twice, the same trace: {}", first == second);
}
