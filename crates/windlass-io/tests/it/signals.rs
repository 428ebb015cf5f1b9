//! Signals of the operating system.

use std::io::ErrorKind;
use std::time::Duration;

use windlass_io::signal::unix::{SignalKind, signal};
use windlass_runtime::{Runtime, time};

use crate::support::send_signal;

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("it builds")
}

#[test]
fn a_signal_that_comes_between_two_waits_is_not_forgotten()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut first = signal(SignalKind::user_defined1())?;
        let mut second = signal(SignalKind::user_defined1())?;
        let mut other = signal(SignalKind::user_defined2())?;
        for _ in 0..3 {
            send_signal("USR1");
            // Nobody waits now.
            time::sleep(Duration::from_millis(100)).await;
            first.recv().await;
            second.recv().await;
        }
        let more = time::timeout(Duration::from_millis(200), first.recv()).await;
        assert!(more.is_err(), "each signal is told once");
        send_signal("USR2");
        time::timeout(Duration::from_secs(20), other.recv()).await?;
        Ok(())
    })
}

#[test]
fn a_dropped_wait_loses_no_signal() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime().block_on(async {
        let mut signals = signal(SignalKind::user_defined1())?;
        assert!(
            time::timeout(Duration::from_millis(20), signals.recv())
                .await
                .is_err()
        );
        send_signal("USR1");
        time::sleep(Duration::from_millis(100)).await;
        time::timeout(Duration::from_secs(20), signals.recv()).await?;
        Ok(())
    })
}

#[test]
fn what_cannot_be_heard_is_refused() {
    for number in [9, 19, 11, 0, -1, 1000] {
        let refused = signal(SignalKind::from_raw(number)).expect_err("impossible");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    }
}
