//! Waiting at the doors of components: a run that has nothing else to do sleeps until one is
//! knocked at. What is seen at the doors when an epoch begins is in `state/members.rs`.

use std::time::Duration;

use windlass_runtime::time::precise::block_until_or;
use windlass_runtime::time::{Instant, timeout};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

/// Sleeps until a door is knocked at, the run is asked to stop, or the time is over; `None`: there
/// is no such time.
pub(crate) async fn wait_outside(bell: &Notify, stop: &CancellationToken, left: Option<u64>) {
    let knocked = stop.run_until_cancelled(bell.notified());
    match left {
        Some(left) => {
            let _ = timeout(Duration::from_nanos(left), knocked).await;
        }
        None => {
            let _ = knocked.await;
        }
    }
}

/// As `wait_outside`, on a thread of the run's own: as exactly as the machine can.
pub(crate) fn wait_here(bell: &Notify, stop: &CancellationToken, left: u64) {
    let until = Instant::now() + Duration::from_nanos(left);
    let _ = block_until_or(until, stop.run_until_cancelled(bell.notified()));
}
