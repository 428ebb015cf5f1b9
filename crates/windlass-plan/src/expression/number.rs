//! Numbers: whole ones of 64 bits and others, mixed freely.

use std::cmp::Ordering;

use windlass_value::Payload;

use super::error::ExpressionErrorKind;
use super::tree::Operator;

/// A number of either kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number that a value is.
    pub(super) fn of(value: &Payload) -> Option<Number> {
        match value {
            Payload::Int(whole) => Some(Number::Int(*whole)),
            Payload::Float(number) if number.is_finite() => Some(Number::Float(*number)),
            _ => None,
        }
    }

    pub(super) fn float(self) -> f64 {
        match self {
            Number::Int(whole) => whole as f64,
            Number::Float(number) => number,
        }
    }

    /// Returns the number as a value; what is not finite has no place in JSON.
    pub(super) fn value(self) -> Result<Payload, ExpressionErrorKind> {
        match self {
            Number::Int(whole) => Ok(whole.into()),
            Number::Float(number) if number.is_finite() => Ok(number.into()),
            Number::Float(_) => Err(ExpressionErrorKind::NotFinite),
        }
    }

    /// The whole number nearest to what `round` makes of it.
    pub(super) fn whole(self, round: fn(f64) -> f64) -> Result<Number, ExpressionErrorKind> {
        match self {
            Number::Int(_) => Ok(self),
            Number::Float(number) => {
                let rounded = round(number);
                // Both ends are exact as floats; the upper one is 2^63, which does not fit.
                let fits = rounded >= i64::MIN as f64 && rounded < i64::MAX as f64;
                match fits {
                    true => Ok(Number::Int(rounded as i64)),
                    false => Err(ExpressionErrorKind::Overflow),
                }
            }
        }
    }

    pub(super) fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Int(a), Number::Float(b)) => compare_mixed(a, b),
            (Number::Float(a), Number::Int(b)) => compare_mixed(b, a).reverse(),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        }
    }

    pub(super) fn minus(self) -> Result<Number, ExpressionErrorKind> {
        match self {
            Number::Int(whole) => whole
                .checked_neg()
                .map(Number::Int)
                .ok_or(ExpressionErrorKind::Overflow),
            Number::Float(number) => Ok(Number::Float(-number)),
        }
    }

    /// `a + b` and its like.
    pub(super) fn combine(
        self,
        operator: Operator,
        other: Number,
    ) -> Result<Number, ExpressionErrorKind> {
        if let (Number::Int(a), Number::Int(b)) = (self, other) {
            return combine_whole(a, operator, b);
        }
        let (a, b) = (self.float(), other.float());
        let result = match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide | Operator::Remainder if b == 0.0 => {
                return Err(ExpressionErrorKind::DivisionByZero);
            }
            Operator::Divide => a / b,
            _ => a % b,
        };
        match result.is_finite() {
            true => Ok(Number::Float(result)),
            false => Err(ExpressionErrorKind::NotFinite),
        }
    }
}

/// Exact: no whole number is rounded to be compared.
fn compare_mixed(whole: i64, number: f64) -> Ordering {
    if number >= i64::MAX as f64 {
        return Ordering::Less;
    }
    if number < i64::MIN as f64 {
        return Ordering::Greater;
    }
    let floor = number.floor();
    let fraction = match number > floor {
        true => Ordering::Less,
        false => Ordering::Equal,
    };
    whole.cmp(&(floor as i64)).then(fraction)
}

fn combine_whole(a: i64, operator: Operator, b: i64) -> Result<Number, ExpressionErrorKind> {
    let whole = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Remainder if b == 0 => {
            return Err(ExpressionErrorKind::DivisionByZero);
        }
        // The rest is 0 where the quotient does not fit.
        Operator::Divide if a.wrapping_rem(b) != 0 => {
            return Ok(Number::Float(a as f64 / b as f64));
        }
        Operator::Divide => a.checked_div(b),
        _ => Some(a.wrapping_rem(b)),
    };
    whole.map(Number::Int).ok_or(ExpressionErrorKind::Overflow)
}
