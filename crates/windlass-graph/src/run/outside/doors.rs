//! What comes from outside: the run looks at the doors of its components when an epoch begins, and waits at them
//! when it has nothing else to do.

use std::time::Duration;

use windlass_runtime::time::precise::block_until_or;
use windlass_runtime::time::{Instant, timeout};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

use crate::run::machine::{Machine, Member};
use crate::run::state::trigger::From;

impl Member {
    /// Whether it can be invoked.
    #[inline]
    pub(crate) fn runs(&self) -> bool {
        self.active && !self.finished && !self.held
    }

    /// Whether invocations that were collected together still come.
    pub(crate) fn may_finish(&self) -> bool {
        self.active && !self.finished
    }

    /// Sees whether the component wants to be invoked; what else has come counts from the next epoch on.
    pub(crate) fn look_held(&mut self, played_back: bool) {
        self.held = match &self.door {
            Some(door) => door.peek().held,
            None => played_back,
        };
    }

    /// Sees what the component, or somebody outside, has said since.
    pub(crate) fn look_outside(&mut self) {
        if let Some(door) = &self.door {
            let seen = door.look();
            self.woken |= seen.woken;
            self.held = seen.held;
        }
    }
}

impl Machine {
    /// An epoch begins: what is seen at the doors now counts for all of it.
    pub(crate) fn look_outside(&mut self) {
        for &component in &self.doors {
            self.members[component].look_outside();
        }
    }

    /// What makes a component run from outside; a knock counts once.
    pub(crate) fn outside_of(&mut self, component: usize) -> From {
        let member = &mut self.members[component];
        if !member.has_door {
            return From::Nowhere;
        }
        let woken = std::mem::take(&mut member.woken);
        let lane = &self.lanes[self.tables.components[component].lane];
        match lane.cadence_on_clock.is_some() && !woken {
            // Its lane's ticks are what counts.
            true => From::Nowhere,
            false => From::Door { woken },
        }
    }

    /// Whether something has come that no epoch has seen.
    pub(crate) fn has_news(&self) -> bool {
        let mut members = self.doors.iter().map(|&component| &self.members[component]);
        members.any(|member| {
            let seen = member.door.as_ref().map(|door| door.peek());
            let resumed = seen.is_some_and(|seen| member.held && !seen.held);
            member.may_finish() && (member.woken || seen.is_some_and(|seen| seen.woken) || resumed)
        })
    }

    /// Whether more may come from outside.
    pub(crate) fn expects_news(&self) -> bool {
        let members = self.doors.iter().map(|&component| &self.members[component]);
        // Of one that is finished or was deactivated nothing more can come.
        let mut members = members.filter(|member| member.may_finish());
        members.any(|member| member.held || member.door.as_ref().is_some_and(|d| d.is_open()))
    }
}

/// Sleeps until somebody knocks, asks to stop, or the time is over; `None`: there is no such time.
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
