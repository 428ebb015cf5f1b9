//! What was measured, as plain data that serializes to the JSON of `--json`.

use std::collections::BTreeMap;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::campaign::{Setting, Tally};
use crate::peers::OURS;
use crate::sample::Sample;
use crate::stats::{self, Better};
use crate::workload::Workload;

/// Everything of one run of the command.
#[derive(Serialize)]
pub struct Report {
    pub date: String,
    pub cores: usize,
    pub workers: usize,
    pub rounds: usize,
    pub workloads: Vec<Line>,
}

/// One workload on all peers.
#[derive(Serialize)]
pub struct Line {
    pub name: &'static str,
    pub unit: &'static str,
    pub better: Better,
    pub results: Vec<PeerResult>,
    /// The other settings of `--matrix`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<MatrixLine>,
}

/// The same workload with other workers or another size.
#[derive(Serialize)]
pub struct MatrixLine {
    pub workers: usize,
    pub scale: f64,
    pub results: Vec<PeerResult>,
}

/// One peer on one workload. `median` and `min` are missing if no run finished.
#[derive(Serialize, Clone, Debug, Default, PartialEq)]
pub struct PeerResult {
    pub peer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// How many times worse than the best peer that finished all its runs, ours left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The largest ratio over all settings of `--matrix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
    pub runs: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub hung: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// For the terminal only: a panic message may hold paths of the machine.
    #[serde(skip)]
    pub complaint: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

/// Where a peer does worst beside the best.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    pub ratio: f64,
    pub workers: usize,
    pub scale: f64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Report {
    pub fn new(workers: usize, rounds: usize) -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Report {
            date: date(since.as_secs() / 86_400),
            cores: thread::available_parallelism().map_or(1, |n| n.get()),
            workers,
            rounds,
            workloads: Vec::new(),
        }
    }
}

impl Line {
    pub fn new(workload: Workload, tallies: Vec<Tally>) -> Self {
        let facts = workload.facts();
        let mut results: Vec<PeerResult> = tallies.into_iter().map(PeerResult::from).collect();
        if !workload.is_limit() {
            set_ratios(&mut results, facts.better);
        }
        Line {
            name: facts.name,
            unit: facts.unit,
            better: facts.better,
            results,
            matrix: Vec::new(),
        }
    }

    /// Adds the same workload under another setting and keeps the worst ratio of each peer.
    pub fn add_setting(&mut self, setting: Setting, other: Line) {
        let Setting { workers, scale } = setting;
        for result in &mut self.results {
            let same_peer = other
                .results
                .iter()
                .find(|theirs| theirs.peer == result.peer);
            if let Some(ratio) = same_peer.and_then(|theirs| theirs.ratio)
                && result
                    .worst
                    .map_or(result.ratio, |worst| Some(worst.ratio))
                    .is_none_or(|so_far| ratio > so_far)
            {
                result.worst = Some(Worst {
                    ratio,
                    workers,
                    scale,
                });
            }
        }
        self.matrix.push(MatrixLine {
            workers,
            scale,
            results: other.results,
        });
    }
}

impl From<Tally> for PeerResult {
    fn from(tally: Tally) -> Self {
        let Tally {
            peer,
            samples,
            runs,
            hung,
            failed,
            complaint,
            ..
        } = tally;
        let over_rounds = |pick: &dyn Fn(&Sample) -> Option<f64>| {
            let mut values: Vec<f64> = samples.iter().filter_map(pick).collect();
            stats::sort(&mut values);
            (!values.is_empty()).then_some(values)
        };
        let median =
            |pick: &dyn Fn(&Sample) -> Option<f64>| over_rounds(pick).map(|v| stats::median(&v));
        let values = over_rounds(&|s| Some(s.value));
        let extras = samples
            .iter()
            .flat_map(|sample| sample.extra.keys().cloned());
        PeerResult {
            peer: peer.to_owned(),
            median: values.as_deref().map(stats::median),
            min: over_rounds(&|s| Some(s.min)).map(|v| v[0]),
            // Percentiles of latencies come from within each sample; otherwise p95 is over the
            // rounds.
            p95: median(&|s| s.p95)
                .or_else(|| values.as_deref().map(|v| stats::percentile(v, 95.0))),
            p99: median(&|s| s.p99),
            extra: extras
                .filter_map(|name| Some((name.clone(), median(&|s| s.extra.get(&name).copied())?)))
                .collect(),
            ratio: None,
            worst: None,
            runs,
            hung,
            failed,
            complaint,
        }
    }
}

