//! Ending calls that take too long: invocations beyond `timeout_ms`, and every call when the run is
//! to stop.
//!
//! A component that can be preempted has a *deadline*: the begin and the end of each of its calls
//! are noted there. The *watch* is a thread of the run, made only if there is such a component. It
//! sleeps until the first of the limits is over, or for good while nothing with a deadline runs,
//! and a call whose limit is earlier than that rings when it begins. The watch is not a task of the
//! runtime: all workers of that may be inside of components.
//!
//! # A run that is to stop
//! The watch also waits for the run's stop token and for the end of its `duration`. From then on
//! calls have a limit, whatever the graph says: invocations half of `RunOptions::stop_within`, all
//! other calls nine tenths of it. So a run of components that can be preempted ends in time, and
//! names those that were ended (`Members::forced`).
//!
//! # Why an interrupt never hits the next call
//! The watch calls `interrupt` while it holds the lock of the deadline, and only if a call is under
//! way there. The end of the call takes the same lock. So `interrupt` returns before the call has
//! ended for the run, and is not called any more after that; one that the component has not noticed
//! is taken back (`forget`) under the lock, before the next begins.
//!
//! # Which calls are ended
//! Those during which `interrupt` was called, whatever came of them. One that returns after its
//! limit, and before the watch was there, counts as it is.
//!
//! # Why no call begins unnoticed
//! The watch first says when calls end at the latest (`limits`) and that it sleeps for good
//! (`alarm`), then looks at every deadline, then says until when it sleeps. A call that begins
//! notes that first, under the lock of the deadline, and looks at `limits` and `alarm` then. If the
//! watch has looked at the deadline before, what it said before that is visible, by that lock: the
//! call sees that the watch sleeps for good or until when, and rings unless that is early enough.
//! If the watch looks after, it sees which call has begun.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windlass_core::sync::{Mutex, clock};
use windlass_core::task::contain;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{Dispatcher, DispatcherError, OwnThread};
use windlass_runtime::time::{Instant, precise::block_until_or};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

use crate::component::{Interrupt, Outbox};
use crate::run::options::RunOptions;
use crate::run::state::tables::nanos;

/// The thread that ends invocations. It ends with the last deadline, so that one on a pool is ended
/// even if the run has been dropped meanwhile.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    /// Dropped last: by then the thread was asked to end.
    _thread: OwnThread<()>,
}

struct Shared {
    /// Grows while the components are started.
    entries: Mutex<Vec<Arc<Entry>>>,
    /// Until when the watch sleeps.
    alarm: AtomicU64,
    over: AtomicBool,
    bell: Notify,
    /// Cancelled when the run is to stop.
    stop: CancellationToken,
    /// How long the run has then.
    within: u64,
    /// When the run's time is over.
    ends_at: AtomicU64,
    /// Until when calls may take, by their kind: for good until the run is to stop.
    limits: [AtomicU64; 2],
}

/// The two kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Invocation = 0,
    /// `activate`, `deactivate` and the others.
    Other = 1,
}

/// Longer than any clock goes.
const FOR_GOOD: u64 = u64::MAX;

/// A component that is watched.
struct Entry {
    limit: u64,
    interrupt: Arc<dyn Interrupt>,
    state: Mutex<State>,
}

/// What an invocation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Runs {
        kind: CallKind,
        until: u64,
    },
    /// `forced`: because the run is to stop.
    Interrupted {
        forced: bool,
    },
}

/// The deadline of a component's calls: notes when each begins and ends, for the watch.
#[derive(Clone)]
pub(crate) struct CallDeadline {
    entry: Arc<Entry>,
    watch: Arc<Watch>,
}

impl Watch {
    pub(crate) fn start(
        runtime: &Handle,
        graph: &str,
        options: &RunOptions,
    ) -> Result<Watch, DispatcherError> {
        let shared = Arc::new(Shared {
            entries: Mutex::default(),
            alarm: AtomicU64::new(FOR_GOOD),
            over: AtomicBool::new(false),
            bell: Notify::new(),
            stop: options.stop.clone(),
            within: nanos(options.stop_within),
            ends_at: AtomicU64::new(FOR_GOOD),
            limits: [const { AtomicU64::new(FOR_GOOD) }; 2],
        });
        let thread = Dispatcher::builder(1)
            .name(format!("watch-{}", graph.replace('\0', "")))
            .run_in(runtime, watch(shared.clone()))?;
        Ok(Watch {
            shared,
            _thread: thread,
        })
    }

    /// The run's time is over then.
    pub(crate) fn ends_at(&self, at: u64) {
        // Relaxed: the bell says when to look.
        self.shared.ends_at.store(at, Ordering::Relaxed);
        self.shared.bell.notify_one();
    }

