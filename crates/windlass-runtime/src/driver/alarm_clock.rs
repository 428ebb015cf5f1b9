//! Ends a sleep at a moment, exact to the kernel's finest timer.
//!
//! mio rounds its timeout up to a millisecond, so on Linux a timerfd is among the sources it waits
//! for. Elsewhere the timeout has to do.

use std::io;
use std::time::Duration;

use mio::{Registry, Token};

#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct AlarmClock {
    timer: std::os::fd::OwnedFd,
    /// What it is set to; none: it is not.
    set_to: Option<u64>,
}

#[cfg(target_os = "linux")]
impl AlarmClock {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<AlarmClock> {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: takes no pointers.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if timer < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and no other owner's.
        let timer = unsafe { OwnedFd::from_raw_fd(timer) };
        let mut source = mio::unix::SourceFd(&timer.as_raw_fd());
        // Edge-triggered, as all of mio's: setting the timer anew arms the next edge, and no code
        // reads it.
        registry.register(&mut source, token, mio::Interest::READABLE)?;
        Ok(AlarmClock {
            timer,
            set_to: None,
        })
    }

    /// Rings at `until`, not before. Gives the timeout that the sleep needs besides: none.
    pub(super) fn set(&mut self, until: Option<u64>, now: u64) -> Option<Duration> {
        use std::os::fd::AsRawFd;
        // What has rung is no longer set.
        if self.set_to.is_some_and(|set_to| set_to <= now) {
            self.set_to = None;
        }
        if self.set_to == until {
            return None;
        }
        let after = until.map_or(0, |until| until - now);
        let spec = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: i64::try_from(after / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (after % 1_000_000_000) as i64,
            },
        };
        // SAFETY: the descriptor is open, and both pointers are valid or null.
        unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &spec, std::ptr::null_mut()) };
        self.set_to = until;
        None
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct AlarmClock;

#[cfg(not(target_os = "linux"))]
impl AlarmClock {
    pub(super) fn new(_: &Registry, _: Token) -> io::Result<AlarmClock> {
        Ok(AlarmClock)
    }

    /// The timeout that the sleep needs.
    pub(super) fn set(&mut self, until: Option<u64>, now: u64) -> Option<Duration> {
        until.map(|until| Duration::from_nanos(until - now))
    }
}
