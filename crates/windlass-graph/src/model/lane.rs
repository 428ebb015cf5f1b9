//! Lanes: how invocations execute.

use std::time::Duration;

use super::Priority;
use super::named::named;

/// One of `lanes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Its id.
    pub id: String,
    /// `type`.
    pub kind: LaneKind,
    /// Ticks a second; `period` wins.
    pub hz: f64,
    /// Time between ticks, as the file says it; see [`Lane::cadence`].
    pub period: Duration,
    /// What a tick may take before it is an overrun; the cadence if zero.
    pub tick_budget: Duration,
    /// Ticks on the real clock instead of simulated ones; `fixed_rate` only.
    pub wall_clock_enabled: bool,
    /// When the next tick is after a late one.
    pub overrun_policy: OverrunPolicy,
    /// Workers of a `thread_pool`; 0 means 1, see [`Lane::width`].
    pub max_threads: usize,
    /// Invocations that may wait behind the workers.
    pub queue_capacity: usize,
    /// What happens to those beyond.
    pub overflow: LaneOverflow,
    /// What one callback may take before it is asked to cancel.
    pub max_callback: Duration,
    /// The class of the lane's dispatcher if it is the name of one; otherwise advisory.
    pub priority: Option<String>,
    /// The name of its threads.
    pub thread_name: Option<String>,
    /// The CPUs that its threads may use; all if empty.
    pub cpu_affinity: Vec<usize>,
    /// The niceness of its threads.
    pub nice_priority: i32,
    /// The OS scheduling policy, as written: none, fifo, rr, deadline; `SCHED_` in front is fine.
    pub rt_policy: Option<String>,
    /// The priority within it.
    pub rt_priority: i32,
    /// `exclusive` keeps its CPUs for itself; other values are advisory.
    pub isolation_intent: Option<String>,
}

named! {
    /// The type of a lane.
    pub enum LaneKind {
        /// In the run itself, one after another.
        EventLoop = "event_loop",
        /// In the run itself, at a rate.
        FixedRate = "fixed_rate",
        /// On threads of its own.
        ThreadPool = "thread_pool",
    }
}

named! {
    /// When the next tick is after a late one.
    #[derive(Default)]
    pub enum OverrunPolicy {
        /// A period after the late one finished.
        #[default]
        DropTick = "drop_tick",
        /// Two periods after the late one was due.
        SkipNext = "skip_next",
        /// At once.
        CatchUpOnce = "catch_up_once",
    }
}

named! {
    /// What happens to invocations beyond what a lane admits.
    #[derive(Default)]
    pub enum LaneOverflow {
        /// The newest stay.
        Overwrite = "overwrite",
        /// The newest stay.
        DropOldest = "drop_oldest",
        /// The oldest stay.
        DropNewest = "drop_newest",
        /// The oldest stay.
        #[default]
        Reject = "reject",
        /// The oldest stay.
        RejectNew = "reject_new",
        /// The run ends with an error.
        FailFast = "fail_fast",
        /// Would block the producer: the oldest stay, no thread ever blocks.
        Block = "block",
    }
}

impl Lane {
    /// A lane of this type with every default.
    pub fn new(id: impl Into<String>, kind: LaneKind) -> Lane {
        Lane {
            id: id.into(),
            kind,
            hz: 0.0,
            period: Duration::ZERO,
            tick_budget: Duration::ZERO,
            wall_clock_enabled: false,
            overrun_policy: OverrunPolicy::DropTick,
            max_threads: 0,
            queue_capacity: 0,
            overflow: LaneOverflow::Reject,
            max_callback: Duration::ZERO,
            priority: None,
            thread_name: None,
            cpu_affinity: Vec::new(),
            nice_priority: 0,
            rt_policy: None,
            rt_priority: 0,
            isolation_intent: None,
        }
    }

    /// The time between two ticks: `period`, or else what `hz` gives, or else zero.
    pub fn cadence(&self) -> Duration {
        if self.period > Duration::ZERO {
            self.period
        } else if self.hz > 0.0 {
            Duration::try_from_secs_f64(1.0 / self.hz).unwrap_or(Duration::ZERO)
        } else {
            Duration::ZERO
        }
    }

    /// How many invocations run at once on a `thread_pool`.
    pub fn width(&self) -> usize {
        self.max_threads.max(1)
    }

    /// The fields that are set and that this runtime does not act on yet, for this type of lane: the threads'
    /// attributes of lanes that have no threads, and isolation.
    pub fn advisory_fields(&self) -> Vec<&'static str> {
        let threads = self.kind == LaneKind::ThreadPool;
        let no_class = |name: &String| Priority::named(name).is_none();
        [
            (
                "wall_clock_enabled",
                self.wall_clock_enabled && self.kind != LaneKind::FixedRate,
            ),
            (
                "priority",
                self.priority
                    .as_ref()
                    .is_some_and(|priority| !threads || no_class(priority)),
            ),
            ("thread_name", !threads && self.thread_name.is_some()),
            ("cpu_affinity", !threads && !self.cpu_affinity.is_empty()),
            ("nice_priority", !threads && self.nice_priority != 0),
            ("rt_policy", !threads && self.rt_policy.is_some()),
            ("rt_priority", !threads && self.rt_priority != 0),
            ("isolation_intent", self.isolation_intent.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, ignored)| ignored.then_some(name))
        .collect()
    }
}
