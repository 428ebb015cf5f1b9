//! The trigger of a component: from messages and time to invocations.
//!
//! At each *check* the messages at its inputs are taken out of their channels and wait here until the policy
//! makes invocations of them. Inputs that need each other (all_inputs, time_sync) wait port by port, others in
//! one line. How many may wait is bounded; the oldest give way, and are counted.

use std::collections::VecDeque;

use crate::component::Received;
use crate::run::sinks::health::Health;
use crate::run::state::channel::Channel;
use crate::run::state::tables::nanos;
use windlass_plan::compile::Plan;
use windlass_plan::model::{
    ClockDomain, Component, Condition, EventSourceKind, TriggerKind, TriggerPolicy,
};

/// A trigger while a run goes on. The default never fires: what is left behind when another part of the run
/// has the real one.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    rule: Rule,
    /// The inputs that it waits for, by name.
    ports: Vec<Port>,
    /// What waits in one line.
    line: VecDeque<Received>,
    bound: usize,
    /// Only the newest of each input counts.
    coalesces: bool,
    /// Edges that it does not wait for: what they have goes along with a manual or timed invocation.
    along: Vec<usize>,
    /// Fires at every check.
    manual: bool,
    timers: Vec<Timer>,
    limits: Limits,
    last_fired: Option<u64>,
    last_arrival: u64,
    /// The highest event time of each domain.
    highest: [Option<i64>; ClockDomain::ALL.len()],
    domain_of: Vec<(u32, ClockDomain)>,
    pub(crate) counts: TriggerCounts,
}

/// What makes an invocation of waiting messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Rule {
    /// No input makes it run.
    #[default]
    None,
    /// Each message.
    Each,
    /// Each message with a timestamp.
    EachTimed,
    /// Each message that is not too late.
    Watermark,
    /// One of every input.
    All,
    /// One of every input, of the same time.
    Synced,
    /// Enough of them.
    Batch,
    /// The newest of every input that has one, once no more have come for a while.
    Newest,
}

#[derive(Debug)]
struct Port {
    edges: Vec<usize>,
    waiting: VecDeque<Received>,
}

#[derive(Debug)]
struct Timer {
    period: u64,
    due: u64,
}

#[derive(Debug, Default)]
struct Limits {
    batch_size: usize,
    batch_window: u64,
    slop: i64,
    min_interval: u64,
    max_latency: u64,
    lateness: i64,
    quiet_for: u64,
}

/// What a trigger counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TriggerCounts {
    pub(crate) ready: u64,
    pub(crate) suppressed: u64,
    pub(crate) coalesced: u64,
    pub(crate) timeout_drop: u64,
    pub(crate) batch_flush: u64,
    pub(crate) time_sync_drop: u64,
    pub(crate) late_drop: u64,
    pub(crate) pending_drop: u64,
    pub(crate) condition_suppressed: u64,
    pub(crate) rate_limit_suppressed: u64,
}

/// What else than messages and time makes a component run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Nothing; `manual` means every epoch.
    Nowhere,
    /// What comes from outside; `manual` means every epoch in which something has come.
    Door { woken: bool },
}

/// Invocations that are ready: the inputs of each. The lists are used again.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) list: VecDeque<Vec<Received>>,
    spare: Vec<Vec<Received>>,
}

/// How many emptied lists are kept for the next invocations.
const SPARE: usize = 1024;

impl Ready {
    pub(crate) fn fresh(&mut self) -> Vec<Received> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn recycle(&mut self, mut inputs: Vec<Received>) {
        inputs.clear();
        if self.spare.len() < SPARE {
            self.spare.push(inputs);
        }
    }

    fn push_one(&mut self, message: Received) {
        let mut inputs = self.fresh();
        inputs.push(message);
        self.list.push_back(inputs);
    }
}

