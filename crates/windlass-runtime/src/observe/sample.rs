//! Numbers about a runtime.

use std::fmt;

/// A number about a part of a runtime, with its name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The name, in words with underscores between them; it does not name its source.
    pub name: &'static str,
    /// What the number means.
    pub kind: SampleKind,
    /// The number itself.
    pub value: f64,
    /// What it is a number of. A source has a bounded number of labels.
    pub labels: Vec<(&'static str, String)>,
}

/// What a sample means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// A count since the beginning, which only grows.
    Counter,
    /// A value at this moment.
    Gauge,
}

impl Sample {
    /// Makes a sample of something that is counted since the beginning.
    pub fn counter(name: &'static str, count: u64) -> Sample {
        Sample::new(name, SampleKind::Counter, count as f64)
    }

    /// Makes a sample of something that is as it is now.
    pub fn gauge(name: &'static str, value: usize) -> Sample {
        Sample::new(name, SampleKind::Gauge, value as f64)
    }

    fn new(name: &'static str, kind: SampleKind, value: f64) -> Sample {
        Sample {
            name,
            kind,
            value,
            labels: Vec::new(),
        }
    }

    /// Adds what it is a number of.
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Sample {
        self.labels.push((name, value.into()));
        self
    }
}

/// As dumps show it: the name, the labels, the number.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for (nth, (name, value)) in self.labels.iter().enumerate() {
            let before = if nth == 0 { "{" } else { "," };
            write!(f, "{before}{name}={value:?}")?;
        }
        if !self.labels.is_empty() {
            f.write_str("}")?;
        }
        write!(f, " {}", self.value)
    }
}
