//! `windlass graph bench`.

use std::time::Duration;

use std::collections::BTreeMap;

use serde::Serialize;
use windlass::graph::{RunOptions, RunResult, StopReason};
use windlass::time::Instant;
use windlass_core::hash::Fnv;

use super::execution::{Execution, tell_errors};
use super::plan;
use crate::args::{Bench, Format};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

/// How many epochs of a run are measured at most: beyond that memory is all that grows.
const MOST_SAMPLES: u64 = 1 << 20;

pub(crate) fn run(args: &Bench, terminal: &Terminal) -> Outcome {
    let format = args.output.format;
    let Some(execution) = Execution::prepare(&args.source, &args.types, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let mut measured = Measurements::default();
    for nth in 0..=args.runs {
        let began = Instant::now();
        let result = execution.run(options(args), terminal)?;
        let took = began.elapsed();
        if !result.is_ok() {
            tell_errors(&result, terminal);
            return Ok(Verdict::of_run(&result));
        }
        // The first run warms up.
        if nth > 0 {
            measured.add(&result, took);
        }
        if result.stop_reason == StopReason::StopRequested {
            break;
        }
    }
    let report = Report::new(&execution, measured)?;
    match format {
        Format::Text => terminal.print(&report.to_text())?,
        Format::Json => terminal.print_json(&report.document())?,
    }
    Ok(Verdict::Fine)
}

fn options(args: &Bench) -> RunOptions {
    let mut options = RunOptions::steps(args.steps);
    options.epoch_times = true;
    // It also bounds how many epochs are measured.
    options.order_capacity = args.steps.min(MOST_SAMPLES) as usize;
    options
}

/// What all runs together gave.
#[derive(Debug, Default)]
struct Measurements {
    runs: u64,
    epochs: u64,
    invocations: u64,
    took: Duration,
    /// What each epoch took, in nanoseconds.
    epoch_times: Vec<u64>,
}

impl Measurements {
    fn add(&mut self, result: &RunResult, took: Duration) {
        self.runs += 1;
        self.epochs += result.epochs;
        self.invocations += result.ticks;
        self.took += took;
        self.epoch_times.extend(&result.epoch_times);
    }
}

/// What is printed.
struct Report {
    graph: String,
    graph_hash: u64,
    measured: Measurements,
}

impl Report {
    fn new(execution: &Execution, mut measured: Measurements) -> Result<Report, Error> {
        if measured.epoch_times.is_empty() {
            return Err(Error::NoSamples);
        }
        measured.epoch_times.sort_unstable();
        let plan = plan::to_json(execution.prepared.plan(), &execution.registry);
        Ok(Report {
            graph: execution.name().to_owned(),
            graph_hash: Fnv::of(plan.to_string().as_bytes()),
            measured,
        })
    }

    fn to_text(&self) -> String {
        let micros = |nanos: u64| format!("{:.3} us", nanos as f64 / 1e3);
        let mut text = format!(
            "graph: {}\ngraph_hash: {:016x}\nruns: {}\nepochs: {}\n",
            self.graph, self.graph_hash, self.measured.runs, self.measured.epochs
        );
        for (name, nanos) in self.quantiles() {
            text.push_str(&format!("epoch_{name}: {}\n", micros(nanos)));
        }
        text.push_str(&format!(
            "invocations_per_second: {:.0}\nepochs_per_second: {:.0}\n",
            self.per_second(self.measured.invocations),
            self.per_second(self.measured.epochs)
        ));
        text.push_str(&format!(
            "environment: {} {}, {} CPUs, windlass {} ({})\n",
            std::env::consts::OS,
            std::env::consts::ARCH,
            cpus(),
            env!("CARGO_PKG_VERSION"),
            profile()
        ));
        text
    }

    fn document(&self) -> Document<'_> {
        let measured = &self.measured;
        Document {
            graph: &self.graph,
            graph_hash: format!("{:016x}", self.graph_hash),
            runs: measured.runs,
            epochs: measured.epochs,
            samples: measured.epoch_times.len(),
            invocations: measured.invocations,
            epoch_ns: BTreeMap::from(self.quantiles()),
            throughput: Throughput {
                invocations_per_second: self.per_second(measured.invocations),
                epochs_per_second: self.per_second(measured.epochs),
            },
            environment: Environment {
                os: std::env::consts::OS,
                arch: std::env::consts::ARCH,
                cpus: cpus(),
                version: env!("CARGO_PKG_VERSION"),
                profile: profile(),
            },
        }
    }

    fn quantiles(&self) -> [(&'static str, u64); 5] {
        let times = &self.measured.epoch_times;
        [
            ("min", quantile(times, 0)),
            ("p50", quantile(times, 50)),
            ("p95", quantile(times, 95)),
            ("p99", quantile(times, 99)),
            ("max", quantile(times, 100)),
        ]
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.measured.took.as_secs_f64().max(1e-9)
    }
}

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    graph: &'a str,
    graph_hash: String,
    runs: u64,
    epochs: u64,
    samples: usize,
    invocations: u64,
    epoch_ns: BTreeMap<&'static str, u64>,
    throughput: Throughput,
    environment: Environment,
}

#[derive(Serialize)]
struct Throughput {
    invocations_per_second: f64,
    epochs_per_second: f64,
}

#[derive(Serialize)]
struct Environment {
    os: &'static str,
    arch: &'static str,
    cpus: usize,
    version: &'static str,
    profile: &'static str,
}

/// The smallest of the sorted values that so many percent do not exceed.
fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn profile() -> &'static str {
    match cfg!(debug_assertions) {
        true => "debug",
        false => "release",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let times: Vec<u64> = (1..=200).collect();
        let of = |percent| quantile(&times, percent);
        assert_eq!(
            [of(0), of(50), of(95), of(99), of(100)],
            [1, 100, 190, 198, 200]
        );
        assert_eq!(
            [quantile(&[7], 0), quantile(&[7], 50), quantile(&[], 50)],
            [7, 7, 0]
        );
    }
}
