//! Runs: stubs, traces, bounds, and Ctrl-C.

use serde_json::{Value, json};

use crate::support::{Ended, command, example, example_text, root, windlass, windlass_with};

/// An example with a type that lives elsewhere.
fn foreign() -> String {
    example_text("hello").replace("windlass.transform.Identity", "elsewhere.Filter")
}

#[test]
fn unknown_types_are_refused_unless_stubs_stand_in() {
    let text = foreign();
    windlass_with(&["graph", "validate", "-"], text.as_bytes()).fine();
    windlass_with(&["graph", "plan", "-"], text.as_bytes()).fine();
    for command in ["run", "metrics", "trace", "bench"] {
        let ended = windlass_with(&["graph", command, "-"], text.as_bytes()).refused();
        assert!(
            ended.err.contains("elsewhere.Filter"),
            "{command}: {}",
            ended.err
        );
        assert!(
            ended.err.contains("--stub-unknown"),
            "{command}: {}",
            ended.err
        );
        let stubbed =
            windlass_with(&["graph", command, "-", "--stub-unknown"], text.as_bytes()).fine();
        let note = "note: running with stubs for: elsewhere.Filter";
        assert!(stubbed.err.contains(note), "{command}: {}", stubbed.err);
    }
    let arguments = ["graph", "run", "-", "--stub-unknown", "--format", "json"];
    let result = windlass_with(&arguments, text.as_bytes()).fine().json();
    assert_eq!(result["ticks"], 3);
    assert_eq!(result["channel_delivery_count"], 2);
    assert_eq!(result["stubs"], json!(["elsewhere.Filter"]));
    let known = windlass(&["graph", "run", &example("hello"), "--stub-unknown"]).fine();
    assert_eq!(known.err, "", "nothing is stubbed, so nothing is said");
}

#[test]
fn runs_end_by_their_bounds() {
    let file = example("hello");
    let idle = windlass(&["graph", "run", &file, "--until-idle"]).fine();
    assert_eq!(idle.line("ticks"), "3000", "a source is never idle");
    let timed = windlass(&["graph", "run", &file, "--duration-ms", "20"]).fine();
    assert_eq!(timed.line("stop_reason"), "duration_bound");
    let none = windlass(&["graph", "run", &file, "--steps", "0"]).fine();
    assert_eq!(none.line("ticks"), "3");
}

