//! Every command works on every example, for people and for programs.

use crate::support::{example, examples, windlass, windlass_with};

const COMMANDS: &[&str] = &[
    "validate", "plan", "run", "metrics", "lint", "trace", "bench",
];

#[test]
fn every_command_works_on_every_example() {
    for name in examples() {
        let file = example(&name);
        for command in COMMANDS {
            let mut arguments = vec!["graph", command, &file];
            if *command == "bench" {
                arguments.extend(["--steps", "3", "--runs", "1"]);
            }
            let text = windlass(&arguments).fine();
            assert!(!text.out.is_empty(), "{command} {name}");
            assert_eq!(text.err, "", "{command} {name}");
            arguments.extend(["--format", "json"]);
            let json = windlass(&arguments).fine();
            assert!(json.json().is_object(), "{command} {name}");
            assert_eq!(json.err, "", "{command} {name}");
        }
        for format in ["mermaid", "text", "json", "dot", "svg"] {
            let drawn = windlass(&["graph", "render", &file, "--format", format]).fine();
            assert!(drawn.out.ends_with('\n'), "{format} {name}");
        }
        let explained = windlass(&["graph", "explain", &file]).fine();
        assert!(explained.out.starts_with("Graph "), "{}", explained.out);
        let parts = windlass(&["graph", "explain", &file, "--format", "json"]).fine();
        let parts = parts.json();
        let regions = parts["regions"].as_array().expect("a list");
        for region in regions {
            let id = region["id"].as_str().expect("an id");
            assert!(explained.out.contains(&format!(". {id}: ")), "{id}");
            assert!(!region["components"].as_array().expect("a list").is_empty());
        }
    }
}

#[test]
fn a_run_has_a_line_for_each_count() {
    let ended = windlass(&["graph", "run", &example("hello")]).fine();
    let names: Vec<&str> = ended
        .out
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    let expected = [
        "ok",
        "graph",
        "ticks",
        "stop_reason",
        "order",
        "channel_publish_count",
        "channel_delivery_count",
        "channel_drop_count",
        "channel_reject_count",
        "channel_overwrite_count",
        "channel_lost_count",
        "channel_stale_drop_count",
        "channel_deadline_miss_count",
        "runtime_publication_committed",
        "unconnected_publish_count",
        "trace_event_count",
    ];
    assert_eq!(names, expected);
    let document = windlass(&["graph", "run", &example("hello"), "--format", "json"]).fine();
    for name in expected.into_iter().chain(["errors", "health_events"]) {
        assert!(!document.json()[name].is_null(), "{name}");
    }
}

#[test]
fn long_orders_are_shortened_for_people() {
    let ended = windlass(&["graph", "run", &example("hello"), "--steps", "100"]).fine();
    assert!(
        ended.line("order").ends_with(", ... (300 in all)"),
        "{}",
        ended.out
    );
    let arguments = [
        "graph",
        "run",
        &example("hello"),
        "--steps",
        "100",
        "--format",
        "json",
    ];
    let order = windlass(&arguments).fine().json()["order"].clone();
    assert_eq!(order.as_array().map(Vec::len), Some(300));
}

#[test]
fn validate_gives_the_document_with_sorted_keys() {
    let ended = windlass(&["graph", "validate", &example("hello"), "--format", "json"]).fine();
    let document = ended.json();
    let keys: Vec<&String> = document.as_object().expect("a map").keys().collect();
    let expected = [
        "diagnostics",
        "diagnostics_schema_version",
        "errors",
        "ok",
        "region_order",
    ];
    assert_eq!(keys, expected);
    let place = |key: &str| {
        ended
            .out
            .find(&format!("\n  \"{key}\""))
            .expect("the key is there")
    };
    assert!(
        expected
            .windows(2)
            .all(|pair| place(pair[0]) < place(pair[1]))
    );
    assert_eq!(
        document["region_order"],
        serde_json::json!(["input", "identity", "output"])
    );
}

#[test]
fn a_dash_is_standard_input() {
    let text = crate::support::example_text("hello");
    for command in COMMANDS {
        let ended = windlass_with(&["graph", command, "-"], text.as_bytes()).fine();
        assert!(!ended.out.is_empty(), "{command}");
    }
    let twice = windlass_with(&["graph", "diff-plan", "-", "-"], text.as_bytes()).refused();
    assert!(twice.err.contains("only one of the files"), "{}", twice.err);
}

#[test]
fn plans_are_compared() {
    let (hello, priority) = (example("hello"), example("priority"));
    let same = windlass(&["graph", "diff-plan", &hello, &hello]).fine();
    assert_eq!(
        same.out,
        "same_region_order: true\nsame_component_regions: true\n"
    );
    let other = windlass(&["graph", "diff-plan", &hello, &priority]).fine();
    assert_eq!(other.line("same_region_order"), "false");
    assert!(other.out.contains("\n+ component join\n"), "{}", other.out);
    let json = windlass(&["graph", "diff-plan", &hello, &priority, "--format", "json"]).fine();
    assert_eq!(json.json()["same_component_regions"], false);
}

#[test]
fn advice_is_no_failure() {
    let file = example("control_loop");
    let text = windlass(&["graph", "lint", &file]).fine();
    assert!(text.out.contains("control_loop.yaml:43:"), "{}", text.out);
    assert!(text.out.contains("delay_epoch_boundary"), "{}", text.out);
    assert_eq!(text.line("findings"), "1");
    let json = windlass(&["graph", "lint", &file, "--format", "json"]).fine();
    assert_eq!(json.json()["findings"][0]["rule"], "delay_epoch_boundary");
    assert_eq!(json.json()["findings"][0]["line"], 43);
}

#[test]
fn metrics_show_zeros_on_demand() {
    let file = example("hello");
    let some = windlass(&["graph", "metrics", &file]).fine();
    let all = windlass(&["graph", "metrics", &file, "--all"]).fine();
    assert!(
        !some.out.contains("runtime.channel.drop_count"),
        "{}",
        some.out
    );
    assert!(
        all.out.contains("runtime.channel.drop_count"),
        "{}",
        all.out
    );
    let json = windlass(&["graph", "metrics", &file, "--format", "json"]).fine();
    assert_eq!(json.json()["graph"], "hello");
    let samples = json.json()["samples"].as_array().map(Vec::len);
    assert_eq!(samples, Some(all.out.lines().count()));
}

#[test]
fn a_bench_measures_every_epoch() {
    let file = example("hello");
    let arguments = ["graph", "bench", &file, "--steps", "50", "--runs", "2"];
    let text = windlass(&arguments).fine();
    assert_eq!(text.line("epochs"), "100");
    let again = [&arguments[..], &["--format", "json"]].concat();
    let json = windlass(&again).fine().json();
    assert_eq!(json["samples"], 100);
    assert_eq!(json["invocations"], 300);
    assert_eq!(
        json["graph_hash"],
        text.line("graph_hash"),
        "the same graph, the same hash"
    );
    let times = ["min", "p50", "p95", "p99", "max"].map(|name| json["epoch_ns"][name].as_u64());
    assert!(times.is_sorted() && times[0] > Some(0), "{times:?}");
    for name in ["os", "arch", "cpus", "version", "profile"] {
        assert!(!json["environment"][name].is_null(), "{name}");
    }
}

#[test]
fn completions_are_there_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = windlass(&["completions", shell]).fine();
        assert!(ended.out.contains("diff-plan"), "{shell}");
    }
}
