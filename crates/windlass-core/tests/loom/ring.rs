//! The ring: owner, thief, overflow.

use std::sync::Arc;

use windlass_core::queue::Ring;

use crate::node::{self, Node};

fn drain(ring: &Ring<Node>) -> Vec<usize> {
    std::iter::from_fn(|| ring.pop()).map(node::open).collect()
}

fn steal(from: &Ring<Node>) -> Vec<usize> {
    let own = Ring::new();
    let mut got = Vec::new();
    if let Some((item, count)) = from.steal_into(&own) {
        got.push(node::open(item));
        got.extend(drain(&own));
        assert_eq!(got.len(), count);
    }
    got
}

fn assert_each_once(mut got: Vec<usize>, count: usize) {
    got.sort_unstable();
    assert_eq!(got, (0..count).collect::<Vec<_>>());
}

#[test]
fn ring_each_item_is_taken_once_by_owner_or_thief() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let victim = ring.clone();
        let thief = loom::thread::spawn(move || {
            let mut got = steal(&victim);
            got.extend(steal(&victim));
            got
        });
        let mut got = Vec::new();
        for value in 0..2 {
            ring.push(node::make(value)).unwrap();
        }
        got.extend(ring.pop().map(node::open));
        for value in 2..4 {
            ring.push(node::make(value)).unwrap();
        }
        got.extend(drain(&ring));
        got.extend(thief.join().unwrap());
        got.extend(drain(&ring));
        assert_each_once(got, 4);
    });
}

#[test]
fn ring_slots_are_not_reused_while_a_thief_copies() {
    loom::model(|| {
        // Full from the start: every push needs a slot that the thief may be reading.
        let ring = Arc::new(Ring::new());
        for value in 0..4 {
            ring.push(node::make(value)).unwrap();
        }
        let victim = ring.clone();
        let thief = loom::thread::spawn(move || steal(&victim));
        let mut got = Vec::new();
        let mut next = 4;
        for _ in 0..2 {
            got.extend(ring.pop().map(node::open));
            match ring.push(node::make(next)) {
                Ok(()) => {}
                Err(item) => got.push(node::open(item)),
            }
            next += 1;
        }
        got.extend(thief.join().unwrap());
        got.extend(drain(&ring));
        assert_each_once(got, next);
    });
}

#[test]
fn ring_overflow_and_steal_share_the_items() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        for value in 0..4 {
            ring.push(node::make(value)).unwrap();
        }
        let victim = ring.clone();
        let thief = loom::thread::spawn(move || steal(&victim));
        let mut got = Vec::new();
        if let Some(batch) = ring.take_half() {
            batch.for_each(|item| got.push(node::open(item)));
        }
        got.extend(thief.join().unwrap());
        got.extend(drain(&ring));
        assert_each_once(got, 4);
    });
}

#[test]
fn ring_two_thieves_do_not_take_the_same() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        for value in 0..3 {
            ring.push(node::make(value)).unwrap();
        }
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let victim = ring.clone();
                loom::thread::spawn(move || steal(&victim))
            })
            .collect();
        let mut got: Vec<usize> = ring.pop().map(node::open).into_iter().collect();
        for thief in thieves {
            got.extend(thief.join().unwrap());
        }
        got.extend(drain(&ring));
        assert_each_once(got, 3);
    });
}
