//! What has to hold while a run goes on.

use std::fmt;

use serde::Serialize;

use super::Level;
use super::event::Observed;
use super::event_scope::EventScope;
use super::matcher::Matcher;
use super::parse::{AssertionsError, parse};
use crate::run::Metrics;
use windlass_plan::expression::{Expression, MessageScope};
use windlass_value::Payload;

/// What has to hold in a run: from a file of its own.
///
/// ```yaml
/// version: "1"
/// fail_fast: true              # the run ends with the first that fails; default false
/// assertions:
///   - {id: calm, never: {event: error}}
///   - {id: short, always: {event: channel, channel: e, where: "value.depth <= 8"}}
///   - {id: first, eventually: "event == 'epoch' && epoch == 1"}
///   - {id: runs, eventually: {event: component, component: sensor}}
///   - {id: soon, within_epochs: {match: {event: component, component: sink}, epochs: 3}}
///   - {id: early, within_events: {match: {event: component}, events: 10}}
///   - {id: five, counter_equals: {match: {event: component, component: sink}, count: 5}}
///   - {id: order, sequence: {steps: [{component: a}, {component: b}], epochs: 2}}
///   - {id: sent, metric_equals: {name: runtime.channel.publish_count, id: e, value: 10}}
/// ```
///
/// `metric_lte` and `metric_gte` are as `metric_equals`. Names of events, components, edges and
/// lanes are patterns with `*`. `where` is an [expression](windlass_plan::expression) over the
/// event, and an expression may stand in place of all patterns. One that cannot be computed makes
/// its assertion fail. `where` may also be a map of attributes: a value means that the attribute
/// equals it; otherwise `eq`, `ne`, `lt`, `lte`, `gt`, `gte`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assertions {
    pub(crate) list: Vec<Assertion>,
    pub(crate) fail_fast: bool,
}

/// One assertion of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assertion {
    pub(crate) id: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Always(Matcher),
    Never(Matcher),
    Eventually(Matcher),
    WithinEpochs {
        matcher: Matcher,
        epochs: u64,
    },
    WithinEvents {
        matcher: Matcher,
        events: u64,
    },
    CounterEquals {
        matcher: Matcher,
        count: u64,
    },
    Sequence {
        steps: Vec<Matcher>,
        epochs: Option<u64>,
    },
    Metric {
        name: String,
        id: String,
        /// What has to hold for its value.
        condition: Expression,
        /// The number that it is compared with.
        value: f64,
    },
}

/// An assertion that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AssertionFailure {
    /// The id of the assertion.
    pub id: String,
    /// The epoch in which it failed; the last epoch, if the end of the run showed it.
    pub epoch: u64,
    /// The event that showed it; 0 if it was the end of the run.
    pub seq: u64,
    /// What was seen instead.
    pub message: String,
}

impl fmt::Display for AssertionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in epoch {}: {}", self.id, self.epoch, self.message)
    }
}

impl Assertions {
    /// Reads assertions from the text of a file.
    pub fn parse(text: &str) -> Result<Assertions, AssertionsError> {
        parse(text)
    }

    /// Returns how many assertions there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there is no assertion.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if an assertion is about more than the end of a run.
    pub(crate) fn look_at_events(&self) -> bool {
        let mut list = self.list.iter();
        list.any(|assertion| !matches!(assertion.kind, Kind::Metric { .. }))
    }

    /// Returns the level at which a run has to report events so that no assertion misses one.
    pub(crate) fn needs(&self) -> Level {
        let needs = |assertion: &Assertion| match &assertion.kind {
            Kind::Always(matcher) | Kind::Never(matcher) | Kind::Eventually(matcher) => {
                matcher.needs()
            }
            Kind::WithinEpochs { matcher, .. }
            | Kind::WithinEvents { matcher, .. }
            | Kind::CounterEquals { matcher, .. } => matcher.needs(),
            Kind::Sequence { steps, .. } => {
                let needs = steps.iter().map(Matcher::needs).max();
                needs.unwrap_or(Level::Summary)
            }
            Kind::Metric { .. } => Level::Summary,
        };
        self.list.iter().map(needs).max().unwrap_or(Level::Off)
    }
}

/// Checks the assertions of a run, and keeps those that do not hold.
#[derive(Debug)]
pub(crate) struct AssertionChecker {
    assertions: Vec<(Assertion, Progress)>,
    fail_fast: bool,
    failures: Vec<AssertionFailure>,
}

/// What is known of an assertion so far.
#[derive(Debug, Default)]
struct Progress {
    /// True if it holds, or has failed, for good.
    settled: bool,
    /// How many events were counted.
    count: u64,
    /// How many steps of a sequence have come.
    step: usize,
}

impl AssertionChecker {
    pub(crate) fn new(assertions: Assertions) -> AssertionChecker {
        AssertionChecker {
            fail_fast: assertions.fail_fast,
            assertions: assertions
                .list
                .into_iter()
                .map(|assertion| (assertion, Progress::default()))
                .collect(),
            failures: Vec::new(),
        }
    }

