//! What an expression is, for given values.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::Scope;
use super::error::{ExpressionError, Fault};
use super::number::Number;
use super::tree::{Into, Kind, Name, Node, Operator, Step};

/// How many bytes a result may have, roughly.
const RESULT_BYTES: usize = 16 << 20;

/// A value: one that is there, or one that was made.
type Found<'a> = Result<Cow<'a, Value>, ExpressionError>;

pub(super) fn evaluate(root: &Node, scope: &Scope<'_>) -> Result<Value, ExpressionError> {
    let found = scope.node(root)?;
    within_size(&found, root.column)?;
    Ok(found.into_owned())
}

/// What a value is, in a word.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether two values are the same; 1 and 1.0 are.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => {
            let numbers = Number::of(a).zip(Number::of(b));
            numbers.is_some_and(|(a, b)| a.compare(b).is_eq())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

impl<'a> Scope<'a> {
    fn node(&self, node: &'a Node) -> Found<'a>
    where
        Self: 'a,
    {
        match &node.kind {
            Kind::Literal(value) => Ok(Cow::Borrowed(value)),
            Kind::Name(name) => self.name(*name, node.column),
            Kind::List(items) => {
                let items = items.iter().map(|item| Ok(self.node(item)?.into_owned()));
                let items = items.collect::<Result<_, _>>()?;
                Ok(Cow::Owned(Value::Array(items)))
            }
            Kind::Object(fields) => {
                let mut object = Map::new();
                for (key, field) in fields {
                    object.insert(key.clone(), self.node(field)?.into_owned());
                }
                Ok(Cow::Owned(Value::Object(object)))
            }
            Kind::Path(base, steps) => {
                let base = self.node(base)?;
                let mut steps = steps.iter();
                steps.try_fold(base, |value, step| self.step(value, step))
            }
            Kind::Not(inner) => Ok(Cow::Owned((!self.truth(inner, "!")?).into())),
            Kind::Minus(inner) => self.minus(inner),
            Kind::Row(first, rest) => self.row(first, rest),
            Kind::Choice(nodes) => {
                let [condition, then, otherwise] = &**nodes;
                match self.truth(condition, "the condition before `?`")? {
                    true => self.node(then),
                    false => self.node(otherwise),
                }
            }
            Kind::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.node(argument)?);
                }
                let made = (function.call)(&values);
                let made = made.map_err(|fault| ExpressionError::new(fault, node.column))?;
                within_size(&made, node.column)?;
                Ok(Cow::Owned(made))
            }
        }
    }

    fn name(&self, name: Name, column: usize) -> Found<'a> {
        let number = |number: f64| {
            let value = Number::Float(number).value();
            value.map_err(|fault| ExpressionError::new(fault, column))
        };
        Ok(match name {
            Name::Value => Cow::Borrowed(self.value),
            Name::Values => Cow::Borrowed(self.values),
            Name::Epoch => Cow::Owned(self.epoch.into()),
            Name::NowMs => Cow::Owned(number(self.now_ms)?),
            Name::Port => Cow::Owned(self.port.into()),
            Name::EventMs => Cow::Owned(self.event_ms.map(number).transpose()?.into()),
        })
    }

    fn step(&self, value: Cow<'a, Value>, step: &'a Step) -> Found<'a>
    where
        Self: 'a,
    {
        let index = match &step.into {
            Into::Field(name) => Cow::Owned(Value::from(name.as_str())),
            Into::Index(index) => self.node(index)?,
        };
        let found = match value {
            Cow::Borrowed(value) => enter(value, &index).map(|found| match found {
                Entered::There(inner) => Cow::Borrowed(inner),
                Entered::Made(made) => Cow::Owned(made),
            }),
            Cow::Owned(value) => enter(&value, &index).map(|found| match found {
                Entered::There(inner) => Cow::Owned(inner.clone()),
                Entered::Made(made) => Cow::Owned(made),
            }),
        };
        found.map_err(|fault| ExpressionError::new(fault, step.column))
    }

    fn truth(&self, node: &'a Node, what: &str) -> Result<bool, ExpressionError> {
        let value = self.node(node)?;
        truth(&value, what, node.column)
    }

    fn minus(&self, inner: &'a Node) -> Found<'a> {
        let value = self.node(inner)?;
        let negative = match Number::of(&value) {
            Some(number) => number.minus().and_then(Number::value),
            None => Err(mismatch("-", "a number", &value)),
        };
        let negative = negative.map_err(|fault| ExpressionError::new(fault, inner.column));
        negative.map(Cow::Owned)
    }

    fn row(&self, first: &'a Node, rest: &'a [(Operator, usize, Node)]) -> Found<'a> {
        let mut left = self.node(first)?;
        for (operator, column, right) in rest {
            // What the left side has decided is not looked at on the right.
            if let Operator::And | Operator::Or = operator {
                let so_far = truth(&left, operator.sign(), *column)?;
                let decided = so_far == (*operator == Operator::Or);
                let result = match decided {
                    true => so_far,
                    false => self.truth(right, operator.sign())?,
                };
                left = Cow::Owned(result.into());
                continue;
            }
            let right = self.node(right)?;
            let made = combine(left, *operator, &right);
            let made = made.map_err(|fault| ExpressionError::new(fault, *column))?;
            within_size(&made, *column)?;
            left = Cow::Owned(made);
        }
        Ok(left)
    }
}

