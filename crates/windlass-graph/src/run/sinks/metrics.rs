//! What a run counted, as samples with names.

use serde_json::{Map, Value, json};

use crate::run::sinks::{RunView, Sinks};
use windlass_plan::model::LaneKind;

/// The version of the samples' fields.
pub const METRIC_SCHEMA_VERSION: &str = "1";

/// What a run counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    /// In a fixed order: by lane, component, trigger, channel, loop, then the run's own.
    pub samples: Vec<Sample>,
}

/// A number with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Such as `runtime.channel.publish_count`.
    pub name: &'static str,
    /// The number itself.
    pub value: f64,
    /// Of which component; may be empty.
    pub component_id: String,
    /// Of which lane; may be empty.
    pub lane: String,
    /// Of which edge; may be empty.
    pub channel_id: String,
    /// What else there is to say.
    pub tags: Vec<(&'static str, String)>,
}

impl Metrics {
    /// The sum of all samples of this name.
    pub fn sum(&self, name: &str) -> f64 {
        let named = self.samples.iter().filter(|sample| sample.name == name);
        named.map(|sample| sample.value).sum()
    }

    /// The value of this name for one component, lane or channel.
    pub fn of(&self, name: &str, id: &str) -> Option<f64> {
        let belongs = |s: &&Sample| {
            s.name == name
                && (s.component_id == id
                    || s.lane == id
                    || s.channel_id == id
                    || s.tags.iter().any(|(_, value)| value == id))
        };
        self.samples.iter().find(belongs).map(|sample| sample.value)
    }

    /// Returns all samples as JSON.
    pub fn to_json(&self) -> Value {
        let sample = |s: &Sample| {
            let tags: Map<String, Value> = s
                .tags
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(value)))
                .collect();
            json!({
                "name": s.name,
                "value": number(s.value),
                "component_id": s.component_id,
                "lane": s.lane,
                "channel_id": s.channel_id,
                "tags": tags,
            })
        };
        json!({
            "metric_schema_version": METRIC_SCHEMA_VERSION,
            "samples": self.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    }
}

/// Whole numbers without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Collects samples of one subject.
struct Subject<'a> {
    samples: &'a mut Vec<Sample>,
    component_id: &'a str,
    lane: &'a str,
    channel_id: &'a str,
    tags: Vec<(&'static str, String)>,
}

impl Subject<'_> {
    fn add(&mut self, name: &'static str, value: f64) {
        self.samples.push(Sample {
            name,
            value,
            component_id: self.component_id.to_owned(),
            lane: self.lane.to_owned(),
            channel_id: self.channel_id.to_owned(),
            tags: self.tags.clone(),
        });
    }
}

macro_rules! add {
    ($subject:expr, $( $name:literal: $value:expr ),+ $(,)?) => {{
        let subject = &mut $subject;
        $( subject.add($name, $value as f64); )+
    }};
}

const NS_PER_MS: f64 = 1e6;

impl Sinks {
    /// What has been counted so far.
    pub(crate) fn metrics(&self, view: RunView<'_>) -> Metrics {
        let mut samples = Vec::new();
        self.lane_metrics(view, &mut samples);
        self.component_metrics(view, &mut samples);
        self.channel_metrics(view, &mut samples);
        self.loop_metrics(&mut samples);
        self.run_metrics(view, &mut samples);
        Metrics { samples }
    }

