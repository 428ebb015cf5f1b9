//! Who runs first when there is too much to do: `cargo run --example classes`.

use std::sync::mpsc;

use windlass::Runtime;
use windlass::task::JoinHandle;
use windlass::task::{self, Class};

fn main() -> windlass::Result<()> {
    // One worker, so that the order is there to see.
    let runtime = Runtime::builder().workers(1).build()?;
    let (open, gate) = mpsc::channel::<()>();
    // Holds the worker until everything below is queued.
    let holder = runtime.spawn(async move { gate.recv() });

    let spawn = |class: Class, number: u32| -> JoinHandle<()> {
        task::Builder::new()
            .name(format!("{class:?} {number}"))
            .class(class)
            .spawn_on(
                runtime.handle(),
                async move { println!("{class:?} {number}") },
            )
    };
    let classes = [Class::Background, Class::Low, Class::Normal, Class::High];
    let tasks: Vec<_> = (1..=2)
        .flat_map(|number| classes.map(|class| spawn(class, number)))
        .collect();

    println!("spawned as {classes:?}, twice; they run as:");
    open.send(())?;
    runtime.block_on(holder)??;
    for task in tasks {
        runtime.block_on(task)?;
    }
    Ok(())
}
