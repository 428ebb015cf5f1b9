//! Which worker sleeps in the driver, and who notices if none does.

use super::Pool;
use crate::sched::remote::Remote;
use crate::sync::Arc;

impl Pool {
    /// Sleeps in the driver if no other thread has it. False: sleep elsewhere. Afterwards the
    /// worker is awake and counted.
    pub(crate) fn sleep_in_driver(&self, worker: usize) -> bool {
        let Some(driver) = &self.driver else {
            return false;
        };
        let Some(guard) = self.driver_lock.try_take() else {
            return false;
        };
        let parker = &self.crew.remote(worker).parker;
        self.idle.set_in_driver(Some(worker));
        if parker.sleep_elsewhere() {
            driver.sleep();
            parker.back_from_elsewhere();
        }
        self.idle.set_in_driver(None);
        if !self.idle.withdraw(worker) {
            // Claimed: the token is there or on its way.
            parker.park();
        }
        // Awake and searching from here on: what is delivered goes into our own slot and ring, and
        // if that is more than one task, the end of the search wakes another worker.
        driver.deliver();
        drop(guard);
        true
    }

    /// A busy worker's look into the driver.
    pub(crate) fn poll_driver(&self, now: u64) {
        let Some(driver) = &self.driver else { return };
        if self.driver_lock.is_deserted()
            && let Some(_guard) = self.driver_lock.try_take()
        {
            driver.poll(now);
        }
    }

    /// A worker leaves. Returns true if no worker is in the driver now, and others may have parked
    /// elsewhere.
    pub(crate) fn leave_idle_set(&self, was_searching: bool) -> bool {
        self.driver_lock.leave(&self.idle, was_searching) && self.driver.is_some()
    }

    /// Returns true if there is a driver and no worker is in it.
    pub(crate) fn driver_is_deserted(&self) -> bool {
        self.driver.is_some() && self.driver_lock.is_deserted()
    }

    /// Turns that all workers have given.
    pub(crate) fn polls(&self) -> u64 {
        let polls = |remote: &Arc<Remote>| remote.pulse.polls();
        self.crew.remotes().map(polls).fold(0, u64::wrapping_add)
    }

    /// True if every worker sleeps, and none in the driver: no worker would notice timers and
    /// sockets. A worker that is about to park, to take the driver or to leave does not sleep; but
    /// this looks at one after the other, so it may say so of workers that take turns.
    pub(crate) fn driver_is_lost(&self) -> bool {
        self.driver_is_deserted() && self.idle.counts().unparked == 0 && {
            let here = self.crew.taken();
            !here.is_empty()
                && here
                    .iter()
                    .all(|id| self.crew.remote(*id).parker.is_asleep())
        }
    }

    /// Returns true if no worker is in the driver and events may be waiting there.
    pub(crate) fn events_are_unattended(&self) -> bool {
        let Some(driver) = &self.driver else {
            return false;
        };
        self.driver_lock.is_deserted() && driver.has_sources()
    }
}
