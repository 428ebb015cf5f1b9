//! When a worker looks at the clock, the injector and the driver.

use std::cell::Cell;

use super::Worker;
use crate::sync::atomic::Ordering;
use crate::sync::clock;
use crate::tuning::{
    EWMA_DIVISOR, INTERVAL_MAX, INTERVAL_MIN, POLLS_PER_STAMP, POLLS_PER_TICK, Policy,
    RING_CAPACITY, YIELDS_PER_LOOK, YIELDS_PER_LOOK_MAX,
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
    pub(super) yields: Yields,
}

/// Turns in a row whose tasks asked for another one at once. When all that is queued has done so,
/// nothing else is left to do here, and what these tasks wait for may be in the driver. A look
/// costs as much as ten yields, so the next one comes after twice as many.
#[derive(Default)]
pub(super) struct Yields {
    /// The turn that comes after the last one that counted.
    next: Cell<u64>,
    /// The first turn of the row, or the last look into the driver.
    began: Cell<u64>,
    /// Turns until the length of the row is compared with that of the ring.
    left: Cell<u32>,
    /// Turns between the last look and the next.
    pause: Cell<u32>,
}

impl Yields {
    /// Counts the turn with the given number. True: compare.
    #[inline]
    fn count(&self, turn: u64) -> bool {
        if self.next.replace(turn + 1) != turn {
            self.begin(turn, YIELDS_PER_LOOK);
        }
        let left = self.left.get() - 1;
        self.left.set(left);
        left == 0
    }

    #[inline]
    fn begin(&self, turn: u64, pause: u32) {
        self.began.set(turn);
        self.left.set(pause);
        self.pause.set(pause);
    }

    /// True if the row has reached so many tasks: look. If it has not, the next comparison is when
    /// it can have.
    fn has_reached(&self, tasks: usize, turn: u64) -> bool {
        let rest = (tasks as u64).saturating_sub(turn - self.began.get());
        if rest > 0 {
            self.left.set(rest.min(RING_CAPACITY as u64) as u32);
            return false;
        }
        self.begin(turn, (self.pause.get() * 2).min(YIELDS_PER_LOOK_MAX));
        true
    }
}

impl Worker {
    /// A task has asked for another turn at once. Looks into the driver if all others did, too.
    #[inline]
    pub(super) fn note_yield(&self, turn: u64) {
        if self.pace.yields.count(turn) {
            self.end_of_yields(turn);
        }
    }

    #[cold]
    fn end_of_yields(&self, turn: u64) {
        if self.pace.yields.has_reached(self.remote().ring.len(), turn) {
            self.pool.poll_driver(clock::now());
        }
    }

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
