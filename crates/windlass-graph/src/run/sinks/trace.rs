//! The trace of a run: what happened, in order. Events are small while the run goes on; names are
//! filled in when the trace is read.

use std::collections::HashMap;
use std::io;

use serde_json::{Map, Value, json};

use crate::component::{MessageId, PackedId};
use windlass_plan::compile::Plan;
use windlass_plan::model::named;
use windlass_record::Digest;

named! {
    /// What kind of event it is.
    pub enum TraceName {
        /// An epoch began.
        SchedulerIterationBegin = "scheduler_iteration_begin",
        /// An epoch, as a span.
        SchedulerIteration = "scheduler_iteration",
        /// An epoch ended.
        SchedulerIterationEnd = "scheduler_iteration_end",
        /// An invocation began.
        ComponentExecuteBegin = "component_execute_begin",
        /// An invocation, as a span.
        ComponentExecute = "component_execute",
        /// An invocation ended.
        ComponentExecuteEnd = "component_execute_end",
        /// An invocation was asked to end.
        ComponentCancellationRequested = "component_cancellation_requested",
        /// An invocation saw that.
        ComponentCancellationObserved = "component_cancellation_observed",
        /// An invocation took longer than its budget.
        ComponentTimeoutBudgetExceeded = "component_timeout_budget_exceeded",
        /// An invocation was ended: it took longer than it may.
        ComponentTimeout = "component_timeout",
        /// The invocations that a lane's workers ran together.
        ThreadPoolBatch = "thread_pool_batch",
        /// A tick of a lane began.
        FixedRateTickBegin = "fixed_rate_tick_begin",
        /// A tick of a lane, as a span.
        FixedRateTick = "fixed_rate_tick",
        /// A tick of a lane ended.
        FixedRateTickEnd = "fixed_rate_tick_end",
        /// A tick took longer than its budget.
        FixedRateOverrun = "fixed_rate_overrun",
        /// A tick was left out.
        FixedRateSkippedTick = "fixed_rate_skipped_tick",
        /// A tick on the real clock ended after its deadline.
        FixedRateDeadlineMiss = "fixed_rate_deadline_miss",
        /// A loop was asked to end.
        LoopCancellationRequested = "loop_cancellation_requested",
        /// A loop saw that.
        LoopCancellationObserved = "loop_cancellation_observed",
        /// A message was staged.
        ChannelPublish = "channel_publish",
        /// A message became visible.
        ChannelCommit = "channel_commit",
        /// A value of the state store became visible.
        StateCommit = "state_commit",
        /// An async edge took a message, or not.
        AsyncAdmission = "async_admission",
        /// A new configuration was looked at.
        ConfigTransactionValidate = "config_transaction_validate",
        /// A new configuration was given to a component.
        ConfigTransactionApply = "config_transaction_apply",
        /// The old configuration was given back.
        ConfigTransactionRollback = "config_transaction_rollback",
        /// A new configuration holds.
        ConfigTransactionCommit = "config_transaction_commit",
        /// A pass of a loop, as a span.
        LoopIteration = "loop_iteration",
        /// A pass of a loop began.
        LoopIterationBegin = "loop_iteration_begin",
        /// A pass of a loop ended.
        LoopIterationEnd = "loop_iteration_end",
        /// A loop is done.
        LoopConverged = "loop_converged",
        /// A loop took longer than its budget.
        LoopBudgetOverrun = "loop_budget_overrun",
        /// A loop went round as often as it may.
        LoopMaxIterationsHit = "loop_max_iterations_hit",
        /// What a loop published was thrown away.
        LoopOutputDiscarded = "loop_output_discarded",
        /// A member of a loop failed.
        LoopError = "loop_error",
        /// A component went on from a snapshot.
        ComponentRestore = "component_restore",
        /// A component forgot what it had seen.
        ComponentReset = "component_reset",
        /// A component gave a snapshot.
        ComponentSnapshot = "component_snapshot",
        /// Something went wrong without ending the run.
        HealthEvent = "health_event",
    }
}

/// No component, channel, lane or worker.
pub(crate) const NONE: u32 = u32::MAX;

