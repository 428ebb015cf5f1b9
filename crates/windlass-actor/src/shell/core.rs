//! The shared half of a process.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use windlass_core::queue::{Letter, Mailbox};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU32};
use windlass_value::{Payload, Pid};

use super::{CarriedMessage, Resident, Shell, carry};
use crate::bonds::Bonds;
use crate::error::{SendError, SendErrorKind};
use crate::exit::MonitorRef;
use crate::host::HostShared;
use crate::mail::{Mail, PostOutcome, RefusedLetter, Reservation};
use crate::message::Message;

/// The shared half of a process that takes messages of type `M`.
pub(crate) struct Core<M> {
    pub(crate) shell: Shell,
    pub(crate) mail: Mail<M>,
}

impl<M: Send + 'static> Core<M> {
    pub(crate) fn new(pid: Pid, host: Arc<HostShared>, mail: Mail<M>) -> Core<M> {
        Core {
            shell: Shell {
                pid,
                host,
                signals: Mailbox::new(),
                task: OnceLock::new(),
                flags: AtomicU32::new(0),
                waits_for_mail: AtomicBool::new(false),
                bonds: Mutex::new(Bonds::Bare),
            },
            mail,
        }
    }

    /// Puts a message in if the policy lets it in now, and wakes the process.
    #[inline(always)]
    pub(crate) fn post(&self, message: M) -> Result<(), SendError<M>> {
        self.post_letter(Letter::new(message)).map_err(refused)
    }

    /// Puts a letter in as `post` does.
    #[inline(always)]
    pub(crate) fn post_letter(&self, letter: Letter<M>) -> Result<(), RefusedLetter<M>> {
        let posted = self.mail.try_post(letter)?;
        self.wake_for(posted);
        Ok(())
    }

    /// Puts a letter in as `post` does, with room that was waited for.
    pub(crate) fn post_reserved(
        &self,
        letter: Letter<M>,
        reserved: Reservation<'_>,
    ) -> Result<(), RefusedLetter<M>> {
        let posted = self.mail.post_reserved(letter, reserved)?;
        self.wake_for(posted);
        Ok(())
    }

    #[inline(always)]
    fn wake_for(&self, posted: PostOutcome) {
        match posted {
            PostOutcome::First => self.shell.wake(),
            PostOutcome::Behind | PostOutcome::Dropped => {}
        }
    }

    /// Links this process to another.
    pub(crate) fn link(self: &Arc<Self>, other: Pid) {
        let own: Arc<dyn Resident> = self.clone();
        self.shell.host.link(&own, other);
    }

    /// Undoes a link.
    pub(crate) fn unlink(&self, other: Pid) {
        self.shell.host.unlink(self, other);
    }

    /// Lets this process know of the end of another.
    pub(crate) fn monitor(self: &Arc<Self>, other: Pid) -> MonitorRef {
        let own: Arc<dyn Resident> = self.clone();
        self.shell.host.monitor(&own, other)
    }

    /// Undoes a monitor.
    pub(crate) fn demonitor(&self, monitor: MonitorRef) {
        self.shell.host.demonitor(self, monitor);
    }
}

/// Hands a refused message back.
#[cold]
pub(crate) fn refused<M>((letter, kind): RefusedLetter<M>) -> SendError<M> {
    SendError {
        message: letter.open(),
        kind,
    }
}

impl<M: Send + 'static> Resident for Core<M> {
    fn shell(&self) -> &Shell {
        &self.shell
    }

    fn deliver(&self, message: Message) -> Result<(), SendError<Message>> {
        // Where it is the very type, it is moved; other processes understand what was made for
        // them.
        let mut message = Some(message);
        if let Some(same) = (&mut message as &mut dyn Any).downcast_mut::<Option<M>>()
            && let Some(message) = same.take()
        {
            return self.post(message).map_err(|error| SendError {
                kind: error.kind,
                message: *(Box::new(error.message) as Box<dyn Any>)
                    .downcast()
                    .expect("it is the same type"),
            });
        }
        let message = message.expect("it was not taken");
        let (from, topic) = (message.from, message.topic);
        let back = |payload, kind| SendError {
            message: Message {
                from,
                topic: topic.clone(),
                payload,
            },
            kind,
        };
        let carried = match message.payload.take::<CarriedMessage<M>>() {
            Ok(carried) => carried,
            Err(payload) => return Err(back(payload, SendErrorKind::NotUnderstood)),
        };
        let Some(value) = carried.take() else {
            return Err(back(Payload::Nil, SendErrorKind::NotUnderstood));
        };
        self.post(value)
            .map_err(|error| back(carry(error.message), error.kind))
    }

    fn unread(&self) -> Option<usize> {
        self.mail.unread()
    }

    fn dropped(&self) -> u64 {
        self.mail.dropped()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
