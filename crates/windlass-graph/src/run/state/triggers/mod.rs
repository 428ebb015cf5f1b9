//! The triggers of components: from messages and time to invocations.
//!
//! At each *check* the messages at a trigger's inputs are taken out of their channels and wait
//! (`waiting.rs`) until the policy's rule makes invocations of them. There is a file for each kind
//! of rule; `policy.rs` says which policy means which.

pub(crate) mod all_inputs;
pub(crate) mod batch;
pub(crate) mod each_message;
pub(crate) mod newest;
pub(crate) mod policy;
pub(crate) mod ready;
pub(crate) mod time_sync;
pub(crate) mod timers;
pub(crate) mod waiting;
pub(crate) mod watermark;

use crate::component::Received;
use crate::run::sinks::health::Health;
use crate::run::state::channel::Channel;
use crate::run::state::triggers::batch::Batch;
use crate::run::state::triggers::each_message::EachMessage;
use crate::run::state::triggers::newest::Newest;
use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::time_sync::TimeSync;
use crate::run::state::triggers::timers::Timers;
use crate::run::state::triggers::waiting::WaitingMessages;
use crate::run::state::triggers::watermark::Watermark;
use windlass_plan::compile::Plan;

/// The triggers of a run, by component.
#[derive(Debug)]
pub(crate) struct Triggers {
    by_component: Vec<Trigger>,
    /// The buffer of a check; not here while it is in use.
    ready: Option<Box<ReadyCalls>>,
}

impl Triggers {
    pub(crate) fn new(plan: &Plan) -> Triggers {
        let components = 0..plan.graph.components.len();
        Triggers {
            by_component: components.map(|c| Trigger::new(plan, c)).collect(),
            ready: None,
        }
    }

    /// Asks a component's trigger what it makes of the messages and the time. What it made is in
    /// the returned buffer, which `give_back` takes.
    pub(crate) fn check(
        &mut self,
        component: usize,
        channels: &mut [Channel],
        now: u64,
        health: &mut Health,
        door: DoorSignal,
    ) -> Box<ReadyCalls> {
        let mut ready = self.ready.take().unwrap_or_default();
        self.by_component[component].check(channels, now, health, &mut ready, door);
        ready
    }

    /// Takes a buffer back for the next check; invocations that are left in it are dropped.
    #[inline]
    pub(crate) fn give_back(&mut self, mut ready: Box<ReadyCalls>) {
        while let Some(inputs) = ready.list.pop_front() {
            ready.recycle(inputs);
        }
        self.ready = Some(ready);
    }

    /// Keeps the list of an invocation's inputs for a later one.
    pub(crate) fn recycle(&mut self, inputs: Vec<Received>) {
        if let Some(ready) = &mut self.ready {
            ready.recycle(inputs);
        }
    }

    /// Counts invocations for which the trigger was not asked.
    #[inline]
    pub(crate) fn count_ready(&mut self, component: usize, invocations: u64) {
        self.by_component[component].counts.ready += invocations;
    }

    /// Whether messages wait for nothing but time.
    pub(crate) fn wait_for_time(&self) -> bool {
        let mut triggers = self.by_component.iter();
        triggers.any(|trigger| trigger.window_end().is_some())
    }

    /// Returns when time will make a component run next, if it will.
    pub(crate) fn next_wake(&self, component: usize) -> Option<u64> {
        self.by_component[component].next_wake()
    }

    /// Whether a component runs without a message.
    pub(crate) fn needs_no_message(&self, component: usize) -> bool {
        self.by_component[component].needs_no_message()
    }

    /// Returns how many messages wait at the trigger of a component.
    pub(crate) fn waiting(&self, component: usize) -> usize {
        self.by_component[component].waiting.len()
    }

    /// Returns what the trigger of a component has counted.
    pub(crate) fn counts(&self, component: usize) -> &TriggerCounts {
        &self.by_component[component].counts
    }

    /// Takes the triggers of these components out, for a part of the run that runs beside it.
    pub(crate) fn split_off(&mut self, components: &[usize]) -> Triggers {
        let none = self.by_component.iter().map(|_| Trigger::default());
        let mut part = Triggers {
            by_component: none.collect(),
            ready: None,
        };
        part.take_from(self, components);
        part
    }

    /// Takes the triggers of these components from another part of the run.
    pub(crate) fn take_from(&mut self, other: &mut Triggers, components: &[usize]) {
        for &component in components {
            self.by_component[component] = std::mem::take(&mut other.by_component[component]);
        }
    }
}

/// A trigger while a run goes on. The default never fires: it stands where another part of the run
/// has the real one.
#[derive(Debug, Default)]
struct Trigger {
    rule: Rule,
    waiting: WaitingMessages,
    /// Edges that it does not wait for: what they have goes along with a manual or timed
    /// invocation.
    along: Vec<usize>,
    /// Fires at every check.
    manual: bool,
    timers: Timers,
    /// The least time between two invocations.
    min_interval: u64,
    /// How long a message may wait; 0: for ever.
    max_latency: u64,
    last_fired: Option<u64>,
    counts: TriggerCounts,
}

/// What makes invocations of waiting messages.
#[derive(Debug, Default)]
enum Rule {
    /// No input makes it run.
    #[default]
    None,
    Each(EachMessage),
    /// Each message that is not too late.
    Watermark(EachMessage, Watermark),
    AllInputs,
    TimeSync(TimeSync),
    Batch(Batch),
    Newest(Newest),
}

impl Rule {
    /// Whether a message may wait; counts one that may not.
    fn admits(&mut self, message: &Received, counts: &mut TriggerCounts) -> bool {
        match self {
            Rule::Each(each) => each.admits(message, counts),
            Rule::Watermark(_, watermark) => watermark.admits(message, counts),
            _ => true,
        }
    }

