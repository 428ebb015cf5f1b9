//! When a worker looks at the clock, the injector and the driver.

use std::cell::Cell;

use super::Worker;
use crate::sync::atomic::Ordering;
use crate::sync::clock;
use crate::tuning::{
    EWMA_DIVISOR, INTERVAL_MAX, INTERVAL_MIN, POLLS_PER_STAMP, POLLS_PER_TICK, Policy,
};

/// When to look at the clock, the injector and the driver.
pub(super) struct Pace {
    /// Polls until the next check.
    pub(super) countdown: Cell<u32>,
    /// Polls in the batch that is being measured, when `countdown` reaches 0.
    pub(super) batch: Cell<u32>,
    pub(super) batch_began: Cell<u64>,
    pub(super) since_injector: Cell<u32>,
    /// The last look at the injector found something.
    pub(super) injected: Cell<bool>,
    pub(super) poll_ns: Cell<u64>,
    pub(super) interval: Cell<u32>,
}

impl Worker {
    /// Takes a batch's time into the running mean and starts the next batch.
    pub(super) fn measure(&self, now: u64, polls: u32) {
        let elapsed = now.saturating_sub(self.pace.batch_began.get());
        let counters = &self.remote().counters;
        counters.run_ns.add(elapsed);
        counters.run_polls.add(polls as u64);
        if polls == 1 {
            counters.longest_ns.raise_to(elapsed);
        }
        let sample = elapsed / polls.max(1) as u64;
        let mean = (self.pace.poll_ns.get() * (EWMA_DIVISOR - 1) + sample) / EWMA_DIVISOR;
        self.pace.poll_ns.set(mean);
        self.pace.interval.set(interval_for(&self.policy, mean));
        self.remote()
            .interval
            .store(self.pace.interval.get(), Ordering::Relaxed);
        self.begin_batch(now);
    }

    /// Takes a batch into the mean that ends early, because there is nothing left to poll.
    pub(super) fn measure_rest(&self) {
        // The look that found nothing was counted, too.
        let looks = self.pace.batch.get() - self.pace.countdown.get();
        let polls = looks.saturating_sub(1);
        if polls > 0 {
            self.measure(clock::now(), polls);
        }
    }

    pub(in crate::sched) fn begin_batch(&self, now: u64) {
        let most = if self.sample_mask.get() == 0 {
            POLLS_PER_STAMP
        } else {
            POLLS_PER_TICK
        };
        let batch = self.pace.interval.get().min(most);
        self.pace.batch.set(batch);
        self.pace.countdown.set(batch);
        self.pace.batch_began.set(now);
    }
}

pub(super) fn interval_for(policy: &Policy, poll_ns: u64) -> u32 {
    let interval = policy.target_latency_ns / poll_ns.max(1);
    interval.clamp(INTERVAL_MIN as u64, INTERVAL_MAX as u64) as u32
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::{Policy, interval_for};

    #[test]
    fn the_injector_interval_follows_the_poll_time() {
        let cases = [
            (1_000, 255),
            (10_000, 100),
            (50_000, 20),
            (100_000, 10),
            (1_000_000, 1),
            (0, 255),
        ];
        for (poll_ns, interval) in cases {
            assert_eq!(
                interval_for(&Policy::THROUGHPUT, poll_ns),
                interval,
                "{poll_ns} ns a poll"
            );
        }
    }
}
