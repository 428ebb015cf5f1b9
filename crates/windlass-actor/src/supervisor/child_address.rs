//! The address of a child that survives its restarts.
//!
//! # States
//! A slot says who the child is at the moment. The supervisor that starts the child writes the
//! slot, addresses read it and wait for its changes: it is a `watch` channel, and this module has
//! no atomics and no locks of its own.
//!
//! | from | what happens | to |
//! |---|---|---|
//! | any | a supervisor is about to start the child, now or after a pause: it owns the slot | waiting |
//! | waiting | the child's process is there | running |
//! | running | that process has ended, or is being stopped | waiting |
//! | any | the owner starts the child no more: it gave up, ended, forgot the child, or the child is done | over |
//!
//! Only the owner makes the last two changes, so a supervisor that ends late does not take the slot
//! from one that has the child now. `over` is no end: the supervisor itself may be restarted by its
//! own, and starts the child again.
//!
//! A sender that finds a process ended before the supervisor knows gets its message back from the
//! mailbox, and waits until the slot holds another process than that. So no message is sent twice,
//! and none reaches a process that this spec did not start.
//!
//! Rejected: an address that looks up a name for each message. Between two incarnations another
//! process can take the name, nothing tells the sender when the next one comes, and nothing tells
//! it that none will come.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use windlass_core::queue::Letter;
use windlass_runtime::time::{Instant, timeout, timeout_at};
use windlass_sync::channel::watch;
use windlass_value::Pid;

use crate::address::{ASK_TIMEOUT, Address, Reply};
use crate::destination::Destination;
use crate::error::{AskError, SendError, SendErrorKind};
use crate::mail::RefusedLetter;
use crate::shell::refused;

struct Slot<M> {
    owner: Option<Pid>,
    state: State<M>,
}

enum State<M> {
    Waiting,
    Running(Address<M>),
    Over,
}

/// The writing end of a slot.
pub(super) struct Publisher<M>(watch::Sender<Slot<M>>);

/// What a supervisor says of a child with messages of any type.
pub(super) trait Publish: Send + Sync {
    /// This supervisor starts the child.
    fn wait(&self, owner: Pid);
    /// The process of the child has ended, or is being stopped.
    fn pause(&self, owner: Pid);
    /// This supervisor starts the child no more.
    fn end(&self, owner: Pid);
}

impl<M: Send + 'static> Publisher<M> {
    pub(super) fn new() -> (Publisher<M>, ChildAddress<M>) {
        let (sender, slot) = watch::channel(Slot {
            owner: None,
            state: State::Waiting,
        });
        (Publisher(sender), ChildAddress { slot })
    }

    /// The process of the child is there.
    pub(super) fn run(&self, address: Address<M>) {
        self.0
            .send_modify(|slot| slot.state = State::Running(address));
    }

    fn modify(&self, owner: Pid, modify: impl FnOnce(&mut State<M>) -> bool) {
        self.0
            .send_if_modified(|slot| slot.owner == Some(owner) && modify(&mut slot.state));
    }
}

impl<M: Send + 'static> Publish for Publisher<M> {
    fn wait(&self, owner: Pid) {
        self.0.send_modify(|slot| {
            slot.owner = Some(owner);
            slot.state = State::Waiting;
        });
    }

    fn pause(&self, owner: Pid) {
        self.modify(owner, |state| {
            let runs = matches!(state, State::Running(_));
            if runs {
                *state = State::Waiting;
            }
            runs
        });
    }

    fn end(&self, owner: Pid) {
        self.modify(owner, |state| {
            *state = State::Over;
            true
        });
    }
}

