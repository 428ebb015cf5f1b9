//! A group of tasks in which one failure ends the others: `cargo run --example groups`.

use std::fmt;

use windlass::TaskGroup;
use windlass::task::{ChildError, yield_now};

#[derive(Debug)]
struct NoSuchPage(u32);

impl fmt::Display for NoSuchPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no page {}", self.0)
    }
}

impl std::error::Error for NoSuchPage {}

/// Stands for work that takes a few turns.
async fn fetch(page: u32) -> Result<String, NoSuchPage> {
    for _ in 0..page {
        yield_now().await;
    }
    if page == 404 {
        Err(NoSuchPage(page))
    } else {
        Ok(format!("page {page}"))
    }
}

async fn fetch_all(pages: &[u32]) -> Result<Vec<String>, ChildError<NoSuchPage>> {
    let mut group = TaskGroup::new();
    for &page in pages {
        group.spawn(fetch(page));
    }
    // Waits for every child; after a failure the others are cancelled first.
    group.try_join().await
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let pages = fetch_all(&[3, 1, 2]).await?;
    println!("in the order of ending: {pages:?}");

    match fetch_all(&[1, 404, 1_000_000_000]).await {
        Ok(pages) => println!("unexpected: {pages:?}"),
        Err(error) => println!("{error}; page 1000000000 was not waited for"),
    }
    Ok(())
}
