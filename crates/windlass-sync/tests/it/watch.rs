//! The channel of the newest value: what its receivers learn of its end, and when they give way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_sync::channel::watch;

use crate::support::{join, runtime};

#[test]
fn has_changed_fails_at_the_end_also_with_a_value_not_seen() {
    let (sender, mut receiver) = watch::channel(1);
    sender.send(2).unwrap();
    assert_eq!(receiver.has_changed(), Ok(true));
    drop(sender);
    assert!(receiver.has_changed().is_err());
    assert_eq!(*receiver.borrow_and_update(), 2, "the value is still there");
    assert!(receiver.has_changed().is_err());
}

/// Loops over `wait_for` on a worker until another task of that worker has run.
fn gives_way(closed: bool) {
    let runtime = runtime(1);
    let ran = Arc::new(AtomicBool::new(false));
    let seen = ran.clone();
    let task = runtime.spawn(async move {
        let (sender, mut receiver) = watch::channel(0);
        let sender = (!closed).then_some(sender);
        let other = windlass_runtime::spawn(async move { ran.store(true, Ordering::SeqCst) });
        while !seen.load(Ordering::SeqCst) {
            let found = receiver.wait_for(|value| *value == 0 && !closed).await;
            assert_eq!(found.is_err(), closed);
        }
        drop(sender);
        other.await.unwrap();
    });
    join("the loop that must give way", task);
}

#[test]
fn a_loop_that_finds_the_value_at_once_gives_way() {
    gives_way(false);
}

#[test]
fn a_loop_over_a_closed_watch_gives_way() {
    gives_way(true);
}