/// Something that happened, by numbers.
#[derive(Debug, Clone)]
pub(crate) struct TraceRecord {
    pub(crate) name: TraceName,
    pub(crate) component: u32,
    pub(crate) channel: u32,
    pub(crate) lane: u32,
    pub(crate) worker: u32,
    pub(crate) epoch: u64,
    pub(crate) transaction: u64,
    pub(crate) correlation: Option<PackedId>,
    pub(crate) causation: Option<PackedId>,
    /// On the real clock.
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) attributes: Vec<(&'static str, Value)>,
}

impl TraceRecord {
    pub(crate) fn new(name: TraceName, epoch: u64, start: u64) -> TraceRecord {
        TraceRecord {
            name,
            component: NONE,
            channel: NONE,
            lane: NONE,
            worker: NONE,
            epoch,
            transaction: 0,
            correlation: None,
            causation: None,
            start,
            duration: 0,
            attributes: Vec::new(),
        }
    }

    /// Adds what depends on no clock to a hash.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
        let by_the_clock = matches!(
            self.name,
            TraceName::ComponentCancellationRequested
                | TraceName::ComponentTimeoutBudgetExceeded
                | TraceName::FixedRateOverrun
                | TraceName::FixedRateSkippedTick
                | TraceName::FixedRateDeadlineMiss
                | TraceName::HealthEvent
        );
        if by_the_clock {
            return;
        }
        digest.bytes(self.name.name().as_bytes());
        for number in [self.component, self.channel, self.lane] {
            digest.number(u64::from(number));
        }
        digest.number(self.epoch);
        digest.number(self.transaction);
        for id in [self.correlation, self.causation] {
            let id = id.map(PackedId::open);
            digest.number(id.map_or(0, |id| u64::from(id.edge) + 1));
            digest.number(id.map_or(0, |id| id.seq));
        }
    }
}

/// The trace of a run that has ended.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// What happened, in order.
    pub events: Vec<TraceEvent>,
    /// What came after the trace was full.
    pub dropped: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceEvent {
    /// What kind of event it is.
    pub name: TraceName,
    /// The id of the run.
    pub trace_id: String,
    /// The part of the run it belongs to.
    pub phase: &'static str,
    /// The id of the component; may be empty.
    pub component_id: String,
    /// The id of the edge; may be empty.
    pub channel_id: String,
    /// The id of the lane; may be empty.
    pub lane: String,
    /// On which of the lane's workers.
    pub worker_id: Option<u32>,
    /// The number of the epoch, from 1; 0 outside.
    pub epoch_id: u64,
    /// The number of the invocation, from 1; 0 outside.
    pub transaction_id: u64,
    /// The first message of the chain; may be empty.
    pub correlation_id: String,
    /// The message that led to it; may be empty.
    pub causation_id: String,
    /// Since the run began.
    pub start_offset_ns: u64,
    /// Of a span.
    pub duration_ns: u64,
    /// What else there is to say.
    pub attributes: Map<String, Value>,
}

impl TraceName {
    /// The part of a run that it belongs to.
    pub fn phase(self) -> &'static str {
        match self.name().split_once('_').map(|(first, _)| first) {
            Some("scheduler" | "thread" | "fixed") => "scheduler",
            Some("component") => "component",
            Some("channel" | "async") => "channel",
            Some("state") => "state",
            Some("config") => "config",
            Some("loop") => "loop",
            _ => "health",
        }
    }

    /// Whether it has a duration, rather than being an instant.
    pub fn is_span(self) -> bool {
        matches!(
            self,
            TraceName::SchedulerIteration
                | TraceName::ComponentExecute
                | TraceName::ThreadPoolBatch
                | TraceName::FixedRateTick
                | TraceName::LoopIteration
        )
    }
}

