//! Scalars with the type that their place demands.

use std::time::Duration;

use super::walk::{At, Walk};
use crate::diagnostic::{Code, Diagnostic};
use crate::model::Overflow;
use crate::source::{Plain, Style, Value};

/// The longest time that a file may name: about thirty years.
const MAX_MS: f64 = 1e12;
/// The same as a whole number.
const MAX_WHOLE_MS: u64 = 1_000_000_000_000;

impl Walk<'_> {
    /// Reads a string.
    pub(super) fn text(&mut self, at: &At<'_>) -> Option<String> {
        let text = match &at.node.value {
            Value::Scalar(scalar) => match (scalar.style, scalar.resolve()) {
                (Style::Plain, Plain::Text)
                | (Style::Text | Style::Given | Style::Substituted, _) => &scalar.text,
                _ => {
                    let fix = format!("quote it: \"{}\"", scalar.text);
                    self.expected(at, "a string", &fix);
                    return None;
                }
            },
            _ => {
                self.expected(at, "a string", "");
                return None;
            }
        };
        let limit = self.limits.string_bytes;
        if text.len() > limit {
            self.over_limit(at, "string length", limit);
            return None;
        }
        Some(text.clone())
    }

    /// Any scalar, as it is written.
    pub(super) fn written(&mut self, at: &At<'_>) -> Option<String> {
        match &at.node.value {
            Value::Scalar(scalar) if scalar.text.len() <= self.limits.string_bytes => {
                Some(scalar.text.clone())
            }
            _ => self.text(at),
        }
    }

    /// A string that may be left empty or be `none`, which both mean nothing.
    pub(super) fn text_or_none(&mut self, at: &At<'_>) -> Option<String> {
        let text = self.written(at)?;
        (!text.is_empty() && text != "none").then_some(text)
    }

    /// A name for something, with the prefix of its scope.
    pub(super) fn id(&mut self, at: &At<'_>, prefix: Option<&str>) -> Option<String> {
        let text = self.text(at)?;
        let id = match prefix {
            Some(prefix) => format!("{prefix}.{text}"),
            None => text.clone(),
        };
        if text.is_empty() {
            self.error(at, "an id must not be empty", "give it a name");
            return None;
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let message = format!("the id {text:?} has white space or control characters in it");
            self.error(at, message, "use letters, digits, `_`, `-` and `.`");
            return None;
        }
        if id.len() > self.limits.id_bytes {
            self.over_limit(at, "id length", self.limits.id_bytes);
            return None;
        }
        Some(id)
    }

    /// A list of strings.
    pub(super) fn texts(&mut self, at: &At<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        for (nth, item) in self.items(at).iter().enumerate() {
            let item = self.at(format!("{}[{nth}]", at.path), item);
            texts.extend(self.text(&item));
        }
        texts
    }

    /// true or false.
    pub(super) fn bool(&mut self, at: &At<'_>) -> Option<bool> {
        match self.demanded(at) {
            Some(Plain::Bool(value)) => Some(value),
            _ => {
                self.expected(at, "true or false", "");
                None
            }
        }
    }

    /// A whole number that is not negative.
    pub(super) fn whole(&mut self, at: &At<'_>) -> Option<u64> {
        let number = self.integer(at)?;
        match u64::try_from(number) {
            Ok(number) => Some(number),
            Err(_) if number < 0 => {
                let message = format!("{number} is negative, and this counts something");
                self.error(at, message, "use 0 or more");
                None
            }
            Err(_) => self.too_large(at),
        }
    }

    /// A whole number that is not negative, for counts in memory.
    pub(super) fn count(&mut self, at: &At<'_>) -> Option<usize> {
        let number = self.whole(at)?;
        usize::try_from(number).ok().or_else(|| self.too_large(at))
    }

    /// A whole number that may be negative.
    pub(super) fn signed(&mut self, at: &At<'_>) -> Option<i32> {
        let number = self.integer(at)?;
        i32::try_from(number).ok().or_else(|| self.too_large(at))
    }

    /// A finite number that is not negative.
    pub(super) fn number(&mut self, at: &At<'_>) -> Option<f64> {
        let number = match self.demanded(at) {
            Some(Plain::Float(number)) => number,
            Some(Plain::Int(number)) => match i32::try_from(number) {
                Ok(number) => f64::from(number),
                // Beyond that its text says it as well as a conversion.
                Err(_) => number.to_string().parse().unwrap_or(f64::INFINITY),
            },
            Some(Plain::Huge) => f64::INFINITY,
            _ => {
                self.expected(at, "a number", "");
                return None;
            }
        };
        if !number.is_finite() {
            self.error(
                at,
                "the number is not finite, or too large",
                "use a finite number",
            );
            return None;
        }
        if number < 0.0 {
            self.error(at, format!("{number} is negative"), "use 0 or more");
            return None;
        }
        Some(number)
    }

    /// A time in milliseconds.
    pub(super) fn duration_ms(&mut self, at: &At<'_>) -> Option<Duration> {
        if let Some(Plain::Int(number)) = self.demanded(at)
            && let Ok(number) = u64::try_from(number)
            && number <= MAX_WHOLE_MS
        {
            return Some(Duration::from_millis(number));
        }
        let number = self.number(at)?;
        if number > MAX_MS {
            let message = format!("{number} ms is longer than the longest time, {MAX_MS} ms");
            self.error(at, message, "the unit is milliseconds");
            return None;
        }
        Duration::try_from_secs_f64(number / 1000.0).ok()
    }

    /// One of the names of an enum.
    pub(super) fn one_of<T>(
        &mut self,
        at: &At<'_>,
        names: &[&str],
        named: fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.one_of_or(at, names, named, Code::GraphValidationError)
    }

    /// One of the names of an enum, with a code of its own for others.
    pub(super) fn one_of_or<T>(
        &mut self,
        at: &At<'_>,
        names: &[&str],
        named: fn(&str) -> Option<T>,
        code: Code,
    ) -> Option<T> {
        let text = self.text(at)?;
        let value = named(&text);
        if value.is_none() {
            let (message, fix) = match text.as_str() {
                "action_goal" | "action_cancel" => (
                    format!("{text} is reserved for actions, which schema version 1 does not have"),
                    format!("use one of: {}", names.join(", ")),
                ),
                _ => (
                    format!("unknown name {text:?}; allowed are: {}", names.join(", ")),
                    self.suggest(&text, names.iter().copied(), || {
                        "use one of the allowed names".to_owned()
                    }),
                ),
            };
            self.mark_unread(&at.path);
            self.report(
                Diagnostic::new(code, &at.path, message).fix(fix),
                Some(at.span),
            );
        }
        value
    }

    /// One of the names of an enum; an empty string means none.
    pub(super) fn one_of_or_none<T>(
        &mut self,
        at: &At<'_>,
        names: &[&str],
        named: fn(&str) -> Option<T>,
    ) -> Option<T> {
        match &at.node.value {
            Value::Scalar(scalar) if scalar.text.is_empty() => None,
            _ => self.one_of(at, names, named),
        }
    }

    /// The overflow policy of a loop.
    pub(super) fn overflow(&mut self, at: &At<'_>) -> Option<Overflow> {
        self.one_of_or_none(at, Overflow::NAMES, Overflow::named)
    }

    fn integer(&mut self, at: &At<'_>) -> Option<i128> {
        match self.demanded(at) {
            Some(Plain::Int(number)) => Some(number),
            Some(Plain::Huge) => self.too_large(at),
            _ => {
                let quoted = matches!(&at.node.value, Value::Scalar(s)
                    if s.style == Style::Text && matches!(s.resolve(), Plain::Int(_)));
                let fix = if quoted { "remove the quotes" } else { "" };
                self.expected(at, "a whole number", fix);
                None
            }
        }
    }

    fn too_large<T>(&mut self, at: &At<'_>) -> Option<T> {
        self.error(
            at,
            "the number is out of range",
            "use a number of a sensible size",
        );
        None
    }

    /// What a scalar is where something other than a string is wanted: text with parameters in it
    /// is read again.
    fn demanded(&self, at: &At<'_>) -> Option<Plain> {
        match &at.node.value {
            Value::Scalar(scalar) if scalar.style != Style::Text => Some(scalar.resolve()),
            _ => None,
        }
    }
}
