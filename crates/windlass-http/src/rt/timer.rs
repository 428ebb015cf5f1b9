//! The runtime's clock, as hyper sees it: virtual in a simulation.
#![allow(
    clippy::disallowed_types,
    reason = "hyper speaks of moments in the standard library's type; they are made here, from the runtime's clock"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use windlass_runtime::time::{Instant, Sleep, sleep, sleep_until};

/// Timers of the runtime this thread is in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timer;

/// What the beginning of our clock is in the other type. Which moment that is does not matter: only
/// differences are ever used.
static BEGINNING: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

fn from_std(moment: std::time::Instant) -> Instant {
    Instant::beginning() + moment.saturating_duration_since(*BEGINNING)
}

fn to_std(moment: Instant) -> std::time::Instant {
    *BEGINNING + moment.saturating_duration_since(Instant::beginning())
}

impl hyper::rt::Timer for Timer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep { sleep: sleep(time) })
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep {
            sleep: sleep_until(from_std(deadline)),
        })
    }

    fn now(&self) -> std::time::Instant {
        to_std(Instant::now())
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: std::time::Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            Some(asleep) => asleep.project().sleep.reset(from_std(deadline)),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

pin_project! {
    struct HyperSleep {
        #[pin]
        sleep: Sleep,
    }
}

impl Future for HyperSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().sleep.poll(cx)
    }
}

impl hyper::rt::Sleep for HyperSleep {}
