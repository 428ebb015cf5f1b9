//! What an async process looks at between messages.

use std::task::Waker;

use windlass_core::sync::atomic::Ordering;
use windlass_core::task::contain;

use super::{FOREIGN, NOTICES, Shell};
use crate::exit::Exited;

impl Shell {
    /// Relaxed: for display; only the runner's turn changes it.
    #[inline]
    pub(crate) fn set_waits_for_mail(&self, waits: bool) {
        self.waits_for_mail.store(waits, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn waits_for_mail(&self) -> bool {
        self.waits_for_mail.load(Ordering::Relaxed)
    }

    /// Keeps an exit until the process asks for it.
    pub(crate) fn keep_notice(&self, exited: Exited) {
        self.with_ties(|ties| {
            ties.notices.push_back(exited);
            // Relaxed, under the lock: for the runner's own task.
            self.flags.fetch_or(NOTICES, Ordering::Relaxed);
        });
    }

    #[inline]
    pub(crate) fn has_notices(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & NOTICES != 0
    }

    pub(crate) fn take_notice(&self) -> Option<Exited> {
        let mut bonds = self.bonds.lock();
        let notices = bonds.ties_if_any().map(|ties| &mut ties.notices);
        let (notice, is_last) = notices.map_or((None, true), |notices| {
            let notice = notices.pop_front();
            (notice, notices.is_empty())
        });
        if is_last {
            // Under the lock: one that is added meanwhile sets it again.
            self.flags.fetch_and(!NOTICES, Ordering::Relaxed);
        }
        notice
    }

    /// Keeps the waker of another task that waits for mail: a turn of the process's own task does
    /// not reach that task.
    pub(crate) fn set_foreign(&self, waker: &Waker) {
        // A waker's clone and drop may run anything: before the lock, and after it.
        let mut waker = Some(waker.clone());
        self.with_ties(|ties| std::mem::swap(&mut ties.foreign, &mut waker));
        drop(waker);
        self.flags.fetch_or(FOREIGN, Ordering::AcqRel);
    }

    pub(super) fn wake_foreign(&self) {
        // Before the waker is taken: one that is set meanwhile sets the flag again.
        self.flags.fetch_and(!FOREIGN, Ordering::AcqRel);
        let waker = self
            .bonds
            .lock()
            .ties_if_any()
            .and_then(|ties| ties.foreign.take());
        if let Some(waker) = waker {
            contain(|| waker.wake());
        }
    }
}