    /// Checks an event. Returns false if an assertion fails because of it.
    pub(crate) fn event(&mut self, event: &Observed) -> bool {
        let before = self.failures.len();
        let scope = EventScope::new(event);
        for (assertion, progress) in &mut self.assertions {
            if progress.settled {
                continue;
            }
            if let Err(message) = progress.see(&assertion.kind, &scope) {
                progress.settled = true;
                self.failures.push(AssertionFailure {
                    id: assertion.id.clone(),
                    epoch: event.epoch,
                    seq: event.seq,
                    message,
                });
            }
        }
        self.failures.len() == before
    }

    /// Checks what can only be decided when the run is over.
    pub(crate) fn finish(&mut self, metrics: &Metrics, epochs: u64) {
        for (assertion, progress) in &mut self.assertions {
            if progress.settled {
                continue;
            }
            progress.settled = true;
            if let Err(message) = progress.end(&assertion.kind, metrics) {
                self.failures.push(AssertionFailure {
                    id: assertion.id.clone(),
                    epoch: epochs,
                    seq: 0,
                    message,
                });
            }
        }
    }

    pub(crate) fn stops(&self) -> bool {
        self.fail_fast && !self.failures.is_empty()
    }

    pub(crate) fn failures(&self) -> &[AssertionFailure] {
        &self.failures
    }
}

impl Progress {
    /// Checks an event. The error says why the assertion fails.
    fn see(&mut self, kind: &Kind, scope: &EventScope<'_>) -> Result<(), String> {
        let event = scope.event();
        match kind {
            Kind::Always(matcher) => match matcher.selects(scope)? && !matcher.holds(scope)? {
                true => Err(format!("does not hold for {}", event.to_json())),
                false => Ok(()),
            },
            Kind::Never(matcher) => match matcher.fits(scope)? {
                true => Err(format!("must not happen: {}", event.to_json())),
                false => Ok(()),
            },
            Kind::Eventually(matcher) => {
                self.settled = matcher.fits(scope)?;
                Ok(())
            }
            Kind::WithinEpochs { matcher, epochs } => {
                let in_time = event.epoch <= *epochs;
                self.settled = in_time && matcher.fits(scope)?;
                match !in_time {
                    true => Err(format!("did not happen within {epochs} epochs")),
                    false => Ok(()),
                }
            }
            Kind::WithinEvents { matcher, events } => {
                self.count += 1;
                self.settled = matcher.fits(scope)? && self.count <= *events;
                match !self.settled && self.count >= *events {
                    true => Err(format!("did not happen within {events} events")),
                    false => Ok(()),
                }
            }
            Kind::CounterEquals { matcher, count } => {
                self.count += u64::from(matcher.fits(scope)?);
                match self.count > *count {
                    true => Err(format!("happened more than {count} times")),
                    false => Ok(()),
                }
            }
            Kind::Sequence { steps, epochs } => {
                let too_late = epochs.filter(|epochs| event.epoch > *epochs);
                if too_late.is_none()
                    && let Some(next) = steps.get(self.step)
                    && next.fits(scope)?
                {
                    self.step += 1;
                }
                self.settled = self.step == steps.len();
                match too_late {
                    Some(epochs) => Err(format!(
                        "{} of {} steps came within {epochs} epochs",
                        self.step,
                        steps.len()
                    )),
                    None => Ok(()),
                }
            }
            Kind::Metric { .. } => Ok(()),
        }
    }

    /// Checks the end of the run. The error says what is missing.
    fn end(&self, kind: &Kind, metrics: &Metrics) -> Result<(), String> {
        match kind {
            Kind::Always(_) | Kind::Never(_) => Ok(()),
            Kind::Eventually(_) => Err("never happened".to_owned()),
            Kind::WithinEpochs { epochs, .. } => Err(format!(
                "did not happen within {epochs} epochs: the run was over"
            )),
            Kind::WithinEvents { events, .. } => Err(format!(
                "did not happen within {events} events: the run was over"
            )),
            Kind::CounterEquals { count, .. } if self.count == *count => Ok(()),
            Kind::CounterEquals { count, .. } => {
                Err(format!("happened {} times instead of {count}", self.count))
            }
            Kind::Sequence { steps, .. } => {
                Err(format!("{} of {} steps came", self.step, steps.len()))
            }
            Kind::Metric {
                name,
                id,
                condition,
                value,
            } => {
                let found = match id.as_str() {
                    "" => metrics
                        .samples
                        .iter()
                        .any(|s| s.name == *name)
                        .then(|| metrics.sum(name)),
                    id => metrics.of(name, id),
                };
                let Some(found) = found else {
                    return Err(format!("there is no metric {name} {id}"));
                };
                let holds = condition.holds(&MessageScope::of(&Payload::Float(found)));
                match holds.map_err(|error| condition.explain(&error))? {
                    true => Ok(()),
                    false => Err(format!("{name} {id} is {found}, compared with {value}")),
                }
            }
        }
    }
}
