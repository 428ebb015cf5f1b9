//! The functions of expressions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use windlass_value::Payload;

use super::error::ExpressionErrorKind;
use super::evaluate::{RESULT_BYTES, equal, is_null, kind, mismatch};
use super::number::Number;
use super::pattern::fits;
use super::tree::Operator;

/// A function: its name, how many arguments it takes, what it does.
pub(super) struct Function {
    name: &'static str,
    least: usize,
    most: usize,
    pub(super) call: fn(&[Cow<'_, Payload>]) -> Result<Payload, ExpressionErrorKind>,
}

/// As many arguments as one likes.
const ANY: usize = usize::MAX;

type Arguments<'a, 'b> = &'a [Cow<'b, Payload>];
type FunctionResult = Result<Payload, ExpressionErrorKind>;

const fn function(
    name: &'static str,
    least: usize,
    most: usize,
    call: fn(Arguments<'_, '_>) -> FunctionResult,
) -> Function {
    Function {
        name,
        least,
        most,
        call,
    }
}

static FUNCTIONS: &[Function] = &[
    function("abs", 1, 1, |a| match number("abs", &a[0])? {
        Number::Int(whole) => whole
            .checked_abs()
            .map(Payload::from)
            .ok_or(ExpressionErrorKind::Overflow),
        Number::Float(number) => Number::Float(number.abs()).value(),
    }),
    function("round", 1, 1, |a| {
        number("round", &a[0])?.whole(f64::round)?.value()
    }),
    function("floor", 1, 1, |a| {
        number("floor", &a[0])?.whole(f64::floor)?.value()
    }),
    function("ceil", 1, 1, |a| {
        number("ceil", &a[0])?.whole(f64::ceil)?.value()
    }),
    function("sqrt", 1, 1, |a| {
        Number::Float(number("sqrt", &a[0])?.float().sqrt()).value()
    }),
    function("pow", 2, 2, |a| {
        power(number("pow", &a[0])?, number("pow", &a[1])?)
    }),
    function("min", 1, ANY, |a| extreme("min", a, Ordering::Less)),
    function("max", 1, ANY, |a| extreme("max", a, Ordering::Greater)),
    function("sum", 1, 1, |a| sum(&numbers("sum", &a[0])?)?.value()),
    function("mean", 1, 1, |a| mean(&numbers("mean", &a[0])?)),
    function("stddev", 1, 1, |a| deviation(&numbers("stddev", &a[0])?)),
    function("count", 1, 1, |a| Ok(size(list("count", &a[0])?.len()))),
    function("first", 1, 1, |a| {
        Ok(list("first", &a[0])?.first().cloned().unwrap_or_default())
    }),
    function("last", 1, 1, |a| {
        Ok(list("last", &a[0])?.last().cloned().unwrap_or_default())
    }),
    function("len", 1, 1, |a| length(&a[0])),
    function("keys", 1, 1, |a| match &*a[0] {
        Payload::Map(object) => Ok(texts(object.keys().map(|key| &**key))),
        other => Err(mismatch("keys", "an object", other)),
    }),
    function("lower", 1, 1, |a| {
        Ok(text("lower", &a[0])?.to_lowercase().into())
    }),
    function("upper", 1, 1, |a| {
        Ok(text("upper", &a[0])?.to_uppercase().into())
    }),
    function("contains", 2, 2, |a| contains(&a[0], &a[1])),
    function("starts_with", 2, 2, |a| {
        let part = text("starts_with", &a[1])?;
        Ok(text("starts_with", &a[0])?.starts_with(part).into())
    }),
    function("ends_with", 2, 2, |a| {
        let part = text("ends_with", &a[1])?;
        Ok(text("ends_with", &a[0])?.ends_with(part).into())
    }),
    function("matches", 2, 2, |a| {
        let pattern = text("matches", &a[1])?;
        Ok(fits(pattern, text("matches", &a[0])?).into())
    }),
    function("split", 2, 2, |a| {
        split(text("split", &a[0])?, text("split", &a[1])?)
    }),
    function("join", 2, 2, |a| {
        let items = list("join", &a[0])?.iter().map(shown);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let between = text("join", &a[1])?;
        let texts: usize = items.iter().map(|item| item.len()).sum();
        // Before it is made: it can be larger than all memory.
        let size = texts.saturating_add(between.len().saturating_mul(items.len()));
        if size > RESULT_BYTES {
            return Err(ExpressionErrorKind::ResultTooLarge { most: RESULT_BYTES });
        }
        Ok(items.join(between).into())
    }),
    function("str", 1, 1, |a| Ok(Payload::from(&*shown(&a[0])?))),
    function("num", 1, 1, |a| to_number(&a[0])),
    function("int", 1, 1, |a| match &*a[0] {
        Payload::Bool(flag) => Ok(i64::from(*flag).into()),
        other => {
            let number = to_number(other)?;
            self::number("int", &number)?.whole(f64::trunc)?.value()
        }
    }),
    function("type", 1, 1, |a| Ok(type_word(&a[0]).into())),
    function("exists", 1, 1, |a| Ok((!is_null(&a[0])).into())),
    function("default", 2, 2, |a| {
        let given = if is_null(&a[0]) { &a[1] } else { &a[0] };
        Ok(Payload::clone(given))
    }),
];

/// The names of all functions.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

impl Function {
    pub(super) fn named(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// Whether it takes so many arguments.
    pub(super) fn takes(&self, found: usize) -> Result<(), ExpressionErrorKind> {
        if (self.least..=self.most).contains(&found) {
            return Ok(());
        }
        let takes = match (self.least, self.most) {
            (1, 1) => "one argument".to_owned(),
            (least, ANY) => format!("at least {least}"),
            (least, _) => format!("{least} arguments"),
        };
        Err(ExpressionErrorKind::Arguments {
            function: self.name,
            takes,
            found,
        })
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Returns what a value is, as expressions compare it: `type(value) == 'number'`.
fn type_word(value: &Payload) -> &'static str {
    let words = kind(value);
    let bare = words
        .strip_prefix("a ")
        .or_else(|| words.strip_prefix("an "));
    bare.unwrap_or(words)
}

fn number(what: &str, value: &Payload) -> Result<Number, ExpressionErrorKind> {
    Number::of(value).ok_or_else(|| mismatch(what, "a number", value))
}

fn text<'a>(what: &str, value: &'a Payload) -> Result<&'a str, ExpressionErrorKind> {
    value
        .as_str()
        .ok_or_else(|| mismatch(what, "a text", value))
}

fn list<'a>(what: &str, value: &'a Payload) -> Result<&'a [Payload], ExpressionErrorKind> {
    match value {
        Payload::List(items) => Ok(items),
        other => Err(mismatch(what, "a list", other)),
    }
}

