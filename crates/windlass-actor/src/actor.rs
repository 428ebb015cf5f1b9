//! Async processes: a context to receive with, a trait for those who like one, and their runner.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use windlass_core::queue::Inbox;
use windlass_core::task::{Body, contain, spend};
use windlass_sync::CancellationToken;

use crate::address::Address;
use crate::error::SendError;
use crate::exit::{ActorError, ExitReason, Exited, MonitorRef, Outcome};
use crate::host::Host;
use crate::mail::{Mail, ReadBy, Reader};
use crate::message::{Message, Pattern};
use crate::shell::{Core, Resident, Signal, Turn, conclude};
use crate::spawn::Spawn;
use windlass_value::Payload;
use windlass_value::Pid;

/// What an async process has of its own: its mailbox, its PID, its bonds.
pub struct Context<M> {
    core: Arc<Core<M>>,
    reader: Reader<M>,
    /// Topics that somebody has subscribed to; see [`Context::subscribe`].
    subscriptions: Option<Box<Subscriptions>>,
    stopping: bool,
}

type Subscriptions = Vec<Option<Pattern>>;

/// What an async process is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<M> {
    /// A message.
    Message(M),
    /// It shall stop, for this reason. Told once.
    Cancel(Arc<str>),
    /// Another process has ended: one that it monitors, or is linked to and traps links.
    Exit(Exited),
}

