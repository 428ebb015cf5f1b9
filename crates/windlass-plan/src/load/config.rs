//! `config` maps: the user's own values.

use super::walk::{At, Walk};
use crate::model::Config;
use crate::source::{Plain, Scalar, Style, Value};

impl Walk<'_> {
    /// A whole `config`.
    pub(super) fn config(&mut self, at: &At<'_>) -> Config {
        match self.value(at, 1, self.limits.string_bytes) {
            Some(serde_json::Value::Object(config)) => config,
            Some(_) => {
                self.expected(at, "a map", "");
                Config::new()
            }
            None => Config::new(),
        }
    }

    /// A value at this level; none if it was reported.
    fn value(&mut self, at: &At<'_>, level: usize, bytes: usize) -> Option<serde_json::Value> {
        if let Value::Scalar(scalar) = &at.node.value {
            return self.scalar(at, scalar, bytes);
        }
        if level > self.limits.config_depth {
            self.over_limit(at, "config depth", self.limits.config_depth);
            return None;
        }
        if let Value::List(items) = &at.node.value {
            let mut list = Vec::new();
            for (nth, item) in items.iter().enumerate() {
                // Not remembered: no diagnostic is about an item, and there may be very many.
                let item = At {
                    path: format!("{}[{nth}]", at.path),
                    node: item,
                    span: item.span,
                };
                list.extend(self.value(&item, level + 1, bytes));
            }
            return Some(serde_json::Value::Array(list));
        }
        let mut map = Config::new();
        for (entry, field) in self.entries(at) {
            let key = entry.key.text.as_str();
            if key == "<<" {
                let message = format!(
                    "unexpected field {}: merge keys are not supported",
                    field.path
                );
                self.error(&field, message, "write the fields out");
                continue;
            }
            if key.len() > self.limits.string_bytes {
                self.over_limit(at, "string length", self.limits.string_bytes);
                continue;
            }
            let bytes = match key {
                "script" => self.limits.script_bytes,
                _ => self.limits.string_bytes,
            };
            if let Some(value) = self.value(&field, level + 1, bytes) {
                map.insert(key.to_owned(), value);
            }
        }
        Some(serde_json::Value::Object(map))
    }

    fn scalar(&mut self, at: &At<'_>, scalar: &Scalar, bytes: usize) -> Option<serde_json::Value> {
        if scalar.text.len() > bytes {
            self.over_limit(at, "string length", bytes);
            return None;
        }
        let plain = match scalar.style {
            Style::Plain | Style::Given => scalar.resolve(),
            Style::Text | Style::Substituted => Plain::Text,
        };
        let number = match plain {
            Plain::Null => return Some(serde_json::Value::Null),
            Plain::Bool(value) => return Some(value.into()),
            Plain::Text => return Some(scalar.text.as_str().into()),
            Plain::Int(number) => i64::try_from(number)
                .map(serde_json::Number::from)
                .or_else(|_| u64::try_from(number).map(serde_json::Number::from))
                .ok(),
            Plain::Float(number) => serde_json::Number::from_f64(number),
            Plain::Huge => None,
        };
        if number.is_none() {
            let message = "the number is out of range, or not finite";
            self.error(
                at,
                message,
                "use a finite number of at most 64 bits, or quote it",
            );
        }
        number.map(serde_json::Value::Number)
    }
}