fn numbers(what: &str, value: &Payload) -> Result<Vec<Number>, ExpressionErrorKind> {
    let of_list = |item: &Payload| {
        Number::of(item).ok_or_else(|| ExpressionErrorKind::Type {
            what: what.to_owned(),
            takes: "a list of numbers",
            found: kind(item),
        })
    };
    list(what, value)?.iter().map(of_list).collect()
}

fn power(base: Number, exponent: Number) -> FunctionResult {
    if let (Number::Int(base), Number::Int(exponent)) = (base, exponent)
        && let Ok(exponent) = u32::try_from(exponent)
    {
        let whole = base.checked_pow(exponent);
        return whole
            .map(Payload::from)
            .ok_or(ExpressionErrorKind::Overflow);
    }
    Number::Float(base.float().powf(exponent.float())).value()
}

/// The least or the greatest: of a list, or of the arguments. Null if there is none.
fn extreme(what: &str, arguments: Arguments<'_, '_>, wanted: Ordering) -> FunctionResult {
    let all = match arguments {
        [only] if only.as_list().is_some() => numbers(what, only)?,
        several => several
            .iter()
            .map(|value| number(what, value))
            .collect::<Result<_, _>>()?,
    };
    let better = |a: Number, b: Number| if b.compare(a) == wanted { b } else { a };
    all.into_iter()
        .reduce(better)
        .map_or(Ok(Payload::Nil), Number::value)
}

fn sum(numbers: &[Number]) -> Result<Number, ExpressionErrorKind> {
    let zero = Number::Int(0);
    let mut numbers = numbers.iter();
    numbers.try_fold(zero, |sum, &number| sum.combine(Operator::Add, number))
}

fn mean(numbers: &[Number]) -> FunctionResult {
    match numbers.len() {
        0 => Ok(Payload::Nil),
        count => Number::Float(float_mean(numbers, count)).value(),
    }
}

fn float_mean(numbers: &[Number], count: usize) -> f64 {
    let sum: f64 = numbers.iter().map(|number| number.float()).sum();
    sum / count as f64
}

/// The standard deviation of all there are.
fn deviation(numbers: &[Number]) -> FunctionResult {
    let count = numbers.len();
    if count == 0 {
        return Ok(Payload::Nil);
    }
    let mean = float_mean(numbers, count);
    let squares = numbers.iter().map(|number| (number.float() - mean).powi(2));
    Number::Float((squares.sum::<f64>() / count as f64).sqrt()).value()
}

fn length(value: &Payload) -> FunctionResult {
    match value {
        Payload::Text(text) => Ok(size(text.chars().count())),
        Payload::Bytes(bytes) => Ok(size(bytes.len())),
        Payload::List(items) => Ok(size(items.len())),
        Payload::Map(object) => Ok(size(object.len())),
        other => Err(mismatch("len", "a text, bytes, a list or an object", other)),
    }
}

fn contains(all: &Payload, part: &Payload) -> FunctionResult {
    match all {
        Payload::Text(all) => Ok(all.contains(text("contains", part)?).into()),
        Payload::List(items) => Ok(items.iter().any(|item| equal(item, part)).into()),
        Payload::Map(object) => Ok(object.contains_key(text("contains", part)?).into()),
        other => Err(mismatch("contains", "a text, a list or an object", other)),
    }
}

/// The parts between the separators; the characters, if the separator is empty.
fn split(text: &str, separator: &str) -> FunctionResult {
    Ok(match separator {
        "" => texts(text.chars().map(|c| c.to_string())),
        _ => texts(text.split(separator)),
    })
}

fn size(count: usize) -> Payload {
    Payload::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn texts<T: Into<Payload>>(texts: impl Iterator<Item = T>) -> Payload {
    Payload::List(texts.map(Into::into).collect())
}

/// Returns a value as text: a text is itself, everything else is JSON.
fn shown(value: &Payload) -> Result<Cow<'_, str>, ExpressionErrorKind> {
    match value {
        Payload::Text(text) => Ok(Cow::Borrowed(text)),
        other => {
            let json = other.to_json().map_err(ExpressionErrorKind::NoJson)?;
            Ok(Cow::Owned(json.to_string()))
        }
    }
}

/// Returns the number that a value is, or that its text says.
fn to_number(value: &Payload) -> FunctionResult {
    match value {
        value if Number::of(value).is_some() => Ok(value.clone()),
        Payload::Text(text) => {
            let read = serde_json::from_str(text.trim()).ok();
            read.filter(|read| Number::of(read).is_some())
                .ok_or_else(|| ExpressionErrorKind::NotANumber(text.chars().take(40).collect()))
        }
        other => Err(mismatch("num", "a number or a text", other)),
    }
}
