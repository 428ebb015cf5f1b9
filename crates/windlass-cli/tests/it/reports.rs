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
    let ended = windlass(&["graph", "validate", &file, "--format", "json"]).refused();
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
    let text = windlass(&["graph", "validate", &file]).refused();
    assert_eq!(text.err.matches("help: ").count(), 3, "{}", text.err);
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
