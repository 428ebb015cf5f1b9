//! Ending invocations that take longer than `timeout_ms`.
//!
//! A component that can be preempted and has a limit is on a *leash*: the begin and the end of each of its invocations
//! are noted there. The *watch* is a thread of the run, made only if there is such a component. It sleeps until the
//! first of the limits is over, or for good while nothing on a leash runs, and whoever begins earlier than that rings.
//! It is not a task of the runtime: all its workers may be inside of components.
//!
//! # Why an interrupt never hits the next invocation
//! The watch calls `interrupt` while it holds the lock of the leash, and only if an invocation is under way there. The
//! end of the invocation takes the same lock. So `interrupt` returns before the invocation has ended for the run, and
//! is not called any more after that; one that the component has not noticed is taken back (`forget`) under the lock,
//! before the next begins.
//!
//! # Which invocations are ended
//! Those during which `interrupt` was called, whatever came of them. One that returns after its limit, and before the
//! watch was there, counts as it is.
//!
//! # Why nobody begins unnoticed
//! The watch first says that it sleeps for good (`alarm`), then looks at every leash, then says until when it sleeps.
//! Whoever begins notes that first, under the lock of the leash, and looks at `alarm` then. If the watch has looked at
//! the leash before, what it said before that is visible, by that lock: whoever begins sees that it sleeps for good or
//! until when, and rings unless that is early enough. If it looks after, it sees who has begun.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windlass_core::sync::{Mutex, clock};
use windlass_core::task::contain;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{Dispatcher, DispatcherError, OwnThread};
use windlass_runtime::sync::Notify;
use windlass_runtime::time::{Instant, precise::block_until_or};

use super::machine::{Halt, Machine};
use super::result::ErrorCode;
use crate::component::{Interrupt, Outbox};

/// The thread that ends invocations. It goes with the last leash, so that one on a pool is ended even if the run has
/// been dropped meanwhile.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    /// Dropped last: by then it has been told.
    _thread: OwnThread<()>,
}

struct Shared {
    /// Grows while the components are started.
    entries: Mutex<Vec<Arc<Entry>>>,
    /// Until when the watch sleeps.
    alarm: AtomicU64,
    over: AtomicBool,
    bell: Notify,
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
    Runs { until: u64 },
    Interrupted,
}

/// What a component is held by.
#[derive(Clone)]
pub(crate) struct Leash {
    entry: Arc<Entry>,
    watch: Arc<Watch>,
}

impl Watch {
    fn start(runtime: &Handle, graph: &str) -> Result<Watch, DispatcherError> {
        let shared = Arc::new(Shared {
            entries: Mutex::default(),
            alarm: AtomicU64::new(FOR_GOOD),
            over: AtomicBool::new(false),
            bell: Notify::new(),
        });
        let thread = Dispatcher::builder(1)
            .name(format!("watch-{}", graph.replace('\0', "")))
            .run_in(runtime, watch(shared.clone()))?;
        Ok(Watch {
            shared,
            _thread: thread,
        })
    }

    /// Takes a component on; an invocation of it is ended when it has taken as long as this.
    fn add(self: &Arc<Watch>, interrupt: Arc<dyn Interrupt>, limit: u64) -> Leash {
        let entry = Arc::new(Entry {
            limit,
            interrupt,
            state: Mutex::new(State::Idle),
        });
        self.shared.entries.lock().push(entry.clone());
        Leash {
            entry,
            watch: self.clone(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Nothing is on a leash any more: these are the last. Their destructors are user code.
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
        // Relaxed, both: the locks of the leashes say what is seen when.
        shared.alarm.store(FOR_GOOD, Ordering::Relaxed);
        let next = shared.look(clock::now());
        shared.alarm.store(next, Ordering::Relaxed);
        if next == FOR_GOOD {
            shared.bell.notified().await;
        } else {
            let left = Duration::from_nanos(next.saturating_sub(clock::now()));
            let _ = block_until_or(Instant::now() + left, shared.bell.notified());
        }
    }
}

impl Shared {
    /// Ends what has taken too long; gives when the next will have.
    fn look(&self, now: u64) -> u64 {
        let entries = self.entries.lock();
        let left = entries.iter().filter_map(|entry| entry.look(now));
        left.min().unwrap_or(FOR_GOOD)
    }
}

impl Entry {
    /// Ends the invocation if it has taken too long; gives when it will have, if there is one.
    fn look(&self, now: u64) -> Option<u64> {
        let mut state = self.state.lock();
        match *state {
            State::Runs { until } if until <= now => {
                *state = State::Interrupted;
                // Under the lock: the invocation does not end before this has returned.
                contain(|| self.interrupt.interrupt());
                None
            }
            State::Runs { until } => Some(until),
            State::Idle | State::Interrupted => None,
        }
    }
}

impl Leash {
    /// Makes a call, and ends it when its time is over; gives why it failed.
    pub(crate) fn watched(
        &self,
        out: &mut Outbox,
        call: impl FnOnce(&mut Outbox) -> Option<String>,
    ) -> Option<String> {
        self.begin();
        let failed = call(out);
        match self.end() {
            false => failed,
            true => {
                out.timed_out = true;
                let limit = self.entry.limit as f64 / 1e6;
                Some(format!(
                    "was ended after {limit} ms: it took longer than timeout_ms"
                ))
            }
        }
    }

    fn begin(&self) {
        let until = clock::now().saturating_add(self.entry.limit);
        *self.entry.state.lock() = State::Runs { until };
        // Relaxed: what the watch said before it last looked here came with the lock.
        if until < self.watch.shared.alarm.load(Ordering::Relaxed) {
            self.watch.shared.bell.notify_one();
        }
    }

    /// Gives whether it was interrupted.
    fn end(&self) -> bool {
        let mut state = self.entry.state.lock();
        let interrupted = *state == State::Interrupted;
        if interrupted {
            contain(|| self.entry.interrupt.forget());
        }
        *state = State::Idle;
        interrupted
    }
}

impl Machine {
    /// Starts the watch if some component can be ended and may not take long.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(crate) fn begin_watch(&mut self, runtime: &Handle) -> Result<(), String> {
        if self.facts.components.iter().all(|facts| facts.timeout == 0) {
            return Ok(());
        }
        let watch = Watch::start(runtime, &self.plan.graph.name)
            .map_err(|error| format!("timeout_ms needs a thread that watches: {error}"))?;
        self.watch = Some(Arc::new(watch));
        Ok(())
    }

    /// Asks a component for what ends it, which its type has promised.
    pub(crate) fn put_on_leash(&mut self, component: usize) -> Result<(), Halt> {
        let asked = self.ask(component, |member| Ok(member.interrupt()));
        let promised = asked.and_then(|interrupt| {
            interrupt.ok_or_else(|| {
                let name = &self.plan.graph.components[component].type_name;
                format!(
                    "the type {name} says that it can be preempted, and gives nothing that does so: implement `Component::interrupt`, or leave out `Descriptor::preemptible`"
                )
            })
        });
        let interrupt = promised.map_err(|message| {
            let code = ErrorCode::ComponentActivate;
            self.halt("activate", code, Some(component), message)
        })?;
        let limit = self.facts.components[component].timeout;
        if limit > 0 {
            let watch = self.watch.as_ref();
            self.members[component].leash = watch.map(|watch| watch.add(interrupt, limit));
        }
        Ok(())
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.shared.entries.lock().len();
        f.debug_struct("Watch").field("watched", &watched).finish()
    }
}
