//! One message of every input, of the same time, makes an invocation: `time_sync`.

use crate::component::Received;
use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::waiting::WaitingMessages;
use crate::run::state::triggers::{TriggerCounts, all_inputs};

/// Drops the oldest of the inputs' messages until all are of the same time.
#[derive(Debug, Default)]
pub(crate) struct TimeSync {
    /// How far apart the times may be.
    pub(crate) slop: i64,
    /// Whether all inputs are of one clock domain; otherwise their times cannot be compared.
    pub(crate) is_comparable: bool,
}

impl TimeSync {
    pub(crate) fn fire(
        &self,
        waiting: &mut WaitingMessages,
        ready: &mut ReadyCalls,
        counts: &mut TriggerCounts,
    ) -> bool {
        loop {
            let mut span: Option<(i64, i64, usize)> = None;
            for port in 0..waiting.ports() {
                let Some(front) = waiting.front(port) else {
                    return false;
                };
                let Some(time) = self.comparable_time(front) else {
                    return all_inputs::fire(waiting, ready);
                };
                span = Some(match span {
                    None => (time, time, port),
                    Some((least, most, _)) if time < least => (time, most, port),
                    Some((least, most, oldest)) => (least, most.max(time), oldest),
                });
            }
            let Some((least, most, oldest)) = span else {
                return false;
            };
            if most.saturating_sub(least) <= self.slop {
                return all_inputs::fire(waiting, ready);
            }
            waiting.drop_front(oldest);
            counts.time_sync_drop += 1;
        }
    }

    /// Returns the time of a message, if it can be compared with those at the other inputs.
    fn comparable_time(&self, message: &Received) -> Option<i64> {
        message.event_time().filter(|_| self.is_comparable)
    }
}
