//! Health events: what went wrong without ending the run. The same thing at the same place is one
//! event with a count, and there is a limit on how many there are.

use crate::run::sinks::sink::{EpochBegin, Sink};
use windlass_plan::compile::Plan;
use windlass_plan::model::named;

named! {
    /// What kind of thing went wrong.
    pub enum HealthKind {
        /// A channel lost or refused a message.
        ChannelOverflow = "channel_overflow",
        /// A message was too old to be delivered.
        ChannelStaleDrop = "channel_stale_drop",
        /// A message was delivered after its deadline.
        ChannelDeadlineMiss = "channel_deadline_miss",
        /// A queue is nearly full.
        BackpressureHighWatermark = "backpressure_high_watermark",
        /// A task was not taken.
        TaskReject = "task_reject",
        /// A lane did not admit an invocation.
        SchedulerReject = "scheduler_reject",
        /// A tick on the real clock ended after its deadline.
        LaneDeadlineMiss = "lane_deadline_miss",
    }
}

/// What a health event is about: where something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthSubject {
    /// At an edge.
    Channel(u32),
    /// At a component, whose lane is known.
    Component(u32),
    /// At a lane.
    Lane(u32),
}

/// Something that went wrong, perhaps more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthEvent {
    /// What went wrong.
    pub kind: HealthKind,
    /// The component, or the empty text.
    pub component_id: String,
    /// The channel, or the empty text.
    pub channel_id: String,
    /// The lane, or the empty text.
    pub lane: String,
    /// How often it happened.
    pub count: u64,
    /// The first epoch.
    pub first_epoch: u64,
    /// The last epoch.
    pub last_epoch: u64,
}

/// The events of a run while it goes on.
#[derive(Debug)]
pub(crate) struct Health {
    enabled: bool,
    capacity: usize,
    events: Vec<HealthRecord>,
    /// Events since the last `take_fresh`, to be traced.
    fresh: Vec<(HealthKind, HealthSubject)>,
    keep_fresh: bool,
    pub(crate) raised: u64,
    pub(crate) coalesced: u64,
    pub(crate) dropped: u64,
    /// The epoch that has begun last.
    epoch: u64,
}

#[derive(Debug, Clone, Copy)]
struct HealthRecord {
    kind: HealthKind,
    subject: HealthSubject,
    count: u64,
    first_epoch: u64,
    last_epoch: u64,
}

/// How many different events a run keeps unless the graph says otherwise.
const CAPACITY: usize = 64;

impl Sink for Health {
    fn epoch_begin(&mut self, event: &EpochBegin) {
        self.epoch = event.epoch;
    }
}

impl Health {
    /// Returns an empty one for what happens ahead of its turn in this epoch.
    pub(crate) fn ahead(&self, plan: &Plan) -> Health {
        Health {
            epoch: self.epoch,
            ..Health::new(plan, false)
        }
    }

    pub(crate) fn new(plan: &Plan, keep_fresh: bool) -> Health {
        let config = &plan.graph.config;
        let enabled = config
            .get("emit_health_events")
            .and_then(|value| value.as_bool())
            .unwrap_or(true);
        let capacity = config
            .get("health_event_capacity")
            .and_then(|value| value.as_u64())
            .map_or(CAPACITY, |capacity| capacity as usize);
        Health {
            enabled,
            capacity,
            events: Vec::new(),
            fresh: Vec::new(),
            keep_fresh,
            raised: 0,
            coalesced: 0,
            dropped: 0,
            epoch: 0,
        }
    }

    pub(crate) fn raise(&mut self, kind: HealthKind, subject: HealthSubject) {
        self.raise_many(kind, subject, 1);
    }

    fn raise_many(&mut self, kind: HealthKind, subject: HealthSubject, count: u64) {
        if !self.enabled {
            return;
        }
        self.raised += count;
        let there = self
            .events
            .iter_mut()
            .find(|event| event.kind == kind && event.subject == subject);
        if let Some(event) = there {
            event.count += count;
            event.last_epoch = self.epoch;
            self.coalesced += count;
            return;
        }
        if self.events.len() >= self.capacity {
            self.dropped += count;
            return;
        }
        self.events.push(HealthRecord {
            kind,
            subject,
            count,
            first_epoch: self.epoch,
            last_epoch: self.epoch,
        });
        self.coalesced += count - 1;
        if self.keep_fresh {
            self.fresh.push((kind, subject));
        }
    }

    /// Returns the events since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<(HealthKind, HealthSubject)> {
        std::mem::take(&mut self.fresh)
    }

    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Takes in what another part of the run has seen.
    pub(crate) fn merge(&mut self, other: &mut Health) {
        for event in other.events.drain(..) {
            self.raise_many(event.kind, event.subject, event.count);
        }
    }

    pub(crate) fn report(&self, plan: &Plan) -> Vec<HealthEvent> {
        let describe = |event: &HealthRecord| {
            let (component, channel) = match event.subject {
                HealthSubject::Channel(edge) => {
                    (Some(plan.edges[edge as usize].to), Some(edge as usize))
                }
                HealthSubject::Component(component) => (Some(component as usize), None),
                HealthSubject::Lane(_) => (None, None),
            };
            let component = component.map(|component| &plan.graph.components[component]);
            let lane = match (event.subject, component) {
                (HealthSubject::Lane(lane), _) => plan.graph.lanes[lane as usize].id.clone(),
                (_, Some(component)) => component.execution.lane.clone(),
                (_, None) => String::new(),
            };
            HealthEvent {
                kind: event.kind,
                component_id: component.map_or_else(String::new, |c| c.id.clone()),
                channel_id: channel.map_or_else(String::new, |e| plan.graph.edges[e].id.clone()),
                lane,
                count: event.count,
                first_epoch: event.first_epoch,
                last_epoch: event.last_epoch,
            }
        };
        self.events.iter().map(describe).collect()
    }
}
