//! How a worker sleeps.

use super::Worker;
use crate::observe::EventKind;
use crate::sched::stop::Phase;

impl Worker {
    /// Sleeps until there is something to do. SLEEP.md has the protocol.
    #[cold]
    pub(super) fn park(&self) {
        let remote = self.remote();
        remote.pulse.set_busy(false);
        self.pool
            .idle
            .publish(self.index, self.searching.replace(false));
        let phase = self.pool.stop.phase();
        let has_work = !remote.inbox.is_empty() || self.pool.has_work(self.index);
        if has_work || phase != self.phase.get() {
            if !self.pool.idle.withdraw(self.index) {
                // Claimed meanwhile: the token is on its way.
                remote.parker.park();
            }
        } else {
            if phase != Phase::Running {
                self.pool.stop.drained(self.index);
            }
            self.sleep();
            self.called.set(true);
        }
        self.searching.set(true);
        self.pool.watchdog.worker_awake();
    }

    fn sleep(&self) {
        let remote = self.remote();
        remote.counters.parks.one();
        remote.recorder.record(EventKind::Park, 0);
        remote.pulse.set_parked(true);
        if !self.pool.sleep_in_driver(self.index) {
            remote.parker.park();
        }
        remote.pulse.set_parked(false);
        remote.counters.unparks.one();
        remote.recorder.record(EventKind::Unpark, 0);
    }
}
