//! Which events an assertion is about.

use windlass_plan::expression::{Expression, Name, fits};

use super::Level;
use super::event_scope::EventScope;
use crate::run::TraceName;

/// Which events are meant: those for which all of its expressions are true.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Matcher {
    /// The pattern for the names of events, if there is one. `selection` has it, too; here it
    /// decides which events a run has to report.
    pub(crate) event: Option<String>,
    /// What an event has to be so that `always` looks at it.
    pub(crate) selection: Vec<Expression>,
    /// What has to hold for it.
    pub(crate) conditions: Vec<Expression>,
}

/// Returns true if all expressions are true for the event. An expression that cannot be computed is
/// an error, as it is in a filter.
fn all(expressions: &[Expression], event: &EventScope<'_>) -> Result<bool, String> {
    for expression in expressions {
        let holds = expression.holds(event);
        if !holds.map_err(|error| expression.explain(&error))? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Matcher {
    /// Returns true if the event is one that the conditions are about.
    pub(crate) fn selects(&self, event: &EventScope<'_>) -> Result<bool, String> {
        all(&self.selection, event)
    }

    /// Returns true if the conditions hold for the event.
    pub(crate) fn holds(&self, event: &EventScope<'_>) -> Result<bool, String> {
        all(&self.conditions, event)
    }

    /// Returns true if the event is meant and the conditions hold for it.
    pub(crate) fn fits(&self, event: &EventScope<'_>) -> Result<bool, String> {
        Ok(self.selects(event)? && self.holds(event)?)
    }

    /// Returns the level at which a run has to report events so that none is missing here.
    pub(crate) fn needs(&self) -> Level {
        const SUMMARY: [&str; 5] = ["run_started", "epoch", "error", "health_event", "run_ended"];
        const DETAILED: [&str; 4] = ["component", "channel", "lane", "loop"];
        let Some(pattern) = &self.event else {
            // A condition on the name may be about any event.
            let mut conditions = self.conditions.iter();
            return match conditions.any(|condition| condition.uses(Name::Event)) {
                true => Level::Debug,
                false => Level::Detailed,
            };
        };
        let any = |names: &[&str]| names.iter().any(|name| fits(pattern, name));
        let traced = TraceName::ALL.iter();
        let mut traced = traced.filter(|name| !SUMMARY.contains(&name.name()));
        if traced.any(|name| fits(pattern, name.name())) {
            Level::Debug
        } else if any(&DETAILED) {
            Level::Detailed
        } else {
            Level::Summary
        }
    }
}