/// A graph that reads a file of 5,000 rows; gives what the command says, and how many rows were
/// written.
fn read_rows(test: &str, policy: &str, arguments: &[&str]) -> (Ended, usize) {
    let name = format!("windlass-cli-{test}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let rows: String = (0..5000)
        .map(|row| format!("{row},{}\n", row % 7))
        .collect();
    std::fs::write(folder.join("big.csv"), format!("id,value\n{rows}")).expect("a file");
    let (from, to) = (folder.join("big.csv"), folder.join("rows.jsonl"));
    let text = format!(
        "schema_version: 2
graph: {{name: rows, kind: internal_test}}
lanes: {{main: {{type: event_loop}}}}
components:
  - {{id: readings, type: windlass.csv.source, config: {{path: '{}', records: 100}}, execution: {{lane: main}}}}
  - {{id: sink, type: windlass.jsonl.sink, config: {{path: '{}'}}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: a, from: readings.out, to: sink.in, kind: immediate{policy}}}
",
        from.display(),
        to.display()
    );
    let file = folder.join("rows.yaml");
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a readable path");
    let all: Vec<&str> = arguments.iter().copied().chain([file]).collect();
    let ended = windlass(&all);
    let written = std::fs::read_to_string(&to).map_or(0, |text| text.lines().count());
    std::fs::remove_dir_all(&folder).expect("it is there");
    (ended, written)
}

#[test]
fn no_row_of_a_file_is_lost_by_default_or_by_a_refusal() {
    for policy in [
        "",
        ", policy: {mode: queue, capacity: 16, overflow: reject}",
    ] {
        for command in [&["graph", "run"][..], &["run"]] {
            let arguments = [command, &["--until-idle", "--strict"]].concat();
            let (ended, rows) = read_rows("whole", policy, &arguments);
            let ended = ended.fine();
            assert_eq!(rows, 5000, "{}", ended.out);
            assert_eq!(ended.line("stop_reason"), "idle");
            assert_eq!(ended.line("channel_reject_count"), "0");
            assert!(!ended.out.contains("incomplete"), "{}", ended.out);
        }
    }
}

#[test]
fn rows_that_a_policy_gives_up_are_told_in_the_last_line_and_fail_strictly() {
    let policy = ", policy: {mode: queue, capacity: 16, overflow: drop_newest}";
    let (ended, rows) = read_rows("given-up", policy, &["graph", "run", "--until-idle"]);
    let ended = ended.fine();
    assert_eq!(rows, 800);
    let last = ended.out.lines().last().expect("a line");
    assert_eq!(
        last,
        "incomplete: edge a: 4200 refused; --strict makes this fail"
    );
    let (strict, _) = read_rows("given-up", policy, &["run", "--until-idle", "--strict"]);
    let strict = strict.refused();
    assert_eq!(strict.line("ok"), "true");
    let last = strict.out.lines().last().expect("a line");
    assert_eq!(
        last,
        "incomplete: edge a: 4200 refused; failed because of --strict"
    );
    let arguments = ["graph", "run", "--until-idle", "--format", "json"];
    let document = read_rows("given-up", policy, &arguments).0.fine().json();
    let loss = json!([{"kind": "refused", "subject": "a", "count": 4200}]);
    assert_eq!(document["losses"], loss);
    let (advice, _) = read_rows("given-up", policy, &["graph", "lint"]);
    assert!(
        advice.out.contains("backpressure_given_up"),
        "{}",
        advice.out
    );
}

#[test]
fn a_graph_that_is_never_idle_is_not_said_to_have_been() {
    let arguments = ["graph", "run", &example("hello"), "--until-idle"];
    let ended = windlass(&arguments).fine();
    let last = ended.out.lines().last().expect("a line");
    let expected = "incomplete: the graph was not idle after 1000 epochs; --strict makes this fail";
    assert_eq!(last, expected);
    windlass(&[&arguments[..], &["--strict"]].concat()).refused();
    let script = windlass(&["run", "--strict", "examples/lua/hello.lua"]).refused();
    assert!(script.err.contains("--strict"), "{}", script.err);
}

#[test]
fn a_run_that_fails_says_so() {
    let full = example_text("thread_pool").replace(
        "policy: {mode: queue, capacity: 8, overflow: reject}",
        "policy: {mode: queue, capacity: 1, overflow: fail_fast}",
    );
    let arguments = ["graph", "run", "-", "--steps", "5"];
    let text = windlass_with(&arguments, full.as_bytes()).refused();
    assert_eq!(text.line("ok"), "false");
    assert_eq!(text.line("stop_reason"), "error");
    assert!(!text.line("error").is_empty());
    let again = [&arguments[..], &["--format", "json"]].concat();
    let document = windlass_with(&again, full.as_bytes()).refused().json();
    let error = &document["errors"][0];
    for name in [
        "phase",
        "component_id",
        "lane",
        "message",
        "code",
        "trace_id",
        "fatal",
    ] {
        assert!(!error[name].is_null(), "{name}: {document}");
    }
    for command in ["metrics", "trace", "bench"] {
        let arguments = ["graph", command, "-", "--steps", "5"];
        let ended = windlass_with(&arguments, full.as_bytes()).refused();
        assert!(ended.err.contains("error: "), "{command}: {}", ended.err);
    }
}

#[test]
fn health_events_have_a_line_each() {
    let ended = windlass(&["graph", "run", &example("thread_pool"), "--steps", "5"]).fine();
    assert!(
        ended
            .line("health")
            .starts_with("scheduler_reject channel=jobs count=2"),
        "{}",
        ended.out
    );
}

#[test]
fn a_trace_opens_in_perfetto() {
    let trace = windlass(&["graph", "trace", &example("hello"), "--format", "chrome"]).fine();
    let trace = trace.json();
    assert_eq!(trace["displayTimeUnit"], "ns");
    let events = trace["traceEvents"].as_array().expect("events");
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(spans.len(), 16);
    for span in spans {
        assert!(span["ts"].is_number() && span["dur"].is_number(), "{span}");
        assert_eq!(span["pid"], 1);
        assert!(span["tid"].is_number(), "{span}");
    }
}

#[test]
fn a_trace_has_a_line_for_each_event() {
    let trace = windlass(&["graph", "trace", &example("hello")]).fine();
    assert_eq!(trace.out.lines().count(), 16);
    assert!(
        trace.out.contains("causation=input_to_identity#1"),
        "{}",
        trace.out
    );
}

#[test]
fn a_trace_goes_to_a_file() {
    let name = format!("windlass-cli-trace-{}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = path.to_str().expect("a readable path");
    let arguments = [
        "graph",
        "trace",
        &example("hello"),
        "--format",
        "json",
        "-o",
        file,
    ];
    let ended = windlass(&arguments).fine();
    assert_eq!(ended.out, "");
    let text = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("the file can be removed");
    let trace: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(trace["event_count"], 16);
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_stops_a_run_and_shows_what_came_of_it() {
    use std::process::{Command, Stdio};

    for signal in ["-INT", "-TERM"] {
        let file = example("hello");
        let child = command(&["graph", "run", &file, "--duration-ms", "600000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        wait_until_it_listens(child.id());
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let ended = Ended::from(child.wait_with_output().expect("it ends")).fine();
        assert_eq!(ended.line("stop_reason"), "stop_requested");
        assert_eq!(ended.line("ok"), "true");
    }
}

/// The kernel knows for which signals a process has handlers.
#[cfg(target_os = "linux")]
fn wait_until_it_listens(process: u32) {
    const BOTH: u64 = 1 << (2 - 1) | 1 << (15 - 1);
    let began = windlass::time::Instant::now();
    while began.elapsed().as_secs() < 20 {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("the process is there");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if caught.expect("a mask") & BOTH == BOTH {
            return;
        }
    }
    panic!("it does not listen to signals");
}

#[test]
fn a_run_that_was_recorded_is_replayed_and_a_change_is_shown() {
    let name = format!("windlass-cli-recording-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let dir = folder.to_str().expect("a readable path");
    let file = example("control_loop");
    windlass(&["graph", "run", &file, "--steps", "5", "--record", dir]).fine();
    let same = windlass(&["graph", "replay", dir]).fine();
    assert_eq!(same.line("same"), "true");
    assert_eq!(same.line("epochs"), "5 of 5");
    let document = windlass(&["graph", "replay", dir, "--format", "json"])
        .fine()
        .json();
    assert_eq!(document["hash"], document["recorded_hash"]);
    assert_eq!(document["difference"], Value::Null);

    let changed = folder.join("changed.yaml");
    let text = example_text("control_loop").replace("max_iterations: 40", "max_iterations: 2");
    std::fs::write(&changed, text).expect("a file");
    let changed = changed.to_str().expect("a readable path");
    let ended = windlass(&["graph", "replay", dir, "--graph", changed, "--diff"]).refused();
    assert_eq!(ended.line("same"), "false");
    assert!(
        ended.out.contains("first difference: epoch 1, component"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("  recorded: {"), "{}", ended.out);
    std::fs::remove_dir_all(&folder).expect("it is there");

    let ended = windlass(&["graph", "replay", dir]).refused();
    let missing = "run.ndjson: No such file";
    assert!(ended.err.contains(missing), "{}", ended.err);
}

#[test]
fn a_recording_of_a_run_that_was_killed_is_replayed_as_far_as_it_is_whole() {
    let name = format!("windlass-cli-killed-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let dir = folder.to_str().expect("a readable path");
    let file = example("hello");
    let mut child = command(&[
        "graph",
        "run",
        &file,
        "--steps",
        "100000000",
        "--record",
        dir,
    ])
    .stdout(std::process::Stdio::null())
    .stderr(std::process::Stdio::null())
    .spawn()
    .expect("it starts");
    let recorded = folder.join("run.ndjson");
    let began = windlass::time::Instant::now();
    while std::fs::metadata(&recorded).map_or(0, |file| file.len()) < 100_000 {
        assert!(began.elapsed().as_secs() < 30, "nothing is recorded");
        let paused = std::process::Command::new("sleep").arg("0.02").status();
        paused.expect("sleep runs");
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");

    let refused = windlass(&["graph", "replay", dir]).refused();
    assert!(refused.err.contains("--partial"), "{}", refused.err);
    let part = windlass(&["graph", "replay", dir, "--partial", "--diff"]).fine();
    assert_eq!(part.line("same"), "true");
    let note = part.line("note");
    assert!(
        note.starts_with("the recording breaks off in epoch "),
        "{note}"
    );
    assert!(note.contains("whole epochs were compared"), "{note}");

    // The source is played back; a value that was changed by hand is named.
    let text = std::fs::read_to_string(&recorded).expect("a recording");
    let edited = text.replacen("payload-2", "payload-x", 1);
    std::fs::write(&recorded, edited).expect("a file");
    let other = windlass(&["graph", "replay", dir, "--partial", "--diff"]).refused();
    assert_eq!(other.line("same"), "false");
    let first = "first difference: epoch 2, component ";
    assert!(other.out.contains(first), "{}", other.out);
    assert!(
        other.out.contains("was edited after it was recorded"),
        "{}",
        other.out
    );
    std::fs::remove_dir_all(&folder).expect("it is there");
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_does_not_wait() {
    use std::process::{Command, Stdio};

    let name = format!("windlass-cli-stubborn-{}.yaml", std::process::id());
    let path = std::env::temp_dir().join(name);
    // It does not care about being asked to stop, and the graph would give it a minute.
    let graph = r#"schema_version: 2
graph: {name: stubborn, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - id: command
    type: windlass.exec
    execution: {lane: main}
    config: {command: [sh, -c, "trap '' TERM INT; sleep 8"], ports: {outputs: [out]}, stop_ms: 60000}
edges: []
"#;
    std::fs::write(&path, graph).expect("a file");
    let file = path.to_str().expect("a readable path");
    let mut child = command(&["graph", "run", file, "--until-idle"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_until_it_listens(child.id());
    let began = windlass::time::Instant::now();
    // Until it ends: two that come together are one.
    while child.try_wait().expect("a child").is_none() {
        assert!(began.elapsed().as_secs() < 30, "it does not end");
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        sent.expect("kill runs");
        let paused = Command::new("sleep").arg("0.1").status();
        paused.expect("sleep runs");
    }
    let ended = Ended::from(child.wait_with_output().expect("it ends"));
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(ended.code, Some(130), "{}{}", ended.out, ended.err);
    assert!(
        ended.err.contains("by a second signal"),
        "it says why: {}",
        ended.err
    );
    assert!(
        !ended.out.contains("stop_reason"),
        "it did not wait for the result: {}",
        ended.out
    );
}

#[test]
fn a_failure_that_was_recorded_elsewhere_is_replayed_and_its_fix_is_shown() {
    let folder = "examples/graphs/replayed_failure";
    let recording = format!("{folder}/recording");
    let read = |file: &str| std::fs::read_to_string(root().join(folder).join(file));
    let (graph, recorded) = (read("graph.yaml"), read("recording/graph.yaml"));
    assert_eq!(
        graph.expect("a file"),
        recorded.expect("a file"),
        "the head of graph.yaml says how it was recorded"
    );
    let same = windlass(&["graph", "replay", &recording]).fine();
    assert_eq!(same.line("same"), "true");
    assert_eq!(same.line("stop_reason"), "error");
    assert!(same.line("error").contains(" rate: "), "{}", same.out);
    assert!(same.out.contains("division by zero"), "{}", same.out);
    let document = windlass(&["graph", "replay", &recording, "--format", "json"]);
    let document = document.fine().json();
    assert_eq!(document["errors"][0]["component_id"], "rate");
    assert_eq!(document["errors"][0]["fatal"], true);

    let fixed = format!("{folder}/fixed.yaml");
    let other = windlass(&["graph", "replay", &recording, "--graph", &fixed, "--diff"]).refused();
    assert_eq!(other.line("same"), "false");
    let first = "first difference: epoch 4, component rate, call 11, line 16:\n  recorded: {";
    assert!(other.out.contains(first), "{}", other.out);
    assert!(other.out.contains("\"per_hour\":null"), "{}", other.out);
    assert!(!other.out.contains("error: "), "{}", other.out);
    let short = windlass(&["graph", "replay", &recording, "--graph", &fixed]).refused();
    let first = "first difference: epoch 4, component rate; --diff shows it";
    assert!(short.out.contains(first), "{}", short.out);
}