    fn lane_metrics(&self, view: RunView<'_>, samples: &mut Vec<Sample>) {
        for (lane, state) in self.plan.graph.lanes.iter().zip(view.lanes.iter()) {
            let counts = state.counts();
            let pooled = matches!(
                state.kind(),
                LaneKind::ThreadPool | LaneKind::IsolatedThread
            );
            let [high, normal, low, background] = counts.completed_by_priority;
            add!(subject(samples, "", &lane.id, ""),
                "runtime.scheduler.tick_count": counts.ticks,
                "runtime.scheduler.completed_count": counts.completed,
                "runtime.scheduler.tick_overrun_count": counts.overruns,
                "runtime.scheduler.skipped_tick_count": counts.skipped_ticks,
                "runtime.scheduler.deadline_miss_count": counts.deadline_misses,
                "runtime.scheduler.max_lateness_ms": counts.max_lateness_ns as f64 / NS_PER_MS,
                "runtime.scheduler.lateness_p50_ms": state.lateness_at(0.5) as f64 / NS_PER_MS,
                "runtime.scheduler.lateness_p99_ms": state.lateness_at(0.99) as f64 / NS_PER_MS,
                "runtime.scheduler.queue_depth": counts.queue_depth,
                "runtime.scheduler.queue_capacity": if pooled { lane.queue_capacity } else { 0 },
                "runtime.scheduler.worker_count": counts.workers,
                "runtime.scheduler.last_callback_duration_ms": counts.last_callback_ns as f64 / NS_PER_MS,
                "runtime.scheduler.blocked_duration_ms": counts.blocked_ns as f64 / NS_PER_MS,
                "runtime.scheduler.tick_jitter_ms": counts.jitter_ns as f64 / NS_PER_MS,
                "runtime.scheduler.active_count": counts.active,
                "runtime.scheduler.in_flight_count": counts.in_flight,
                "runtime.scheduler.rejected_count": counts.rejected,
                "runtime.scheduler.priority_high_count": high,
                "runtime.scheduler.priority_normal_count": normal,
                "runtime.scheduler.priority_low_count": low,
                "runtime.scheduler.priority_background_count": background,
                "runtime.scheduler.low_priority_rejected_count": counts.low_priority_rejected,
                "runtime.scheduler.starvation_guard_count": counts.starvation_guard,
            );
        }
    }

    fn component_metrics(&self, view: RunView<'_>, samples: &mut Vec<Sample>) {
        for (place, component) in self.plan.graph.components.iter().enumerate() {
            let (id, lane) = (&component.id, &component.execution.lane);
            let counts = &self.counts.components[place];
            add!(subject(samples, id, lane, ""),
                "runtime.component.execution_count": counts.execution,
                "runtime.component.error_count": counts.error,
                "runtime.component.last_duration_ns": counts.last_duration_ns,
                "runtime.component.max_duration_ns": counts.max_duration_ns,
                "runtime.component.budget_overrun_count": counts.budget_overrun,
                "runtime.component.cancellation_requested_count": counts.cancellation_requested,
                "runtime.component.cancellation_observed_count": counts.cancellation_observed,
                "runtime.component.timeout_budget_exceeded_count": counts.timeout_budget_exceeded,
                "runtime.component.max_in_flight_count": counts.max_in_flight,
            );
            if !component.execution.timeout.is_zero() {
                add!(subject(samples, id, lane, ""),
                    "runtime.component.timeout_count": counts.timeout,
                );
            }
            if counts.unconnected_publish > 0 {
                add!(subject(samples, id, lane, ""),
                    "runtime.component.unconnected_publish_count": counts.unconnected_publish,
                );
            }
            let counts = view.triggers.counts(place);
            add!(subject(samples, id, lane, ""),
                "runtime.trigger.ready_count": counts.ready,
                "runtime.trigger.suppressed_count": counts.suppressed,
                "runtime.trigger.coalesced_count": counts.coalesced,
                "runtime.trigger.timeout_drop_count": counts.timeout_drop,
                "runtime.trigger.batch_flush_count": counts.batch_flush,
                "runtime.trigger.time_sync_drop_count": counts.time_sync_drop,
                "runtime.trigger.late_drop_count": counts.late_drop,
                "runtime.trigger.pending_drop_count": counts.pending_drop,
                "runtime.trigger.condition_suppressed_count": counts.condition_suppressed,
                "runtime.trigger.rate_limit_suppressed_count": counts.rate_limit_suppressed,
                "runtime.trigger.waiting": view.triggers.waiting(place),
            );
        }
    }

