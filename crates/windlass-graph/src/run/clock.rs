//! The time of a run.

use windlass_core::sync::{CoarseClock, clock};

/// What a run knows of the time. Times are nanoseconds of the process's clock.
pub(crate) struct RunClock {
    /// When the run began.
    pub(crate) began: u64,
    /// Whether time is real.
    pub(crate) is_real: bool,
    /// Whether there are epochs in which not all lanes are due.
    pub(crate) has_turns: bool,
    /// Where lanes count from, if time is real.
    pub(crate) zero: u64,
    /// The last reading of the clock: the end of one invocation is the start of the next.
    pub(crate) latest: u64,
    /// The look at the clock at the start of this epoch.
    pub(crate) near: CoarseClock,
}

impl RunClock {
    /// Begins with simulated time.
    pub(crate) fn new() -> RunClock {
        RunClock {
            began: clock::now(),
            is_real: false,
            has_turns: false,
            zero: 0,
            latest: 0,
            near: CoarseClock::default(),
        }
    }

    /// Makes the clock of a part of the run that runs beside the epochs.
    pub(crate) fn beside(&self) -> RunClock {
        RunClock {
            latest: clock::now(),
            near: CoarseClock::look(),
            ..*self
        }
    }
}
