//! What an expression is, for given values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use windlass_value::Payload;

use super::error::{ExpressionError, ExpressionErrorKind};
use super::number::Number;
use super::scope::Scope;
use super::tree::{Kind, Node, Operator, Step, StepKind};

/// How many bytes a result may have, roughly.
pub(super) const RESULT_BYTES: usize = 16 << 20;

/// How many levels of lists a field is looked for in.
const MOST_LEVELS: usize = 100;
/// Items of the columns of one step into a value: more would not fit into a result.
const MOST_ITEMS: usize = RESULT_BYTES / size_of::<Payload>();

/// A value: one that is there, or one that was made.
type ValueResult<'a> = Result<Cow<'a, Payload>, ExpressionError>;

pub(super) fn evaluate(root: &Node, scope: &impl Scope) -> Result<Payload, ExpressionError> {
    let found = Evaluation { scope }.node(root)?;
    within_size(&found, root.column)?;
    Ok(found.into_owned())
}

/// Returns the value of a condition, which has to be true or false.
pub(super) fn holds(
    root: &Node,
    source: &str,
    scope: &impl Scope,
) -> Result<bool, ExpressionError> {
    /// How many characters of a wrong value are shown.
    const SHOWN: usize = 60;
    let found = Evaluation { scope }.node(root)?;
    found.as_bool().ok_or_else(|| {
        let shown = match found.to_json() {
            Ok(json) => json.to_string().chars().take(SHOWN).collect(),
            Err(_) => kind(&found).to_owned(),
        };
        let kind = ExpressionErrorKind::NoCondition {
            source: source.to_owned(),
            found: shown,
        };
        ExpressionError::new(kind, root.column)
    })
}

/// Returns what a value is, in a word.
pub(super) fn kind(value: &Payload) -> &'static str {
    match value {
        value if is_null(value) => "null",
        Payload::Bool(_) => "a boolean",
        Payload::Int(_) | Payload::Float(_) => "a number",
        Payload::Text(_) => "a text",
        Payload::Bytes(_) => "bytes",
        Payload::List(_) => "a list",
        Payload::Map(_) => "an object",
        Payload::Pid(_) => "a PID",
        _ => "a Rust value",
    }
}

/// Returns true for null. A number that is not finite is null, as in JSON.
pub(super) fn is_null(value: &Payload) -> bool {
    match value {
        Payload::Nil => true,
        Payload::Float(number) => !number.is_finite(),
        _ => false,
    }
}

/// Returns true if two values are the same; 1 and 1.0 are.
pub(super) fn equal(a: &Payload, b: &Payload) -> bool {
    // Pairs that are still to be compared, not on the stack: there may be any number of levels.
    let mut waiting = vec![(a, b)];
    // Parts may be in 2^n places: what was compared once is not compared again.
    let mut known = HashSet::new();
    while let Some((a, b)) = waiting.pop() {
        let is_equal = match (a, b) {
            (Payload::List(a), Payload::List(b)) => {
                if a.len() == b.len() && known.insert((a.address(), b.address())) {
                    waiting.extend(a.iter().zip(b.iter()));
                }
                a.len() == b.len()
            }
            (Payload::Map(a), Payload::Map(b)) => {
                let same = a.keys().eq(b.keys());
                if same && known.insert((a.address(), b.address())) {
                    waiting.extend(a.values().zip(b.values()));
                }
                same
            }
            _ => match Number::of(a).zip(Number::of(b)) {
                Some((a, b)) => a.compare(b).is_eq(),
                None => a == b || is_null(a) && is_null(b),
            },
        };
        if !is_equal {
            return false;
        }
    }
    true
}

/// One evaluation of an expression.
struct Evaluation<'a, S> {
    scope: &'a S,
}

impl<'a, S: Scope> Evaluation<'a, S> {
    fn node(&self, node: &'a Node) -> ValueResult<'a> {
        match &node.kind {
            Kind::Literal(value) => Ok(Cow::Borrowed(value)),
            Kind::Name(name) => Ok(self.scope.get(*name)),
            Kind::List(items) => {
                let items = items.iter().map(|item| Ok(self.node(item)?.into_owned()));
                let items = items.collect::<Result<Vec<Payload>, _>>()?;
                Ok(Cow::Owned(items.into()))
            }
            Kind::Object(fields) => {
                let mut object = BTreeMap::new();
                for (key, field) in fields {
                    object.insert(key.clone(), self.node(field)?.into_owned());
                }
                Ok(Cow::Owned(Payload::Map(object.into())))
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
                let made = made.map_err(|kind| ExpressionError::new(kind, node.column))?;
                within_size(&made, node.column)?;
                Ok(Cow::Owned(made))
            }
        }
    }

    fn step(&self, value: Cow<'a, Payload>, step: &'a Step) -> ValueResult<'a> {
        let index = match &step.kind {
            StepKind::Field(name) => Cow::Borrowed(name),
            StepKind::Index(index) => self.node(index)?,
        };
        let found = match value {
            Cow::Borrowed(value) => enter(value, &index, MOST_LEVELS, &mut { MOST_ITEMS }),
            // What is found inside of a value that was made goes with it, so it is cloned.
            Cow::Owned(value) => {
                let found = enter(&value, &index, MOST_LEVELS, &mut { MOST_ITEMS });
                found.map(|found| Cow::Owned(found.into_owned()))
            }
        };
        found.map_err(|kind| ExpressionError::new(kind, step.column))
    }

    fn truth(&self, node: &'a Node, what: &str) -> Result<bool, ExpressionError> {
        let value = self.node(node)?;
        truth(&value, what, node.column)
    }

