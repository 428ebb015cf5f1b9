//! The channel whose receivers get every value: how many it keeps.

use windlass_sync::channel::broadcast::{self, error::TryRecvError};

use crate::support::panic_message;

#[test]
fn the_capacity_is_rounded_up_to_a_power_of_two() {
    let (sender, mut receiver) = broadcast::channel(5);
    for value in 0..8 {
        sender.send(value).unwrap();
    }
    assert_eq!(receiver.try_recv(), Ok(0), "eight are kept");
    let (sender, mut receiver) = broadcast::channel(5);
    for value in 0..9 {
        sender.send(value).unwrap();
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn a_capacity_that_no_memory_holds_is_refused() {
    let message = panic_message(|| drop(broadcast::channel::<()>(usize::MAX / 2 + 1)));
    assert!(message.contains("usize::MAX / 2"), "{message}");
    // Nothing is allocated before there are values.
    drop(broadcast::channel::<()>(usize::MAX / 4 + 1));
}
