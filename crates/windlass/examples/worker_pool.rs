//! A pool of worker processes with small mailboxes: a producer that is too fast waits for room.
//!
//! `cargo run --example worker_pool`

use std::time::Duration;

use windlass::actor::{self, ActorError, Address, Context, Host, MailboxPolicy};
use windlass::time::{Instant, sleep};
use windlass::value::Payload;

const WORKERS: usize = 4;
const BOUND: usize = 4;
const JOBS: usize = 200;
const WORK: Duration = Duration::from_millis(2);

/// Squares numbers, one at a time, and passes them on. Ends with how many there were.
async fn worker(mut ctx: Context<i64>, results: Address<i64>) -> Result<Payload, ActorError> {
    let mut done = 0;
    while let Some(number) = ctx.recv().await {
        sleep(WORK).await;
        results.send(number * number).await?;
        done += 1;
    }
    Ok(Payload::Int(done))
}

/// Adds up one result for each job, and ends with the sum.
async fn collector(mut ctx: Context<i64>) -> Result<Payload, ActorError> {
    let mut sum = 0;
    for _ in 0..JOBS {
        let result = ctx.recv().await;
        sum += result.ok_or_else(|| ActorError::new("told to stop too early"))?;
    }
    Ok(Payload::Int(sum))
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let results = actor::spawn(collector)?;
    let host = Host::current()?;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let results = results.address();
        let spawn = host.process().mailbox(MailboxPolicy::Bounded(BOUND));
        workers.push(spawn.spawn(move |ctx| worker(ctx, results))?);
    }

    let (began, mut longest, mut fullest) = (Instant::now(), Duration::ZERO, 0);
    for number in 1..=JOBS as i64 {
        let least_loaded = workers.iter().min_by_key(|worker| worker.unread());
        let worker = least_loaded.ok_or("a pool without workers")?;
        let sent = Instant::now();
        // Waits here when even this mailbox is full.
        worker.send(number).await?;
        longest = longest.max(sent.elapsed());
        // Nobody else sends, so a mailbox is never fuller than right after this.
        fullest = fullest.max(worker.unread().ok_or("bounded mailboxes count")?);
    }
    let held_back = began.elapsed();

    // The collector ends with the last result, so nothing is left in the mailboxes.
    let sum = results.join().await.value.as_i64().ok_or("no sum")?;
    let mut done = Vec::new();
    for worker in &workers {
        worker.cancel("no more jobs");
        done.push(worker.join().await.value.as_i64().ok_or("no count")?);
    }

    println!("the sum of {JOBS} squares is {sum}");
    println!("the workers did {done:?} of them");
    println!("the producer was held back for {held_back:?}, at most {longest:?} at a time");
    println!("the fullest mailbox held {fullest} of {BOUND}");
    assert_eq!(
        sum,
        (1..=JOBS as i64).map(|number| number * number).sum::<i64>()
    );
    assert_eq!(done.iter().sum::<i64>(), JOBS as i64);
    assert!(fullest <= BOUND, "a mailbox held more than its bound");
    // When the last job was sent, each worker had at most one in hand and a full mailbox. All
    // others were done by then, and somebody had done a fair share of them.
    let fair_share = (JOBS - WORKERS * (BOUND + 1)) / WORKERS;
    assert!(held_back >= WORK * fair_share as u32, "nobody waited");
    Ok(())
}
