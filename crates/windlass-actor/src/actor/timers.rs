//! Messages of a process to itself, after a time or at an interval.
//!
//! The timers of a process are a queue in the order of (time, order of setting), and one task that
//! sleeps until the first is due and then sends. It is started with the first timer and ends with
//! the process, and the queue with it, so what a supervisor starts anew begins without timers.
//! Messages go through the mailbox as all others: its policy and its bounds hold. The task waits
//! for room, so each timer has at most one message on its way.
//!
//! Rejected: a task per timer. Timers for the same time would come in any order. Rejected: timers
//! that `recv` looks at, beside the mailbox. Their messages would have no place in the order of the
//! others, and every receive would look at a clock.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_core::sync::Mutex;
use windlass_core::task::contain;
use windlass_runtime::time::{Instant, MissedTickBehavior, timeout_at};
use windlass_sync::lock::Notify;

use super::Context;
use crate::address::Address;
use crate::error::SendErrorKind;

/// The most timers that a process has at a time.
pub const MOST_TIMERS: usize = 65_536;

/// The timers of one process.
pub(super) struct Timers<M> {
    queue: Mutex<Queue<M>>,
    /// The first timer is another one.
    changed: Notify,
}

struct Queue<M> {
    /// By the time at which they are due, and then by number.
    waiting: BTreeMap<(Instant, u64), Entry<M>>,
    /// The times of all that were not cancelled, a repeated one that is being sent included.
    due: BTreeMap<u64, Instant>,
    next_number: u64,
}

enum Entry<M> {
    Once(M),
    Repeated(Box<Repeated<M>>),
}

struct Repeated<M> {
    period: Duration,
    missed: MissedTickBehavior,
    message: Box<dyn FnMut() -> M + Send>,
}

/// What the task of the timers does next.
enum Step<M> {
    Fire(Instant, u64, Entry<M>),
    WaitUntil(Instant),
    Wait,
}

/// A timer of a process. Dropping it changes nothing.
#[derive(Clone)]
pub struct Timer {
    number: u64,
    timers: Weak<dyn Cancel>,
}

impl Timer {
    /// Cancels the timer. Returns true if it was still to fire: nothing comes of it any more, but
    /// for a message of a repeated timer that is on its way. Returns false if its message was sent
    /// or waits for room in the mailbox, if the timer was cancelled, or if the process has ended.
    pub fn cancel(&self) -> bool {
        let timers = self.timers.upgrade();
        timers.is_some_and(|timers| timers.cancel(self.number))
    }

    /// Returns whether the timer is still to fire.
    pub fn is_pending(&self) -> bool {
        let timers = self.timers.upgrade();
        timers.is_some_and(|timers| timers.is_pending(self.number))
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timer({})", self.number)
    }
}

/// The process has [`MOST_TIMERS`] timers already; the message, or what makes it, is handed back.
pub struct TooManyTimers<T>(pub T);

impl<T> fmt::Debug for TooManyTimers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TooManyTimers")
    }
}

impl<T> fmt::Display for TooManyTimers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the process has {MOST_TIMERS} timers and may have no more: cancel those that are not \
             needed, or keep times in the process and have one timer"
        )
    }
}

impl<T> std::error::Error for TooManyTimers<T> {}

/// The timers of a process with messages of any type.
trait Cancel: Send + Sync {
    fn cancel(&self, number: u64) -> bool;
    fn is_pending(&self, number: u64) -> bool;
}

impl<M: Send + 'static> Cancel for Timers<M> {
    fn cancel(&self, number: u64) -> bool {
        let mut queue = self.queue.lock();
        let Some(due) = queue.due.remove(&number) else {
            return false;
        };
        let entry = queue.waiting.remove(&(due, number));
        drop(queue);
        // After the lock: a message's destructor may be anything.
        drop(entry);
        true
    }

    fn is_pending(&self, number: u64) -> bool {
        self.queue.lock().due.contains_key(&number)
    }
}

