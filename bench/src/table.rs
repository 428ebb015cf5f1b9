//! The report for people: a table per workload, or one in markdown.

use std::fmt::Write;

use crate::peers::{self, OURS};
use crate::report::{Line, PeerResult, Report};
use crate::stats::Better;

/// One workload, a row per peer.
pub fn line(line: &Line) -> String {
    let mut text = String::new();
    let better = match line.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    let _ = writeln!(text, "{} ({}, {better} is better)", line.name, line.unit);
    let with_worst = !line.matrix.is_empty();
    let _ = write!(
        text,
        "  {:16}{:>11}{:>11}{:>11}{:>11}{:>8}",
        "peer", "median", "p95", "p99", "min", "ratio"
    );
    let _ = writeln!(text, "{}", if with_worst { "   worst" } else { "" });
    for result in &line.results {
        let numbers = [result.median, result.p95, result.p99, result.min].map(number);
        let _ = write!(text, "  {:16}", result.peer);
        numbers.iter().for_each(|n| _ = write!(text, "{n:>11}"));
        let _ = write!(text, "{:>8}", ratio(result.ratio));
        if with_worst {
            let _ = write!(text, "{:>8}", worst(result));
        }
        let _ = writeln!(text, "{}", remarks(result));
    }
    text.push('\n');
    text
}

/// All workloads in one table: a row per workload, a column per peer, and our ratio to the best of
/// them.
pub fn markdown(report: &Report) -> String {
    let (limits, lines): (Vec<&Line>, Vec<&Line>) = report
        .workloads
        .iter()
        .partition(|l| l.name.starts_with("limits/"));
    let mut text = format!(
        "{}, {} cores, {} workers, median of {} rounds. Ratio: {OURS} to the best peer that finished\nall its runs.\n\n",
        report.date, report.cores, report.workers, report.rounds
    );
    if !lines.is_empty() {
        comparison(&mut text, &lines);
    }
    if !limits.is_empty() {
        text.push_str("\n| the machine | unit | median |\n|---|---|---|\n");
        for line in limits {
            let median = line.results.first().and_then(|result| result.median);
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                line.name,
                line.unit,
                number(median)
            );
        }
    }
    text
}

fn comparison(text: &mut String, lines: &[&Line]) {
    let mut peers: Vec<&str> = Vec::new();
    for result in lines.iter().flat_map(|line| &line.results) {
        if !peers.contains(&result.peer.as_str()) {
            peers.push(&result.peer);
        }
    }
    // Not every peer is in every line: the order is that of the list.
    peers.sort_by_key(|name| peers::ALL.iter().position(|peer| peer.name == *name));
    let with_worst = lines.iter().any(|line| !line.matrix.is_empty());
    let with_ratio = peers.contains(&OURS);
    let mut heads = vec!["workload", "unit"];
    heads.extend(&peers);
    heads.extend(with_ratio.then_some("ratio"));
    heads.extend((with_ratio && with_worst).then_some("worst ratio"));
    let _ = writeln!(
        text,
        "| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for line in lines {
        let result_of = |peer: &str| line.results.iter().find(|result| result.peer == peer);
        let mut cells = vec![line.name.to_owned(), line.unit.to_owned()];
        cells.extend(
            peers
                .iter()
                .map(|peer| result_of(peer).map_or_else(String::new, cell)),
        );
        if with_ratio {
            let ours = result_of(OURS);
            cells.push(ours.map_or_else(String::new, |ours| ratio(ours.ratio)));
            if with_worst {
                cells.push(ours.map_or_else(String::new, worst));
            }
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

/// A cell of the markdown table: the median, and p99 where it applies.
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

/// What has to be said beside the numbers.
fn remarks(result: &PeerResult) -> String {
    let mut text = String::new();
    for (name, value) in &result.extra {
        let _ = write!(text, "  {name} {}", number(Some(*value)));
    }
    if result.hung > 0 {
        let _ = write!(text, "  hung ({} of {} runs)", result.hung, result.runs);
    }
    if result.failed > 0 {
        let complaint = result.complaint.as_deref().unwrap_or_default();
        let _ = write!(
            text,
            "  failed ({} of {} runs): {complaint}",
            result.failed, result.runs
        );
    }
    if let Some(worst) = result.worst {
        let _ = write!(
            text,
            "  worst at {} workers, size x{}",
            worst.workers, worst.scale
        );
    }
    text
}

/// The worst ratio, which is that of the table itself if no other setting is worse.
fn worst(result: &PeerResult) -> String {
    ratio(result.worst.map(|worst| worst.ratio).or(result.ratio))
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
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
    use super::*;
    use crate::workload::Workload;

    fn report() -> Report {
        let result = |peer: &str, median, ratio| PeerResult {
            peer: peer.to_owned(),
            median: Some(median),
            min: Some(median),
            ratio: Some(ratio),
            runs: 3,
            ..PeerResult::default()
        };
        let mut line = Line::new(Workload::RemoteWake, Vec::new());
        line.results = vec![result(OURS, 20.0, 0.5), result("tokio", 40.0, 1.0)];
        line.results[1].p99 = Some(123.4);
        line.results.push(PeerResult {
            hung: 2,
            runs: 3,
            peer: "smol".to_owned(),
            ..PeerResult::default()
        });
        let mut report = Report::new(2, 9);
        report.workloads.push(line);
        report
    }

    #[test]
    fn a_hung_peer_is_named_in_the_table() {
        let text = line(&report().workloads[0]);
        assert!(text.contains("hung (2 of 3 runs)"), "{text}");
        assert!(
            text.starts_with("remote_wake (us, lower is better)"),
            "{text}"
        );
    }

    #[test]
    fn the_markdown_has_a_column_per_peer_and_our_ratio() {
        let text = markdown(&report());
        assert!(
            text.contains("| workload | unit | windlass | tokio | smol | ratio |"),
            "{text}"
        );
        assert!(
            text.contains("| remote_wake | us | 20 | 40 / 123 | -, hung 2 of 3 | 0.50 |"),
            "{text}"
        );
    }

    #[test]
    fn numbers_show_what_matters() {
        let shown = [0.0, 3.456, 12.34, 456.7, 1e6].map(|v| number(Some(v)));
        assert_eq!(shown, ["0", "3.46", "12.3", "457", "1000000"]);
    }
}