impl<M: Send + 'static> Context<M> {
    pub(crate) fn new(core: Arc<Core<M>>) -> Context<M> {
        Context {
            core,
            reader: Reader::new(),
            subscriptions: None,
            stopping: false,
        }
    }

    /// This process.
    pub fn pid(&self) -> Pid {
        self.core.shell.pid
    }

    /// Its host.
    pub fn host(&self) -> Host {
        Host(self.core.shell.host.clone())
    }

    /// Its own address.
    pub fn address(&self) -> Address<M> {
        Address::new(self.core.clone())
    }

    /// The next message; none once the process was told to stop. What is left then can be had with
    /// [`try_recv`](Context::try_recv).
    ///
    /// Cancel-safe: a dropped wait has taken nothing.
    pub async fn recv(&mut self) -> Option<M> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Context::recv), for those who poll.
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

    /// A message that is there now.
    pub fn try_recv(&mut self) -> Option<M> {
        self.reader.take(&self.core.mail, ReadBy::Another)
    }

    /// The next thing the process is told: that it shall stop, the end of another, or a message, in this
    /// order.
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

    /// A message; none if there is something else, which comes first.
    #[inline(always)]
    fn poll_message(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<M>> {
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

    /// What is there instead of a message: the end of another, or the reason to stop. None: a monitor that
    /// was undone meanwhile.
    #[cold]
    fn other_event(&mut self) -> Option<Result<Box<Exited>, Arc<str>>> {
        let shell = &self.core.shell;
        // Also where somebody else's task is asking, and the process has ended.
        if shell.is_cancelled() && !self.stopping || shell.is_complete() {
            self.stopping = true;
            return Some(Err(self.cancel_reason()));
        }
        shell.take_notice().map(|exited| Ok(Box::new(exited)))
    }

    /// Takes something out of the mailbox, or waits for mail. None: the process has ended.
    #[inline(always)]
    fn poll_taken<T>(
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
        // Mail wakes the task of the process; it passes that on to whoever waits in another way. It may
        // be on another thread, so this looks once more.
        shell.set_foreign(cx.waker());
        match take(&mut self.reader, &self.core.mail, by) {
            Some(taken) => Poll::Ready(Some(taken)),
            None if self.core.shell.is_complete() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Resolves when the process is told to stop, with the reason; leaves its mail alone.
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

    /// Whether the process was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.core.shell.is_cancelled()
    }

    /// Why it was told to stop.
    pub fn cancel_reason(&self) -> Arc<str> {
        let reason = self.core.shell.cancel_reason();
        reason.unwrap_or_else(|| "cancelled".into())
    }

    /// A token that is cancelled when the process has ended (not when it is told to stop; that is
    /// [`cancelled`](Context::cancelled)): for tasks that work for it.
    pub fn token(&self) -> CancellationToken {
        self.core.shell.context()
    }

    /// Ends the process normally after what it is doing now, if it is an [`Actor`].
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Links this process to another: the end of either ends the other, unless it is normal. An async process
    /// that was told to stop and returns has ended normally; an [`Actor`] and a supervisor have not.
    pub fn link(&self, other: Pid) {
        let own: Arc<dyn Resident> = self.core.clone();
        self.core.shell.host.link(&own, other);
    }

    /// Undoes a link.
    pub fn unlink(&self, other: Pid) {
        self.core.shell.host.unlink(&*self.core, other);
    }

    /// Lets this process know of the end of another, exactly once; at once if that has ended.
    pub fn monitor(&self, other: Pid) -> MonitorRef {
        let own: Arc<dyn Resident> = self.core.clone();
        self.core.shell.host.monitor(&own, other)
    }

    /// Undoes a monitor; nothing comes from it any more.
    pub fn demonitor(&self, monitor: MonitorRef) {
        self.core.shell.host.demonitor(&*self.core, monitor);
    }

    /// From now on the end of a linked process is an event, and does not end this one.
    pub fn trap_links(&self, traps: bool) {
        self.core.shell.trap_links(traps);
    }

    /// How a process is to be started that is linked to this one.
    #[track_caller]
    pub fn linked(&self) -> Spawn {
        self.host().process().linked_to(self.pid())
    }

    /// How a process is to be started whose end this one is told of.
    #[track_caller]
    pub fn monitored(&self) -> Spawn {
        self.host().process().monitored_by(self.pid())
    }
}

/// A standing wish for some topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionId(usize);

impl Context<Message> {
    /// Sends a message to any process; it says that it is from this one.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        let message = message.from(self.pid());
        self.core.shell.host.route(to, message)
    }

    /// From now on messages with these topics come through [`recv_from`](Context::recv_from), and nobody
    /// else gets them. Of several that match a topic the first counts. Everything waits in the one mailbox,
    /// in its order, and counts against its bound.
    pub fn subscribe(&mut self, pattern: Pattern) -> SubscriptionId {
        let there = self.subscriptions.get_or_insert_default();
        let free = there.iter().position(Option::is_none);
        let place = free.unwrap_or(there.len());
        if place == there.len() {
            there.push(None);
        }
        there[place] = Some(pattern);
        SubscriptionId(place)
    }

    /// Undoes a subscription; its messages are for everybody again.
    pub fn unsubscribe(&mut self, subscription: SubscriptionId) {
        let mut there = self.subscriptions.iter_mut().flat_map(|all| all.iter_mut());
        if let Some(place) = there.nth(subscription.0) {
            *place = None;
        }
    }

    /// The next message of a subscription; none once the process was told to stop.
    pub async fn recv_from(&mut self, subscription: SubscriptionId) -> Option<Message> {
        poll_fn(|cx| self.poll_of(cx, Some(subscription.0))).await
    }

    /// The next message that nobody has subscribed to; none once the process was told to stop.
    pub async fn recv_other(&mut self) -> Option<Message> {
        poll_fn(|cx| self.poll_of(cx, None)).await
    }

    fn poll_of(
        &mut self,
        cx: &mut TaskContext<'_>,
        wanted: Option<usize>,
    ) -> Poll<Option<Message>> {
        let spent = ready!(spend(cx));
        if self.is_cancelled() {
            return Poll::Ready(None);
        }
        let subscriptions = self.subscriptions.take();
        let of = |message: &Message| {
            let matches = |pattern: &Option<Pattern>| {
                pattern
                    .as_ref()
                    .is_some_and(|pattern| pattern.matches(message.topic.as_str()))
            };
            let mut all = subscriptions.iter().flat_map(|all| all.iter());
            all.position(matches) == wanted
        };
        let next = self.poll_taken(cx, |reader, mail, by| reader.take_where(mail, by, of));
        self.subscriptions = subscriptions;
        let next = ready!(next);
        spent.made_progress();
        Poll::Ready(next)
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.core.shell.pid)
    }
}

