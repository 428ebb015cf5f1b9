//! Messages, exits and commands between a guest and its process.

use std::collections::VecDeque;

use windlass_actor::{Exited, Message, Pattern};
use windlass_core::sync::MutexGuard;
use windlass_core::sync::atomic::Ordering;
use windlass_sync::park::Generation;

use super::GuestShared;
use crate::reason::Custom;

/// What arrived at the process and is not the guest's yet.
#[derive(Default)]
pub(crate) struct GuestMail {
    /// Waits for messages, the oldest first.
    pub(crate) receives: Vec<Receive>,
    /// Waits for the ends of others.
    pub(crate) exits: Vec<Generation>,
    /// Messages that were taken for a wait that had ended meanwhile: they come before the mailbox.
    pub(crate) returned: VecDeque<Message>,
    pub(crate) notices: VecDeque<Exited>,
    /// Commands that its process has to ask for.
    pub(crate) customs: Vec<(Generation, Custom)>,
}

impl GuestMail {
    /// Returns whether no wait needs the process.
    fn is_quiet(&self) -> bool {
        self.receives.is_empty() && self.exits.is_empty() && self.customs.is_empty()
    }
}

/// A wait for a message.
pub(crate) struct Receive {
    pub(crate) generation: Generation,
    pub(crate) pattern: Pattern,
    /// It ends at once if there is none.
    pub(crate) now: bool,
}

impl GuestShared {
    /// Adds something that the process has to look for or to ask for.
    pub(crate) fn want(&self, add: impl FnOnce(&mut GuestMail)) {
        let mut mail = self.mail.lock();
        add(&mut mail);
        self.wants_mail.store(true, Ordering::Relaxed);
    }

    /// What the process has to look for; None if that is nothing.
    pub(crate) fn wanted_mail(&self) -> Option<MutexGuard<'_, GuestMail>> {
        // Relaxed: a caller of `want` requests a step of the process after that, or is the thread
        // of the process.
        if !self.wants_mail.load(Ordering::Relaxed) {
            return None;
        }
        let mail = self.mail.lock();
        if mail.is_quiet() {
            self.wants_mail.store(false, Ordering::Relaxed);
            return None;
        }
        Some(mail)
    }

    pub(super) fn forget_mail(&self, generation: Generation) {
        let mut mail = self.mail.lock();
        mail.receives.retain(|wait| wait.generation != generation);
        mail.exits.retain(|g| *g != generation);
    }
}
