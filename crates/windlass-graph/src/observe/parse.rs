//! Assertions from a file.

use std::fmt;

use serde_json::{Map, Value};

use super::assertion::{Assertion, Assertions, Kind};
use super::matcher::{Condition, Matcher, Relation};
use windlass_plan::Limits;
use windlass_plan::load::values;

/// What is wrong with a file of assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionsError {
    /// Where: a path, or a line and column if it is no YAML.
    pub place: String,
    /// What.
    pub message: String,
}

impl fmt::Display for AssertionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.message),
            place => write!(f, "{place}: {}", self.message),
        }
    }
}

impl std::error::Error for AssertionsError {}

type Parsed<T> = Result<T, AssertionsError>;

fn error<T>(place: &str, message: impl Into<String>) -> Parsed<T> {
    Err(AssertionsError {
        place: place.to_owned(),
        message: message.into(),
    })
}

const KINDS: [&str; 10] = [
    "always",
    "never",
    "eventually",
    "within_epochs",
    "within_events",
    "counter_equals",
    "metric_equals",
    "metric_lte",
    "metric_gte",
    "sequence",
];

pub(super) fn parse(text: &str) -> Parsed<Assertions> {
    let root = match values(text, &Limits::default()) {
        Ok(root) => root,
        Err((place, message)) => return error(&place, message),
    };
    let fields = Fields::new(
        "",
        &Value::Object(root),
        &["version", "assertions", "fail_fast"],
    )?;
    match fields.get("version") {
        Some(version) if *version == "1" || *version == 1 => {}
        _ => return error("version", "has to be \"1\""),
    }
    let fail_fast = match fields.get("fail_fast") {
        None => false,
        Some(Value::Bool(value)) => *value,
        Some(_) => return error("fail_fast", "has to be true or false"),
    };
    let Some(Value::Array(items)) = fields.get("assertions") else {
        return error("assertions", "has to be a list");
    };
    let mut list: Vec<Assertion> = Vec::with_capacity(items.len());
    for (nth, item) in items.iter().enumerate() {
        let parsed = assertion(&format!("assertions[{nth}]"), item)?;
        if list.iter().any(|there| there.id == parsed.id) {
            let message = format!("there is an assertion {} already", parsed.id);
            return error(&format!("assertions[{nth}].id"), message);
        }
        list.push(parsed);
    }
    Ok(Assertions { list, fail_fast })
}

/// The fields of a map, each of which is known.
struct Fields<'a> {
    place: String,
    map: Map<String, Value>,
    known: &'a [&'a str],
}

impl<'a> Fields<'a> {
    fn new(place: &str, value: &Value, known: &'a [&'a str]) -> Parsed<Fields<'a>> {
        let Some(map) = value.as_object() else {
            return error(place, format!("has to be a map of {}", known.join(", ")));
        };
        if let Some(odd) = map.keys().find(|key| !known.contains(&key.as_str())) {
            let place = join(place, odd);
            return error(
                &place,
                format!("is not known; there are {}", known.join(", ")),
            );
        }
        Ok(Fields {
            place: place.to_owned(),
            map: map.clone(),
            known,
        })
    }

    fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.known.contains(&name));
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn at(&self, name: &str) -> String {
        join(&self.place, name)
    }

    fn need(&self, name: &str) -> Parsed<&Value> {
        match self.get(name) {
            Some(value) => Ok(value),
            None => error(&self.at(name), "is missing"),
        }
    }

    fn count(&self, name: &str) -> Parsed<u64> {
        match self.need(name)?.as_u64() {
            Some(count) => Ok(count),
            None => error(&self.at(name), "has to be a whole number of 0 or more"),
        }
    }

    fn text(&self, name: &str) -> Parsed<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => error(&self.at(name), "has to be a text"),
        }
    }
}

fn join(place: &str, name: &str) -> String {
    match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    }
}

