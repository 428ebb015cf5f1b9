//! Watching a run while it goes on.
//!
//! A run that is observed reports what has happened in it at the end of epochs, as events: at most
//! every [`interval`](ObserveOptions::interval), so that many short epochs cost little. Errors and
//! health events are reported at once. The [`Level`] decides how much a run reports, a [`Filter`]
//! which events get out. Events wait for the collector in a buffer of a bounded length. If the
//! collector is too slow, the newest are dropped and counted; the run never waits. [`Assertions`]
//! are checked in the run itself, before filter and buffer, so they miss no event.
//!
//! ```
//! use std::time::Duration;
//! use windlass_graph::component::{Descriptor, Registry};
//! use windlass_graph::model::{Component, Graph, Lane, LaneKind};
//! use windlass_graph::observe::{ObserveOptions, observe};
//! use windlass_graph::{Prepared, RunOptions};
//! use windlass_runtime::Runtime;
//!
//! # let mut graph = Graph::new("one");
//! # graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
//! # graph.components.push(Component::new("hello", "mine.Hello", "main"));
//! # let mut registry = Registry::new();
//! # registry.function("mine.Hello", Descriptor::new(), |_| Ok(()));
//! let prepared = Prepared::new(graph, registry)?;
//! let (observer, events) = observe(ObserveOptions { interval: Duration::ZERO, ..Default::default() });
//! let options = RunOptions { observer: Some(observer), ..RunOptions::steps(2) };
//! Runtime::new()?.block_on(async {
//!     prepared.run(options).await;
//!     let mut names = Vec::new();
//!     while let Some(event) = events.next().await {
//!         names.push(event.name);
//!     }
//!     assert_eq!(names, ["run_started", "epoch", "epoch", "run_ended"]);
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assertion;
mod buffer;
mod event;
mod event_scope;
mod filter;
mod matcher;
mod parse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use assertion::{AssertionFailure, Assertions};
pub use buffer::Events;
pub use event::Observed;
pub use filter::Filter;
pub use parse::AssertionsError;

pub(crate) use assertion::AssertionChecker;
use buffer::Buffer;
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windlass_plan::model::named;

named! {
    /// How much a run reports about itself.
    #[derive(Default)]
    pub enum Level {
        /// No events at all.
        Off = "off",
        /// What epochs did; errors and health events.
        #[default]
        Summary = "summary",
        /// And what each component, edge, lane on the clock and loop did in them.
        Detailed = "detailed",
        /// And everything that a trace has.
        Debug = "debug",
    }
}

/// How a run is observed.
#[derive(Debug, Clone)]
pub struct ObserveOptions {
    /// How much the run reports.
    pub level: Level,
    /// The least time between two reports of what epochs did; zero: each epoch is reported. If
    /// assertions look at events, each is.
    pub interval: Duration,
    /// How many events may wait to be collected.
    pub capacity: usize,
    /// Which events get out.
    pub filter: Filter,
    /// The assertions, which see every event.
    pub assertions: Assertions,
}

/// The least time between two reports unless one says otherwise.
const INTERVAL: Duration = Duration::from_millis(20);
/// How many events may wait unless one says otherwise.
const CAPACITY: usize = 1024;

impl Default for ObserveOptions {
    fn default() -> Self {
        ObserveOptions {
            level: Level::default(),
            interval: INTERVAL,
            capacity: CAPACITY,
            filter: Filter::default(),
            assertions: Assertions::default(),
        }
    }
}

/// Observes a run; to be given to [`RunOptions`](crate::RunOptions). Clones are of the same.
#[derive(Clone)]
pub struct Observer(Arc<Shared>);

struct Shared {
    level: Level,
    /// The level that the assertions need.
    needs: Level,
    /// The least time between two reports, in nanoseconds.
    interval: u64,
    filter: Filter,
    buffer: Arc<Buffer>,
    checker: Mutex<AssertionChecker>,
    next: AtomicU64,
    /// Events that got through the filter, of which one in so many gets out.
    passed: AtomicU64,
    failed: AtomicBool,
}

/// Begins to observe: what is to be given to a run, and what comes out of it.
pub fn observe(options: ObserveOptions) -> (Observer, Events) {
    let buffer = Arc::new(Buffer::new(options.capacity.max(1)));
    let observer = Observer(Arc::new(Shared {
        level: options.level,
        needs: options.assertions.needs(),
        interval: match options.assertions.look_at_events() {
            true => 0,
            false => u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX),
        },
        filter: options.filter,
        buffer: buffer.clone(),
        checker: Mutex::new(AssertionChecker::new(options.assertions)),
        next: AtomicU64::new(0),
        passed: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    }));
    (observer, Events::new(buffer))
}

impl Observer {
    /// Returns true if the collector or an assertion wants events of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        level <= self.0.level.max(self.0.needs)
    }

    /// The least time between two reports of what epochs did.
    pub(crate) fn interval(&self) -> u64 {
        self.0.interval
    }

    /// Takes an event: assertions see it, then filter and buffer.
    pub(crate) fn take(&self, level: Level, mut event: Observed) {
        let shared = &self.0;
        // Relaxed: one run does this, in order.
        event.seq = shared.next.fetch_add(1, Ordering::Relaxed) + 1;
        if shared.needs > Level::Off && !shared.checker.lock().event(&event) {
            shared.failed.store(true, Ordering::Relaxed);
        }
        if level > shared.level || !shared.filter.lets_through(&event) {
            return;
        }
        let passed = shared.passed.fetch_add(1, Ordering::Relaxed);
        if passed.is_multiple_of(shared.filter.sample.max(1)) {
            shared.buffer.push(event);
        }
    }

    /// Whether the run should end because an assertion has failed.
    pub(crate) fn stops(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed) && self.0.checker.lock().stops()
    }

    /// Checks what can only be decided when the run is over.
    pub(crate) fn finish(&self, metrics: &crate::run::Metrics, epochs: u64) {
        self.0.checker.lock().finish(metrics, epochs);
    }

    /// The run has ended, or never began: nothing more comes.
    pub(crate) fn close(&self) {
        self.0.buffer.close();
    }

    /// How many events there were, and how many of those that should get out were dropped.
    pub fn counts(&self) -> ObserverCounts {
        ObserverCounts {
            events: self.0.next.load(Ordering::Relaxed),
            dropped: self.0.buffer.dropped(),
        }
    }

    /// Returns the assertions that have failed.
    pub fn failures(&self) -> Vec<AssertionFailure> {
        self.0.checker.lock().failures().to_vec()
    }
}

/// What an observer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ObserverCounts {
    /// Events that were made.
    pub events: u64,
    /// Events that were not collected in time.
    pub dropped: u64,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("level", &self.0.level)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
