//! What a run tells its observer: see [`crate::observe`].

use windlass_core::sync::clock;

use super::counts::ComponentCounts;
use super::machine::Machine;
use super::result::StopReason;
use super::trace::Trace;
use crate::observe::{Level, Observed, Observer};

/// What the observer of a run has been told.
#[derive(Debug)]
pub(crate) struct Observing {
    observer: Observer,
    components: Vec<ComponentCounts>,
    /// Published, delivered, dropped and refused, by edge.
    edges: Vec<[u64; 4]>,
    lanes: Vec<u64>,
    loops: Vec<u64>,
    staged: u64,
    committed: u64,
    ticks: u64,
    /// The last epoch that was reported.
    epoch: u64,
    /// When that was; none before the first.
    reported: Option<u64>,
    errors: usize,
    raised: u64,
    health: Vec<u64>,
    /// Events of the trace that it has been told.
    traced: usize,
}

impl Observing {
    pub(crate) fn new(observer: Observer) -> Observing {
        Observing {
            observer,
            components: Vec::new(),
            edges: Vec::new(),
            lanes: Vec::new(),
            loops: Vec::new(),
            staged: 0,
            committed: 0,
            ticks: 0,
            epoch: 0,
            reported: None,
            errors: 0,
            raised: 0,
            health: Vec::new(),
            traced: 0,
        }
    }
}

impl Machine {
    pub(crate) fn observe_start(&mut self) {
        let Some(observing) = &self.observing else {
            return;
        };
        let event = Observed::new("run_started", 0, 0).with("graph", self.plan.graph.name.as_str());
        observing.observer.take(Level::Summary, event);
    }

    /// An epoch has ended; gives whether the run should.
    pub(crate) fn observe_epoch(&mut self) -> bool {
        let Some(mut observing) = self.observing.take() else {
            return false;
        };
        let at = clock::now().saturating_sub(self.began);
        self.observe_faults(&mut observing, at);
        if observing.observer.wants(Level::Debug) {
            self.observe_trace(&mut observing);
        }
        let interval = observing.observer.interval();
        let early = |reported: u64| at.saturating_sub(reported) < interval;
        if !observing.reported.is_some_and(early) {
            self.report_epochs(&mut observing, at);
        }
        let stops = observing.observer.stops();
        self.observing = Some(observing);
        stops
    }

    /// Says what happened since the last report.
    fn report_epochs(&self, observing: &mut Observing, at: u64) {
        observing.reported = Some(at);
        if observing.observer.wants(Level::Detailed) {
            self.observe_parts(observing, at);
        }
        self.observe_whole(observing, at);
    }

    fn observe_trace(&mut self, observing: &mut Observing) {
        let fresh = self.trace.since(observing.traced);
        for event in Trace::resolve_all(fresh, &self.plan, self.began) {
            let mut seen = Observed::new(event.name.name(), event.epoch_id, event.start_offset_ns);
            (seen.component_id, seen.channel_id) = (event.component_id, event.channel_id);
            seen.lane = event.lane;
            seen.attributes = event.attributes;
            let seen = seen
                .with("transaction_id", event.transaction_id)
                .with("duration_ns", event.duration_ns);
            observing.observer.take(Level::Debug, seen);
        }
        observing.traced = self.trace.forget_unwanted();
    }

