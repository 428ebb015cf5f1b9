//! The paused clock of tests, which is the virtual clock of a simulation.
//!
//! A runtime that starts paused is a simulated one: its clock moves when every task waits. The
//! clock of a runtime that runs on the kernel's cannot be stopped later.

use std::time::Duration;

use super::sleep;
use crate::handle::Handle;

/// Stops the clock; has no effect in a runtime that started paused.
///
/// # Panics
/// In a runtime that did not start paused.
#[track_caller]
pub fn pause() {
    assert!(
        Handle::current().is_simulated(),
        "Windlass cannot stop the clock of a running runtime; start it paused: \
         `#[test(start_paused = true)]` or `Builder::start_paused`"
    );
}

/// Lets the clock go on.
///
/// # Panics
/// Always: the clock of a runtime that started paused stays virtual.
#[track_caller]
pub fn resume() {
    panic!("Windlass cannot resume a paused clock: the runtime is a simulation to its end");
}

/// Moves the clock by `time`; timers that are due on the way fire in their order.
///
/// # Panics
/// In a runtime that did not start paused.
pub async fn advance(time: Duration) {
    pause();
    sleep(time).await;
}
