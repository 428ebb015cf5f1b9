//! Each message makes an invocation: `any_input` and its relatives.

use crate::component::Received;
use crate::run::state::triggers::TriggerCounts;
use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::waiting::WaitingMessages;

/// Makes an invocation of each message.
#[derive(Debug, Default)]
pub(crate) struct EachMessage {
    /// Messages without a timestamp make none.
    pub(crate) needs_time: bool,
    /// There is a least time between two invocations, so one is made at a time.
    pub(crate) one_at_a_time: bool,
}

impl EachMessage {
    /// Whether a message may wait; counts one that may not.
    pub(crate) fn admits(&self, message: &Received, counts: &mut TriggerCounts) -> bool {
        let admitted = !self.needs_time || message.event_time().is_some();
        counts.condition_suppressed += u64::from(!admitted);
        admitted
    }

    pub(crate) fn fire(&self, waiting: &mut WaitingMessages, ready: &mut ReadyCalls) -> bool {
        let most = match self.one_at_a_time {
            false => waiting.line().len(),
            true => 1,
        };
        for message in waiting.drain_line(most) {
            ready.push_one(message);
        }
        true
    }
}