impl Trace {
    /// Events with names instead of numbers.
    pub(crate) fn resolve_all(
        events: &[TraceRecord],
        plan: &Plan,
        began: u64,
    ) -> impl Iterator<Item = TraceEvent> {
        let graph = &plan.graph;
        let name_of = |place: u32, name: &dyn Fn(usize) -> String| match place {
            NONE => String::new(),
            place => name(place as usize),
        };
        let message = |id: Option<PackedId>| id.map_or_else(String::new, |m| m.open().name(plan));
        events.iter().map(move |event| TraceEvent {
            name: event.name,
            trace_id: format!("{}#1", graph.name),
            phase: event.name.phase(),
            component_id: name_of(event.component, &|c| graph.components[c].id.clone()),
            channel_id: name_of(event.channel, &|e| graph.edges[e].id.clone()),
            lane: name_of(event.lane, &|l| graph.lanes[l].id.clone()),
            worker_id: (event.worker != NONE).then_some(event.worker),
            epoch_id: event.epoch,
            transaction_id: event.transaction,
            correlation_id: message(event.correlation),
            causation_id: message(event.causation),
            start_offset_ns: event.start.saturating_sub(began),
            duration_ns: event.duration,
            attributes: event
                .attributes
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
        })
    }

    /// Writes it as JSON, with every field of every event; one at a time, so that it takes no more
    /// memory.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let count = self.events.len() as u64 + self.dropped;
        write!(
            out,
            "{{\"dropped\":{},\"event_count\":{count},\"events\":[",
            self.dropped
        )?;
        for (nth, event) in self.events.iter().enumerate() {
            separate(out, nth)?;
            serde_json::to_writer(&mut *out, &event.to_json())?;
        }
        writeln!(out, "\n],\"trace_schema_version\":\"1\"}}")
    }

    /// Writes it in the format of Chrome's tracing, which Perfetto opens.
    pub fn write_chrome(&self, out: &mut dyn io::Write) -> io::Result<()> {
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut threads: HashMap<String, usize> = HashMap::new();
        for (nth, event) in self.events.iter().enumerate() {
            let known = threads.len();
            let tid = *threads.entry(event.thread()).or_insert(known + 1);
            separate(out, nth)?;
            let event = json!({
                "name": event.name.name(),
                "cat": event.phase,
                "ph": "X",
                "ts": event.start_offset_ns as f64 / 1e3,
                "dur": event.duration_ns as f64 / 1e3,
                "pid": 1,
                "tid": tid,
                "args": event.to_json(),
            });
            serde_json::to_writer(&mut *out, &event)?;
        }
        let mut names: Vec<(usize, String)> = threads.into_iter().map(|(n, t)| (t, n)).collect();
        names.sort();
        for (tid, name) in names {
            separate(out, self.events.len())?;
            let name = json!({
                "name": "thread_name",
                "ph": "M",
                "pid": 1,
                "tid": tid,
                "args": { "name": name },
            });
            serde_json::to_writer(&mut *out, &name)?;
        }
        writeln!(out, "\n]}}")
    }
}

/// Begins the line of the next event.
fn separate(out: &mut dyn io::Write, nth: usize) -> io::Result<()> {
    out.write_all(if nth == 0 { b"\n" } else { b",\n" })
}

impl TraceEvent {
    /// The line of Chrome's picture that it is drawn on.
    fn thread(&self) -> String {
        let place = [&self.channel_id, &self.component_id, &self.lane];
        match place.into_iter().find(|id| !id.is_empty()) {
            Some(id) => format!("{}: {id}", self.phase),
            None => self.phase.to_owned(),
        }
    }

    /// As JSON, with every field.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name.name(),
            "trace_id": self.trace_id,
            "phase": self.phase,
            "component_id": self.component_id,
            "channel_id": self.channel_id,
            "lane": self.lane,
            "worker_id": self.worker_id,
            "epoch_id": self.epoch_id,
            "transaction_id": self.transaction_id,
            "correlation_id": self.correlation_id,
            "causation_id": self.causation_id,
            "start_offset_ns": self.start_offset_ns,
            "duration_ns": self.duration_ns,
            "attributes": self.attributes,
        })
    }
}

impl MessageId {
    /// Returns the name of the message: `edge#number`.
    pub fn name(self, plan: &Plan) -> String {
        format!("{}#{}", plan.graph.edges[self.edge as usize].id, self.seq)
    }
}
