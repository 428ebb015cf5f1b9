//! Calls that block, kept away from the workers: `cargo run --example blocking`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it blocks, and shows real time to a person"
)]

use std::time::{Duration, Instant};

use windlass::{Runtime, task};

/// Stands for a library that knows nothing of futures.
fn slow_call(number: u32) -> u32 {
    std::thread::sleep(Duration::from_millis(100));
    number * number
}

fn main() -> windlass::Result<()> {
    let runtime = Runtime::builder()
        .workers(1)
        .max_blocking_threads(4)
        .build()?;
    let began = Instant::now();

    // Eight calls of 100 ms on four threads; the only worker stays free for tasks.
    let calls: Vec<_> = (1..=8)
        .map(|number| runtime.spawn_blocking(move || slow_call(number)))
        .collect();
    let turns = runtime.spawn(async {
        let mut turns = 0_u64;
        while turns < 1000 {
            windlass::task::yield_now().await;
            turns += 1;
        }
        turns
    });
    println!("a task had {} turns meanwhile", runtime.block_on(turns)?);
    for call in calls {
        print!("{} ", runtime.block_on(call)?);
    }
    println!("after {:?}", began.elapsed());

    // A call that nobody needs any more when its turn comes too late is not started.
    let busy: Vec<_> = (0..4)
        .map(|number| runtime.spawn_blocking(move || slow_call(number)))
        .collect();
    let late = task::Builder::new()
        .name("too late")
        .start_within(Duration::from_millis(10))
        .spawn_blocking_on(runtime.handle(), || slow_call(0))?;
    if let Err(error) = runtime.block_on(late) {
        println!("{error}");
    }
    drop(busy);
    Ok(())
}
