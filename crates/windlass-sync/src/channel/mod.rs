//! Channels between tasks and plain threads.
//!
//! | module | senders | receivers | what is kept |
//! |---|---|---|---|
//! | [`mpmc`] | many | many, each value goes to one | as its kind says |
//! | [`mpsc`] | many | one | as its kind says |
//! | [`oneshot`] | one | one | one value, once |
//! | [`broadcast`] | many | many, each gets every value | the newest `capacity` values |
//! | [`watch`] | many | many | the newest value, with a version |
//!
//! The kinds of `mpmc` and `mpsc`: *rendezvous* keeps nothing, a send meets a receive; *buffered*
//! keeps a number of values; *conflated* keeps the newest; *unlimited* keeps all.
//!
//! Waiters are served in the order in which they came, and a value goes straight into the hands of
//! the receiver that waits. A failed send hands its value back. After a close, sends fail at once,
//! receivers get what is left and then an error, and every waiter is notified exactly once.
//!
//! Values move, and are dropped and cloned outside of every lock.

pub mod broadcast;
mod core;
mod end_count;
mod error;
pub mod mpmc;
pub mod mpsc;
pub mod oneshot;
mod permit;
mod sender;
pub mod watch;
mod weak_sender;
mod within;

use self::core::Kind;

/// The kind of a buffered channel.
#[track_caller]
fn bounded(capacity: usize) -> Kind {
    assert!(
        capacity > 0,
        "a buffered channel needs room for at least one value; rendezvous() makes a channel without a buffer"
    );
    Kind::Bounded(capacity)
}

/// Drops what a channel holds: it may hold receivers in its turn, many levels deep.
fn drop_nested<T>(values: T) {
    windlass_core::deep::nested(|| drop(values));
}
