//! Components: what runs, what makes it run, and how.

use std::time::Duration;

use super::Config;
use crate::named;

/// One of `components`.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// The id of the component.
    pub id: String,
    /// The type that the registry knows, or not.
    pub type_name: String,
    /// Components that are started before it.
    pub depends_on: Vec<String>,
    /// Where it meets the outside.
    pub boundary: Boundary,
    /// What it is configured with.
    pub config: Config,
    /// What can make it run; never empty.
    pub event_sources: Vec<EventSource>,
    /// When these do make it run.
    pub trigger: TriggerPolicy,
    /// How it runs.
    pub execution: Execution,
}

/// Where a component meets the outside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boundary {
    /// As written; the type's own if none.
    pub role: Option<BoundaryRole>,
    /// What the outside is, for people.
    pub descriptor: String,
}

named! {
    /// Whether a component is at the edge of the graph.
    #[derive(Default)]
    pub enum BoundaryRole {
        /// Inside of the graph.
        #[default]
        Processing = "processing",
        /// Things come in here.
        Input = "input",
        /// Things go out here.
        Output = "output",
        /// At both ends of the graph.
        InputOutput = "input_output",
    }
}

/// One of `event_sources`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSource {
    /// Its id; may be empty.
    pub id: String,
    /// Its `type` in the file.
    pub kind: EventSourceKind,
    /// The input ports it looks at.
    pub inputs: Vec<String>,
    /// Of a timer.
    pub period: Duration,
}

named! {
    /// What can make a component run.
    #[derive(Default)]
    pub enum EventSourceKind {
        /// Fires in every epoch.
        #[default]
        Manual = "manual",
        /// Fires with a message.
        Message = "message",
        /// Fires after each period.
        Timer = "timer",
        /// A request, which is a message.
        Request = "request",
        /// The end of a task, which comes as a message.
        TaskReady = "task_ready",
        /// The end of a future, which comes as a message.
        FutureReady = "future_ready",
    }
}

/// What makes a component run: its `trigger_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerPolicy {
    /// Its `type` in the file.
    pub kind: TriggerKind,
    /// Its inputs; none: those of the event sources. See [`Component::trigger_inputs`].
    pub inputs: Vec<String>,
    /// How many messages make a batch, for `batch`.
    pub batch_size: usize,
    /// How long a batch may wait for messages, for `batch`.
    pub batch_window: Duration,
    /// How far apart the times of messages may be, for `time_sync`.
    pub sync_slop: Duration,
    /// The least time between two invocations.
    pub min_interval: Duration,
    /// Messages that have waited longer are dropped.
    pub max_latency: Duration,
    /// How much older than the newest a message may be, for `watermark`.
    pub watermark_lateness: Duration,
    /// How long no message may have come, for `debounce`.
    pub debounce_window: Duration,
    /// What has to hold, for `condition`.
    pub condition: Condition,
    /// The newest of each input, in one invocation.
    pub coalesce: bool,
}

named! {
    /// When a component runs.
    #[derive(Default)]
    pub enum TriggerKind {
        /// The event sources decide; without any, it fires once every epoch.
        #[default]
        Manual = "manual",
        /// Whenever one of its event sources has something.
        OnEvent = "on_event",
        /// Once for each message.
        AnyInput = "any_input",
        /// When there is a message at each input.
        AllInputs = "all_inputs",
        /// When the messages at its inputs are of the same time.
        TimeSync = "time_sync",
        /// When there are enough messages, or a window ends.
        Batch = "batch",
        /// Once for each request.
        Request = "request",
        /// Once for each finished task.
        TaskReady = "task_ready",
        /// Once for each message that is not too late.
        Watermark = "watermark",
        /// When a condition holds.
        Condition = "condition",
        /// When messages have stopped coming for a while.
        Debounce = "debounce",
        /// Once for each message, and not too often.
        RateLimit = "rate_limit",
    }
}

named! {
    /// What a `condition` trigger waits for.
    #[derive(Default)]
    pub enum Condition {
        /// A message at each input.
        #[default]
        AllInputsReady = "all_inputs_ready",
        /// A message at any input.
        AnyInputReady = "any_input_ready",
        /// A message with a timestamp.
        EventTimestampPresent = "event_timestamp_present",
    }
}

/// How a component is executed: its `execution`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The lane's id.
    pub lane: String,
    /// Whether two invocations may overlap.
    pub reentrant: bool,
    /// The class of its invocations.
    pub priority: Priority,
    /// What an invocation may take.
    pub budget: Duration,
    /// When an invocation is ended; zero: never.
    pub timeout: Duration,
    /// What an error does.
    pub on_error: OnError,
}

named! {
    /// The runtime priority of a component.
    #[derive(Default)]
    pub enum Priority {
        /// Before all others.
        High = "high",
        /// The default, after `high`.
        #[default]
        Normal = "normal",
        /// After those of `normal`.
        Low = "low",
        /// After all others.
        Background = "background",
    }
}

named! {
    /// What an error of a component does.
    #[derive(Default)]
    pub enum OnError {
        /// Ends the run.
        #[default]
        FailFast = "fail_fast",
        /// Discards what the invocation published.
        Continue = "continue",
        /// Also deactivates the component.
        Isolate = "isolate",
    }
}

impl Component {
    /// A component with every default: it runs once every epoch.
    pub fn new(
        id: impl Into<String>,
        type_name: impl Into<String>,
        lane: impl Into<String>,
    ) -> Component {
        Component {
            id: id.into(),
            type_name: type_name.into(),
            depends_on: Vec::new(),
            boundary: Boundary::default(),
            config: Config::new(),
            event_sources: vec![EventSource::default()],
            trigger: TriggerPolicy::default(),
            execution: Execution {
                lane: lane.into(),
                reentrant: false,
                priority: Priority::Normal,
                budget: Duration::ZERO,
                timeout: Duration::ZERO,
                on_error: OnError::FailFast,
            },
        }
    }

    /// The inputs of its trigger: those of the policy, or else those of its event sources.
    pub fn trigger_inputs(&self) -> impl Iterator<Item = &str> {
        let of_sources = self.trigger.inputs.is_empty();
        let sources = self
            .event_sources
            .iter()
            .filter(move |_| of_sources)
            .flat_map(|source| &source.inputs);
        self.trigger
            .inputs
            .iter()
            .chain(sources)
            .map(String::as_str)
    }
}