fn assertion(place: &str, item: &Value) -> Parsed<Assertion> {
    let known: Vec<&str> = ["id"].into_iter().chain(KINDS).collect();
    let fields = Fields::new(place, item, &known)?;
    let Some(id) = fields.text("id")?.filter(|id| !id.is_empty()) else {
        return error(&fields.at("id"), "is missing");
    };
    let mut given = KINDS.iter().filter(|kind| fields.get(kind).is_some());
    let (Some(name), None) = (given.next(), given.next()) else {
        return error(place, format!("has to have one of {}", KINDS.join(", ")));
    };
    let at = fields.at(name);
    let value = fields.need(name)?;
    let kind = match *name {
        "always" => Kind::Always(matcher(&at, value)?),
        "never" => Kind::Never(matcher(&at, value)?),
        "eventually" => Kind::Eventually(matcher(&at, value)?),
        "within_epochs" => {
            let fields = Fields::new(&at, value, &["match", "epochs"])?;
            Kind::WithinEpochs {
                matcher: matcher(&fields.at("match"), fields.need("match")?)?,
                epochs: fields.count("epochs")?,
            }
        }
        "within_events" => {
            let fields = Fields::new(&at, value, &["match", "events"])?;
            Kind::WithinEvents {
                matcher: matcher(&fields.at("match"), fields.need("match")?)?,
                events: fields.count("events")?,
            }
        }
        "counter_equals" => {
            let fields = Fields::new(&at, value, &["match", "count"])?;
            Kind::CounterEquals {
                matcher: matcher(&fields.at("match"), fields.need("match")?)?,
                count: fields.count("count")?,
            }
        }
        "sequence" => sequence(&at, value)?,
        "metric_lte" => metric(&at, value, Relation::LessOrEqual)?,
        "metric_gte" => metric(&at, value, Relation::GreaterOrEqual)?,
        _ => metric(&at, value, Relation::Equal)?,
    };
    Ok(Assertion { id, kind })
}

fn sequence(place: &str, value: &Value) -> Parsed<Kind> {
    let fields = Fields::new(place, value, &["steps", "epochs"])?;
    let steps = match fields.need("steps")?.as_array() {
        Some(steps) if !steps.is_empty() => steps,
        _ => return error(&fields.at("steps"), "has to be a list of events"),
    };
    let at = fields.at("steps");
    let step = |(nth, step): (usize, &Value)| matcher(&format!("{at}[{nth}]"), step);
    Ok(Kind::Sequence {
        steps: steps.iter().enumerate().map(step).collect::<Parsed<_>>()?,
        epochs: match fields.get("epochs") {
            Some(_) => Some(fields.count("epochs")?),
            None => None,
        },
    })
}

fn metric(place: &str, value: &Value, relation: Relation) -> Parsed<Kind> {
    let fields = Fields::new(place, value, &["name", "id", "value"])?;
    let Some(name) = fields.text("name")? else {
        return error(&fields.at("name"), "is missing");
    };
    let Some(value) = fields.need("value")?.as_f64() else {
        return error(&fields.at("value"), "has to be a number");
    };
    Ok(Kind::Metric {
        name,
        id: fields.text("id")?.unwrap_or_default(),
        relation,
        value,
    })
}

fn matcher(place: &str, value: &Value) -> Parsed<Matcher> {
    let fields = Fields::new(
        place,
        value,
        &["event", "component", "channel", "lane", "where"],
    )?;
    let mut conditions = Vec::new();
    if let Some(wanted) = fields.get("where") {
        let at = fields.at("where");
        let Some(wanted) = wanted.as_object() else {
            return error(&at, "has to be a map of attributes");
        };
        for (attribute, wanted) in wanted {
            conditions.extend(conditions_of(&join(&at, attribute), attribute, wanted)?);
        }
    }
    Ok(Matcher {
        event: fields.text("event")?,
        component: fields.text("component")?,
        channel: fields.text("channel")?,
        lane: fields.text("lane")?,
        conditions,
    })
}

fn conditions_of(place: &str, attribute: &str, wanted: &Value) -> Parsed<Vec<Condition>> {
    let condition = |relation: Relation, value: &Value| Condition {
        attribute: attribute.to_owned(),
        relation,
        value: value.clone(),
    };
    let Some(relations) = wanted.as_object() else {
        return Ok(vec![condition(Relation::Equal, wanted)]);
    };
    let one = |(name, value): (&String, &Value)| match Relation::named(name) {
        Some(relation) => Ok(condition(relation, value)),
        None => error(
            &join(place, name),
            "is not known; there are eq, ne, lt, lte, gt, gte",
        ),
    };
    relations.iter().map(one).collect()
}
