//! The text itself: what is YAML, and what is too much of it.

use windlass_plan::{LoadOptions, load};

use crate::support::{SMALLEST, load_text, messages};

#[test]
fn what_is_no_graph_file_is_said_clearly() {
    let cases = [
        ("", "the graph file is empty"),
        ("\n# nothing\n", "the graph file is empty"),
        ("---\n", "the graph file is empty"),
        ("~", "the graph file is empty"),
        ("- a", "expected a map, found a list"),
        ("text", "expected a map, found the string \"text\""),
        (
            "a: 1\n---\nb: 2\n",
            "a graph file holds one YAML document, and here a second one begins",
        ),
        (
            "? [a]\n: 1\n",
            "a key has to be a scalar, not a list or a map",
        ),
        (
            "a: &x [*x]\n",
            "this alias refers to the value that it is part of",
        ),
        ("a: !thing 1\n", "the tag !thing is not supported"),
    ];
    for (text, message) in cases {
        assert_eq!(messages(text), [message], "{text}");
    }
}

#[test]
fn syntax_errors_have_a_place() {
    for (text, line) in [
        ("a: [1, 2\nb: 3\n", "2:"),
        ("a:\n\t- b\n", "2:"),
        ("a: *nobody\n", "1:"),
        ("a: \"open\n", ""),
        ("a: b: c\n", "1:"),
    ] {
        let errors = load_text(text).expect_err(text);
        let shown = errors.to_string();
        assert!(shown.starts_with(line), "{text}: {shown}");
        assert!(shown.contains("not valid YAML"), "{text}: {shown}");
    }
}

#[test]
fn duplicate_keys_are_all_reported() {
    let text = format!("{SMALLEST}edges: []\ncomponents: []\n");
    assert_eq!(
        messages(&text),
        ["duplicate key \"edges\"", "duplicate key \"components\""]
    );
    let errors = load_text(&text).expect_err("duplicates");
    assert!(errors.to_string().starts_with("6:1: "), "{errors}");
    let text = SMALLEST.replace("name: smallest", "name: a, \"name\": b");
    assert_eq!(messages(&text), ["duplicate key \"name\""]);
}

#[test]
fn aliases_stand_for_their_values() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: a, type: &t topo, execution: &x {lane: main, priority: high}}
  - {id: b, type: *t, execution: *x}
edges: []
";
    let graph = load_text(text).expect("a valid file").graph;
    assert_eq!(graph.components[1].type_name, "topo");
    assert_eq!(graph.components[1].execution, graph.components[0].execution);
}

#[test]
fn a_bomb_of_aliases_is_refused_at_once() {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ('b'..='i').zip('a'..) {
        text.push_str(&format!(
            "{name}: &{name} [*{before},*{before},*{before}]\n"
        ));
    }
    // Within the number of aliases, and 3^8 * 9 values: allowed, and refused for what it is.
    assert!(messages(&text)[0].contains("missing field"));
    let x = "x,".repeat(60_000);
    let text = format!("a: &a [{x}]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]\n");
    assert_eq!(
        messages(&text),
        ["node count, with aliases written out, exceeds limit 1048576"]
    );
}

#[test]
fn depth_is_bounded() {
    for text in [
        "[".repeat(100_000),
        format!("a: {}", "[".repeat(70)),
        "{a: ".repeat(100_000),
        format!("{}x", "- ".repeat(100_000)),
        (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
        format!(
            "a: &a {}{}\nb: {}*a{}\n",
            "[".repeat(40),
            "]".repeat(40),
            "[".repeat(40),
            "]".repeat(40)
        ),
    ] {
        assert_eq!(
            messages(&text),
            ["nesting depth exceeds limit 64"],
            "{:.40}",
            text
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let errors =
        load(b"schema_version: 1\nx: \xff\xfe\n", &LoadOptions::default()).expect_err("no UTF-8");
    assert_eq!(
        errors.problems[0].diagnostic.message,
        "the text is not UTF-8 at byte 21"
    );
    assert!(errors.to_string().starts_with("2:4: "), "{errors}");
}

#[test]
fn byte_order_marks_and_line_breaks_of_other_systems_are_fine() {
    let windows = format!("\u{feff}{}", SMALLEST.replace('\n', "\r\n"));
    load_text(&windows).expect("a valid file");
    let errors =
        load_text(&windows.replace("edges:", "# ü\r\nedgse:")).expect_err("a typing error");
    let spans: Vec<&str> = errors
        .problems
        .iter()
        .filter_map(|problem| {
            errors
                .sources
                .text()
                .get(problem.span?.start..problem.span?.end)
        })
        .collect();
    assert!(spans.contains(&"edgse"), "{spans:?}");
}

#[test]
fn quoted_scalars_are_strings_and_only_the_core_schema_is_known() {
    let text = SMALLEST.replace(
        "name: smallest",
        "name: \"true\", config: {a: yes, b: 'no', c: 0o17, d: 1_000, e: !!str 5, f: !!int 5, g: 2001-01-01}",
    );
    let graph = load_text(&text).expect("a valid file").graph;
    let config = serde_json::Value::Object(graph.config);
    let expected = serde_json::json!({
        "a": "yes", "b": "no", "c": 15, "d": "1_000", "e": "5", "f": 5, "g": "2001-01-01",
    });
    assert_eq!((graph.name.as_str(), config), ("true", expected));
}
