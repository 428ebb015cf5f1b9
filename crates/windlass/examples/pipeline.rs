//! A pipeline with backpressure: a fast source, a slow sink, and bounded channels between them.
//!
//! `cargo run --example pipeline`

use std::time::Duration;

use windlass::sync::mpsc;
use windlass::time::{Instant, sleep};
use windlass::{join, spawn};

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let (lines, mut parse) = mpsc::buffered::<String>(4);
    let (numbers, mut sum) = mpsc::buffered::<u64>(4);

    let source = spawn(async move {
        let began = Instant::now();
        for n in 0..40 {
            // Waits here whenever the stages below are busy.
            if lines.send(format!("{n}")).await.is_err() {
                break;
            }
        }
        began.elapsed()
    });
    let parser = spawn(async move {
        while let Some(line) = parse.recv().await {
            let Ok(number) = line.parse() else { continue };
            if numbers.send(number).await.is_err() {
                break;
            }
        }
    });
    let sink = spawn(async move {
        let mut total = 0;
        while let Some(number) = sum.recv().await {
            sleep(Duration::from_millis(2)).await;
            total += number;
        }
        total
    });

    let (source, parser, total) = join!(source, parser, sink);
    parser?;
    println!("the sum is {}", total?);
    println!("the source was held back for {:?}", source?);
    Ok(())
}
