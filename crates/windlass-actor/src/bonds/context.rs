//! What ends with the code of a process: its token and its timers.

use windlass_core::sync::atomic::Ordering;
use windlass_core::task::AbortHandle;
use windlass_sync::CancellationToken;

use crate::shell::{LEAVING, Shell};

impl Shell {
    /// What ends with the process, or with its code when that is upgraded.
    pub(crate) fn context(&self) -> CancellationToken {
        let context = self.with_ties(|ties| {
            let context = ties.context.get_or_insert_default().clone();
            (context, self.is_leaving())
        });
        let (context, is_over) = context.unwrap_or_else(|| (CancellationToken::new(), true));
        if is_over {
            // Not under the lock: it wakes.
            context.cancel();
        }
        context
    }

    /// The code is another one from now on.
    pub(crate) fn end_context(&self) {
        let ended = self
            .bonds
            .lock()
            .ties_if_any()
            .map(|ties| (ties.context.take(), std::mem::take(&mut ties.timers)));
        if let Some((context, timers)) = ended {
            context.iter().for_each(CancellationToken::cancel);
            timers.into_values().for_each(|timer| timer.abort());
        }
    }

    /// The process is on its way out: it gets no names, groups and contexts any more.
    pub(crate) fn leave(&self) {
        self.flags.fetch_or(LEAVING, Ordering::AcqRel);
        self.end_context();
    }

    /// Asked under the lock of the bonds. The flag is set before that lock is taken to empty what
    /// is there.
    pub(super) fn is_leaving(&self) -> bool {
        self.flags.load(Ordering::Acquire) & LEAVING != 0
    }

    pub(crate) fn add_timer(&self, task: AbortHandle) -> u64 {
        let added = self.with_ties(|ties| {
            let key = ties.new_key();
            if self.is_leaving() {
                return Err(key);
            }
            ties.timers.retain(|_, timer| !timer.is_finished());
            ties.timers.insert(key, task.clone());
            Ok(key)
        });
        match added {
            Some(Ok(key)) => key,
            Some(Err(key)) => {
                task.abort();
                key
            }
            None => {
                task.abort();
                0
            }
        }
    }

    pub(crate) fn stop_timer(&self, key: u64) -> bool {
        let timer = self.with_ties(|ties| ties.timers.remove(&key)).flatten();
        timer.inspect(AbortHandle::abort).is_some()
    }
}