    fn channel_metrics(&self, view: RunView<'_>, samples: &mut Vec<Sample>) {
        for (place, edge) in self.plan.graph.edges.iter().enumerate() {
            let counts = view.channels[place].counts();
            add!(subject(samples, "", "", &edge.id),
                "runtime.channel.publish_count": counts.publish,
                "runtime.channel.delivery_count": counts.delivery,
                "runtime.channel.drop_count": counts.drop,
                "runtime.channel.deadline_miss_count": counts.deadline_miss,
                "runtime.channel.stale_drop_count": counts.stale_drop,
                "runtime.channel.reject_count": counts.reject,
                "runtime.channel.overwrite_count": counts.overwrite,
                "runtime.channel.lost_count": counts.lost,
                "runtime.channel.health_event_count": counts.health_event,
                "runtime.channel.payload_copy_count": counts.payload_copy,
                "runtime.channel.max_depth": counts.max_depth,
                "runtime.channel.waiting": view.channels[place].waiting(),
                "runtime.channel.message_age_ms": counts.message_age as f64 / NS_PER_MS,
            );
            if edge.kind == windlass_plan::model::EdgeKind::Async {
                let counts = view.channels[place].async_counts();
                add!(subject(samples, "", "", &edge.id),
                    "runtime.async.accepted_count": counts.accepted,
                    "runtime.async.rejected_count": counts.rejected,
                    "runtime.async.dropped_count": counts.dropped,
                    "runtime.async.overwrite_count": counts.overwrite,
                    "runtime.async.in_flight_count": counts.in_flight,
                    "runtime.async.max_in_flight_count": counts.max_in_flight,
                    "runtime.async.completed_count": counts.completed,
                    "runtime.async.cancelled_count": counts.cancelled,
                );
            }
        }
    }

    fn loop_metrics(&self, samples: &mut Vec<Sample>) {
        for (composite, counts) in self.plan.graph.loops.iter().zip(&self.counts.loops) {
            let mut of = subject(samples, "", "", "");
            of.tags.push(("loop", composite.id.clone()));
            let reason = counts.stop_reason.unwrap_or("not_started");
            of.tags.push(("loop_stop_reason", reason.to_owned()));
            add!(of,
                "runtime.loop.iterations": counts.iterations,
                "runtime.loop.converged": counts.converged,
                "runtime.loop.budget_overrun": counts.budget_overrun,
                "runtime.loop.max_iterations_hit": counts.max_iterations_hit,
                "runtime.loop.error": counts.error,
                "runtime.loop.cancellation_requested": counts.cancellation_requested,
                "runtime.loop.cancellation_observed": counts.cancellation_observed,
                "runtime.loop.output_discarded": counts.output_discarded,
                "runtime.loop.residual": counts.residual.unwrap_or(0.0),
            );
        }
    }

    fn run_metrics(&self, view: RunView<'_>, samples: &mut Vec<Sample>) {
        let observer = self.observer();
        let observed = observer
            .map(|observer| observer.counts())
            .unwrap_or_default();
        let failed = observer.map_or(0, |observer| observer.failures().len());
        let publication = &self.counts.publication;
        let run = &self.counts.run;
        add!(subject(samples, "", "", ""),
            "runtime.publication.staged": publication.staged,
            "runtime.publication.committed": publication.committed,
            "runtime.publication.delayed": publication.delayed,
            "runtime.publication.state": publication.state,
            "runtime.publication.state_committed": publication.state_committed,
            "runtime.publication.async": publication.asynchronous,
            "runtime.publication.failed_commit": publication.failed_commit,
            "runtime.publication.composite_discarded": publication.composite_discarded,
            "runtime.publication.error_discarded": publication.error_discarded,
            "runtime.health.event_count": self.health.raised,
            "runtime.health.coalesced_count": self.health.coalesced,
            "runtime.health.dropped_count": self.health.dropped,
            "runtime.state.key_count": view.env.store.len(),
            "runtime.state.commit_count": run.store_commits,
            "runtime.config.validate_count": run.config_validated,
            "runtime.config.apply_count": run.config_applied,
            "runtime.config.rollback_count": run.config_rolled_back,
            "runtime.config.commit_count": run.config_committed,
            "runtime.config.unapplied_count": view.inbox.unapplied(),
            "runtime.lifecycle.activated_count": run.activated,
            "runtime.lifecycle.deactivated_count": run.deactivated,
            "runtime.lifecycle.restored_count": run.restored,
            "runtime.lifecycle.reset_count": run.reset,
            "runtime.lifecycle.snapshot_count": run.snapshots,
            "runtime.lifecycle.isolated_count": run.isolated,
            "runtime.trace.event_count": self.trace.count(),
            "runtime.trace.dropped_count": self.trace.dropped(),
            "runtime.observer.event_count": observed.events,
            "runtime.observer.dropped_count": observed.dropped,
            "runtime.observer.assertion_failure_count": failed,
        );
    }
}

fn subject<'a>(
    samples: &'a mut Vec<Sample>,
    component_id: &'a str,
    lane: &'a str,
    channel_id: &'a str,
) -> Subject<'a> {
    Subject {
        samples,
        component_id,
        lane,
        channel_id,
        tags: Vec::new(),
    }
}