    /// What components, edges, lanes and loops did.
    fn observe_parts(&self, observing: &mut Observing, at: u64) {
        let graph = &self.plan.graph;
        let epoch = self.env.epoch;
        let event = |name: &str| Observed::new(name, epoch, at);
        observing
            .components
            .resize_with(graph.components.len(), Default::default);
        for (place, before) in observing.components.iter_mut().enumerate() {
            let now = &self.counts.components[place];
            if now.execution == before.execution {
                continue;
            }
            let component = &graph.components[place];
            let mut seen = event("component")
                .with("invocations", now.execution - before.execution)
                .with("errors", now.error - before.error)
                .with("last_duration_ns", now.last_duration_ns);
            seen.component_id.clone_from(&component.id);
            seen.lane.clone_from(&component.execution.lane);
            *before = *now;
            observing.observer.take(Level::Detailed, seen);
        }
        observing.edges.resize(graph.edges.len(), [0; 4]);
        for (place, before) in observing.edges.iter_mut().enumerate() {
            let counts = &self.channels[place].counts;
            let now = [counts.publish, counts.delivery, counts.drop, counts.reject];
            if now == *before {
                continue;
            }
            let mut seen = event("channel").with("depth", self.channels[place].waiting());
            let names = ["published", "delivered", "dropped", "rejected"];
            for ((name, now), before) in names.iter().zip(now).zip(*before) {
                seen = seen.with(name, now - before);
            }
            seen.channel_id.clone_from(&graph.edges[place].id);
            *before = now;
            observing.observer.take(Level::Detailed, seen);
        }
        observing.lanes.resize(graph.lanes.len(), 0);
        for (place, before) in observing.lanes.iter_mut().enumerate() {
            let lane = &self.lanes[place];
            if lane.cadence_on_clock.is_none() || lane.counts.ticks == *before {
                continue;
            }
            *before = lane.counts.ticks;
            let mut seen = event("lane")
                .with("overruns", lane.counts.overruns)
                .with("skipped", lane.counts.skipped_ticks)
                .with("deadline_misses", lane.counts.deadline_misses)
                .with("jitter_ns", lane.counts.jitter_ns);
            seen.lane.clone_from(&graph.lanes[place].id);
            observing.observer.take(Level::Detailed, seen);
        }
        observing.loops.resize(graph.loops.len(), 0);
        for (place, before) in observing.loops.iter_mut().enumerate() {
            let counts = &self.counts.loops[place];
            if counts.runs == *before {
                continue;
            }
            *before = counts.runs;
            let seen = event("loop")
                .with("loop", graph.loops[place].id.as_str())
                .with("iterations", counts.iterations)
                .with("stop_reason", counts.stop_reason.unwrap_or_default());
            observing.observer.take(Level::Detailed, seen);
        }
    }

    /// What went wrong is said at once.
    fn observe_faults(&self, observing: &mut Observing, at: u64) {
        let epoch = self.env.epoch;
        for error in &self.errors[observing.errors.min(self.errors.len())..] {
            let mut seen = Observed::new("error", epoch, at)
                .with("phase", error.phase.as_str())
                .with("code", error.code.name())
                .with("message", error.message.as_str())
                .with("fatal", error.fatal);
            seen.component_id.clone_from(&error.component_id);
            seen.lane.clone_from(&error.lane);
            observing.observer.take(Level::Summary, seen);
        }
        observing.errors = self.errors.len();
        // At the level of a trace they are among its events.
        if self.health.raised != observing.raised && !observing.observer.wants(Level::Debug) {
            observing.raised = self.health.raised;
            self.observe_health(observing, at);
        }
    }

    /// What the whole run did.
    fn observe_whole(&self, observing: &mut Observing, at: u64) {
        let epoch = self.env.epoch;
        let publication = &self.counts.publication;
        let seen = Observed::new("epoch", epoch, at)
            .with("epochs", epoch - observing.epoch)
            .with("invocations", self.ticks - observing.ticks)
            .with("staged", publication.staged - observing.staged)
            .with("committed", publication.committed - observing.committed);
        observing.epoch = epoch;
        observing.ticks = self.ticks;
        (observing.staged, observing.committed) = (publication.staged, publication.committed);
        observing.observer.take(Level::Summary, seen);
    }

    fn observe_health(&self, observing: &mut Observing, at: u64) {
        for (place, event) in self.health.report(&self.plan).into_iter().enumerate() {
            let before = observing.health.get(place).copied().unwrap_or_default();
            if event.count == before {
                continue;
            }
            let mut seen = Observed::new("health_event", self.env.epoch, at)
                .with("kind", event.kind.name())
                .with("count", event.count - before);
            (seen.component_id, seen.channel_id) = (event.component_id, event.channel_id);
            seen.lane = event.lane;
            observing
                .health
                .resize(observing.health.len().max(place + 1), 0);
            observing.health[place] = event.count;
            observing.observer.take(Level::Summary, seen);
        }
    }

    /// The run is over.
    pub(crate) fn observe_end(&mut self, reason: StopReason) {
        let Some(mut observing) = self.observing.take() else {
            return;
        };
        let at = clock::now().saturating_sub(self.began);
        self.observe_faults(&mut observing, at);
        if observing.epoch < self.env.epoch {
            self.report_epochs(&mut observing, at);
        }
        let event = Observed::new("run_ended", self.env.epoch, at)
            .with("stop_reason", reason.name())
            .with("epochs", self.env.epoch)
            .with("ticks", self.ticks);
        observing.observer.take(Level::Summary, event);
        self.observing = Some(observing);
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.observing.as_ref().map(|observing| &observing.observer)
    }
}
