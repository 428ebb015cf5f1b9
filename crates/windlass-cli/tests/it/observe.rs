//! `windlass graph observe`: lines, summaries, assertions and exit codes.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Ended, broken, example, windlass};

/// A file that is gone afterwards.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Written {
        let name = format!("windlass-cli-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        Written(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn observe(arguments: &[&str]) -> Ended {
    let hello = example("hello");
    let mut all = vec![
        "graph",
        "observe",
        &hello,
        "--steps",
        "3",
        "--interval-ms",
        "0",
    ];
    all.extend(arguments);
    windlass(&all)
}

fn lines(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    lines.map(line).collect()
}

#[test]
fn each_event_is_a_line() {
    let ended = observe(&[]).fine();
    let seen = lines(&ended);
    let names: Vec<&str> = seen
        .iter()
        .filter_map(|event| event["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["run_started", "epoch", "epoch", "epoch", "run_ended"]
    );
    let detailed = observe(&["--observe-level", "detailed", "--include", "identity"]).fine();
    let seen = lines(&detailed);
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|event| event["component_id"] == "identity"));
    assert_eq!(observe(&["--observe-level", "off"]).fine().out, "");
    let sampled = observe(&["--sample", "2"]).fine();
    assert_eq!(lines(&sampled).len(), 3);
}

#[test]
fn a_summary_is_one_document() {
    let ended = observe(&["--format", "json-summary", "--observe-level", "debug"]).fine();
    let document = ended.json();
    assert_eq!(document["ok"], true);
    assert_eq!(document["dropped"], 0);
    assert!(document["events"].as_u64().expect("a count") > 40);
}

#[test]
fn what_went_wrong_is_in_the_exit_code() {
    let run = Written::new(
        "run.yaml",
        &crate::support::example_text("hello")
            .replace("type: windlass.transform.Identity", "type: elsewhere.Thing"),
    );
    assert_eq!(windlass(&["graph", "observe", run.path()]).code, Some(2));
    assert_eq!(
        windlass(&["graph", "observe", &broken("unknown_port")]).code,
        Some(2)
    );

    let fails = Written::new(
        "assert.yaml",
        "version: \"1\"\nassertions: [{id: none, never: {event: component}}]\n",
    );
    let ended = observe(&["--assert", fails.path()]);
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(
        ended.err.contains("assertion failed: none in epoch 1"),
        "{}",
        ended.err
    );
    let holds = Written::new(
        "holds.yaml",
        "version: \"1\"\nassertions: [{id: three, counter_equals: {match: {event: epoch}, count: 3}}]\n",
    );
    observe(&["--assert", holds.path()]).fine();
    let nonsense = Written::new("nonsense.yaml", "version: 7\n");
    let ended = observe(&["--assert", nonsense.path()]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("version: has to be"), "{}", ended.err);
    assert_eq!(observe(&["--assert", "no/such.yaml"]).code, Some(1));

    // More events in one epoch than may wait: they cannot all be collected.
    let hasty = ["--observe-level", "debug", "--event-buffer-capacity", "1"];
    let dropped = observe(&hasty).fine();
    assert!(
        dropped.err.contains("events were dropped"),
        "{}",
        dropped.err
    );
    let mut strict = hasty.to_vec();
    strict.push("--fail-on-observer-drop");
    assert_eq!(observe(&strict).code, Some(4));
}

#[test]
fn a_recording_has_the_events_too() {
    let name = format!("windlass-cli-observed-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let dir = folder.to_str().expect("a readable path");
    let ended = observe(&["--record", dir]).fine();
    let kept = std::fs::read_to_string(folder.join("events.ndjson")).expect("the events");
    assert_eq!(kept, ended.out);
    let replayed = windlass(&["graph", "replay", dir]).fine();
    assert_eq!(replayed.line("same"), "true");
    std::fs::remove_dir_all(&folder).expect("it is there");
}