impl Trigger {
    pub(crate) fn new(plan: &Plan, place: usize) -> Trigger {
        let component = &plan.graph.components[place];
        let policy = &component.trigger;
        let rule = rule_of(component);
        let mut ports = match rule {
            Rule::None => Vec::new(),
            _ => ports_of(plan, place),
        };
        ports.sort_by(|a, b| a.0.cmp(b.0));
        let ports: Vec<Port> = ports.into_iter().map(|(_, port)| port).collect();
        let waited_for: Vec<usize> = ports.iter().flat_map(|p| p.edges.clone()).collect();
        let along = plan.nodes[place]
            .inputs
            .iter()
            .flat_map(|port| port.edges.iter().copied())
            .filter(|edge| !waited_for.contains(edge))
            .collect();
        let domain = |&edge: &usize| {
            let policy = &plan.graph.edges[edge].policy;
            let domain = policy.timestamp_domain.unwrap_or(plan.graph.event_domain);
            (edge as u32, domain)
        };
        Trigger {
            rule,
            line: VecDeque::new(),
            bound: bound(plan, policy, &waited_for),
            coalesces: coalesces(policy),
            along,
            manual: fires_every_check(component),
            timers: timers_of(component),
            limits: Limits {
                batch_size: policy.batch_size,
                batch_window: nanos(policy.batch_window),
                slop: nanos(policy.sync_slop) as i64,
                min_interval: nanos(policy.min_interval),
                max_latency: nanos(policy.max_latency),
                lateness: nanos(policy.watermark_lateness) as i64,
                quiet_for: match policy.kind {
                    TriggerKind::Debounce => nanos(policy.debounce_window),
                    _ => 0,
                },
            },
            domain_of: waited_for.iter().map(domain).collect(),
            ports,
            ..Trigger::default()
        }
    }