    fn minus(&self, inner: &'a Node) -> ValueResult<'a> {
        let value = self.node(inner)?;
        let negative = match Number::of(&value) {
            Some(number) => number.minus().and_then(Number::value),
            None => Err(mismatch("-", "a number", &value)),
        };
        let negative = negative.map_err(|kind| ExpressionError::new(kind, inner.column));
        negative.map(Cow::Owned)
    }

    fn row(&self, first: &'a Node, rest: &'a [(Operator, usize, Node)]) -> ValueResult<'a> {
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
            let made = made.map_err(|kind| ExpressionError::new(kind, *column))?;
            within_size(&made, *column)?;
            left = Cow::Owned(made);
        }
        Ok(left)
    }
}

/// Returns what is at this place of a value; null if there is nothing. A field of a list is the
/// list of that field of its items.
fn enter<'a>(
    value: &'a Payload,
    index: &Payload,
    levels: usize,
    items_left: &mut usize,
) -> Result<Cow<'a, Payload>, ExpressionErrorKind> {
    let there = |found: Option<&'a Payload>| Ok(Cow::Borrowed(found.unwrap_or(&Payload::Nil)));
    match (value, index) {
        (value, _) if is_null(value) => there(None),
        (Payload::Map(object), Payload::Text(key)) => there(object.get(key)),
        (Payload::Map(_), other) => Err(mismatch("an object's `[ ]`", "a text", other)),
        (Payload::List(items), Payload::Text(_)) => {
            let inner = levels.checked_sub(1);
            let inner = inner.ok_or(ExpressionErrorKind::ValueTooDeep { most: MOST_LEVELS })?;
            // Lists that share their items have far more of them than they take memory.
            let left = items_left.checked_sub(items.len());
            *items_left = left.ok_or(ExpressionErrorKind::ResultTooLarge { most: RESULT_BYTES })?;
            let mut column = Vec::with_capacity(items.len());
            for item in items.iter() {
                column.push(enter(item, index, inner, items_left)?.into_owned());
            }
            Ok(Cow::Owned(column.into()))
        }
        // From the end, if it is less than 0.
        (Payload::List(items), Payload::Int(place)) => {
            let from = if *place < 0 { items.len() as i64 } else { 0 };
            let place = from.checked_add(*place);
            there(place.and_then(|place| items.get(usize::try_from(place).ok()?)))
        }
        (Payload::List(_), other) => Err(mismatch("a list's `[ ]`", "a whole number", other)),
        (other, _) => Err(mismatch("a field or `[ ]`", "an object or a list", other)),
    }
}

pub(super) fn mismatch(what: &str, takes: &'static str, found: &Payload) -> ExpressionErrorKind {
    ExpressionErrorKind::Type {
        what: what.to_owned(),
        takes,
        found: kind(found),
    }
}

fn truth(value: &Payload, what: &str, column: usize) -> Result<bool, ExpressionError> {
    let wrong = || ExpressionError::new(mismatch(what, "a boolean", value), column);
    value.as_bool().ok_or_else(wrong)
}

fn combine(
    left: Cow<'_, Payload>,
    operator: Operator,
    right: &Payload,
) -> Result<Payload, ExpressionErrorKind> {
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
    match (&*left, right) {
        (Payload::Text(text), Payload::Text(more)) if operator == Operator::Add => {
            Ok(Payload::from([&**text, &**more].concat()))
        }
        (Payload::List(items), Payload::List(more)) if operator == Operator::Add => Ok(
            Payload::List(items.iter().chain(more.iter()).cloned().collect()),
        ),
        (left, right) => {
            let is_number = Number::of(left).is_some();
            let wrong = if is_number { right } else { left };
            let takes = match operator {
                Operator::Add => "two numbers, two texts or two lists",
                _ => "two numbers",
            };
            Err(mismatch(operator.sign(), takes, wrong))
        }
    }
}

fn order(
    left: &Payload,
    operator: Operator,
    right: &Payload,
) -> Result<Ordering, ExpressionErrorKind> {
    if let Some((a, b)) = Number::of(left).zip(Number::of(right)) {
        return Ok(a.compare(b));
    }
    match (left, right) {
        (Payload::Text(a), Payload::Text(b)) => Ok(a.cmp(b)),
        _ => {
            let fits = Number::of(left).is_some() || left.as_str().is_some();
            let wrong = if fits { right } else { left };
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

/// Returns true if a value has roughly at most so many bytes. What is in several places counts in
/// each of them, because JSON writes it so.
fn is_within(value: &Payload, most: usize) -> bool {
    const EACH: usize = 8;
    let mut left = most;
    let mut take = |bytes: usize| {
        let fits = left.checked_sub(bytes);
        left = fits.unwrap_or(0);
        fits.is_some()
    };
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        let more = match value {
            Payload::Text(text) => text.len(),
            Payload::Bytes(bytes) => bytes.len(),
            Payload::List(items) => {
                waiting.extend(items.iter());
                0
            }
            Payload::Map(entries) => {
                waiting.extend(entries.values());
                entries.keys().map(|key| key.len()).sum()
            }
            _ => 0,
        };
        if !take(EACH.saturating_add(more)) {
            return false;
        }
    }
    true
}

fn within_size(value: &Payload, column: usize) -> Result<(), ExpressionError> {
    match is_within(value, RESULT_BYTES) {
        true => Ok(()),
        false => {
            let kind = ExpressionErrorKind::ResultTooLarge { most: RESULT_BYTES };
            Err(ExpressionError::new(kind, column))
        }
    }
}
