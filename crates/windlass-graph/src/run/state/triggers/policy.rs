//! What a trigger policy means: from a component of a plan to its rule, its ports and its timers.

use crate::run::state::tables::nanos;
use crate::run::state::triggers::batch::Batch;
use crate::run::state::triggers::each_message::EachMessage;
use crate::run::state::triggers::newest::Newest;
use crate::run::state::triggers::time_sync::TimeSync;
use crate::run::state::triggers::timers::Timers;
use crate::run::state::triggers::waiting::WaitingMessages;
use crate::run::state::triggers::watermark::Watermark;
use crate::run::state::triggers::{Rule, Trigger};
use windlass_plan::compile::Plan;
use windlass_plan::model::{
    ClockDomain, Component, Condition, EventSourceKind, TriggerKind, TriggerPolicy,
};

/// Which rule makes invocations of messages, without what the rule remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleKind {
    /// No input makes it run.
    None,
    /// Each message makes one.
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

impl Trigger {
    /// Makes the trigger of a component.
    pub(crate) fn new(plan: &Plan, place: usize) -> Trigger {
        let component = &plan.graph.components[place];
        let policy = &component.trigger;
        let kind = rule_of(component);
        let ports = match kind {
            RuleKind::None => Vec::new(),
            _ => ports_of(plan, place),
        };
        let waited_for: Vec<usize> = ports.iter().flatten().copied().collect();
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
        let domain_of: Vec<(u32, ClockDomain)> = waited_for.iter().map(domain).collect();
        let by_port = matches!(kind, RuleKind::All | RuleKind::Synced | RuleKind::Newest);
        Trigger {
            rule: new_rule(kind, policy, domain_of),
            waiting: WaitingMessages::new(
                ports,
                by_port,
                bound(plan, policy, &waited_for),
                coalesces(policy),
            ),
            along,
            manual: fires_every_check(component),
            timers: Timers::new(timer_periods(component)),
            min_interval: nanos(policy.min_interval),
            max_latency: nanos(policy.max_latency),
            ..Trigger::default()
        }
    }
}

fn new_rule(kind: RuleKind, policy: &TriggerPolicy, domain_of: Vec<(u32, ClockDomain)>) -> Rule {
    let each = |needs_time| EachMessage {
        needs_time,
        one_at_a_time: !policy.min_interval.is_zero(),
    };
    match kind {
        RuleKind::None => Rule::None,
        RuleKind::Each => Rule::Each(each(false)),
        RuleKind::EachTimed => Rule::Each(each(true)),
        RuleKind::Watermark => {
            let lateness = nanos(policy.watermark_lateness) as i64;
            Rule::Watermark(each(false), Watermark::new(lateness, domain_of))
        }
        RuleKind::All => Rule::AllInputs,
        RuleKind::Synced => Rule::TimeSync(TimeSync {
            slop: nanos(policy.sync_slop) as i64,
            is_comparable: domain_of.windows(2).all(|two| two[0].1 == two[1].1),
        }),
        RuleKind::Batch => Rule::Batch(Batch {
            size: policy.batch_size,
            window: nanos(policy.batch_window),
        }),
        RuleKind::Newest => Rule::Newest(Newest {
            quiet_for: match policy.kind {
                TriggerKind::Debounce => nanos(policy.debounce_window),
                _ => 0,
            },
        }),
    }
}

/// The edges of a component that runs once for each message, whatever else there is, by port name.
/// None: its trigger has to be asked.
pub(crate) fn plain_edges(plan: &Plan, place: usize) -> Option<Box<[u32]>> {
    let component = &plan.graph.components[place];
    let policy = &component.trigger;
    let plain = rule_of(component) == RuleKind::Each
        && policy.min_interval.is_zero()
        && policy.max_latency.is_zero()
        && !fires_every_check(component)
        && timer_periods(component).next().is_none();
    if !plain {
        return None;
    }
    let edges = ports_of(plan, place).into_iter().flatten();
    Some(edges.map(|edge| edge as u32).collect())
}

/// Whether time alone can make a component run.
pub(crate) fn follows_time(component: &Component) -> bool {
    let policy = &component.trigger;
    timer_periods(component).next().is_some()
        || !policy.batch_window.is_zero()
        || !policy.debounce_window.is_zero()
        || !policy.min_interval.is_zero()
}

/// Whether a policy looks at inputs, and how. `manual` and `on_event` do what the event sources
/// say.
fn rule_of(component: &Component) -> RuleKind {
    let policy = &component.trigger;
    let rule = match policy.kind {
        TriggerKind::Manual | TriggerKind::OnEvent => {
            let has_inputs = component.trigger_inputs().next().is_some();
            if has_inputs {
                RuleKind::Each
            } else {
                RuleKind::None
            }
        }
        TriggerKind::AnyInput
        | TriggerKind::Request
        | TriggerKind::TaskReady
        | TriggerKind::RateLimit => RuleKind::Each,
        TriggerKind::AllInputs => RuleKind::All,
        TriggerKind::TimeSync => RuleKind::Synced,
        TriggerKind::Batch => RuleKind::Batch,
        TriggerKind::Watermark => RuleKind::Watermark,
        TriggerKind::Debounce => RuleKind::Newest,
        TriggerKind::Condition => match policy.condition {
            Condition::AllInputsReady => RuleKind::All,
            Condition::AnyInputReady => RuleKind::Each,
            Condition::EventTimestampPresent => RuleKind::EachTimed,
        },
    };
    match rule {
        RuleKind::Each if policy.coalesce => RuleKind::Newest,
        rule => rule,
    }
}

/// Whether every check makes an invocation: `manual`, for a policy that leaves it to the event
/// sources. `on_event` means the other sources, if there are any: a file that names none has a
/// manual one.
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

/// Returns the periods of the timers. Timers count unless the policy waits for inputs that it
/// names.
fn timer_periods(component: &Component) -> impl Iterator<Item = u64> {
    let counts = leaves_it_to_sources(component) || component.trigger_inputs().next().is_none();
    component
        .event_sources
        .iter()
        .filter(move |source| {
            counts && source.kind == EventSourceKind::Timer && !source.period.is_zero()
        })
        .map(|source| nanos(source.period))
}

fn leaves_it_to_sources(component: &Component) -> bool {
    matches!(
        component.trigger.kind,
        TriggerKind::Manual | TriggerKind::OnEvent
    )
}

/// Returns the edges of the ports that a trigger waits for, sorted by the names of the ports. A
/// policy that names none waits for those of the event sources, or else for all that have an edge.
fn ports_of(plan: &Plan, place: usize) -> Vec<Vec<usize>> {
    let component = &plan.graph.components[place];
    let mut names: Vec<&str> = component.trigger_inputs().collect();
    let inputs = &plan.nodes[place].inputs;
    if names.is_empty() {
        names = inputs.iter().map(|port| port.name.as_str()).collect();
    }
    names.sort_unstable();
    names.dedup();
    let edges = |name| {
        let found = inputs.iter().find(|port| port.name == name)?;
        Some(found.edges.clone())
    };
    names.into_iter().filter_map(edges).collect()
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