/// Where messages to a child of a supervisor go: to the process that it is at the moment. Made by
/// [`ChildSpec::addressed`](super::ChildSpec::addressed). Cheap to clone.
///
/// Between two incarnations [`tell`](ChildAddress::tell) hands the message back, and the others
/// wait for the next one. When the supervisor starts the child no more, because it gave up, ended,
/// was told to stop the child, or the child is done, all that wait get
/// [`SendErrorKind::Abandoned`]. A message that one incarnation has accepted and did not read is
/// lost with it; its questions have `NoAnswer`.
///
/// ```
/// use windlass_actor::supervisor::{ChildSpec, Strategy, Supervisor};
/// use windlass_actor::{ActorError, Context, Host, Reply};
///
/// enum Line { Crash, Sum(u32, Reply<u32>) }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let (child, sums) = ChildSpec::addressed("sums", |spawn| {
///     spawn.spawn(|mut ctx: Context<Line>| async move {
///         let mut sum = 0;
///         while let Some(line) = ctx.recv().await {
///             match line {
///                 Line::Crash => return Err(ActorError::new("crashed")),
///                 Line::Sum(number, reply) => { sum += number; reply.send(sum) }
///             }
///         }
///         Ok(())
///     })
/// });
/// let supervisor = Supervisor::new(Strategy::OneForOne).child(child).start(&Host::current()?)?;
/// assert_eq!(sums.ask(|reply| Line::Sum(3, reply)).await?, 3);
/// let first = sums.current().expect("it runs");
/// sums.send(Line::Crash).await?;
/// first.ended().await;
/// // Waits for the next incarnation, which begins anew.
/// assert_eq!(sums.ask(|reply| Line::Sum(4, reply)).await?, 4);
/// supervisor.cancel("enough");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChildAddress<M> {
    slot: watch::Receiver<Slot<M>>,
}

impl<M: Send + 'static> ChildAddress<M> {
    /// Returns the address of the process that the child is at the moment; none between two of
    /// them. That process may have ended already.
    pub fn current(&self) -> Option<Address<M>> {
        match &self.slot.borrow().state {
            State::Running(address) => Some(address.clone()),
            State::Waiting | State::Over => None,
        }
    }

    /// Puts a message into the mailbox now, or hands it back: the mailbox is full, the child is
    /// being restarted ([`SendErrorKind::Restarting`]), or it is started no more
    /// ([`SendErrorKind::Abandoned`]).
    pub fn tell(&self, message: M) -> Result<(), SendError<M>> {
        let address = match &self.slot.borrow().state {
            State::Running(address) => Ok(address.clone()),
            State::Over => Err(SendErrorKind::Abandoned),
            State::Waiting if self.slot.has_changed().is_err() => Err(SendErrorKind::Abandoned),
            State::Waiting => Err(SendErrorKind::Restarting),
        };
        let sent = match address {
            Ok(address) => address.tell(message),
            Err(kind) => Err(SendError { message, kind }),
        };
        sent.map_err(|error| SendError {
            message: error.message,
            kind: match error.kind {
                // Its supervisor does not know yet.
                SendErrorKind::NoProcess => SendErrorKind::Restarting,
                kind => kind,
            },
        })
    }

    /// Puts a message into the mailbox. Waits for room if there is none, and for the next
    /// incarnation if the child is being restarted.
    ///
    /// Cancel-safe: a dropped send has not sent anything.
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        let sent = self.deliver(Letter::new(message), None).await;
        sent.map_err(refused)
    }

    /// As [`send`](ChildAddress::send), for so long at most: then the message is handed back with
    /// [`SendErrorKind::TimedOut`].
    pub async fn send_within(&self, limit: Duration, message: M) -> Result<(), SendError<M>> {
        let deadline = Instant::now() + limit;
        let sent = self.deliver(Letter::new(message), Some(deadline)).await;
        sent.map_err(refused)
    }

    /// Asks a question within 5 s, the wait for the next incarnation included. A question that was
    /// accepted is not asked again: if the process ends then, there is no answer.
    pub async fn ask<R>(&self, question: impl FnOnce(Reply<R>) -> M) -> Result<R, AskError> {
        self.ask_within(ASK_TIMEOUT, question).await
    }

    /// As [`ask`](ChildAddress::ask), with another deadline.
    pub async fn ask_within<R>(
        &self,
        deadline: Duration,
        question: impl FnOnce(Reply<R>) -> M,
    ) -> Result<R, AskError> {
        let (reply, answer) = Reply::new();
        let letter = Letter::new(question(reply));
        let answered = async {
            let sent = self.deliver(letter, None).await;
            sent.map_err(|(_, kind)| AskError::Undelivered(kind))?;
            answer.await.map_err(|_| AskError::NoAnswer)
        };
        timeout(deadline, answered)
            .await
            .unwrap_or(Err(AskError::TimedOut))
    }

    /// Sends a letter to the first incarnation that takes it.
    async fn deliver(
        &self,
        mut letter: Letter<M>,
        deadline: Option<Instant>,
    ) -> Result<(), RefusedLetter<M>> {
        let mut slot = self.slot.clone();
        let mut ended = None;
        loop {
            let next = within(deadline, incarnation(&mut slot, ended)).await;
            let address = match next {
                Ok(address) => address,
                Err(kind) => return Err((letter, kind)),
            };
            match send_by(&address, letter, deadline).await {
                Err((back, SendErrorKind::NoProcess)) => {
                    ended = Some(address.pid());
                    letter = back;
                }
                done => return done,
            }
        }
    }
}

