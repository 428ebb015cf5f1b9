//! The newest message of every input that has one makes an invocation: `debounce`, and `coalesce`.

use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::waiting::WaitingMessages;

/// Makes an invocation once no message has come for a while.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// How long no message may come; 0: it does not matter.
    pub(crate) quiet_for: u64,
}

impl Newest {
    /// Returns when it has been quiet for long enough, if that matters.
    pub(crate) fn window_end(&self, last_arrival: u64) -> Option<u64> {
        (self.quiet_for > 0).then(|| last_arrival.saturating_add(self.quiet_for))
    }

    pub(crate) fn fire(
        &self,
        waiting: &mut WaitingMessages,
        now: u64,
        ready: &mut ReadyCalls,
    ) -> bool {
        if now < waiting.last_arrival().saturating_add(self.quiet_for) {
            return false;
        }
        ready.push_all(waiting.take_fronts());
        true
    }
}
