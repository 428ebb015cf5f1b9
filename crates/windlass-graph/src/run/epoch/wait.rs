//! When the next epoch begins: at once, when time makes something ready, or when something comes
//! from outside.

use windlass_sync::CancellationToken;

use crate::run::outside::doors::{wait_here, wait_outside};
use crate::run::run_state::RunState;

impl RunState {
    /// Sleeps until there is something to do, until the run is asked to stop, or until its time is
    /// over; then says which lanes are due. `idle`: nothing ran in the last epoch.
    pub(crate) async fn wait(&mut self, stop: &CancellationToken, left: Option<u64>, idle: bool) {
        let begun = self.lanes.elapsed();
        let end = left.map_or(u64::MAX, |left| begun.saturating_add(left));
        let bell = self.inbox.bell.clone();
        while !stop.is_cancelled() {
            let next = self.next_epoch(idle).map_or(end, |next| next.min(end));
            let now = self.lanes.elapsed();
            if now >= next {
                break;
            }
            // A request to stop wakes the run up.
            let left = (next < u64::MAX).then(|| next - now);
            match left.filter(|_| self.lanes.has_driver()) {
                Some(left) => wait_here(&bell, stop, left),
                None => wait_outside(&bell, stop, left).await,
            }
        }
        if self.lanes.is_real() {
            self.lanes.look_at_clock(begun);
        }
    }

    /// Returns when the next epoch is to begin; none: when something comes from outside.
    fn next_epoch(&self, idle: bool) -> Option<u64> {
        const AT_ONCE: Option<u64> = Some(0);
        let (lanes, members, beside) = (&self.lanes, &self.members, self.loops.beside());
        let open = !members.doors().is_empty() || lanes.wait_for_steps();
        let asked = lanes.have_steps() || self.inbox.is_asked();
        if open && (asked || members.has_news() || self.channels.has_deferred()) {
            return AT_ONCE;
        }
        if lanes.is_real() && beside.has_finished() {
            return AT_ONCE;
        }
        let instant = lanes.is_real().then(|| self.next_instant()).flatten();
        if instant.is_some() {
            return instant;
        }
        let expects = || members.expect_news() || lanes.wait_for_steps() || !beside.is_empty();
        // Simulated time passes in epochs.
        let passes = || !lanes.is_real() && self.follows_time();
        match idle && expects() && !passes() {
            true => None,
            false => AT_ONCE,
        }
    }

    /// Whether time will make something run.
    fn follows_time(&self) -> bool {
        let mut running = (0..self.members.len()).filter(|&c| self.members.may_finish(c));
        running.any(|c| self.triggers.next_wake(c).is_some()) || !self.loops.beside().is_empty()
    }

    /// Whether messages wait for nothing but time.
    pub(crate) fn waits_for_time(&self) -> bool {
        self.triggers.wait_for_time() || !self.loops.beside().is_empty()
    }

    /// Returns the next instant at which something is to be done.
    fn next_instant(&self) -> Option<u64> {
        let lanes = 0..self.lanes.times().len();
        let windows = lanes.filter_map(|place| self.nearest_wake(place));
        self.lanes.next_tick().into_iter().chain(windows).min()
    }

    /// Returns when time makes something of this lane ready, if nothing is.
    pub(crate) fn nearest_wake(&self, place: usize) -> Option<u64> {
        let lane = self.lanes.lane(place);
        if lane.has_rate() {
            return None;
        }
        let running = lane.timed().iter().filter(|&&c| self.members.may_finish(c));
        let triggers = running.filter_map(|&c| self.triggers.next_wake(c));
        let loops = lane.paced_loops().iter();
        let loops = loops.filter(|&&composite| self.loop_has_work(composite));
        let plan = &self.tables.plan;
        let loops = loops.filter_map(|&composite| self.loops.next_wake(plan, composite));
        triggers.chain(loops).min()
    }

    /// Returns a number that changes as long as the sources that come to an end get on: they
    /// publish, or time passes for them. None if all of them have ended.
    pub(crate) fn source_progress(&self) -> Option<u64> {
        let rows = self.tables.components.iter().enumerate();
        let mut clocks = rows
            .filter(|(c, row)| row.is_finite_source && self.members.may_finish(*c))
            .map(|(_, row)| self.lanes.time(row.lane))
            .peekable();
        clocks.peek()?;
        Some(clocks.fold(self.calls.source_publishes(), u64::wrapping_add))
    }
}