    /// When time will make it fire next, if it will.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        let timer = self.timers.iter().map(|timer| timer.due).min();
        timer.into_iter().chain(self.window_end()).min()
    }

    /// When messages that wait will be let through, if only time holds them back.
    pub(crate) fn window_end(&self) -> Option<u64> {
        let oldest = self.oldest_arrival()?;
        let gate = self
            .last_fired
            .filter(|_| self.limits.min_interval > 0)
            .map_or(0, |fired| fired.saturating_add(self.limits.min_interval));
        let window = match self.rule {
            Rule::Batch if self.limits.batch_window > 0 => {
                oldest.saturating_add(self.limits.batch_window)
            }
            Rule::Newest if self.limits.quiet_for > 0 => {
                self.last_arrival.saturating_add(self.limits.quiet_for)
            }
            _ if gate > 0 && self.would_fire() => gate,
            _ => return None,
        };
        Some(window.max(gate))
    }

    /// Whether it fires without a message.
    pub(crate) fn needs_no_message(&self) -> bool {
        self.manual || !self.timers.is_empty()
    }

    /// Whether nothing but the least time between two invocations holds back what waits.
    fn would_fire(&self) -> bool {
        match self.rule {
            Rule::None => false,
            Rule::All | Rule::Synced => self.ports.iter().all(|port| !port.waiting.is_empty()),
            Rule::Batch => self.limits.batch_size > 0 && self.line.len() >= self.limits.batch_size,
            Rule::Each | Rule::EachTimed | Rule::Watermark | Rule::Newest => true,
        }
    }

    /// How many messages wait here.
    pub(crate) fn waiting(&self) -> usize {
        let by_port: usize = self.ports.iter().map(|port| port.waiting.len()).sum();
        by_port + self.line.len()
    }

    fn oldest_arrival(&self) -> Option<u64> {
        let fronts = self.ports.iter().filter_map(|port| port.waiting.front());
        fronts.chain(self.line.front()).map(|m| m.arrived).min()
    }

    /// Makes invocations of what has come.
    pub(crate) fn check(
        &mut self,
        channels: &mut [Channel],
        now: u64,
        health: &mut Health,
        ready: &mut Ready,
        outside: From,
    ) {
        let before = ready.list.len();
        match self.rule {
            Rule::None => {}
            Rule::Each if self.passes_through() => self.pass_through(channels, now, health, ready),
            _ => {
                self.receive(channels, now, health);
                self.expire(now);
                self.fire(now, ready);
            }
        }
        let manual = match outside {
            From::Nowhere => true,
            From::Door { woken } => {
                let mut along = self.along.iter();
                woken || along.any(|&e| channels[e].available(now, health) > 0)
            }
        };
        let due = self.is_due(now, manual);
        let called = outside == From::Door { woken: true } && ready.list.len() == before;
        if due || called {
            let mut inputs = ready.fresh();
            for &edge in &self.along {
                for _ in 0..channels[edge].available(now, health) {
                    inputs.extend(channels[edge].take(now, health));
                }
            }
            ready.list.push_back(inputs);
        }
        let fired = ready.list.len() - before;
        if fired > 0 {
            self.counts.ready += fired as u64;
            self.last_fired = Some(now);
        }
    }

    /// Nothing can hold a message back.
    fn passes_through(&self) -> bool {
        self.limits.min_interval == 0 && self.limits.max_latency == 0
    }

    fn pass_through(
        &mut self,
        channels: &mut [Channel],
        now: u64,
        health: &mut Health,
        ready: &mut Ready,
    ) {
        for port in &self.ports {
            for &edge in &port.edges {
                let channel = &mut channels[edge];
                for _ in 0..channel.available(now, health) {
                    if let Some(message) = channel.take(now, health) {
                        ready.push_one(message);
                    }
                }
            }
        }
    }

    /// Whether it fires without a message.
    fn is_due(&mut self, now: u64, manual: bool) -> bool {
        let mut due = self.manual && manual;
        for timer in &mut self.timers {
            if timer.due <= now {
                due = true;
                // Periods that nobody looked at are gone; the rhythm stays.
                let passed = ((now - timer.due) / timer.period).saturating_add(1);
                timer.due = timer
                    .due
                    .saturating_add(passed.saturating_mul(timer.period));
            }
        }
        due
    }

    /// Takes what has come out of the channels.
    fn receive(&mut self, channels: &mut [Channel], now: u64, health: &mut Health) {
        for place in 0..self.ports.len() {
            for nth in 0..self.ports[place].edges.len() {
                let edge = self.ports[place].edges[nth];
                for _ in 0..channels[edge].available(now, health) {
                    // What waits in the channel makes its source wait; here it would give way.
                    if channels[edge].holds_off() && self.is_full(place) {
                        break;
                    }
                    if let Some(message) = channels[edge].take(now, health) {
                        self.last_arrival = self.last_arrival.max(message.arrived);
                        self.wait(place, message);
                    }
                }
            }
        }
    }

    /// Whether another message of this port would make an older one give way. Where only the newest counts, that is
    /// what is wanted.
    fn is_full(&self, port: usize) -> bool {
        let line = match self.rule {
            Rule::All | Rule::Synced | Rule::Newest => &self.ports[port].waiting,
            _ => &self.line,
        };
        !self.coalesces && line.len() >= self.bound
    }

    /// Puts a message where it waits, if its kind may.
    fn wait(&mut self, port: usize, message: Received) {
        if self.rule == Rule::EachTimed && message.event_time().is_none() {
            self.counts.condition_suppressed += 1;
            return;
        }
        if self.rule == Rule::Watermark && self.is_too_late(&message) {
            self.counts.late_drop += 1;
            return;
        }
        let line = match self.rule {
            Rule::All | Rule::Synced | Rule::Newest => &mut self.ports[port].waiting,
            _ => &mut self.line,
        };
        if line.len() >= self.bound {
            line.pop_front();
            match self.coalesces {
                true => self.counts.coalesced += 1,
                false => self.counts.pending_drop += 1,
            }
        }
        line.push_back(message);
    }

    fn is_too_late(&mut self, message: &Received) -> bool {
        let Some(time) = message.event_time() else {
            return false;
        };
        let domain = self
            .domain_of
            .iter()
            .find(|(edge, _)| *edge == message.edge)
            .map_or(ClockDomain::Steady, |(_, domain)| *domain);
        let highest = &mut self.highest[domain as usize];
        let seen = highest.map_or(time, |seen| seen.max(time));
        *highest = Some(seen);
        time < seen.saturating_sub(self.limits.lateness)
    }

    /// Drops what has waited too long.
    fn expire(&mut self, now: u64) {
        let limit = self.limits.max_latency;
        if limit == 0 {
            return;
        }
        let lines = self.ports.iter_mut().map(|port| &mut port.waiting);
        for line in lines.chain([&mut self.line]) {
            while line
                .front()
                .is_some_and(|m| now.saturating_sub(m.arrived) > limit)
            {
                line.pop_front();
                self.counts.timeout_drop += 1;
            }
        }
    }

    fn fire(&mut self, now: u64, ready: &mut Ready) {
        if self.oldest_arrival().is_none() {
            return;
        }
        let interval = self.limits.min_interval;
        let gate = |fired: u64| now < fired.saturating_add(interval);
        if interval > 0 && self.last_fired.is_some_and(gate) {
            self.counts.rate_limit_suppressed += 1;
            return;
        }
        let fired = match self.rule {
            Rule::None => return,
            Rule::Each | Rule::EachTimed | Rule::Watermark => self.fire_each(ready),
            Rule::All => self.fire_all(ready),
            Rule::Synced => self.fire_synced(ready),
            Rule::Batch => self.fire_batch(now, ready),
            Rule::Newest => self.fire_newest(now, ready),
        };
        if !fired {
            self.counts.suppressed += 1;
        }
    }

    /// One invocation for each message; a single one if there is a least time between two.
    fn fire_each(&mut self, ready: &mut Ready) -> bool {
        let most = match self.limits.min_interval {
            0 => self.line.len(),
            _ => 1,
        };
        for message in self.line.drain(..most) {
            ready.push_one(message);
        }
        true
    }

    fn fire_all(&mut self, ready: &mut Ready) -> bool {
        if self.ports.iter().any(|port| port.waiting.is_empty()) {
            return false;
        }
        let mut inputs = ready.fresh();
        inputs.extend(self.ports.iter_mut().filter_map(|p| p.waiting.pop_front()));
        ready.list.push_back(inputs);
        true
    }

    /// Drops the oldest of the fronts until all are of the same time.
    fn fire_synced(&mut self, ready: &mut Ready) -> bool {
        loop {
            let mut span: Option<(i64, i64, usize)> = None;
            for (place, port) in self.ports.iter().enumerate() {
                let Some(front) = port.waiting.front() else {
                    return false;
                };
                let Some(time) = self.comparable_time(front) else {
                    return self.fire_all(ready);
                };
                span = Some(match span {
                    None => (time, time, place),
                    Some((least, most, _)) if time < least => (time, most, place),
                    Some((least, most, oldest)) => (least, most.max(time), oldest),
                });
            }
            let Some((least, most, oldest)) = span else {
                return false;
            };
            if most.saturating_sub(least) <= self.limits.slop {
                return self.fire_all(ready);
            }
            self.ports[oldest].waiting.pop_front();
            self.counts.time_sync_drop += 1;
        }
    }

    /// The time of a message, if it can be compared with those at the other inputs.
    fn comparable_time(&self, message: &Received) -> Option<i64> {
        let same_domain = self.domain_of.windows(2).all(|two| two[0].1 == two[1].1);
        message.event_time().filter(|_| same_domain)
    }

    fn fire_batch(&mut self, now: u64, ready: &mut Ready) -> bool {
        let size = self.limits.batch_size;
        let full = size > 0 && self.line.len() >= size;
        let over = self.limits.batch_window > 0
            && self
                .line
                .front()
                .is_some_and(|m| now >= m.arrived.saturating_add(self.limits.batch_window));
        if !full && !over {
            return false;
        }
        let take = if size > 0 {
            size.min(self.line.len())
        } else {
            self.line.len()
        };
        let mut inputs = ready.fresh();
        inputs.extend(self.line.drain(..take));
        ready.list.push_back(inputs);
        self.counts.batch_flush += 1;
        true
    }

    fn fire_newest(&mut self, now: u64, ready: &mut Ready) -> bool {
        if now < self.last_arrival.saturating_add(self.limits.quiet_for) {
            return false;
        }
        let mut inputs = ready.fresh();
        inputs.extend(self.ports.iter_mut().filter_map(|p| p.waiting.pop_front()));
        ready.list.push_back(inputs);
        true
    }
}

