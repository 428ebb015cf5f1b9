//! When a worker notifies sleepers about its tasks.

use std::cell::Cell;

use super::Worker;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::clock;
use crate::tuning::{LONE_NOTIFY_STRIDE, Policy};

/// Holds back calls for help, after calls that were wasted.
#[derive(Default)]
pub(in crate::sched) struct Gate {
    step: Cell<u64>,
    until: Cell<u64>,
}

impl Gate {
    /// Whether to call now; the call counts as wasted until a worker has come and taken something.
    pub(in crate::sched) fn opens(&self, policy: &Policy, robbed: &AtomicBool) -> bool {
        if robbed.swap(false, Ordering::Relaxed) {
            self.step.set(0);
        }
        let now = clock::now();
        if self.step.get() > 0 && now < self.until.get() {
            return false;
        }
        let step =
            (self.step.get() * 2).clamp(policy.lone_notify_min_ns, policy.lone_notify_max_ns);
        self.step.set(step);
        self.until.set(now + step);
        true
    }
}

impl Worker {
    /// Notifies a sleeper about a task in our own ring or slot.
    ///
    /// The counts are read without a fence: a sleeper that goes to sleep at this very moment may be
    /// missed. That loses no task, because this worker is awake and looks before it sleeps; what
    /// was pushed earlier the other saw in its own last look; and the watchdog announces if the
    /// current poll takes long (SLEEP.md).
    #[inline]
    pub(super) fn announce(&self) {
        if self.pool.idle.worth_announcing() {
            self.pool.announce();
        }
    }

    /// Notifies a sleeper about a single task that this worker will probably run itself: at once if
    /// its polls are long, and through a gate if they are short and it will soon come to it.
    #[inline]
    pub(super) fn announce_lone(&self) {
        if !self.pool.idle.worth_announcing() {
            return;
        }
        if self.pace.poll_ns.get() >= self.policy.worth_a_wake_ns {
            return self.pool.announce();
        }
        let skip = self.lone_skip.get();
        if skip > 0 {
            self.lone_skip.set(skip - 1);
            return;
        }
        self.announce_lone_gated();
    }

    #[cold]
    fn announce_lone_gated(&self) {
        if self.lone.opens(&self.policy, &self.remote().robbed) {
            self.announce();
        } else {
            self.lone_skip.set(LONE_NOTIFY_STRIDE);
        }
    }
}
