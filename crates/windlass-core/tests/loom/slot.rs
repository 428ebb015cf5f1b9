//! The slot: owner against thief.

use std::sync::Arc;

use windlass_core::queue::Slot;

use crate::node;

#[test]
fn slot_each_item_is_taken_once() {
    loom::model(|| {
        let slot = Arc::new(Slot::default());
        let victim = slot.clone();
        let thief = loom::thread::spawn(move || {
            let mut got: Vec<usize> = victim.steal().map(node::open).into_iter().collect();
            got.extend(victim.steal().map(node::open));
            got
        });
        let mut got = Vec::new();
        for value in 0..3 {
            got.extend(slot.put(node::make(value)).map(node::open));
        }
        got.extend(slot.take().map(node::open));
        assert!(
            slot.put(node::make(3)).is_none(),
            "an empty slot stays empty until the owner fills it"
        );
        got.extend(thief.join().unwrap());
        got.extend(slot.take().map(node::open));
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
    });
}
