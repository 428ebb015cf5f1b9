//! The watch channel: the newest value and the close against receivers that look or wait.

use std::sync::Arc;
use std::task::Poll;

use windlass_core::block_on;
use windlass_sync::channel::watch;

use crate::support::{Count, Tracked, poll};

#[test]
fn watch_a_receiver_does_not_miss_the_newest_value() {
    loom::model(|| {
        let (sender, mut receiver) = watch::channel(0);
        let note = Arc::new(Tracked::new(0));
        let by_sender = note.clone();
        let thread = loom::thread::spawn(move || {
            by_sender.write(7);
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            // Kept: this model is not about the close.
            sender
        });
        let mut changes = 0;
        let mut newest = 0;
        while newest != 2 {
            // A change that this wait misses is a deadlock.
            block_on(receiver.changed()).unwrap();
            // A version that was seen without a lock carries what the sender did before.
            assert_eq!(note.read(), 7);
            changes += 1;
            newest = *receiver.borrow_and_update();
        }
        assert!(changes <= 2, "a change is seen once");
        assert_eq!(receiver.has_changed(), Ok(false));
        drop(thread.join().unwrap());
    });
}

#[test]
fn watch_the_close_tells_every_receiver_once_and_carries_what_every_sender_did() {
    loom::model(|| {
        let (sender, mut first) = watch::channel(0);
        let mut second = first.clone();
        let note = Arc::new(Tracked::new(0));
        let (count, waker) = Count::new();
        let mut waits = Box::pin(first.changed());
        assert!(poll(waits.as_mut(), &waker).is_pending());
        let (other, by_other) = (sender.clone(), note.clone());
        let sends = loom::thread::spawn(move || {
            by_other.write(7);
            drop(other);
        });
        let receives = loom::thread::spawn(move || {
            assert!(block_on(second.changed()).is_err());
            assert_eq!(note.read(), 7);
        });
        drop(sender);
        sends.join().unwrap();
        receives.join().unwrap();
        assert_eq!(count.wakes(), 1);
        assert!(matches!(poll(waits.as_mut(), &waker), Poll::Ready(Err(_))));
    });
}

#[test]
fn watch_the_value_that_comes_with_the_close_is_not_missed() {
    loom::model(|| {
        let (sender, mut receiver) = watch::channel(0);
        let thread = loom::thread::spawn(move || sender.send(1).unwrap());
        let found = block_on(receiver.wait_for(|value| *value == 1));
        assert_eq!(*found.expect("the last value was the wanted one"), 1);
        thread.join().unwrap();
    });
}

#[test]
fn watch_the_last_receiver_tells_the_sender_that_waits() {
    loom::model(|| {
        let (sender, first) = watch::channel(0);
        let second = first.clone();
        let note = Arc::new(Tracked::new(0));
        let by_first = note.clone();
        let threads = [
            loom::thread::spawn(move || {
                by_first.write(7);
                drop(first);
            }),
            loom::thread::spawn(move || drop(second)),
        ];
        if !sender.is_closed() {
            block_on(sender.closed());
        }
        assert_eq!(note.read(), 7);
        assert!(sender.send(1).is_err());
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
