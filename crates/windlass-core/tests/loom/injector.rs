//! The injector: pushers, consumers, closing.

use std::ptr::NonNull;
use std::sync::Arc;

use windlass_core::queue::{Batch, Closed, Injector};

use crate::node::{self, Node};

fn push(injector: &Injector<Node>, value: usize) -> Result<(), usize> {
    // SAFETY: the node is new and ours to queue; it is freed by whoever takes it.
    unsafe { injector.push(node::make(value)) }.map_err(|Closed(item)| node::open(item))
}

fn take(injector: &Injector<Node>, most: usize) -> Vec<usize> {
    let mut got = Vec::new();
    injector.take(most, |item: NonNull<Node>| got.push(node::open(item)));
    got
}

#[test]
fn injector_each_item_is_taken_once_in_order() {
    loom::model(|| {
        let injector = Arc::new(Injector::default());
        let other = injector.clone();
        let pusher = loom::thread::spawn(move || {
            push(&other, 10).unwrap();
            push(&other, 11).unwrap();
        });
        let mut batch = Batch::default();
        for value in 0..2 {
            // SAFETY: the node is new and ours.
            unsafe { batch.push(node::make(value)) };
        }
        injector.push_batch(batch).unwrap();
        let mut got = take(&injector, 3);
        pusher.join().unwrap();
        got.extend(take(&injector, 9));
        assert!(injector.is_empty());
        let of = |low: usize| {
            got.iter()
                .copied()
                .filter(|v| v / 10 == low)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), [0, 1]);
        assert_eq!(of(1), [10, 11]);
        assert_eq!(got.len(), 4);
    });
}

#[test]
fn injector_two_consumers_share_the_items() {
    loom::model(|| {
        let injector = Arc::new(Injector::default());
        push(&injector, 0).unwrap();
        push(&injector, 1).unwrap();
        let other = injector.clone();
        let consumer = loom::thread::spawn(move || take(&other, 1));
        push(&injector, 2).unwrap();
        let mut got = take(&injector, 1);
        got.extend(consumer.join().unwrap());
        got.extend(take(&injector, 9));
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2]);
    });
}

#[test]
fn injector_closing_loses_nothing() {
    loom::model(|| {
        let injector = Arc::new(Injector::default());
        let other = injector.clone();
        let pusher = loom::thread::spawn(move || push(&other, 7));
        let closed = injector.close_if_empty();
        let pushed = pusher.join().unwrap();
        let got = take(&injector, 9);
        match pushed {
            // Refused: the pusher has it back, and the queue really is closed.
            Err(value) => assert!(closed && value == 7 && got.is_empty()),
            // Accepted: then it is there, and the queue was not closed over it.
            Ok(()) => assert!(!closed && got == [7]),
        }
    });
}
