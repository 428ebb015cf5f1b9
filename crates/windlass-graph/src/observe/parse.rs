//! Assertions from a file.

use std::fmt;

use serde_json::{Map, Value};

use super::assertion::{Assertion, Assertions, Kind};
use super::matcher::Matcher;
use windlass_plan::Limits;
use windlass_plan::expression::{Expression, Names};
use windlass_plan::values;
use windlass_value::Payload;

/// What is wrong with a file of assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionsError {
    /// Where it is: a path, or a line and column if the text is no YAML.
    pub place: String,
    /// What is wrong there.
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

type ParseResult<T> = Result<T, AssertionsError>;

fn error<T>(place: &str, message: impl Into<String>) -> ParseResult<T> {
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

pub(super) fn parse(text: &str) -> ParseResult<Assertions> {
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
    fn new(place: &str, value: &Value, known: &'a [&'a str]) -> ParseResult<Fields<'a>> {
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

    fn need(&self, name: &str) -> ParseResult<&Value> {
        match self.get(name) {
            Some(value) => Ok(value),
            None => error(&self.at(name), "is missing"),
        }
    }

    fn count(&self, name: &str) -> ParseResult<u64> {
        match self.need(name)?.as_u64() {
            Some(count) => Ok(count),
            None => error(&self.at(name), "has to be a whole number of 0 or more"),
        }
    }

    fn text(&self, name: &str) -> ParseResult<Option<String>> {
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

fn assertion(place: &str, item: &Value) -> ParseResult<Assertion> {
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
        "metric_lte" => metric(&at, value, "<=")?,
        "metric_gte" => metric(&at, value, ">=")?,
        _ => metric(&at, value, "==")?,
    };
    Ok(Assertion { id, kind })
}

fn sequence(place: &str, value: &Value) -> ParseResult<Kind> {
    let fields = Fields::new(place, value, &["steps", "epochs"])?;
    let steps = match fields.need("steps")?.as_array() {
        Some(steps) if !steps.is_empty() => steps,
        _ => return error(&fields.at("steps"), "has to be a list of events"),
    };
    let at = fields.at("steps");
    let step = |(nth, step): (usize, &Value)| matcher(&format!("{at}[{nth}]"), step);
    Ok(Kind::Sequence {
        steps: steps
            .iter()
            .enumerate()
            .map(step)
            .collect::<ParseResult<_>>()?,
        epochs: match fields.get("epochs") {
            Some(_) => Some(fields.count("epochs")?),
            None => None,
        },
    })
}

fn metric(place: &str, value: &Value, sign: &str) -> ParseResult<Kind> {
    let fields = Fields::new(place, value, &["name", "id", "value"])?;
    let Some(name) = fields.text("name")? else {
        return error(&fields.at("name"), "is missing");
    };
    let Some(value) = fields.need("value")?.as_f64() else {
        return error(&fields.at("value"), "has to be a number");
    };
    let sentence = format!("value {sign} wanted");
    let constants = [("wanted", value.into())];
    Ok(Kind::Metric {
        name,
        id: fields.text("id")?.unwrap_or_default(),
        condition: compile(place, &sentence, Names::Message, &constants)?,
        value,
    })
}

/// The fields of an event that a matcher has patterns for, named as in expressions.
const PATTERNS: [&str; 4] = ["event", "component", "channel", "lane"];

/// Reads which events are meant: a condition, or a map of patterns and a condition `where`.
fn matcher(place: &str, value: &Value) -> ParseResult<Matcher> {
    if let Value::String(source) = value {
        return Ok(Matcher {
            conditions: vec![compile(place, source, Names::Event, &[])?],
            ..Matcher::default()
        });
    }
    let known: Vec<&str> = PATTERNS.into_iter().chain(["where"]).collect();
    let fields = Fields::new(place, value, &known)?;
    let mut selection = Vec::new();
    for name in PATTERNS {
        if let Some(pattern) = fields.text(name)? {
            let sentence = format!("matches({name}, pattern)");
            let constants = [("pattern", pattern.into())];
            let at = fields.at(name);
            selection.push(compile(&at, &sentence, Names::Event, &constants)?);
        }
    }
    let at = fields.at("where");
    let conditions = match fields.get("where") {
        None => Vec::new(),
        Some(Value::String(source)) => vec![compile(&at, source, Names::Event, &[])?],
        Some(Value::Object(wanted)) => translate(&at, wanted)?,
        Some(_) => return error(&at, "has to be an expression, or a map of attributes"),
    };
    Ok(Matcher {
        event: fields.text("event")?,
        selection,
        conditions,
    })
}

/// The words of a `where` map, and the operators that they stand for.
const RELATIONS: [(&str, &str); 6] = [
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("lte", "<="),
    ("gt", ">"),
    ("gte", ">="),
];

/// Translates a `where` map into expressions, all of which have to be true: `{depth: {lte: 8}}`
/// becomes `value.depth <= 8`, and `{kind: x}` becomes `value.kind == 'x'`.
///
/// The map is more lenient than the expression that one would write: a comparison with an attribute
/// that is missing or of another type is false instead of an error. An attribute that is missing
/// equals nothing, not even null.
fn translate(place: &str, wanted: &Map<String, Value>) -> ParseResult<Vec<Expression>> {
    let mut expressions = Vec::new();
    for (attribute, wanted) in wanted {
        let place = join(place, attribute);
        let equals = Map::from_iter([("eq".to_owned(), wanted.clone())]);
        for (word, wanted) in wanted.as_object().unwrap_or(&equals) {
            let place = join(&place, word);
            let sign = RELATIONS.iter().find(|(known, _)| known == word);
            let sentence = match sign.map(|(_, sign)| *sign) {
                Some("==") => "contains(value, attribute) && value[attribute] == wanted".to_owned(),
                Some("!=") => {
                    "!(contains(value, attribute) && value[attribute] == wanted)".to_owned()
                }
                Some(sign) if wanted.is_number() || wanted.is_string() => {
                    let same = "type(value[attribute]) == type(wanted)";
                    format!("{same} && value[attribute] {sign} wanted")
                }
                Some(_) => return error(&place, "has to be a number or a text"),
                None => {
                    let words = RELATIONS.map(|(word, _)| word).join(", ");
                    return error(&place, format!("is not known; there are {words}"));
                }
            };
            let constants = [
                ("attribute", attribute.as_str().into()),
                ("wanted", wanted.clone().into()),
            ];
            let compiled = compile(&place, &sentence, Names::Event, &constants)?;
            expressions.push(compiled);
        }
    }
    Ok(expressions)
}

/// Compiles an expression; its error shows the place in the text, as that of a component does.
fn compile(
    place: &str,
    source: &str,
    names: Names,
    constants: &[(&str, Payload)],
) -> ParseResult<Expression> {
    match Expression::compile_with(source, names, constants) {
        Ok(expression) => Ok(expression),
        Err(wrong) => error(
            place,
            format!("is no expression: {}", wrong.shown_in(source)),
        ),
    }
}
