//! Loom models of every lock-free piece. Each runs in a process of its own: `cargo xtask loom`.
//!
//! `cargo xtask weaken` flips the orderings these models stand for, one by one, and demands that
//! the model named in `xtask/weaken.list` fails.
#![cfg(windlass_loom)]
#![allow(
    clippy::disallowed_types,
    reason = "models count with plain atomics of the test"
)]

mod arrivals;
mod deque;
mod driver_guard;
mod idle;
mod injector;
mod join;
mod mailbox;
mod park;
mod registry;
mod ring;
mod slot;
mod state;

mod node {
    use std::ptr::NonNull;
    use windlass_core::queue::Linked;
    use windlass_core::sync::UnsafeCell;
    use windlass_core::sync::atomic::AtomicPtr;

    /// An item whose content is written by its maker and read by its taker: loom reports a race if
    /// the queue between them does not order the two.
    #[derive(Debug)]
    pub(crate) struct Node {
        link: AtomicPtr<Node>,
        value: UnsafeCell<usize>,
    }

    impl Linked for Node {
        fn link(&self) -> &AtomicPtr<Node> {
            &self.link
        }
    }

    // SAFETY: the queues hand a node from one owner to the next.
    unsafe impl Send for Node {}
    // SAFETY: as above.
    unsafe impl Sync for Node {}

    /// A new item.
    pub(crate) fn make(value: usize) -> NonNull<Node> {
        let node = Box::new(Node {
            link: AtomicPtr::new(std::ptr::null_mut()),
            value: UnsafeCell::new(0),
        });
        // SAFETY: the node is new and ours.
        node.value.with_mut(|there| unsafe { *there = value });
        NonNull::from(Box::leak(node))
    }

    /// Takes the content out and frees the item.
    pub(crate) fn open(node: NonNull<Node>) -> usize {
        // SAFETY: the queue handed the node over; it was leaked in `make`.
        let node = unsafe { Box::from_raw(node.as_ptr()) };
        // SAFETY: ours.
        node.value.with(|there| unsafe { *there })
    }
}