    /// Takes a component on; an invocation of it is ended when it has taken as long as this, unless
    /// that is 0.
    pub(crate) fn add(
        self: &Arc<Watch>,
        interrupt: Arc<dyn Interrupt>,
        limit: u64,
    ) -> CallDeadline {
        let entry = Arc::new(Entry {
            limit,
            interrupt,
            state: Mutex::new(State::Idle),
        });
        self.shared.entries.lock().push(entry.clone());
        CallDeadline {
            entry,
            watch: self.clone(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Nothing has a deadline any more: these are the last. Their destructors are user code.
        let entries = std::mem::take(&mut *self.shared.entries.lock());
        contain(|| drop(entries));
        // Release: pairs with the Acquire of the watch. The bell is kept until it looks.
        self.shared.over.store(true, Ordering::Release);
        self.shared.bell.notify_one();
    }
}

/// What the thread does.
async fn watch(shared: Arc<Shared>) {
    while !shared.over.load(Ordering::Acquire) {
        shared.look_for_stop(clock::now());
        // Relaxed, both: the locks of the deadlines say what is seen when.
        shared.alarm.store(FOR_GOOD, Ordering::Relaxed);
        let mut next = shared.look(clock::now());
        shared.alarm.store(next, Ordering::Relaxed);
        let stops = shared.is_stopping();
        if !stops {
            next = next.min(shared.ends_at.load(Ordering::Relaxed));
        }
        let rung = async {
            match stops {
                true => shared.bell.notified().await,
                false => {
                    shared
                        .stop
                        .run_until_cancelled(shared.bell.notified())
                        .await;
                }
            }
        };
        if next == FOR_GOOD {
            rung.await;
        } else {
            let left = Duration::from_nanos(next.saturating_sub(clock::now()));
            let _ = block_until_or(Instant::now() + left, rung);
        }
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.limits[0].load(Ordering::Relaxed) != FOR_GOOD
    }

    /// Limits all calls if the run is to stop.
    fn look_for_stop(&self, now: u64) {
        let over = self.ends_at.load(Ordering::Relaxed) <= now;
        if self.is_stopping() || !(over || self.stop.is_cancelled()) {
            return;
        }
        // Relaxed: as `alarm`.
        let after = |time: u64| now.saturating_add(time).min(FOR_GOOD - 1);
        self.limits[CallKind::Invocation as usize].store(after(self.within / 2), Ordering::Relaxed);
        self.limits[CallKind::Other as usize].store(after(self.within / 10 * 9), Ordering::Relaxed);
    }

    /// Until when calls of a kind may take.
    fn limit(&self, kind: CallKind) -> u64 {
        self.limits[kind as usize].load(Ordering::Relaxed)
    }

    /// Ends what has taken too long; gives when the next will have.
    fn look(&self, now: u64) -> u64 {
        let entries = self.entries.lock();
        let left = entries.iter().filter_map(|entry| entry.look(now, self));
        left.min().unwrap_or(FOR_GOOD)
    }
}

impl Entry {
    /// Ends the call if it has taken too long; gives when it will have, if there is one.
    fn look(&self, now: u64, shared: &Shared) -> Option<u64> {
        let mut state = self.state.lock();
        let State::Runs { kind, until } = *state else {
            return None;
        };
        let limit = shared.limit(kind);
        if now < until.min(limit) {
            return Some(until.min(limit));
        }
        *state = State::Interrupted {
            forced: limit < until,
        };
        // Under the lock: the call does not end before this has returned.
        contain(|| self.interrupt.interrupt());
        None
    }
}

impl CallDeadline {
    /// Makes an invocation, and ends it when its time is over; gives why it failed.
    pub(crate) fn watched(
        &self,
        out: &mut Outbox,
        call: impl FnOnce(&mut Outbox) -> Option<Box<str>>,
    ) -> Option<Box<str>> {
        self.begin(CallKind::Invocation);
        let failed = call(out);
        match self.end() {
            None => failed,
            Some(forced) => {
                out.timed_out = true;
                out.forced = forced;
                let message = match forced {
                    true => self.forced(),
                    false => {
                        let limit = self.entry.limit as f64 / 1e6;
                        format!("was ended after {limit} ms: it took longer than timeout_ms")
                    }
                };
                Some(message.into())
            }
        }
    }

    /// Makes another call, and ends it when the run has to stop; gives what to say then.
    pub(crate) fn stopped<T>(&self, call: impl FnOnce() -> T) -> (T, Option<String>) {
        self.begin(CallKind::Other);
        let answer = call();
        let ended = self.end();
        (answer, ended.map(|_| self.forced()))
    }

    /// What is said of a call that was ended because the run has to stop.
    fn forced(&self) -> String {
        let within = self.watch.shared.within as f64 / 1e6;
        format!("was ended by force: the run had to stop within {within} ms, and it did not return")
    }

    fn begin(&self, kind: CallKind) {
        let until = match (kind, self.entry.limit) {
            (CallKind::Other, _) | (_, 0) => FOR_GOOD,
            (CallKind::Invocation, limit) => clock::now().saturating_add(limit),
        };
        *self.entry.state.lock() = State::Runs { kind, until };
        // Relaxed: what the watch said before it last looked here came with the lock.
        let shared = &self.watch.shared;
        let until = until.min(shared.limit(kind));
        if until < shared.alarm.load(Ordering::Relaxed) {
            shared.bell.notify_one();
        }
    }

    /// Gives whether it was interrupted, and then whether that was because the run has to stop.
    fn end(&self) -> Option<bool> {
        let mut state = self.entry.state.lock();
        let interrupted = match *state {
            State::Interrupted { forced } => Some(forced),
            _ => None,
        };
        if interrupted.is_some() {
            contain(|| self.entry.interrupt.forget());
        }
        *state = State::Idle;
        interrupted
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.shared.entries.lock().len();
        f.debug_struct("Watch").field("watched", &watched).finish()
    }
}
