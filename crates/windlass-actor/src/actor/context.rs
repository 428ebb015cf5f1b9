//! What an async process has of its own.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use windlass_core::task::spend;
use windlass_sync::CancellationToken;
use windlass_value::Pid;

use super::Event;
use super::subscription::Subscriptions;
use super::timers::Timers;
use crate::address::Address;
use crate::exit::{Exited, MonitorRef};
use crate::host::Host;
use crate::mail::{Mail, ReadBy, Reader};
use crate::shell::Core;
use crate::spawn::Spawn;

/// What an async process has of its own: its mailbox, its PID, its bonds.
pub struct Context<M> {
    pub(super) core: Arc<Core<M>>,
    reader: Reader<M>,
    /// The topics of all subscriptions; see [`Context::subscribe`].
    pub(super) subscriptions: Option<Box<Subscriptions>>,
    pub(super) stopping: bool,
    /// None: no timer was set yet.
    pub(super) timers: Option<Arc<Timers<M>>>,
}

impl<M: Send + 'static> Context<M> {
    pub(crate) fn new(core: Arc<Core<M>>) -> Context<M> {
        Context {
            core,
            reader: Reader::new(),
            subscriptions: None,
            stopping: false,
            timers: None,
        }
    }

    /// Returns the PID of this process.
    pub fn pid(&self) -> Pid {
        self.core.shell.pid
    }

    /// Returns the host of this process.
    pub fn host(&self) -> Host {
        Host(self.core.shell.host.clone())
    }

    /// Returns the address of this process.
    pub fn address(&self) -> Address<M> {
        Address::new(self.core.clone())
    }

    /// Waits for the next message. Returns `None` once the process is cancelled; the messages that
    /// are left then can be read with [`try_recv`](Context::try_recv).
    ///
    /// Cancel-safe: a dropped wait has taken nothing.
    pub async fn recv(&mut self) -> Option<M> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Context::recv), as a poll function.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<M>> {
        let spent = ready!(spend(cx));
        let next = match self.core.shell.is_cancelled() {
            true => None,
            false => Some(ready!(self.poll_taken(cx, Reader::take))),
        };
        spent.made_progress();
        Poll::Ready(next.flatten())
    }

    /// Takes the next message if the mailbox has one; never waits.
    pub fn try_recv(&mut self) -> Option<M> {
        self.reader.take(&self.core.mail, ReadBy::Another)
    }

    /// Waits for the next event: a cancel, the end of another process, or a message, in this order.
    ///
    /// Cancel-safe: a dropped wait has taken nothing.
    pub async fn event(&mut self) -> Event<M> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event<M>> {
        loop {
            if let Some(message) = ready!(self.poll_message(cx)) {
                return Poll::Ready(Event::Message(message));
            }
            match self.other_event() {
                Some(Ok(exited)) => return Poll::Ready(Event::Exit(*exited)),
                Some(Err(reason)) => return Poll::Ready(Event::Cancel(reason)),
                None => {}
            }
        }
    }

    /// Takes a message. Returns `None` if there is another event, which comes first.
    #[inline(always)]
    pub(super) fn poll_message(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<M>> {
        let spent = ready!(spend(cx));
        let shell = &self.core.shell;
        let message = if shell.has_notices() || shell.is_cancelled() && !self.stopping {
            None
        } else {
            ready!(self.poll_taken(cx, Reader::take))
        };
        spent.made_progress();
        Poll::Ready(message)
    }

    /// What is there instead of a message: the end of another, or the reason to stop. None: a
    /// monitor that was undone meanwhile.
    #[cold]
    pub(super) fn other_event(&mut self) -> Option<Result<Box<Exited>, Arc<str>>> {
        let shell = &self.core.shell;
        // Also if the task of another process asks, and this process has ended.
        if shell.is_cancelled() && !self.stopping || shell.is_complete() {
            self.stopping = true;
            return Some(Err(self.cancel_reason()));
        }
        shell.take_notice().map(|exited| Ok(Box::new(exited)))
    }

    /// Takes something out of the mailbox, or waits for mail. None: the process has ended.
    #[inline(always)]
    pub(super) fn poll_taken<T>(
        &mut self,
        cx: &mut TaskContext<'_>,
        mut take: impl FnMut(&mut Reader<M>, &Mail<M>, ReadBy) -> Option<T>,
    ) -> Poll<Option<T>> {
        let shell = &self.core.shell;
        let by = match shell.task() {
            Some(task) if task.is_woken_by(cx.waker()) => ReadBy::OwnTurn,
            _ => ReadBy::Another,
        };
        if let Some(taken) = take(&mut self.reader, &self.core.mail, by) {
            return Poll::Ready(Some(taken));
        }
        shell.set_waits_for_mail(true);
        if by == ReadBy::OwnTurn {
            return Poll::Pending;
        }
        // Mail wakes the task of the process; that task passes the wake-up on to the waker of a
        // reader in another task. The reader may be on another thread, so this looks once more.
        shell.set_foreign(cx.waker());
        match take(&mut self.reader, &self.core.mail, by) {
            Some(taken) => Poll::Ready(Some(taken)),
            None if self.core.shell.is_complete() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Resolves with the reason when the process is cancelled. Leaves its mail alone.
    pub async fn cancelled(&self) -> Arc<str> {
        let shell = &self.core.shell;
        poll_fn(|cx| {
            if shell.is_cancelled() {
                return Poll::Ready(());
            }
            if !shell
                .task()
                .is_some_and(|task| task.is_woken_by(cx.waker()))
            {
                shell.set_foreign(cx.waker());
                if shell.is_cancelled() {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
        self.cancel_reason()
    }

    /// Returns whether the process is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.core.shell.is_cancelled()
    }

    /// Returns the reason of the cancel.
    pub fn cancel_reason(&self) -> Arc<str> {
        let reason = self.core.shell.cancel_reason();
        reason.unwrap_or_else(|| "cancelled".into())
    }

    /// A token that is cancelled when the process has ended (not when it is cancelled; that is
    /// [`cancelled`](Context::cancelled)): for tasks that work for it.
    pub fn token(&self) -> CancellationToken {
        self.core.shell.context()
    }

    /// Ends the process normally after what it is doing now, if it is an [`Actor`](crate::Actor).
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Links this process to another: the end of either ends the other, unless it is normal. An
    /// async process that is cancelled and returns has ended normally; an [`Actor`](crate::Actor)
    /// and a supervisor have not.
    pub fn link(&self, other: Pid) {
        self.core.link(other);
    }

    /// Undoes a link.
    pub fn unlink(&self, other: Pid) {
        self.core.unlink(other);
    }

    /// Lets this process know of the end of another, exactly once; at once if that has ended.
    pub fn monitor(&self, other: Pid) -> MonitorRef {
        self.core.monitor(other)
    }

    /// Undoes a monitor; nothing comes from it any more.
    pub fn demonitor(&self, monitor: MonitorRef) {
        self.core.demonitor(monitor);
    }

    /// From now on the end of a linked process is an event, and does not end this one.
    pub fn trap_links(&self, traps: bool) {
        self.core.shell.trap_links(traps);
    }

    /// Returns the options of a process that is linked to this one.
    #[track_caller]
    pub fn linked(&self) -> Spawn {
        self.host().process().linked_to(self.pid())
    }

    /// Returns the options of a process whose end this one is notified of.
    #[track_caller]
    pub fn monitored(&self) -> Spawn {
        self.host().process().monitored_by(self.pid())
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.core.shell.pid)
    }
}
