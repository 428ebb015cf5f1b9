//! The results as the benchmark writes them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::Error;

/// Our own name among the peers.
pub(super) const OURS: &str = "windlass";

/// One run of the benchmark.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) date: String,
    pub(super) cores: u64,
    pub(super) workers: u64,
    pub(super) rounds: u64,
    pub(super) lines: Vec<Line>,
}

/// One workload on all peers.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) higher_is_better: bool,
    pub(super) results: Vec<PeerResult>,
}

/// One peer on one workload; no median if no run finished.
#[derive(Debug)]
pub(super) struct PeerResult {
    pub(super) peer: String,
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
    /// The worst ratio over other sizes and worker counts, if those were measured.
    pub(super) worst: Option<f64>,
    pub(super) runs: u64,
    pub(super) hung: u64,
    pub(super) failed: u64,
}

impl Report {
    pub(super) fn read(file: &Path, name: &str) -> Result<Self, Error> {
        let text = fs::read_to_string(file).map_err(Error::reading(name))?;
        Report::parse(&text, name)
    }

    pub(super) fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let json: Value = serde_json::from_str(text).map_err(|source| Error::Json {
            what: name.to_owned(),
            source,
        })?;
        Report::from_json(&json).map_err(|lacks| Error::Shape {
            what: name.to_owned(),
            lacks,
        })
    }

    fn from_json(json: &Value) -> Result<Self, &'static str> {
        let lines = json["workloads"].as_array().ok_or("`workloads`")?;
        Ok(Report {
            date: json["date"].as_str().ok_or("`date`")?.to_owned(),
            cores: json["cores"].as_u64().ok_or("`cores`")?,
            workers: json["workers"].as_u64().ok_or("`workers`")?,
            rounds: json["rounds"].as_u64().ok_or("`rounds`")?,
            lines: lines
                .iter()
                .map(Line::from_json)
                .collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }
}

impl Line {
    fn from_json(json: &Value) -> Result<Self, &'static str> {
        let results = json["results"]
            .as_array()
            .ok_or("the `results` of a workload")?;
        Ok(Line {
            name: json["name"]
                .as_str()
                .ok_or("the `name` of a workload")?
                .to_owned(),
            unit: json["unit"]
                .as_str()
                .ok_or("the `unit` of a workload")?
                .to_owned(),
            higher_is_better: match json["better"].as_str() {
                Some("higher") => true,
                Some("lower") => false,
                _ => return Err("`better` (lower or higher) of a workload"),
            },
            results: results
                .iter()
                .map(PeerResult::from_json)
                .collect::<Result<_, _>>()?,
        })
    }

    /// What the machine allows; nobody is compared with it.
    pub(super) fn is_limit(&self) -> bool {
        self.name.starts_with("limits/")
    }

    pub(super) fn result_of(&self, peer: &str) -> Option<&PeerResult> {
        self.results.iter().find(|result| result.peer == peer)
    }

    /// How many times worse we are than the best peer that finished all its runs: below 1 is
    /// better.
    ///
    /// Infinite if that best is a perfect zero that we do not reach. `None` if there is nothing to
    /// compare.
    pub(super) fn ratio(&self) -> Option<f64> {
        let ours = self.result_of(OURS)?.median?;
        let others = self
            .results
            .iter()
            .filter(|r| r.peer != OURS && r.hung + r.failed == 0);
        let better = if self.higher_is_better {
            f64::max
        } else {
            f64::min
        };
        let best = others.filter_map(|result| result.median).reduce(better)?;
        let (worse, better) = if self.higher_is_better {
            (best, ours)
        } else {
            (ours, best)
        };
        Some(if worse == better { 1.0 } else { worse / better })
    }
}

impl PeerResult {
    fn from_json(json: &Value) -> Result<Self, &'static str> {
        let count = |name: &str| json[name].as_u64().unwrap_or(0);
        Ok(PeerResult {
            peer: json["peer"]
                .as_str()
                .ok_or("the `peer` of a result")?
                .to_owned(),
            median: json["median"].as_f64(),
            p99: json["p99"].as_f64(),
            worst: json["worst"]["ratio"].as_f64(),
            runs: count("runs"),
            hung: count("hung"),
            failed: count("failed"),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report with one `lower` line per entry: its name, then peers and medians.
    pub(in crate::bench) fn report(lines: &[(&str, &[(&str, f64)])]) -> Report {
        let workloads: Vec<Value> = lines
            .iter()
            .map(|(name, results)| {
                let results: Vec<Value> = results
                    .iter()
                    .map(|(peer, median)| serde_json::json!({"peer": peer, "median": median, "min": median, "runs": 9}))
                    .collect();
                serde_json::json!({"name": name, "unit": "ns", "better": "lower", "results": results})
            })
            .collect();
        let json = serde_json::json!({
            "date": "2025-01-31", "cores": 2, "workers": 2, "rounds": 9, "workloads": workloads,
        });
        Report::parse(&json.to_string(), "a test").unwrap()
    }

    #[test]
    fn the_form_of_the_benchmarks_readme_is_read() {
        let text = r#"{ "date": "2025-01-31", "cores": 2, "workers": 2, "rounds": 9,
          "workloads": [ { "name": "yield_many", "unit": "ns/yield", "better": "lower",
            "results": [ { "peer": "tokio", "median": 41.0, "min": 39.5, "p95": 44.1, "ratio": 1.0, "runs": 10 },
                         { "peer": "forte", "runs": 3, "hung": 3 } ] } ] }"#;
        let report = Report::parse(text, "a test").unwrap();
        assert_eq!((report.date.as_str(), report.cores), ("2025-01-31", 2));
        let line = report.line("yield_many").unwrap();
        assert_eq!(line.result_of("tokio").unwrap().median, Some(41.0));
        assert_eq!(line.result_of("forte").unwrap().hung, 3);
        assert_eq!(line.ratio(), None);
        let error = Report::parse("{\"workloads\": [{}]}", "a test")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "a test lacks `date`");
    }

    #[test]
    fn the_ratio_is_ours_to_the_best_that_did_not_hang() {
        let mut report = report(&[(
            "a",
            &[("windlass", 10.0), ("x", 40.0), ("y", 20.0), ("z", 5.0)],
        )]);
        let line = &mut report.lines[0];
        assert_eq!(line.ratio(), Some(2.0));
        line.results[3].hung = 1;
        assert_eq!(line.ratio(), Some(0.5));
        line.higher_is_better = true;
        assert_eq!(line.ratio(), Some(4.0));
    }

    #[test]
    fn a_zero_is_a_tie_with_a_zero() {
        let report = report(&[
            ("tie", &[("windlass", 0.0), ("x", 0.0)]),
            ("best", &[("windlass", 0.0), ("x", 7.0)]),
            ("beaten", &[("windlass", 1.0), ("x", 0.0)]),
        ]);
        let ratios: Vec<_> = report.lines.iter().map(Line::ratio).collect();
        assert_eq!(ratios, [Some(1.0), Some(0.0), Some(f64::INFINITY)]);
    }
}