/// Waits for a process that the child is, and that is not the one that has ended.
async fn incarnation<M: Send + 'static>(
    slot: &mut watch::Receiver<Slot<M>>,
    ended: Option<Pid>,
) -> Result<Address<M>, SendErrorKind> {
    let settled = slot.wait_for(|slot| match &slot.state {
        State::Waiting => false,
        State::Running(address) => Some(address.pid()) != ended,
        State::Over => true,
    });
    match settled.await.as_deref().map(|slot| &slot.state) {
        Ok(State::Running(address)) => Ok(address.clone()),
        // An error: no supervisor has the child, and none can get it.
        _ => Err(SendErrorKind::Abandoned),
    }
}

async fn send_by<M: Send + 'static>(
    address: &Address<M>,
    letter: Letter<M>,
    deadline: Option<Instant>,
) -> Result<(), RefusedLetter<M>> {
    let core = &address.core;
    let letter = match core.post_letter(letter) {
        Err((letter, SendErrorKind::Full)) => letter,
        done => return done,
    };
    let bytes = core.mail.weigh(letter.value());
    match within(deadline, core.mail.reserve(bytes)).await {
        Ok(reserved) => core.post_reserved(letter, reserved),
        Err(kind) => Err((letter, kind)),
    }
}

async fn within<T>(
    deadline: Option<Instant>,
    future: impl Future<Output = Result<T, SendErrorKind>>,
) -> Result<T, SendErrorKind> {
    match deadline {
        None => future.await,
        Some(deadline) => timeout_at(deadline, future)
            .await
            .unwrap_or(Err(SendErrorKind::TimedOut)),
    }
}

impl<M: Send + 'static> Destination<M> for ChildAddress<M> {
    fn tell(&self, message: M) -> Result<(), SendError<M>> {
        ChildAddress::tell(self, message)
    }

    fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + Send {
        ChildAddress::send(self, message)
    }

    fn ask_within<R: Send>(
        &self,
        deadline: Duration,
        question: impl FnOnce(Reply<R>) -> M + Send,
    ) -> impl Future<Output = Result<R, AskError>> + Send {
        ChildAddress::ask_within(self, deadline, question)
    }
}

impl<M> Clone for ChildAddress<M> {
    fn clone(&self) -> Self {
        ChildAddress {
            slot: self.slot.clone(),
        }
    }
}

impl<M> fmt::Debug for ChildAddress<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.slot.borrow().state {
            State::Waiting => f.write_str("ChildAddress(waiting)"),
            State::Running(address) => write!(f, "ChildAddress({address:?})"),
            State::Over => f.write_str("ChildAddress(abandoned)"),
        }
    }
}
