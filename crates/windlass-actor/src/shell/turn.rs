//! The turns of the runner.

use windlass_core::queue::Inbox;
use windlass_core::sync::atomic::Ordering;

use super::{BLOCKED, CANCELLED, FOREIGN, KILLED, RUNNING, Shell, Signal};
use crate::exit::{Bond, ExitReason, MonitorRef};

/// How a turn of a process may begin.
pub(crate) enum Turn {
    /// It may step.
    Go,
    /// It ends instead.
    End(ExitReason),
}

impl Shell {
    /// The runner is about to step.
    #[inline]
    pub(crate) fn begin_step(&self) -> Turn {
        // AcqRel: one word with KILLED, see the head of `shell/mod.rs`.
        let before = self.flags.fetch_or(RUNNING, Ordering::AcqRel);
        if before & (KILLED | FOREIGN) != 0 {
            return self.begin_rarely(before);
        }
        Turn::Go
    }

    #[cold]
    fn begin_rarely(&self, before: u32) -> Turn {
        if before & KILLED != 0 {
            self.flags.fetch_and(!RUNNING, Ordering::AcqRel);
            return Turn::End(ExitReason::Killed);
        }
        self.wake_foreign();
        Turn::Go
    }

    /// The step has returned; the process now waits for something else than messages, or not.
    #[inline]
    pub(crate) fn end_step(&self, blocked: bool) {
        // Relaxed: only the runner changes these two.
        let was_blocked = self.flags.load(Ordering::Relaxed) & BLOCKED != 0;
        let changed = if was_blocked == blocked { 0 } else { BLOCKED };
        self.flags.fetch_xor(RUNNING | changed, Ordering::AcqRel);
    }

    /// Takes the next signal that the process itself has to see; handles the others. The error ends
    /// it.
    pub(crate) fn next_signal(
        &self,
        inbox: &mut Inbox<Signal>,
    ) -> Result<Option<Signal>, ExitReason> {
        loop {
            let next = inbox.pop().or_else(|| {
                inbox.fetch(&self.signals);
                inbox.pop()
            });
            match next {
                None => return Ok(None),
                Some(Signal::Blank) => {}
                Some(Signal::Cancel(_)) if self.is_cancelled() => {}
                Some(Signal::Cancel(reason)) => {
                    self.with_ties(|ties| ties.cancel_reason = Some(reason.clone()));
                    self.flags.fetch_or(CANCELLED, Ordering::Relaxed);
                    return Ok(Some(Signal::Cancel(reason)));
                }
                Some(Signal::Exit(exited)) => {
                    let stays = match exited.by {
                        Bond::Monitor(MonitorRef(id)) => self
                            .with_ties(|ties| ties.watching.remove(&id).is_some())
                            .unwrap_or(false),
                        Bond::Link if !self.end_link(exited.pid) => false,
                        Bond::Link if self.traps_links() => true,
                        Bond::Link if exited.reason.is_normal() => false,
                        Bond::Link => return Err(exited.reason),
                    };
                    if stays {
                        return Ok(Some(Signal::Exit(exited)));
                    }
                }
                Some(complete) => return Ok(Some(complete)),
            }
        }
    }
}
