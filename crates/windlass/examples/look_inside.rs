//! Snapshot, dump and the report of a stall: `cargo run --example look_inside`.

use std::sync::mpsc;
use std::time::Duration;

use windlass::Runtime;
use windlass::observe::{EventKind, Recording};
use windlass::task::{self, yield_now};

fn main() -> windlass::Result<()> {
    let (stalled, stalls) = mpsc::channel();
    let runtime = Runtime::builder()
        .workers(2)
        .recording(Recording::Full)
        .stall_threshold(Some(Duration::from_millis(20)))
        .on_stall(move |stall| {
            stalled.send(stall.to_string()).ok();
        })
        .build()?;

    // Some work, and a task that waits.
    let work: Vec<_> = (0..100)
        .map(|_| runtime.spawn(async { yield_now().await }))
        .collect();
    for task in work {
        runtime.block_on(task)?;
    }
    let patient = task::Builder::new()
        .name("patient")
        .spawn_on(runtime.handle(), std::future::pending::<()>());

    // A task that forgets to await. The watchdog sees it while it hangs.
    let (release, held) = mpsc::channel::<()>();
    let greedy = task::Builder::new()
        .name("greedy")
        .spawn_on(runtime.handle(), async move {
            held.recv().ok();
        });
    println!("stall: {}", stalls.recv()?);

    let snapshot = runtime.snapshot();
    for worker in &snapshot.pool.workers {
        println!(
            "worker {}: {:?}, {} polls, {} tasks completed, in {:?}",
            worker.index, worker.state, worker.polls, worker.tasks_completed, worker.task_name
        );
    }
    release.send(())?;
    runtime.block_on(greedy)?;

    let polls = runtime
        .events()
        .iter()
        .filter(|event| event.kind == EventKind::Poll)
        .count();
    println!("the flight recorder holds {polls} polls\n");
    runtime.debug_dump(&mut std::io::stdout())?;
    patient.abort();
    Ok(())
}
