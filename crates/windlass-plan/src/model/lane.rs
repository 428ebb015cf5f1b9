//! Lanes: how invocations execute.

use std::time::Duration;

use super::Priority;
use crate::named;

/// One of `lanes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// The id of the lane.
    pub id: String,
    /// Its `type` in the file.
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
    /// `isolated_thread`: a thread for each component instead of one for the lane. Version 2.
    pub per_component: bool,
    /// What happens when the system refuses what its threads should have. Version 2.
    pub os_policy: OsPolicy,
    /// Whether the memory of the process is kept from being paged out. Version 2.
    pub mlock: bool,
    /// How long after it was due a tick may end, on the real clock; the cadence if zero. Version 2.
    pub deadline: Duration,
    /// What happens when a tick ends later. Version 2.
    pub on_deadline_miss: OnDeadlineMiss,
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
        /// On a thread of its own, one after another. Version 2.
        IsolatedThread = "isolated_thread",
        /// In the run itself, when the host asks for a step. Version 2.
        ManualStep = "manual_step",
    }
}

named! {
    /// What happens when the system refuses what a lane's threads should have.
    #[derive(Default)]
    pub enum OsPolicy {
        /// The run goes on without, and says so.
        #[default]
        Warn = "warn",
        /// The run does not begin.
        Strict = "strict",
    }
}

named! {
    /// What happens when a tick on the real clock misses its deadline. It is counted in any case.
    #[derive(Default)]
    pub enum OnDeadlineMiss {
        /// A health event is raised.
        #[default]
        Event = "event",
        /// The next tick is left out, too.
        Skip = "skip",
        /// The run ends with an error.
        Stop = "stop",
    }
}

named! {
    /// A real-time scheduling policy of the system.
    pub enum RtPolicy {
        /// First come, first served.
        Fifo = "fifo",
        /// The same with time slices.
        RoundRobin = "rr",
        /// So much time in each period.
        Deadline = "deadline",
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
        /// At once, when the late one has finished.
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
            per_component: false,
            os_policy: OsPolicy::Warn,
            mlock: false,
            deadline: Duration::ZERO,
            on_deadline_miss: OnDeadlineMiss::Event,
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

    /// Whether it follows the real clock.
    pub fn follows_clock(&self) -> bool {
        self.kind == LaneKind::FixedRate && self.wall_clock_enabled && !self.cadence().is_zero()
    }

    /// Whether its components run on threads that are not the run's own.
    pub fn has_threads(&self) -> bool {
        match self.kind {
            LaneKind::ThreadPool | LaneKind::IsolatedThread => true,
            LaneKind::EventLoop | LaneKind::FixedRate | LaneKind::ManualStep => {
                self.names_attributes()
            }
        }
    }

    /// Whether it says something about the threads it runs on.
    pub fn names_attributes(&self) -> bool {
        self.thread_name.is_some()
            || !self.cpu_affinity.is_empty()
            || self.nice_priority != 0
            || self.real_time().is_some()
            || self.priority_class().is_some()
    }

    /// The real-time policy, if it names one that there is; `SCHED_` in front is fine.
    pub fn real_time(&self) -> Option<RtPolicy> {
        let lower = self.rt_policy.as_deref()?.to_ascii_lowercase();
        RtPolicy::named(lower.strip_prefix("sched_").unwrap_or(&lower))
    }

    /// The class of its dispatcher, if `priority` is the name of one.
    pub fn priority_class(&self) -> Option<Priority> {
        Priority::named(self.priority.as_deref()?)
    }

    /// Whether its CPUs are kept for it alone.
    pub fn is_exclusive(&self) -> bool {
        self.isolation_intent.as_deref() == Some("exclusive") && !self.cpu_affinity.is_empty()
    }

    /// The fields that are set and that nothing is done about, whatever the machine.
    pub fn advisory_fields(&self) -> Vec<&'static str> {
        let rt_priority = matches!(
            self.real_time(),
            Some(RtPolicy::Fifo | RtPolicy::RoundRobin)
        );
        let no_policy = |policy: &String| {
            let named = policy.to_ascii_lowercase();
            !matches!(named.as_str(), "none" | "sched_none") && self.real_time().is_none()
        };
        [
            (
                "wall_clock_enabled",
                self.wall_clock_enabled && self.kind != LaneKind::FixedRate,
            ),
            (
                "priority",
                self.priority.is_some() && self.priority_class().is_none(),
            ),
            ("rt_policy", self.rt_policy.as_ref().is_some_and(no_policy)),
            ("rt_priority", self.rt_priority != 0 && !rt_priority),
            (
                "isolation_intent",
                self.isolation_intent.is_some() && !self.is_exclusive(),
            ),
        ]
        .into_iter()
        .filter_map(|(name, ignored)| ignored.then_some(name))
        .collect()
    }
}