impl<M: Send + 'static> Timers<M> {
    fn new() -> Timers<M> {
        Timers {
            queue: Mutex::new(Queue {
                waiting: BTreeMap::new(),
                due: BTreeMap::new(),
                next_number: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Adds a timer; the error hands it back.
    fn add(self: &Arc<Self>, due: Instant, entry: Entry<M>) -> Result<Timer, Entry<M>> {
        let mut queue = self.queue.lock();
        if queue.due.len() >= MOST_TIMERS {
            return Err(entry);
        }
        queue.next_number += 1;
        let number = queue.next_number;
        queue.due.insert(number, due);
        queue.waiting.insert((due, number), entry);
        let is_first = queue
            .waiting
            .first_key_value()
            .is_some_and(|(&(_, first), _)| first == number);
        drop(queue);
        if is_first {
            self.changed.notify_one();
        }
        let timers: Weak<Timers<M>> = Arc::downgrade(self);
        Ok(Timer { number, timers })
    }

    fn step(&self) -> Step<M> {
        let mut queue = self.queue.lock();
        let Some(first) = queue.waiting.first_entry() else {
            return Step::Wait;
        };
        let (due, number) = *first.key();
        if due > Instant::now() {
            return Step::WaitUntil(due);
        }
        let entry = first.remove();
        if let Entry::Once(_) = entry {
            queue.due.remove(&number);
        }
        Step::Fire(due, number, entry)
    }

    /// Sets a repeated timer again, unless it was cancelled meanwhile.
    fn again(&self, scheduled: Instant, number: u64, repeated: Box<Repeated<M>>) {
        let next = repeated
            .missed
            .next_tick(scheduled, Instant::now(), repeated.period);
        let mut queue = self.queue.lock();
        if let Some(due) = queue.due.get_mut(&number) {
            *due = next;
            queue
                .waiting
                .insert((next, number), Entry::Repeated(repeated));
        }
    }

    /// Sends what is due. Ends when the process has ended; its end aborts it, too.
    async fn run(self: Arc<Self>, process: Address<M>) {
        loop {
            let (scheduled, number, entry) = match self.step() {
                Step::Fire(scheduled, number, entry) => (scheduled, number, entry),
                Step::WaitUntil(due) => {
                    let _ = timeout_at(due, self.changed.notified()).await;
                    continue;
                }
                Step::Wait => {
                    self.changed.notified().await;
                    continue;
                }
            };
            let (message, repeated) = match entry {
                Entry::Once(message) => (message, None),
                Entry::Repeated(mut repeated) => {
                    match catch_unwind(AssertUnwindSafe(|| (repeated.message)())) {
                        Ok(message) => (message, Some(repeated)),
                        Err(panic) => {
                            contain(|| drop(panic));
                            return process.kill();
                        }
                    }
                }
            };
            if let Err(error) = process.send(message).await {
                if error.kind == SendErrorKind::NoProcess {
                    return;
                }
                // It alone takes more than the mailbox holds.
                process.core.mail.count_dropped();
            }
            if let Some(repeated) = repeated {
                self.again(scheduled, number, repeated);
            }
        }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Sends a message to this process after a time. Timers for the same moment send in the order
    /// in which they were set. A timer that is due when the mailbox is full waits for room. All
    /// timers end with the process.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windlass_actor::{Context, Host};
    ///
    /// # let runtime = windlass_runtime::Runtime::new()?;
    /// # runtime.block_on(async {
    /// let process = windlass_actor::spawn(|mut ctx: Context<&str>| async move {
    ///     let late = ctx.send_after(Duration::from_secs(60), "late")?;
    ///     ctx.send_after(Duration::from_millis(1), "soon")?;
    ///     assert_eq!(ctx.recv().await, Some("soon"));
    ///     assert!(late.cancel());
    ///     Ok::<_, windlass_actor::ActorError>(())
    /// })?;
    /// assert!(process.join().await.reason.is_normal());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_after(&mut self, after: Duration, message: M) -> Result<Timer, TooManyTimers<M>> {
        let due = Instant::now() + after;
        match self.timers().add(due, Entry::Once(message)) {
            Ok(timer) => Ok(timer),
            Err(Entry::Once(message)) => Err(TooManyTimers(message)),
            Err(Entry::Repeated(_)) => unreachable!("another entry was given"),
        }
    }

    /// Sends a message to this process at an interval, the first time after one `period`. A tick
    /// that the mailbox had no room for in time follows at once when there is, as with
    /// [`MissedTickBehavior::Burst`]; see [`send_every_with`](Context::send_every_with).
    ///
    /// A panic in `message` kills the process.
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn send_every<F>(&mut self, period: Duration, message: F) -> Result<Timer, TooManyTimers<F>>
    where
        F: FnMut() -> M + Send + 'static,
    {
        self.send_every_with(period, MissedTickBehavior::Burst, message)
    }

    /// As [`send_every`](Context::send_every), with a choice of what happens to ticks that the
    /// mailbox had no room for in time.
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn send_every_with<F>(
        &mut self,
        period: Duration,
        missed: MissedTickBehavior,
        message: F,
    ) -> Result<Timer, TooManyTimers<F>>
    where
        F: FnMut() -> M + Send + 'static,
    {
        assert!(
            period > Duration::ZERO,
            "an interval of zero would tick for ever: choose a period, or send to the own address"
        );
        let timers = self.timers();
        if timers.queue.lock().due.len() >= MOST_TIMERS {
            return Err(TooManyTimers(message));
        }
        let repeated = Repeated {
            period,
            missed,
            message: Box::new(message),
        };
        let entry = Entry::Repeated(Box::new(repeated));
        match timers.add(Instant::now() + period, entry) {
            Ok(timer) => Ok(timer),
            Err(_) => unreachable!("only this context adds timers, and there was room for one"),
        }
    }

    /// Returns the timers, and starts their task with the first.
    fn timers(&mut self) -> &Arc<Timers<M>> {
        self.timers.get_or_insert_with(|| {
            let timers = Arc::new(Timers::new());
            let process = Address::new(self.core.clone());
            let host = &self.core.shell.host;
            let task = host.runtime.spawn(timers.clone().run(process));
            self.core.shell.add_timer(task.abort_handle());
            timers
        })
    }
}
