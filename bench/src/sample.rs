//! What one child process measures: a [`Sample`], printed as one line of JSON.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::stats;

/// Timed passes end once this much time has been measured ...
const ENOUGH: Duration = Duration::from_millis(100);
/// ... or after this many passes, whichever comes first.
const MOST_PASSES: usize = 20;

/// The result of one child process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The number the peers are compared by: time per operation, p50 of a latency, bytes per task.
    pub value: f64,
    pub min: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p95: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p99: Option<f64>,
    /// Numbers that are shown beside the value but never compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub extra: BTreeMap<String, f64>,
}

impl Sample {
    /// A single number.
    pub fn of(value: f64) -> Self {
        Sample {
            value,
            min: value,
            p95: None,
            p99: None,
            extra: BTreeMap::new(),
        }
    }

    /// Nanoseconds per operation over repeated passes of the same work.
    ///
    /// The first pass warms up (threads start, memory is touched for the first time). It is not
    /// part of the value; what it took is kept as the extra `first`.
    pub fn per_operation(operations: u64, mut pass: impl FnMut() -> Duration) -> Self {
        assert!(operations > 0, "a pass without operations measures nothing");
        let per_operation = |time: Duration| time.as_nanos() as f64 / operations as f64;
        let first = per_operation(pass());
        let mut measured = Duration::ZERO;
        let mut values = Vec::new();
        while values.is_empty() || (measured < ENOUGH && values.len() < MOST_PASSES) {
            let time = pass();
            measured += time;
            values.push(per_operation(time));
        }
        stats::sort(&mut values);
        Sample {
            min: values[0],
            ..Sample::of(stats::median(&values))
        }
        .with("first", first)
    }

    /// Percentiles of single latencies, in microseconds.
    pub fn latencies(latencies: &[Duration]) -> Self {
        assert!(!latencies.is_empty(), "no latency was measured");
        let mut micros: Vec<f64> = latencies
            .iter()
            .map(|l| l.as_nanos() as f64 / 1e3)
            .collect();
        stats::sort(&mut micros);
        Sample {
            value: stats::median(&micros),
            min: micros[0],
            p95: Some(stats::percentile(&micros, 95.0)),
            p99: Some(stats::percentile(&micros, 99.0)),
            extra: BTreeMap::new(),
        }
    }

    /// Adds a number that is shown but not compared.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.extra.insert(name.to_owned(), value);
        self
    }
}

/// How long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pass_is_not_part_of_the_value() {
        let mut passes = 0;
        let sample = Sample::per_operation(10, || {
            passes += 1;
            Duration::from_millis(if passes == 1 { 1000 } else { 50 })
        });
        assert_eq!(passes, 3, "one to warm up, two to measure 100 ms");
        assert_eq!(sample.value, 5e6);
        assert_eq!(sample.extra["first"], 1e8);
    }

    #[test]
    fn latencies_are_microseconds() {
        let all: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        let sample = Sample::latencies(&all);
        assert_eq!(
            (sample.value, sample.min, sample.p99),
            (50.5, 1.0, Some(99.0))
        );
    }

    #[test]
    fn a_sample_survives_its_line_of_json() {
        let sample = Sample::of(3.5).with("missed", 2.0);
        let line = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&line).unwrap(), sample);
    }
}
