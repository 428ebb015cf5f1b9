//! What is wrong with a file is shown where it is, with what to do; all of it at once.

use crate::support::{broken, example, example_text, windlass, windlass_with};

#[test]
fn a_report_has_the_line_the_code_and_the_fix() {
    let ended = windlass(&["graph", "validate", &broken("unknown_port")]).refused();
    let line = "- {id: f, from: a.output, to: b.inn, kind: immediate}";
    for part in [
        line,
        "unknown_port.yaml:11:19",
        "unknown_port\n",
        "`a` has no output `output`",
        "edges[1].from",
        "help: its outputs are: out",
        "`b` has no input `inn`",
        "help: its inputs are: in",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert_eq!(ended.line("ok"), "false");
    assert_eq!(ended.line("errors"), "2");
    assert!(
        !ended.err.contains('\u{1b}'),
        "no colours without a terminal"
    );
}

#[test]
fn all_faults_of_form_are_told_at_once() {
    let file = broken("graph_validation_error_load");
    let arguments = [
        "graph",
        "validate",
        &file,
        "--schema-only",
        "--format",
        "json",
    ];
    let ended = windlass(&arguments).refused();
    let errors = ended.json()["errors"].clone();
    let errors: Vec<&str> = errors
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|e| e.as_str())
        .collect();
    assert_eq!(
        errors,
        [
            "7:44: unexpected field components[0].colour",
            "9:19: expected component.port, found \"a\"",
            "9:38: unknown name \"sometimes\"; allowed are: immediate, delay, state, async",
        ]
    );
    assert_eq!(ended.err, "");
    let text = windlass(&["graph", "validate", &file, "--schema-only"]).refused();
    assert_eq!(text.err.matches("help: ").count(), 3, "{}", text.err);
}

/// Ten mistakes: two lanes, a lane that is not there, a type, a priority, an id, two ends of edges,
/// a cycle, a field.
const TEN: &str = "\
schema_version: 2
graph: {name: ten}
lanes:
  main: {type: event_lop}
  pool: {type: thread_pool, max_threads: -3}
  ok: {type: event_loop}
components:
  - {id: a, type: windlass.boundary.Input, execution: {lane: nowhere}}
  - {id: b, type: windlass.boundary.Outptu, trigger_policy: {type: any_input, input: in}, execution: {lane: ok}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: ok, priority: urgent}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: ok}}
  - {id: d, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: ok}}
  - {id: f, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: ok}}
edges:
  - {id: e1, from: a.out, to: ghost.in, kind: immediate}
  - {id: e2, from: a.output, to: c.in, kind: immediate}
  - {id: e3, from: d.out, to: f.in, kind: immediate}
  - {id: e4, from: f.out, to: d.in, kind: immediate, colour: red}
";

#[test]
fn ten_mistakes_of_form_and_meaning_are_told_in_one_pass() {
    let arguments = ["graph", "validate", "-", "--format", "json"];
    let document = windlass_with(&arguments, TEN.as_bytes()).refused().json();
    let errors = document["errors"].as_array().expect("a list").iter();
    let errors: Vec<&str> = errors.filter_map(|error| error.as_str()).collect();
    assert_eq!(
        errors,
        [
            "4:16: unknown name \"event_lop\"; allowed are: event_loop, fixed_rate, thread_pool, isolated_thread, manual_step",
            "5:42: -3 is negative, and this counts something",
            "8:62: lane \"nowhere\" does not exist",
            "9:19: component type \"windlass.boundary.Outptu\" does not exist",
            "10:126: unknown name \"urgent\"; allowed are: high, normal, low, background",
            "11:10: there is another component `c`",
            "15:31: component \"ghost\" does not exist",
            "16:20: `a` has no output `output`",
            "17:5: 2 components feed each other immediately, and no composite loop owns them",
            "18:54: unexpected field edges[3].colour",
        ]
    );
    // The same for everything that would run it.
    let run = windlass_with(&["graph", "run", "-", "--format", "json"], TEN.as_bytes());
    assert_eq!(run.refused().json()["errors"], document["errors"]);
    let text = windlass_with(&["graph", "validate", "-"], TEN.as_bytes()).refused();
    assert!(
        text.err
            .contains("help: did you mean \"windlass.boundary.Output\"?"),
        "{}",
        text.err
    );
    assert_eq!(text.line("errors"), "10");
}