/// The edges of a component that runs once for each message, whatever else there is, by port name. None: its
/// trigger has to be asked.
pub(crate) fn plain_edges(plan: &Plan, place: usize) -> Option<Box<[u32]>> {
    let component = &plan.graph.components[place];
    let policy = &component.trigger;
    let plain = rule_of(component) == Rule::Each
        && policy.min_interval.is_zero()
        && policy.max_latency.is_zero()
        && !fires_every_check(component)
        && timers_of(component).is_empty();
    if !plain {
        return None;
    }
    let mut ports = ports_of(plan, place);
    ports.sort_by(|a, b| a.0.cmp(b.0));
    let edges = ports.into_iter().flat_map(|(_, port)| port.edges);
    Some(edges.map(|edge| edge as u32).collect())
}

/// Whether time alone can make a component run.
pub(crate) fn follows_time(component: &Component) -> bool {
    let policy = &component.trigger;
    !timers_of(component).is_empty()
        || !policy.batch_window.is_zero()
        || !policy.debounce_window.is_zero()
        || !policy.min_interval.is_zero()
}

/// Whether a policy looks at inputs, and how. `manual` and `on_event` do what the event sources say.
fn rule_of(component: &Component) -> Rule {
    let policy = &component.trigger;
    let rule = match policy.kind {
        TriggerKind::Manual | TriggerKind::OnEvent => {
            let has_inputs = component.trigger_inputs().next().is_some();
            if has_inputs { Rule::Each } else { Rule::None }
        }
        TriggerKind::AnyInput
        | TriggerKind::Request
        | TriggerKind::TaskReady
        | TriggerKind::RateLimit => Rule::Each,
        TriggerKind::AllInputs => Rule::All,
        TriggerKind::TimeSync => Rule::Synced,
        TriggerKind::Batch => Rule::Batch,
        TriggerKind::Watermark => Rule::Watermark,
        TriggerKind::Debounce => Rule::Newest,
        TriggerKind::Condition => match policy.condition {
            Condition::AllInputsReady => Rule::All,
            Condition::AnyInputReady => Rule::Each,
            Condition::EventTimestampPresent => Rule::EachTimed,
        },
    };
    match rule {
        Rule::Each if policy.coalesce => Rule::Newest,
        rule => rule,
    }
}

