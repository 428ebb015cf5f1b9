//! What a run did not deliver: one list for people and for `--strict`, out of what channels,
//! triggers, lanes and components have counted.

use std::fmt;

use crate::run::result::StopReason;
use crate::run::sinks::{RunView, Sinks};
use windlass_plan::model::{EdgeKind, Overflow, named};

/// Something that a run did not deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// What became of it.
    pub kind: LossKind,
    /// The edge, component or lane.
    pub subject: String,
    /// How many were not delivered.
    pub count: u64,
}

named! {
    /// What became of something that was not delivered.
    pub enum LossKind {
        /// A channel replaced values before they were read.
        Replaced = "replaced",
        /// A channel was full and did not take a message.
        Refused = "refused",
        /// Messages were older than the edge's `lifespan_ms`.
        Expired = "expired",
        /// A trigger dropped messages that waited, were late, or did not fit together.
        DroppedByTrigger = "dropped_by_trigger",
        /// A lane did not admit invocations; their messages are gone.
        NotAdmitted = "not_admitted",
        /// Invocations failed, and the run went on.
        Failed = "failed",
        /// The run is idle, and messages still wait at an edge or a trigger.
        LeftWaiting = "left_waiting",
        /// The run is idle, and a source was held off with records left.
        LeftInSource = "left_in_source",
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss {
            kind,
            subject,
            count,
        } = self;
        match kind {
            LossKind::Replaced => {
                write!(f, "edge {subject}: {count} replaced before they were read")
            }
            LossKind::Refused => write!(f, "edge {subject}: {count} refused"),
            LossKind::Expired => write!(f, "edge {subject}: {count} older than lifespan_ms"),
            LossKind::DroppedByTrigger => {
                write!(f, "component {subject}: {count} dropped by its trigger")
            }
            LossKind::NotAdmitted => write!(f, "lane {subject}: {count} invocations not admitted"),
            LossKind::Failed => write!(f, "component {subject}: {count} invocations failed"),
            LossKind::LeftWaiting => write!(f, "{subject}: {count} left waiting"),
            LossKind::LeftInSource => {
                write!(f, "component {subject}: held off with records left")
            }
        }
    }
}

impl Sinks {
    /// What was not delivered, in the order of the graph.
    pub(crate) fn losses(&self, view: RunView<'_>, reason: StopReason) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut add = |kind, subject: &str, count: u64| {
            if count > 0 {
                losses.push(Loss {
                    kind,
                    subject: subject.to_owned(),
                    count,
                });
            }
        };
        let graph = &self.plan.graph;
        for (place, edge) in graph.edges.iter().enumerate() {
            let counts = view.channels[place].counts();
            // With this policy a drop that is neither an eviction nor an expiry is a refusal.
            let dropped_newest = match edge.policy.overflow {
                Overflow::DropNewest => counts
                    .drop
                    .saturating_sub(counts.stale_drop.saturating_add(counts.lost)),
                _ => 0,
            };
            // A source publishes what an async edge did not take again.
            let is_source = self.plan.nodes[self.plan.edges[place].from]
                .inputs
                .is_empty();
            let not_accepted = match edge.kind {
                EdgeKind::Async if !is_source => view.channels[place].async_counts().rejected,
                _ => 0,
            };
            add(LossKind::Replaced, &edge.id, counts.lost);
            let refused = counts.reject + dropped_newest + not_accepted;
            add(LossKind::Refused, &edge.id, refused);
            add(LossKind::Expired, &edge.id, counts.stale_drop);
            if reason == StopReason::Idle {
                let waiting = view.channels[place].waiting() as u64;
                add(LossKind::LeftWaiting, &format!("edge {}", edge.id), waiting);
            }
        }
        for (place, component) in graph.components.iter().enumerate() {
            let id = &component.id;
            let counts = view.triggers.counts(place);
            let dropped = counts.pending_drop
                + counts.timeout_drop
                + counts.time_sync_drop
                + counts.late_drop
                + counts.condition_suppressed;
            add(LossKind::DroppedByTrigger, id, dropped);
            if reason != StopReason::Error {
                add(LossKind::Failed, id, self.counts.components[place].error);
            }
            if reason == StopReason::Idle {
                let waiting = view.triggers.waiting(place) as u64;
                add(LossKind::LeftWaiting, &format!("component {id}"), waiting);
                let is_source = view.members.is_finite_source(place);
                let left = is_source && view.members.may_finish(place);
                add(LossKind::LeftInSource, id, u64::from(left));
            }
        }
        for (lane, state) in graph.lanes.iter().zip(view.lanes.iter()) {
            add(LossKind::NotAdmitted, &lane.id, state.counts().rejected);
        }
        losses
    }
}
