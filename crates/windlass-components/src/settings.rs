//! Reading a component's `config`: what is wrong is said with the name of the field.

use std::time::Duration;

use serde_json::Value;
use windlass_graph::component::{ConfigField, ConfigKind, Failure};
use windlass_graph::expression::{Expression, Names};
use windlass_graph::model::Config;

/// A component's `config`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a>(pub(crate) &'a Config);

/// The longest time that a setting can say: about 31 years.
pub(crate) const MOST_MS: u64 = 1_000_000_000_000;

fn wrong(name: &str, wanted: &str, found: &Value) -> Failure {
    let found = found.to_string();
    let short: String = found.chars().take(60).collect();
    Failure::new(format!("config.{name} has to be {wanted}, and is {short}"))
}

impl<'a> Settings<'a> {
    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let text = value.as_str();
        text.map(Some).ok_or_else(|| wrong(name, "a text", value))
    }

    /// A text that has to be there.
    pub(crate) fn demand(self, name: &str) -> Result<&'a str, Failure> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| Failure::new(format!("config.{name} is missing: add it")))
    }

    pub(crate) fn flag(self, name: &str, default: bool) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    pub(crate) fn number(self, name: &str, default: f64) -> Result<f64, Failure> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value
                .as_f64()
                .filter(|number| number.is_finite())
                .ok_or_else(|| wrong(name, "a number", value)),
        }
    }

    pub(crate) fn integer(self, name: &str) -> Result<Option<i64>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let integer = value.as_i64();
        integer
            .map(Some)
            .ok_or_else(|| wrong(name, "a whole number", value))
    }

    /// A count between these two, if it is there.
    pub(crate) fn count_within(
        self,
        name: &str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let count = value
            .as_u64()
            .filter(|count| (least..=most).contains(count));
        let wanted = || format!("a whole number from {least} to {most}");
        count.map(Some).ok_or_else(|| wrong(name, &wanted(), value))
    }

    /// A count of at least 1.
    pub(crate) fn count(self, name: &str, default: u64, most: u64) -> Result<usize, Failure> {
        let count = self.count_within(name, 1, most)?.unwrap_or(default);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// A time in milliseconds, which may be 0.
    pub(crate) fn millis(self, name: &str, default: u64) -> Result<Duration, Failure> {
        self.millis_from(name, 0, default)
    }

    /// A time in milliseconds, of at least so many.
    pub(crate) fn millis_from(
        self,
        name: &str,
        least: u64,
        default: u64,
    ) -> Result<Duration, Failure> {
        let millis = self.count_within(name, least, MOST_MS)?;
        Ok(Duration::from_millis(millis.unwrap_or(default)))
    }

    /// One of these words; the first, if there is none.
    pub(crate) fn choice<T: Copy>(self, name: &str, choices: &[(&str, T)]) -> Result<T, Failure> {
        let words = || -> Vec<&str> { choices.iter().map(|(word, _)| *word).collect() };
        let word = self.text(name)?.unwrap_or(choices[0].0);
        let chosen = choices.iter().find(|(there, _)| *there == word);
        chosen.map(|(_, choice)| *choice).ok_or_else(|| {
            let message = format!(
                "config.{name} is {word:?}; allowed are {}",
                words().join(", ")
            );
            Failure::new(message)
        })
    }

    /// A list of texts, if it is there.
    pub(crate) fn texts(self, name: &str) -> Result<Option<Vec<String>>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let texts = value.as_array().and_then(|items| {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        texts
            .map(Some)
            .ok_or_else(|| wrong(name, "a list of texts", value))
    }

    /// A map, if it is there.
    pub(crate) fn map(self, name: &str) -> Result<Option<&'a Config>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let map = value.as_object();
        map.map(Some).ok_or_else(|| wrong(name, "a map", value))
    }

    /// Returns the expression `config.expr`, which has to be there.
    pub(crate) fn expr(self, names: Names) -> Result<Expression, Failure> {
        let source = self.demand(EXPR)?;
        Expression::compile(source, names).map_err(|error| {
            let shown = error.shown_in(source);
            Failure::new(format!("config.{EXPR} is no expression: {shown}"))
        })
    }
}

/// The field that holds the expression of a type.
const EXPR: &str = "expr";

/// Returns the field that holds the expression of a type, for its descriptor.
pub(crate) fn expr_field(names: Names) -> ConfigField {
    ConfigField::new(EXPR, ConfigKind::Expression(names)).required()
}

/// A failure about a file, with its path.
pub(crate) fn about_file(doing: &str, path: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {doing} {path}: {error}"))
}

/// What a component says that works with one configuration all its life.
pub(crate) fn fixed() -> Result<(), Failure> {
    Err(Failure::new(
        "its configuration cannot be changed while it runs: change the file, and run it again",
    ))
}