/// A process with a type for its messages and a method for each event.
///
/// ```
/// use windlass_actor::{Actor, ActorError, Context, Reply};
///
/// struct Counter(u64);
///
/// enum Count { Up, Read(Reply<u64>) }
///
/// impl Actor for Counter {
///     type Message = Count;
///
///     async fn handle(
///         &mut self,
///         message: Count,
///         _: &mut Context<Count>,
///     ) -> Result<(), ActorError> {
///         match message {
///             Count::Up => self.0 += 1,
///             Count::Read(reply) => reply.send(self.0),
///         }
///         Ok(())
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let counter = windlass_actor::Host::current()?.actor(Counter(0))?;
/// counter.tell(Count::Up)?;
/// assert_eq!(counter.ask(Count::Read).await?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Actor: Send + 'static {
    /// What it is sent.
    type Message: Send + 'static;

    /// Before the first message.
    fn started(
        &mut self,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send {
        async { Ok(()) }
    }

    /// One message. An error ends the actor.
    fn handle(
        &mut self,
        message: Self::Message,
        ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// The end of a process that it monitors, or is linked to and traps links.
    fn exited(
        &mut self,
        _exited: Exited,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send {
        async { Ok(()) }
    }

    /// After the last message, unless it is killed or panics: time to clean up. `cancelled` says why it was
    /// told to stop, if it was.
    fn stopped(
        &mut self,
        _cancelled: Option<&str>,
        _ctx: &mut Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// An actor as an async process.
///
/// One block that captures both, not an `async fn`: what that takes is kept twice, and there are many actors.
#[expect(clippy::manual_async_fn, reason = "see above")]
pub(crate) fn run_actor<A: Actor>(
    mut actor: A,
    mut ctx: Context<A::Message>,
) -> impl Future<Output = Result<(), ActorError>> + Send {
    async move {
        // Why it ends: an error, or that it was told to stop, or neither.
        let end: Result<Option<Arc<str>>, ActorError> = 'life: {
            if let Err(error) = actor.started(&mut ctx).await {
                break 'life Err(error);
            }
            while !ctx.stopping {
                // Not `event`: that answer is large, and would be kept over the wait.
                let message = poll_fn(|cx| ctx.poll_message(cx)).await;
                let handled = match message {
                    Some(message) => actor.handle(message, &mut ctx).await,
                    None => match ctx.other_event() {
                        Some(Ok(exited)) => actor.exited(*exited, &mut ctx).await,
                        Some(Err(reason)) => break 'life Ok(Some(reason)),
                        None => Ok(()),
                    },
                };
                if let Err(error) = handled {
                    break 'life Err(error);
                }
            }
            Ok(None)
        };
        let cancelled = end.as_ref().ok().and_then(Option::as_deref);
        actor.stopped(cancelled, &mut ctx).await;
        match end {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(ActorError::cancelled(reason)),
            Err(error) => Err(error),
        }
    }
}

pin_project! {
    /// The runner of an async process: one poll is one step.
    pub(crate) struct ActorBody<M, F>
    where
        M: Send,
        M: 'static,
    {
        core: Arc<Core<M>>,
        // None once the process has ended.
        #[pin]
        future: Option<F>,
    }

    impl<M, F> PinnedDrop for ActorBody<M, F>
    where
        M: Send,
        M: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            // The task was ended from below: the runtime is gone, or going.
            this.end(Err(ExitReason::Killed));
        }
    }
}

impl<M: Send + 'static, F> ActorBody<M, F> {
    pub(crate) fn new(core: Arc<Core<M>>, future: F) -> ActorBody<M, F> {
        ActorBody {
            core,
            future: Some(future),
        }
    }

    fn end(self: Pin<&mut Self>, result: Result<Payload, ExitReason>) {
        let mut this = self.project();
        if this.future.is_some() {
            conclude(&**this.core, None, result, || this.future.set(None));
        }
    }

    /// Files what the process is told; the error ends it.
    fn hear(&self) -> Result<(), ExitReason> {
        let shell = &self.core.shell;
        // It is emptied here, every time.
        let mut signals = Inbox::new();
        while let Some(signal) = shell.next_signal(&mut signals)? {
            if let Signal::Exit(exited) = signal {
                shell.keep_notice(exited);
            }
        }
        Ok(())
    }
}

impl<M, F> Body for ActorBody<M, F>
where
    M: Send + 'static,
    F: Future,
    F::Output: Outcome,
{
    type Output = ();

    fn resume(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Err(reason) = self.hear() {
            self.end(Err(reason));
            return Poll::Ready(());
        }
        if let Turn::End(reason) = self.core.shell.begin_step() {
            self.end(Err(reason));
            return Poll::Ready(());
        }
        let this = self.as_mut().project();
        let future = this.future.as_pin_mut().expect("it has not ended");
        this.core.shell.set_waits_for_mail(false);
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(cx)));
        let result = match polled {
            Ok(Poll::Pending) => {
                this.core.mail.give_room();
                this.core.shell.end_step(!this.core.shell.waits_for_mail());
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => output.into_result().map_err(ExitReason::from),
            Err(panic) => {
                let reason = ExitReason::of_panic(&*panic);
                contain(|| drop(panic));
                Err(reason)
            }
        };
        this.core.shell.end_step(false);
        self.end(result);
        Poll::Ready(())
    }
}
