//! Futures that must not leave their thread: `cargo run --example local`.

use std::cell::RefCell;
use std::rc::Rc;

use windlass::Runtime;
use windlass::task::LocalSet;
use windlass::task::{spawn_local, yield_now};

fn main() -> windlass::Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let set = LocalSet::new();
    // Neither `Rc` nor `RefCell` can go to another thread, and they need not.
    let board = Rc::new(RefCell::new(Vec::new()));

    runtime.block_on(set.run_until(async {
        let writers: Vec<_> = ["ann", "bob"]
            .into_iter()
            .map(|name| {
                let board = board.clone();
                spawn_local(async move {
                    for line in 1..=3 {
                        // The heavy part runs on a worker, the result is used here.
                        let square = windlass::spawn(async move { line * line }).await?;
                        board.borrow_mut().push(format!("{name}: {square}"));
                        yield_now().await;
                    }
                    Ok::<_, windlass::Error>(())
                })
            })
            .collect();
        for writer in writers {
            writer.await??;
        }
        Ok::<_, windlass::Error>(())
    }))?;

    println!("{:#?}", board.borrow());
    Ok(())
}
