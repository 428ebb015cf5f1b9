//! The timers of a component: event sources that fire by their period.

/// The timers of a component.
#[derive(Debug, Default)]
pub(crate) struct Timers(Vec<Timer>);

#[derive(Debug)]
struct Timer {
    period: u64,
    due: u64,
}

impl Timers {
    /// Makes timers of these periods; all are due at once.
    pub(crate) fn new(periods: impl Iterator<Item = u64>) -> Timers {
        Timers(periods.map(|period| Timer { period, due: 0 }).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns when the first of them fires next.
    pub(crate) fn next(&self) -> Option<u64> {
        self.0.iter().map(|timer| timer.due).min()
    }

    /// Whether one of them fires now. Periods that have passed unseen are skipped; the rhythm
    /// stays.
    pub(crate) fn fire(&mut self, now: u64) -> bool {
        let mut fires = false;
        for timer in &mut self.0 {
            if timer.due <= now {
                fires = true;
                let passed = ((now - timer.due) / timer.period).saturating_add(1);
                timer.due = timer
                    .due
                    .saturating_add(passed.saturating_mul(timer.period));
            }
        }
        fires
    }
}