    /// Makes invocations; false if it makes none of what waits.
    fn fire(
        &self,
        waiting: &mut WaitingMessages,
        now: u64,
        ready: &mut ReadyCalls,
        counts: &mut TriggerCounts,
    ) -> bool {
        match self {
            Rule::None => true,
            Rule::Each(each) | Rule::Watermark(each, _) => each.fire(waiting, ready),
            Rule::AllInputs => all_inputs::fire(waiting, ready),
            Rule::TimeSync(time_sync) => time_sync.fire(waiting, ready, counts),
            Rule::Batch(batch) => batch.fire(waiting, now, ready, counts),
            Rule::Newest(newest) => newest.fire(waiting, now, ready),
        }
    }

    /// Returns when time alone makes it fire, if it has a window.
    fn window_end(&self, waiting: &WaitingMessages, oldest: u64) -> Option<u64> {
        match self {
            Rule::Batch(batch) => batch.window_end(oldest),
            Rule::Newest(newest) => newest.window_end(waiting.last_arrival()),
            _ => None,
        }
    }

    /// Whether nothing but the least time between two invocations holds back what waits.
    fn would_fire(&self, waiting: &WaitingMessages) -> bool {
        match self {
            Rule::None => false,
            Rule::AllInputs | Rule::TimeSync(_) => waiting.has_one_of_each(),
            Rule::Batch(batch) => batch.is_full(waiting),
            Rule::Each(_) | Rule::Watermark(..) | Rule::Newest(_) => true,
        }
    }
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

/// What the door of a component says, besides messages and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoorSignal {
    /// There is no door that counts; `manual` means every epoch.
    NoDoor,
    /// There is a door; `manual` means every epoch in which the door was knocked at.
    Door { woken: bool },
}

impl Trigger {
    /// Returns when time will make it fire next, if it will.
    fn next_wake(&self) -> Option<u64> {
        let timer = self.timers.next();
        timer.into_iter().chain(self.window_end()).min()
    }

    /// Returns when messages that wait will be let through, if only time holds them back.
    fn window_end(&self) -> Option<u64> {
        let oldest = self.waiting.oldest_arrival()?;
        let gate = self
            .last_fired
            .filter(|_| self.min_interval > 0)
            .map_or(0, |fired| fired.saturating_add(self.min_interval));
        let window = match self.rule.window_end(&self.waiting, oldest) {
            Some(end) => end,
            None if gate > 0 && self.rule.would_fire(&self.waiting) => gate,
            None => return None,
        };
        Some(window.max(gate))
    }

    /// Whether it fires without a message.
    fn needs_no_message(&self) -> bool {
        self.manual || !self.timers.is_empty()
    }

    /// Makes invocations of the messages in the channels.
    fn check(
        &mut self,
        channels: &mut [Channel],
        now: u64,
        health: &mut Health,
        ready: &mut ReadyCalls,
        door: DoorSignal,
    ) {
        let before = ready.list.len();
        match &self.rule {
            Rule::None => {}
            Rule::Each(each) if !each.needs_time && self.passes_through() => {
                self.pass_through(channels, now, health, ready);
            }
            _ => {
                self.receive(channels, now, health);
                if self.max_latency > 0 {
                    self.counts.timeout_drop += self.waiting.expire(now, self.max_latency);
                }
                self.fire(now, ready);
            }
        }
        let manual = match door {
            DoorSignal::NoDoor => true,
            DoorSignal::Door { woken } => {
                let mut along = self.along.iter();
                woken || along.any(|&e| channels[e].available(now, health) > 0)
            }
        };
        // Every timer is asked, whatever else makes it fire.
        let is_due = self.timers.fire(now) || (self.manual && manual);
        let is_called = door == DoorSignal::Door { woken: true } && ready.list.len() == before;
        if is_due || is_called {
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

    /// Whether nothing can hold a message back.
    fn passes_through(&self) -> bool {
        self.min_interval == 0 && self.max_latency == 0
    }

    fn pass_through(
        &self,
        channels: &mut [Channel],
        now: u64,
        health: &mut Health,
        ready: &mut ReadyCalls,
    ) {
        for edge in self.waiting.all_edges() {
            let channel = &mut channels[edge];
            for _ in 0..channel.available(now, health) {
                if let Some(message) = channel.take(now, health) {
                    ready.push_one(message);
                }
            }
        }
    }

    /// Takes messages out of the channels.
    fn receive(&mut self, channels: &mut [Channel], now: u64, health: &mut Health) {
        for port in 0..self.waiting.ports() {
            for nth in 0..self.waiting.edges(port).len() {
                let edge = self.waiting.edges(port)[nth];
                for _ in 0..channels[edge].available(now, health) {
                    // What waits in the channel makes its source wait; here it would give way.
                    if channels[edge].holds_off() && self.waiting.is_full(port) {
                        break;
                    }
                    if let Some(message) = channels[edge].take(now, health) {
                        self.waiting.note_arrival(message.arrived);
                        if self.rule.admits(&message, &mut self.counts) {
                            self.waiting.push(port, message, &mut self.counts);
                        }
                    }
                }
            }
        }
    }

    fn fire(&mut self, now: u64, ready: &mut ReadyCalls) {
        if self.waiting.oldest_arrival().is_none() {
            return;
        }
        let interval = self.min_interval;
        let is_early = |fired: u64| now < fired.saturating_add(interval);
        if interval > 0 && self.last_fired.is_some_and(is_early) {
            self.counts.rate_limit_suppressed += 1;
            return;
        }
        let fired = self
            .rule
            .fire(&mut self.waiting, now, ready, &mut self.counts);
        if !fired {
            self.counts.suppressed += 1;
        }
    }
}
