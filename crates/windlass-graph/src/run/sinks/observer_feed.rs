//! The events that a run feeds to its observer: see [`crate::observe`].

use windlass_core::sync::clock;

use crate::observe::{Level, Observed, Observer};
use crate::run::result::StopReason;
use crate::run::sinks::counts::ComponentCounts;
use crate::run::sinks::sink::{RunBegin, Sink};
use crate::run::sinks::trace::Trace;
use crate::run::sinks::{RunView, Sinks};

/// The observer of a run, and the counts at the last report: events carry the differences.
#[derive(Debug)]
pub(crate) struct ObserverFeed {
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
    /// How many events of the trace the observer has got.
    traced: usize,
}

impl ObserverFeed {
    pub(crate) fn new(observer: Observer) -> ObserverFeed {
        ObserverFeed {
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

impl Sink for ObserverFeed {
    fn run_begin(&mut self, event: &RunBegin<'_>) {
        let event = Observed::new("run_started", 0, 0).with("graph", event.graph);
        self.observer.take(Level::Summary, event);
    }
}

impl Sinks {
    /// An epoch has ended; gives whether the run should.
    pub(crate) fn observe_epoch(&mut self, view: RunView<'_>) -> bool {
        let Some(mut feed) = self.observer_feed.take() else {
            return false;
        };
        let at = clock::now().saturating_sub(self.began);
        self.observe_faults(&mut feed, view.env.epoch, at);
        if feed.observer.wants(Level::Debug) {
            self.observe_trace(&mut feed);
        }
        let interval = feed.observer.interval();
        let early = |reported: u64| at.saturating_sub(reported) < interval;
        if !feed.reported.is_some_and(early) {
            self.report_epochs(&mut feed, view, at);
        }
        let stops = feed.observer.stops();
        self.observer_feed = Some(feed);
        stops
    }

    /// Says what happened since the last report.
    fn report_epochs(&self, feed: &mut ObserverFeed, view: RunView<'_>, at: u64) {
        feed.reported = Some(at);
        if feed.observer.wants(Level::Detailed) {
            self.observe_parts(feed, view, at);
        }
        self.observe_whole(feed, view, at);
    }

    fn observe_trace(&mut self, feed: &mut ObserverFeed) {
        let fresh = self.trace.since(feed.traced);
        for event in Trace::resolve_all(fresh, &self.plan, self.began) {
            let mut seen = Observed::new(event.name.name(), event.epoch_id, event.start_offset_ns);
            (seen.component_id, seen.channel_id) = (event.component_id, event.channel_id);
            seen.lane = event.lane;
            seen.attributes = event.attributes;
            let seen = seen
                .with("transaction_id", event.transaction_id)
                .with("duration_ns", event.duration_ns);
            feed.observer.take(Level::Debug, seen);
        }
        feed.traced = self.trace.forget_unwanted();
    }

    /// What components, edges, lanes and loops did.
    fn observe_parts(&self, feed: &mut ObserverFeed, view: RunView<'_>, at: u64) {
        let graph = &self.plan.graph;
        let epoch = view.env.epoch;
        let event = |name: &str| Observed::new(name, epoch, at);
        feed.components
            .resize_with(graph.components.len(), Default::default);
        for (place, before) in feed.components.iter_mut().enumerate() {
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
            feed.observer.take(Level::Detailed, seen);
        }
        feed.edges.resize(graph.edges.len(), [0; 4]);
        for (place, before) in feed.edges.iter_mut().enumerate() {
            let counts = view.channels[place].counts();
            let now = [counts.publish, counts.delivery, counts.drop, counts.reject];
            if now == *before {
                continue;
            }
            let mut seen = event("channel").with("depth", view.channels[place].waiting());
            let names = ["published", "delivered", "dropped", "rejected"];
            for ((name, now), before) in names.iter().zip(now).zip(*before) {
                seen = seen.with(name, now - before);
            }
            seen.channel_id.clone_from(&graph.edges[place].id);
            *before = now;
            feed.observer.take(Level::Detailed, seen);
        }
        feed.lanes.resize(graph.lanes.len(), 0);
        for (place, before) in feed.lanes.iter_mut().enumerate() {
            let lane = view.lanes.lane(place);
            if !lane.follows_clock() || lane.counts().ticks == *before {
                continue;
            }
            *before = lane.counts().ticks;
            let mut seen = event("lane")
                .with("overruns", lane.counts().overruns)
                .with("skipped", lane.counts().skipped_ticks)
                .with("deadline_misses", lane.counts().deadline_misses)
                .with("jitter_ns", lane.counts().jitter_ns);
            seen.lane.clone_from(&graph.lanes[place].id);
            feed.observer.take(Level::Detailed, seen);
        }
        feed.loops.resize(graph.loops.len(), 0);
        for (place, before) in feed.loops.iter_mut().enumerate() {
            let counts = &self.counts.loops[place];
            if counts.runs == *before {
                continue;
            }
            *before = counts.runs;
            let seen = event("loop")
                .with("loop", graph.loops[place].id.as_str())
                .with("iterations", counts.iterations)
                .with("stop_reason", counts.stop_reason.unwrap_or_default());
            feed.observer.take(Level::Detailed, seen);
        }
    }

    /// What went wrong is said at once.
    fn observe_faults(&self, feed: &mut ObserverFeed, epoch: u64, at: u64) {
        for error in &self.errors[feed.errors.min(self.errors.len())..] {
            let mut seen = Observed::new("error", epoch, at)
                .with("phase", error.phase.as_str())
                .with("code", error.code.name())
                .with("message", error.message.as_str())
                .with("fatal", error.fatal);
            seen.component_id.clone_from(&error.component_id);
            seen.lane.clone_from(&error.lane);
            feed.observer.take(Level::Summary, seen);
        }
        feed.errors = self.errors.len();
        // At the level of a trace they are among its events.
        if self.health.raised != feed.raised && !feed.observer.wants(Level::Debug) {
            feed.raised = self.health.raised;
            self.observe_health(feed, epoch, at);
        }
    }

    /// What the whole run did.
    fn observe_whole(&self, feed: &mut ObserverFeed, view: RunView<'_>, at: u64) {
        let epoch = view.env.epoch;
        let publication = &self.counts.publication;
        let seen = Observed::new("epoch", epoch, at)
            .with("epochs", epoch - feed.epoch)
            .with("invocations", view.calls.ticks() - feed.ticks)
            .with("staged", publication.staged - feed.staged)
            .with("committed", publication.committed - feed.committed);
        feed.epoch = epoch;
        feed.ticks = view.calls.ticks();
        (feed.staged, feed.committed) = (publication.staged, publication.committed);
        feed.observer.take(Level::Summary, seen);
    }

    fn observe_health(&self, feed: &mut ObserverFeed, epoch: u64, at: u64) {
        for (place, event) in self.health.report(&self.plan).into_iter().enumerate() {
            let before = feed.health.get(place).copied().unwrap_or_default();
            if event.count == before {
                continue;
            }
            let mut seen = Observed::new("health_event", epoch, at)
                .with("kind", event.kind.name())
                .with("count", event.count - before);
            (seen.component_id, seen.channel_id) = (event.component_id, event.channel_id);
            seen.lane = event.lane;
            feed.health.resize(feed.health.len().max(place + 1), 0);
            feed.health[place] = event.count;
            feed.observer.take(Level::Summary, seen);
        }
    }

    /// The run is over.
    pub(crate) fn observe_end(&mut self, view: RunView<'_>, reason: StopReason) {
        let Some(mut feed) = self.observer_feed.take() else {
            return;
        };
        let at = clock::now().saturating_sub(self.began);
        self.observe_faults(&mut feed, view.env.epoch, at);
        if feed.epoch < view.env.epoch {
            self.report_epochs(&mut feed, view, at);
        }
        let event = Observed::new("run_ended", view.env.epoch, at)
            .with("stop_reason", reason.name())
            .with("epochs", view.env.epoch)
            .with("ticks", view.calls.ticks());
        feed.observer.take(Level::Summary, event);
        self.observer_feed = Some(feed);
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.observer_feed.as_ref().map(|feed| &feed.observer)
    }
}