/// Whether every check makes an invocation: `manual`, for a policy that leaves it to the event sources. `on_event`
/// means the other sources, if there are any: a file that names none has a manual one.
fn fires_every_check(component: &Component) -> bool {
    let waits_for_events = component.trigger.kind == TriggerKind::OnEvent
        && component.trigger_inputs().next().is_some();
    leaves_it_to_sources(component)
        && !waits_for_events
        && component
            .event_sources
            .iter()
            .any(|source| source.kind == EventSourceKind::Manual)
}

/// Timers count unless the policy waits for inputs that it names.
fn timers_of(component: &Component) -> Vec<Timer> {
    if !leaves_it_to_sources(component) && component.trigger_inputs().next().is_some() {
        return Vec::new();
    }
    component
        .event_sources
        .iter()
        .filter(|source| source.kind == EventSourceKind::Timer && !source.period.is_zero())
        .map(|source| Timer {
            period: nanos(source.period),
            due: 0,
        })
        .collect()
}

fn leaves_it_to_sources(component: &Component) -> bool {
    matches!(
        component.trigger.kind,
        TriggerKind::Manual | TriggerKind::OnEvent
    )
}

/// The ports that a trigger waits for, with their names. A policy that names none waits for those of the event
/// sources, or else for all that have an edge.
fn ports_of(plan: &Plan, place: usize) -> Vec<(&str, Port)> {
    let component = &plan.graph.components[place];
    let mut names: Vec<&str> = component.trigger_inputs().collect();
    let inputs = &plan.nodes[place].inputs;
    if names.is_empty() {
        names = inputs.iter().map(|port| port.name.as_str()).collect();
    }
    names.sort_unstable();
    names.dedup();
    let port = |name| {
        let found = inputs.iter().find(|port| port.name == name)?;
        Some((
            name,
            Port {
                edges: found.edges.clone(),
                waiting: VecDeque::new(),
            },
        ))
    };
    names.into_iter().filter_map(port).collect()
}

/// How many messages may wait in a line.
fn bound(plan: &Plan, policy: &TriggerPolicy, edges: &[usize]) -> usize {
    if coalesces(policy) {
        return 1;
    }
    let capacities = edges
        .iter()
        .map(|&edge| plan.graph.edges[edge].policy.capacity);
    let most = capacities.max().unwrap_or(1).max(policy.batch_size).max(1);
    most.saturating_add(1)
}

fn coalesces(policy: &TriggerPolicy) -> bool {
    policy.coalesce || policy.kind == TriggerKind::Debounce
}