#[test]
fn what_is_wrong_inside_of_configurations_is_told_before_a_run() {
    let text = "\
schema_version: 2
graph: {name: inside, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: map, type: windlass.map, config: {expr: 'value +'}, execution: {lane: main}}
  - {id: filter, type: windlass.filter, config: {expr: 'vale > 1'}, execution: {lane: main}}
  - {id: window, type: windlass.window, config: {expr: 'mean(values'}, execution: {lane: main}}
  - id: script
    type: windlass.lua
    config:
      script: |
        function execute()
          local x = = 1
        end
    execution: {lane: main}
  - {id: both, type: windlass.lua, config: {script: 'function execute() end', file: some.lua}, execution: {lane: main}}
  - {id: none, type: windlass.lua, execution: {lane: main}}
  - {id: fine, type: windlass.lua, config: {script: 'function execute() end'}, execution: {lane: main}}
edges: []
";
    for command in ["validate", "run"] {
        let arguments = ["graph", command, "-", "--format", "json"];
        let document = windlass_with(&arguments, text.as_bytes()).refused().json();
        let diagnostics = document["diagnostics"].as_array().expect("a list").iter();
        let errors: Vec<String> = diagnostics
            .filter(|diagnostic| diagnostic["severity"] == "error")
            .map(|diagnostic| {
                let part = |name: &str| diagnostic[name].as_str().unwrap_or_default().to_owned();
                format!("{}: {}", part("graph_path"), part("message"))
            })
            .collect();
        let expected = [
            "components[0].config.expr: \"value +\" is no expression: ",
            "components[1].config.expr: \"vale > 1\" is no expression: there is no vale",
            "components[2].config.expr: \"mean(values\" is no expression: ",
            "components[2].config: a window needs a size or a span, and this one has neither",
            "components[3].config.script: the script is no Lua: script.lua:2: unexpected symbol near '='",
            "components[4].config: `script` and `file` are both there",
            "components[5].config: there is no Lua code",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }
}

#[test]
fn a_diagnostic_has_all_its_fields() {
    let file = broken("backpressure_risk");
    let ended = windlass(&["graph", "validate", &file, "--format", "json"]).fine();
    let diagnostic = ended.json()["diagnostics"][0].clone();
    let keys: Vec<&String> = diagnostic.as_object().expect("a map").keys().collect();
    let expected = [
        "category",
        "code",
        "column",
        "graph_path",
        "involved_components",
        "involved_edges",
        "line",
        "message",
        "severity",
        "suggested_fix",
    ];
    assert_eq!(keys, expected);
    assert_eq!(diagnostic["severity"], "warning");
    assert_eq!(diagnostic["line"], 10);
    assert_eq!(ended.json()["errors"], serde_json::json!([]));
}

#[test]
fn warnings_fail_if_that_is_asked_for() {
    let file = broken("backpressure_risk");
    let lax = windlass(&["graph", "validate", &file]).fine();
    assert!(lax.err.contains("backpressure_risk"), "{}", lax.err);
    assert_eq!(lax.line("warnings"), "1");
    let strict = windlass(&["graph", "validate", &file, "--strict-diagnostics"]).refused();
    assert_eq!(strict.line("ok"), "false");
    let arguments = [
        "graph",
        "validate",
        &file,
        "--strict-diagnostics",
        "--format",
        "json",
    ];
    let strict = windlass(&arguments).refused().json();
    assert_eq!(strict["ok"], false);
    assert_eq!(strict["errors"].as_array().map(Vec::len), Some(1));
    let advice = broken("optional_input_unconnected");
    windlass(&["graph", "validate", &advice, "--strict-diagnostics"]).fine();
}

#[test]
fn other_commands_point_at_warnings() {
    let ended = windlass(&["graph", "plan", &broken("backpressure_risk")]).fine();
    assert!(ended.err.contains("note: "), "{}", ended.err);
    assert!(ended.err.contains("graph validate"), "{}", ended.err);
}

#[test]
fn form_and_meaning_are_told_apart() {
    let file = broken("unknown_port");
    windlass(&["graph", "validate", &file, "--schema-only"]).fine();
    windlass(&["graph", "validate", &file, "--semantic"]).refused();
    let both = windlass(&["graph", "validate", &file, "--semantic", "--schema-only"]).refused();
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}

#[test]
fn colours_come_when_they_are_asked_for() {
    let file = broken("unknown_port");
    let always = windlass(&["--color", "always", "graph", "validate", &file]).refused();
    assert!(always.err.contains('\u{1b}'), "{}", always.err);
    let never = windlass(&["graph", "validate", &file, "--color=never"]).refused();
    assert!(!never.err.contains('\u{1b}'), "{}", never.err);
    let help = windlass(&["--color", "always", "--help"]).fine();
    assert!(help.out.contains('\u{1b}'), "{}", help.out);
}

#[test]
fn every_command_refuses_a_broken_file() {
    let (file, hello) = (broken("unknown_port"), example("hello"));
    for command in [
        "plan", "render", "run", "metrics", "trace", "lint", "explain", "bench",
    ] {
        let ended = windlass(&["graph", command, &file]).refused();
        assert_eq!(ended.out, "", "{command}");
        assert!(
            ended.err.contains("help: its outputs are: out"),
            "{command}: {}",
            ended.err
        );
    }
    windlass(&["graph", "diff-plan", &hello, &file]).refused();
    let json = windlass(&["graph", "run", &file, "--format", "json"]).refused();
    assert_eq!(json.json()["diagnostics"][0]["code"], "unknown_port");
}

#[test]
fn many_faults_are_all_told() {
    let mut text = example_text("hello");
    for number in 0..200 {
        text.push_str(&format!(
            "  - {{id: e{number}, from: nobody.out, to: output.in, kind: state}}\n"
        ));
    }
    let ended = windlass_with(&["graph", "validate", "-"], text.as_bytes()).refused();
    let told = ended.err.matches("nobody").count();
    assert!(told >= 200, "{told}");
    assert!(ended.err.contains("<stdin>:"), "{}", ended.err);
}

#[test]
fn odd_texts_are_refused_without_a_panic() {
    let hello = example_text("hello");
    let cut = &hello.as_bytes()[..hello.len() / 2];
    for text in [
        &b""[..],
        b"\n",
        b"\xff\xfe",
        b"a: [",
        b"- \t- x",
        b"\0",
        "é: ü".as_bytes(),
        cut,
    ] {
        for command in ["validate", "run"] {
            let ended = windlass_with(&["graph", command, "-"], text).refused();
            assert!(!ended.err.is_empty(), "{text:?}");
        }
    }
}