/// Compares every result with the best of the others that finished all their runs.
fn set_ratios(results: &mut [PeerResult], better: Better) {
    let eligible = |r: &&PeerResult| r.peer != OURS && r.hung + r.failed == 0;
    let best = results
        .iter()
        .filter(eligible)
        .filter_map(|r| r.median)
        .reduce(|a, b| better.best(a, b));
    for result in results {
        result.ratio = result
            .median
            .zip(best)
            .and_then(|(median, best)| better.ratio(median, best));
    }
}

/// The date of a day after 1970-01-01, as in ISO 8601.
fn date(days: u64) -> String {
    // Years that begin in March have the leap day at their end. 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(peer: &'static str, values: &[f64]) -> Tally {
        let samples = values.iter().copied().map(Sample::of).collect();
        Tally {
            peer,
            samples,
            runs: values.len(),
            ..Tally::default()
        }
    }

    fn ratios(tallies: Vec<Tally>) -> Vec<Option<f64>> {
        Line::new(Workload::YieldMany, tallies)
            .results
            .iter()
            .map(|r| r.ratio)
            .collect()
    }

    #[test]
    fn we_are_compared_with_the_others_not_with_ourselves() {
        let all = vec![
            tally(OURS, &[10.0]),
            tally("a", &[40.0]),
            tally("b", &[20.0]),
        ];
        assert_eq!(ratios(all), [Some(0.5), Some(2.0), Some(1.0)]);
        assert_eq!(ratios(vec![tally(OURS, &[10.0])]), [None]);
    }

    #[test]
    fn a_peer_that_hung_is_not_the_best() {
        let hung = Tally {
            hung: 1,
            ..tally("fast", &[1.0])
        };
        assert_eq!(
            ratios(vec![tally("a", &[40.0]), hung]),
            [Some(1.0), Some(0.025)]
        );
    }

    #[test]
    fn results_are_taken_over_the_rounds() {
        let mut slow = Sample::of(9.0).with("missed", 4.0);
        slow.min = 0.5;
        let samples = vec![Sample::of(1.0), slow, Sample::of(2.0).with("missed", 2.0)];
        let result = PeerResult::from(Tally {
            samples,
            ..tally("a", &[])
        });
        assert_eq!(
            (result.median, result.min, result.p95, result.p99),
            (Some(2.0), Some(0.5), Some(9.0), None)
        );
        assert_eq!(result.extra["missed"], 3.0);
    }

    #[test]
    fn the_worst_setting_is_kept() {
        let line = |ours| {
            Line::new(
                Workload::YieldMany,
                vec![tally(OURS, &[ours]), tally("a", &[10.0])],
            )
        };
        let mut base = line(5.0);
        base.add_setting(
            Setting {
                workers: 1,
                scale: 1.0,
            },
            line(20.0),
        );
        base.add_setting(
            Setting {
                workers: 4,
                scale: 1.0,
            },
            line(15.0),
        );
        assert_eq!(
            base.results[0].worst,
            Some(Worst {
                ratio: 2.0,
                workers: 1,
                scale: 1.0
            })
        );
        assert_eq!(
            base.results[1].worst, None,
            "1.0 everywhere: never worse than at the setting of the table"
        );
        assert_eq!(base.matrix.len(), 2);
    }

    #[test]
    fn the_json_has_the_promised_fields() {
        let mut report = Report::new(2, 9);
        let hung = Tally {
            hung: 2,
            runs: 3,
            ..tally("b", &[])
        };
        report.workloads.push(Line::new(
            Workload::YieldMany,
            vec![tally("a", &[4.0]), hung],
        ));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["workers"], 2);
        assert_eq!(json["rounds"], 9);
        let line = &json["workloads"][0];
        assert_eq!(
            (&line["name"], &line["better"]),
            (&"yield_many".into(), &"lower".into())
        );
        assert_eq!(line["results"][0]["peer"], "a");
        assert_eq!(line["results"][0]["median"], 4.0);
        assert_eq!(line["results"][0]["ratio"], 1.0);
        assert_eq!(line["results"][0].get("hung"), None);
        assert_eq!(line["results"][1]["hung"], 2);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(19_722), "2023-12-31");
        assert_eq!(date(19_723), "2024-01-01");
    }
}
