//! Each message that is not too late makes an invocation: `watermark`.

use crate::component::Received;
use crate::run::state::triggers::TriggerCounts;
use windlass_plan::model::ClockDomain;

/// Drops messages whose event time is too far behind the highest of their clock domain.
#[derive(Debug, Default)]
pub(crate) struct Watermark {
    lateness: i64,
    /// The highest event time of each domain.
    highest: [Option<i64>; ClockDomain::ALL.len()],
    domain_of: Vec<(u32, ClockDomain)>,
}

impl Watermark {
    /// `domain_of` has the clock domain of each edge.
    pub(crate) fn new(lateness: i64, domain_of: Vec<(u32, ClockDomain)>) -> Watermark {
        Watermark {
            lateness,
            domain_of,
            ..Watermark::default()
        }
    }

    /// Whether a message may wait; counts one that may not.
    pub(crate) fn admits(&mut self, message: &Received, counts: &mut TriggerCounts) -> bool {
        let too_late = self.is_too_late(message);
        counts.late_drop += u64::from(too_late);
        !too_late
    }

    fn is_too_late(&mut self, message: &Received) -> bool {
        let Some(time) = message.event_time() else {
            return false;
        };
        let domain = self
            .domain_of
            .iter()
            .find(|(edge, _)| *edge == message.route.edge)
            .map_or(ClockDomain::Steady, |(_, domain)| *domain);
        let highest = &mut self.highest[domain as usize];
        let seen = highest.map_or(time, |seen| seen.max(time));
        *highest = Some(seen);
        time < seen.saturating_sub(self.lateness)
    }
}