/// What a step into a value found.
enum Entered<'a> {
    There(&'a Value),
    Made(Value),
}

/// What is at this place of a value; null if there is nothing. A field of a list is the list of that field of its
/// items.
fn enter<'a>(value: &'a Value, index: &Value) -> Result<Entered<'a>, Fault> {
    let there = |found: Option<&'a Value>| Ok(Entered::There(found.unwrap_or(&Value::Null)));
    match (value, index) {
        (Value::Null, _) => there(None),
        (Value::Object(object), Value::String(key)) => there(object.get(key)),
        (Value::Object(_), other) => Err(mismatch("an object's `[ ]`", "a text", other)),
        (Value::Array(items), Value::String(_)) => {
            let mut column = Vec::with_capacity(items.len());
            for item in items {
                column.push(match enter(item, index)? {
                    Entered::There(found) => found.clone(),
                    Entered::Made(made) => made,
                });
            }
            Ok(Entered::Made(Value::Array(column)))
        }
        (Value::Array(items), Value::Number(number)) => match number.as_i64() {
            // From the end, if it is less than 0.
            Some(place) => {
                let from = if place < 0 { items.len() as i64 } else { 0 };
                let place = from.checked_add(place);
                there(place.and_then(|place| items.get(usize::try_from(place).ok()?)))
            }
            None => Err(mismatch("a list's `[ ]`", "a whole number", index)),
        },
        (Value::Array(_), other) => Err(mismatch("a list's `[ ]`", "a whole number", other)),
        (other, _) => Err(mismatch("a field or `[ ]`", "an object or a list", other)),
    }
}

pub(super) fn mismatch(what: &str, takes: &'static str, found: &Value) -> Fault {
    Fault::Type {
        what: what.to_owned(),
        takes,
        found: kind(found),
    }
}

fn truth(value: &Value, what: &str, column: usize) -> Result<bool, ExpressionError> {
    let wrong = || ExpressionError::new(mismatch(what, "a boolean", value), column);
    value.as_bool().ok_or_else(wrong)
}

fn combine(left: Cow<'_, Value>, operator: Operator, right: &Value) -> Result<Value, Fault> {
    match operator {
        Operator::Equal => return Ok(equal(&left, right).into()),
        Operator::NotEqual => return Ok((!equal(&left, right)).into()),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            return Ok(ordered(operator, order(&left, operator, right)?).into());
        }
        _ => {}
    }
    if let Some((a, b)) = Number::of(&left).zip(Number::of(right)) {
        return a.combine(operator, b)?.value();
    }
    match (left.into_owned(), right) {
        (Value::String(mut text), Value::String(more)) if operator == Operator::Add => {
            text.push_str(more);
            Ok(text.into())
        }
        (Value::Array(mut items), Value::Array(more)) if operator == Operator::Add => {
            items.extend_from_slice(more);
            Ok(items.into())
        }
        (left, right) => {
            let wrong = if left.is_number() { right } else { &left };
            let takes = match operator {
                Operator::Add => "two numbers, two texts or two lists",
                _ => "two numbers",
            };
            Err(mismatch(operator.sign(), takes, wrong))
        }
    }
}

fn order(left: &Value, operator: Operator, right: &Value) -> Result<Ordering, Fault> {
    if let Some((a, b)) = Number::of(left).zip(Number::of(right)) {
        return Ok(a.compare(b));
    }
    match (left, right) {
        (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        _ => {
            let wrong = match left {
                Value::Number(_) | Value::String(_) => right,
                _ => left,
            };
            Err(mismatch(operator.sign(), "two numbers or two texts", wrong))
        }
    }
}

fn ordered(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Roughly how many bytes a value has.
fn weight(value: &Value) -> usize {
    const EACH: usize = 8;
    match value {
        Value::String(text) => EACH + text.len(),
        Value::Array(items) => EACH + items.iter().map(weight).sum::<usize>(),
        Value::Object(object) => {
            let fields = object.iter();
            EACH + fields
                .map(|(key, value)| key.len() + weight(value))
                .sum::<usize>()
        }
        _ => EACH,
    }
}

fn within_size(value: &Value, column: usize) -> Result<(), ExpressionError> {
    match weight(value) <= RESULT_BYTES {
        true => Ok(()),
        false => {
            let fault = Fault::ResultTooLarge { most: RESULT_BYTES };
            Err(ExpressionError::new(fault, column))
        }
    }
}
