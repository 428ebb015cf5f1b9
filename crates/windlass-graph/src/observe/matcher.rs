//! Which events an assertion is about.

use serde_json::Value;

use super::Level;
use super::event::Observed;
use super::filter::fits;
use crate::run::TraceName;

/// Which events are meant: all that fit everything that it says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Matcher {
    pub(crate) event: Option<String>,
    pub(crate) component: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) lane: Option<String>,
    pub(crate) conditions: Vec<Condition>,
}

/// What an attribute has to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) attribute: String,
    pub(crate) relation: Relation,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    pub(crate) fn named(name: &str) -> Option<Relation> {
        Some(match name {
            "eq" => Relation::Equal,
            "ne" => Relation::NotEqual,
            "lt" => Relation::Less,
            "lte" => Relation::LessOrEqual,
            "gt" => Relation::Greater,
            "gte" => Relation::GreaterOrEqual,
            _ => return None,
        })
    }

    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::NotEqual => left != right,
            Relation::Less => left < right,
            Relation::LessOrEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterOrEqual => left >= right,
        }
    }
}

impl Condition {
    /// One about something that is not there does not hold.
    pub(crate) fn holds(&self, event: &Observed) -> bool {
        let Some(found) = event.attributes.get(&self.attribute) else {
            return self.relation == Relation::NotEqual;
        };
        match (found.as_f64(), self.value.as_f64()) {
            (Some(left), Some(right)) => self.relation.holds(left, right),
            _ => match self.relation {
                Relation::Equal => *found == self.value,
                Relation::NotEqual => *found != self.value,
                _ => false,
            },
        }
    }
}

impl Matcher {
    /// Whether an event is meant, whatever its attributes.
    pub(crate) fn selects(&self, event: &Observed) -> bool {
        let fit = |pattern: &Option<String>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| fits(pattern, name))
        };
        fit(&self.event, &event.name)
            && fit(&self.component, &event.component_id)
            && fit(&self.channel, &event.channel_id)
            && fit(&self.lane, &event.lane)
    }

    /// Whether the event's attributes are as they have to be.
    pub(crate) fn holds(&self, event: &Observed) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.holds(event))
    }

    pub(crate) fn fits(&self, event: &Observed) -> bool {
        self.selects(event) && self.holds(event)
    }

    /// What a run has to say so that it can be told.
    pub(crate) fn needs(&self) -> Level {
        const SUMMARY: [&str; 5] = ["run_started", "epoch", "error", "health_event", "run_ended"];
        const DETAILED: [&str; 4] = ["component", "channel", "lane", "loop"];
        let Some(pattern) = &self.event else {
            return Level::Detailed;
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
