//! The results as markdown.

use std::fmt::Write;

use super::report::{Line, OURS, PeerResult, Report};

/// A row per workload, a column per peer, and our ratio to the best of them.
pub(super) fn comparison(report: &Report) -> String {
    let lines: Vec<&Line> = report
        .lines
        .iter()
        .filter(|line| !line.is_limit())
        .collect();
    let mut peers: Vec<&str> = Vec::new();
    for result in lines.iter().flat_map(|line| &line.results) {
        if !peers.contains(&result.peer.as_str()) {
            peers.push(&result.peer);
        }
    }
    peers.sort_by_key(|peer| *peer != OURS);
    let with_worst = lines
        .iter()
        .flat_map(|line| &line.results)
        .any(|r| r.worst.is_some());

    let mut heads = vec!["workload", "unit"];
    heads.extend(&peers);
    heads.push("ratio");
    heads.extend(with_worst.then_some("worst ratio"));
    let mut text = format!(
        "{}, {} cores, {} workers, median of {} rounds. Ratio: {OURS} to the best peer that finished\nall its runs.\n\n",
        report.date, report.cores, report.workers, report.rounds
    );
    push_row(&mut text, &heads);
    let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
    for line in lines {
        let mut cells = vec![line.name.clone(), line.unit.clone()];
        cells.extend(
            peers
                .iter()
                .map(|peer| line.result_of(peer).map_or_else(String::new, cell)),
        );
        cells.push(ratio(line.ratio()));
        if with_worst {
            cells.push(ratio(
                line.result_of(OURS)
                    .and_then(|ours| ours.worst)
                    .or(line.ratio()),
            ));
        }
        push_row(&mut text, &cells);
    }
    text
}

/// What the machine allows, as a table below the other.
pub(super) fn limits(report: &Report) -> String {
    let mut lines = report
        .lines
        .iter()
        .filter(|line| line.is_limit())
        .peekable();
    let mut text = String::new();
    if lines.peek().is_none() {
        return text;
    }
    text.push_str("\n| the machine | unit | median |\n|---|---|---|\n");
    for line in lines {
        let median = line.results.first().and_then(|result| result.median);
        push_row(
            &mut text,
            &[line.name.as_str(), &line.unit, &number(median)],
        );
    }
    text
}

fn push_row(text: &mut String, cells: &[impl AsRef<str>]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// The median, p99 where it applies, and what went wrong.
fn cell(result: &PeerResult) -> String {
    let mut cell = number(result.median);
    if result.p99.is_some() {
        let _ = write!(cell, " / {}", number(result.p99));
    }
    for (count, what) in [(result.hung, "hung"), (result.failed, "failed")] {
        if count > 0 {
            let _ = write!(cell, ", {what} {count} of {}", result.runs);
        }
    }
    cell
}

/// A ratio with two decimals; `-` if there is none.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    match ratio.filter(|ratio| ratio.is_finite()) {
        Some(ratio) => format!("{ratio:.2}"),
        None => "-".to_owned(),
    }
}

/// Three or more digits are shown whole, fewer with decimals.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 || value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn the_table_has_a_column_per_peer_and_our_ratio() {
        let mut report = report(&[
            ("spawn", &[("x", 100.0), ("windlass", 41.26)]),
            ("wake", &[("windlass", 30.0), ("y", 33.5)]),
            ("limits/malloc", &[("machine", 27.04)]),
        ]);
        report.lines[1].results[0].p99 = Some(123.4);
        report.lines[1].results[1].hung = 2;
        let text = comparison(&report);
        let expected = "2025-01-31, 2 cores, 2 workers, median of 9 rounds. \
            Ratio: windlass to the best peer that finished\nall its runs.\n\n\
            | workload | unit | windlass | x | y | ratio |\n\
            |---|---|---|---|---|---|\n\
            | spawn | ns | 41.3 | 100 |  | 0.41 |\n\
            | wake | ns | 30 / 123 |  | 33.5, hung 2 of 9 | - |\n";
        assert_eq!(text, expected);
        assert!(
            limits(&report).ends_with("| limits/malloc | ns | 27.0 |\n"),
            "{}",
            limits(&report)
        );
    }

    #[test]
    fn the_worst_ratio_has_its_own_column() {
        let mut report = report(&[
            ("a", &[("windlass", 1.0), ("x", 2.0)]),
            ("b", &[("windlass", 1.0), ("x", 4.0)]),
        ]);
        report.lines[0].results[0].worst = Some(0.9);
        let text = comparison(&report);
        assert!(text.contains("| 0.50 | 0.90 |\n"), "{text}");
        assert!(text.contains("| 0.25 | 0.25 |\n"), "{text}");
    }
}
