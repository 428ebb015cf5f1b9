//! Enough messages, or enough time, make an invocation: `batch`.

use crate::run::state::triggers::TriggerCounts;
use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::waiting::WaitingMessages;

/// Makes one invocation of several messages.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// How many messages make one; 0: only the window does.
    pub(crate) size: usize,
    /// How long the oldest waits at most; 0: for ever.
    pub(crate) window: u64,
}

impl Batch {
    /// Returns when the window of what waits is over, if there is a window.
    pub(crate) fn window_end(&self, oldest: u64) -> Option<u64> {
        (self.window > 0).then(|| oldest.saturating_add(self.window))
    }

    /// Whether enough messages wait.
    pub(crate) fn is_full(&self, waiting: &WaitingMessages) -> bool {
        self.size > 0 && waiting.line().len() >= self.size
    }

    pub(crate) fn fire(
        &self,
        waiting: &mut WaitingMessages,
        now: u64,
        ready: &mut ReadyCalls,
        counts: &mut TriggerCounts,
    ) -> bool {
        let oldest = waiting.line().front().map(|message| message.arrived);
        let window_end = oldest.and_then(|oldest| self.window_end(oldest));
        let is_over = window_end.is_some_and(|end| now >= end);
        if !self.is_full(waiting) && !is_over {
            return false;
        }
        let count = match self.size {
            0 => waiting.line().len(),
            size => size.min(waiting.line().len()),
        };
        ready.push_all(waiting.drain_line(count));
        counts.batch_flush += 1;
        true
    }
}
