//! Fan-out with a deadline: ask several services at once, take what arrives in time.
//!
//! `cargo run --example fan_out`

use std::time::Duration;

use windlass::task::{ChildError, SupervisorGroup};
use windlass::time::{self, Instant, sleep};

/// A service that answers after a while.
async fn ask(service: &'static str, takes: Duration) -> Result<String, String> {
    sleep(takes).await;
    if service == "prices" {
        return Err(format!("{service} is out of order"));
    }
    Ok(format!("{service} answered after {takes:?}"))
}

#[windlass::main]
async fn main() {
    let began = Instant::now();
    let mut answers = Vec::new();
    let in_time = time::deadline(began + Duration::from_millis(100), async {
        let mut group = SupervisorGroup::new();
        for (service, ms) in [
            ("stock", 20),
            ("prices", 40),
            ("reviews", 60),
            ("ads", 5_000),
        ] {
            group.spawn(ask(service, Duration::from_millis(ms)));
        }
        while let Some(answer) = group.next().await {
            answers.push(ChildError::flatten(answer));
        }
    })
    .await;

    for answer in &answers {
        match answer {
            Ok(text) => println!("{text}"),
            Err(error) => println!("failed: {error}"),
        }
    }
    if in_time.is_err() {
        println!("the rest was cancelled after {:?}", began.elapsed());
    }
}
