//! Our ratios beside those of `bench/baseline.json`.

use std::fmt;

use super::report::{OURS, Report};
use super::table::ratio;
use crate::error::Error;
use crate::text;

/// How much worse a ratio may become before that is a finding.
const ALLOWED_DROP: f64 = 0.20;

/// A line that is worse than it was.
#[derive(Debug, PartialEq)]
enum Finding {
    Dropped {
        name: String,
        was: f64,
        now: f64,
    },
    /// A run of ours hung or failed.
    Broken {
        name: String,
        hung: u64,
        failed: u64,
    },
    /// The baseline has it, the run does not.
    Gone {
        name: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Dropped { name, was, now } => write!(
                f,
                "{name}: the ratio to the best peer was {}, now it is {} (over {:.0} % worse)",
                ratio(Some(*was)),
                ratio(Some(*now)),
                ALLOWED_DROP * 100.0
            ),
            Finding::Broken { name, hung, failed } => {
                write!(f, "{name}: of our runs {hung} hung and {failed} failed")
            }
            Finding::Gone { name } => {
                write!(f, "{name}: is in the baseline but has no result of ours")
            }
        }
    }
}

/// Compares and prints both ratios of every line.
pub(super) fn check(baseline: &Report, report: &Report, partial: bool) -> Result<(), Error> {
    let mut rows = vec![["workload", "baseline", "now"].map(str::to_owned).to_vec()];
    for line in report.lines.iter().filter(|line| !line.is_limit()) {
        let was = baseline.line(&line.name).and_then(|line| line.ratio());
        rows.push(vec![line.name.clone(), ratio(was), ratio(line.ratio())]);
    }
    println!("{}", text::columns(&rows));
    let findings = compare(baseline, report, partial);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(Error::Findings {
        check: "bench --check",
        count: findings.len(),
        advice: "measure again with --only on a quiet machine; accept by copying the results over bench/baseline.json",
    })
}

/// A partial run is not asked for the lines it did not measure.
fn compare(baseline: &Report, report: &Report, partial: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, ours) in report
        .lines
        .iter()
        .filter_map(|l| Some((&l.name, l.result_of(OURS)?)))
    {
        if ours.hung + ours.failed > 0 {
            let (name, hung, failed) = (name.clone(), ours.hung, ours.failed);
            findings.push(Finding::Broken { name, hung, failed });
        }
    }
    for line in &baseline.lines {
        let Some(was) = line.ratio() else { continue };
        let name = line.name.clone();
        match report.line(&name) {
            None if partial => {}
            None => findings.push(Finding::Gone { name }),
            Some(line) => match line.ratio() {
                Some(now) if now > was * (1.0 + ALLOWED_DROP) => {
                    findings.push(Finding::Dropped { name, was, now });
                }
                Some(_) => {}
                None if partial => {}
                None => findings.push(Finding::Gone { name }),
            },
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn a_drop_over_a_fifth_is_found() {
        let baseline = report(&[
            ("a", &[("windlass", 50.0), ("x", 100.0)]),
            ("b", &[("windlass", 50.0), ("x", 100.0)]),
            ("limits/malloc", &[("machine", 27.0)]),
        ]);
        // Both are slower, but for one of them the peers are as well: ratios count, times do not.
        let now = report(&[
            ("a", &[("windlass", 100.0), ("x", 180.0)]),
            ("b", &[("windlass", 61.0), ("x", 100.0)]),
        ]);
        let found = compare(&baseline, &now, false);
        assert_eq!(
            found,
            [Finding::Dropped {
                name: "b".to_owned(),
                was: 0.5,
                now: 0.61
            }]
        );
        assert!(
            found[0].to_string().contains("was 0.50, now it is 0.61"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_missing_line_is_found_unless_the_run_was_partial() {
        let baseline = report(&[
            ("a", &[("windlass", 1.0), ("x", 2.0)]),
            ("b", &[("windlass", 1.0), ("x", 2.0)]),
        ]);
        let now = report(&[("a", &[("windlass", 1.0), ("x", 2.0)])]);
        assert_eq!(
            compare(&baseline, &now, false),
            [Finding::Gone {
                name: "b".to_owned()
            }]
        );
        assert_eq!(compare(&baseline, &now, true), []);
    }

    #[test]
    fn our_own_hang_is_found() {
        let baseline = report(&[("a", &[("windlass", 1.0), ("x", 2.0)])]);
        let mut now = report(&[("a", &[("windlass", 1.0), ("x", 2.0)])]);
        now.lines[0].results[0].hung = 1;
        let expected = Finding::Broken {
            name: "a".to_owned(),
            hung: 1,
            failed: 0,
        };
        assert_eq!(compare(&baseline, &now, false), [expected]);
    }
}
