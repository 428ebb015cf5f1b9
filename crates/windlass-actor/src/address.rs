//! Speaking to a process: addresses, questions, and waiting for its end.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use windlass_core::queue::Letter;
use windlass_core::task::spend;
use windlass_runtime::time::timeout;
use windlass_sync::channel::oneshot;
use windlass_value::{Payload, Pid};

use crate::error::{AskError, SendError, SendErrorKind};
use crate::exit::{Exit, ExitReason};
use crate::host::Host;
use crate::shell::{Core, Resident, Signal, refused};

/// How long [`Address::ask`] waits for an answer.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Where messages of type `M` go: one process. Cheap to clone, and does not keep the process alive.
pub struct Address<M> {
    pub(crate) core: Arc<Core<M>>,
}

impl<M: Send + 'static> Address<M> {
    pub(crate) fn new(core: Arc<Core<M>>) -> Address<M> {
        Address { core }
    }

    /// Returns the PID of the process.
    pub fn pid(&self) -> Pid {
        self.core.shell.pid
    }

    /// The host of the process.
    pub fn host(&self) -> Host {
        Host(self.core.shell.host.clone())
    }

    /// Puts a message into the mailbox now, or hands it back: the mailbox is full, or the process
    /// has ended.
    #[inline]
    pub fn tell(&self, message: M) -> Result<(), SendError<M>> {
        self.core.post(message)
    }

    /// Puts a message into the mailbox, and waits for room if there is none.
    ///
    /// Senders that wait are served in the order of coming, and no [`tell`](Address::tell)
    /// overtakes them. A message of up to 1 KiB takes no bytes of the mailbox, so it does not wait
    /// behind those that wait for bytes.
    ///
    /// Cancel-safe: a dropped send has not sent anything.
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        let letter = Letter::new(message);
        // A sender that never has to wait gives way all the same.
        poll_fn(spend).await.made_progress();
        let letter = match self.core.post_letter(letter) {
            Ok(()) => return Ok(()),
            Err((letter, SendErrorKind::Full)) => letter,
            Err(error) => return Err(refused(error)),
        };
        let bytes = self.core.mail.weigh(letter.value());
        let posted = match self.core.mail.reserve(bytes).await {
            Ok(reserved) => self.core.post_reserved(letter, reserved),
            Err(kind) => Err((letter, kind)),
        };
        posted.map_err(refused)
    }

    /// Asks a question, whose answer comes through the [`Reply`] that it is made with, within 5 s.
    ///
    /// ```
    /// use windlass_actor::{Context, Host, Reply};
    ///
    /// # let runtime = windlass_runtime::Runtime::new()?;
    /// # runtime.block_on(async {
    /// enum Till { Take(u32), Sum(Reply<u32>) }
    ///
    /// let till = windlass_actor::spawn(|mut ctx: Context<Till>| async move {
    ///     let mut sum = 0;
    ///     while let Some(message) = ctx.recv().await {
    ///         match message {
    ///             Till::Take(money) => sum += money,
    ///             Till::Sum(reply) => reply.send(sum),
    ///         }
    ///     }
    /// })?;
    /// till.tell(Till::Take(5))?;
    /// assert_eq!(till.ask(Till::Sum).await?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn ask<R>(&self, question: impl FnOnce(Reply<R>) -> M) -> Result<R, AskError> {
        self.ask_within(ASK_TIMEOUT, question).await
    }

    /// As `ask`, with another deadline. It covers the wait for room in the mailbox, too.
    pub async fn ask_within<R>(
        &self,
        deadline: Duration,
        question: impl FnOnce(Reply<R>) -> M,
    ) -> Result<R, AskError> {
        let (reply, mut receiver) = Reply::new();
        let message = question(reply);
        let sent = match self.core.post(message) {
            Ok(()) => None,
            Err(SendError {
                message,
                kind: SendErrorKind::Full,
            }) => Some(message),
            Err(error) => return Err(undelivered(error)),
        };
        if sent.is_none()
            && let Some(answer) = answer_of_one_turn(&mut receiver).await
        {
            return answer;
        }
        let answer = async {
            if let Some(message) = sent {
                self.send(message).await.map_err(undelivered)?;
            }
            receiver.await.map_err(|_| AskError::NoAnswer)
        };
        timeout(deadline, answer)
            .await
            .unwrap_or(Err(AskError::TimedOut))
    }

    /// Cancels the process. That is an event: the process decides when it ends.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        self.core.shell.signal(Signal::Cancel(reason.into()));
    }

    /// Ends the process at its next step boundary.
    pub fn kill(&self) {
        self.core.shell.kill();
    }

    /// Resolves when the process has ended.
    pub fn ended(&self) -> Ended {
        Ended::new(self.pid(), Some(self.core.clone()))
    }

    /// Whether the process has not ended.
    pub fn is_alive(&self) -> bool {
        !self.core.shell.is_complete()
    }

    /// Messages that the process has not read; none: its mailbox does not count them.
    pub fn unread(&self) -> Option<usize> {
        self.core.mail.unread()
    }

    /// Messages that the mailbox has dropped.
    pub fn dropped(&self) -> u64 {
        self.core.mail.dropped()
    }
}

/// Returns the answer if it comes within one turn of all other tasks: most do, and need no timer.
async fn answer_of_one_turn<R>(receiver: &mut oneshot::Receiver<R>) -> Option<Result<R, AskError>> {
    let mut waited = false;
    poll_fn(|cx| match Pin::new(&mut *receiver).poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer.map_err(|_| AskError::NoAnswer))),
        Poll::Pending if waited => Poll::Ready(None),
        Poll::Pending => {
            waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

fn undelivered<M>(error: SendError<M>) -> AskError {
    match error.kind {
        // The question was dropped with the mailbox.
        SendErrorKind::NoProcess => AskError::NoAnswer,
        kind => AskError::Undelivered(kind),
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Address {
            core: self.core.clone(),
        }
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.core.shell.pid)
    }
}

/// The one-shot that answers a question.
pub struct Reply<R>(oneshot::Sender<R>);

impl<R> Reply<R> {
    /// Makes a reply and where its answer comes.
    pub(crate) fn new() -> (Reply<R>, oneshot::Receiver<R>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// Sends the answer. It is dropped if the asker no longer waits.
    pub fn send(self, answer: R) {
        let _ = self.0.send(answer);
    }

    /// Returns whether the asker still waits.
    pub fn is_wanted(&self) -> bool {
        !self.0.is_closed()
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

/// Waits for the end of a process. Any number may wait, also after it.
#[must_use = "futures do nothing unless awaited"]
pub struct Ended {
    pid: Pid,
    process: Option<Arc<dyn Resident>>,
    key: Option<u64>,
}

impl Ended {
    pub(crate) fn new(pid: Pid, process: Option<Arc<dyn Resident>>) -> Ended {
        Ended {
            pid,
            process,
            key: None,
        }
    }
}

impl Future for Ended {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Exit> {
        let Some(process) = &self.process else {
            return Poll::Ready(Exit {
                pid: self.pid,
                reason: ExitReason::NoProcess,
                value: Payload::Nil,
            });
        };
        match process.shell().wait_for_exit(self.key, cx.waker()) {
            Ok(exit) => {
                self.key = None;
                Poll::Ready(exit)
            }
            Err(key) => {
                self.key = Some(key);
                Poll::Pending
            }
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let (Some(process), Some(key)) = (&self.process, self.key) {
            process.shell().stop_waiting(key);
        }
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ended({})", self.pid)
    }
}
