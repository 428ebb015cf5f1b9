//! Each limit, and the one error that names it.

use windlass_plan::Limits;

use crate::support::{SMALLEST, load_with, messages_of};

fn graph(components: usize, edges: usize, loops: usize, lanes: usize) -> String {
    let mut text =
        "schema_version: 1\ngraph: {name: g}\nlanes:\n  main: {type: event_loop}\n".to_owned();
    (1..lanes).for_each(|n| text.push_str(&format!("  l{n}: {{type: event_loop}}\n")));
    text.push_str("components:\n");
    (0..components).for_each(|n| {
        text.push_str(&format!(
            "  - {{id: c{n}, type: t, execution: {{lane: main}}}}\n"
        ));
    });
    text.push_str("edges:\n");
    (0..edges).for_each(|n| {
        text.push_str(&format!(
            "  - {{id: e{n}, from: c0.o, to: c1.i, kind: delay}}\n"
        ));
    });
    text.push_str("composite_loops:\n");
    (0..loops).for_each(|n| {
        text.push_str(&format!(
            "  - {{id: x{n}, components: [c0], loop_policy: {{type: transaction}}}}\n"
        ));
    });
    text
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let limits = Limits::default();
    assert_eq!(
        (limits.input_bytes, limits.lanes, limits.components),
        (1 << 20, 256, 4096)
    );
    assert_eq!(
        (limits.edges, limits.loops, limits.id_bytes),
        (8192, 1024, 128)
    );
    assert_eq!((limits.config_depth, limits.string_bytes), (8, 4096));
    assert_eq!((limits.script_bytes, limits.aliases), (65536, 32));
}

#[test]
fn the_size_is_looked_at_first() {
    let limits = Limits {
        input_bytes: 64,
        ..Limits::default()
    };
    assert_eq!(
        messages_of(load_with(&"[".repeat(65), limits)),
        ["graph input size exceeds limit 64"]
    );
}

#[test]
fn counts_have_limits() {
    let limits = || Limits {
        lanes: 2,
        components: 3,
        edges: 4,
        loops: 5,
        ..Limits::default()
    };
    load_with(&graph(3, 4, 5, 2), limits()).expect("at the limits");
    let cases = [
        (graph(3, 4, 5, 3), "lane count exceeds limit 2"),
        (graph(4, 4, 5, 2), "component count exceeds limit 3"),
        (graph(3, 5, 5, 2), "edge count exceeds limit 4"),
        (graph(3, 4, 6, 2), "loop count exceeds limit 5"),
    ];
    for (text, message) in cases {
        assert_eq!(messages_of(load_with(&text, limits())), [message]);
    }
}

#[test]
fn counts_are_looked_at_again_after_expansion() {
    let subgraph = "subgraphs:\n  - id: s\n    components:\n      - {id: a, type: t, execution: {lane: main}}\n";
    let text = format!("{}{subgraph}", graph(3, 1, 1, 1));
    let limits = Limits {
        components: 3,
        ..Limits::default()
    };
    assert_eq!(
        messages_of(load_with(&text, limits)),
        ["component count exceeds limit 3"]
    );
    let template = "\
templates:
  - id: t
    components:
      - {id: a, type: t, execution: {lane: main}}
template_instances:
  - {id: a, template: t}
  - {id: b, template: t}
";
    let limits = Limits {
        components: 4,
        ..Limits::default()
    };
    let text = format!("{}{template}", graph(3, 1, 1, 1));
    assert_eq!(
        messages_of(load_with(&text, limits)),
        ["component count exceeds limit 4"]
    );
}

#[test]
fn ids_have_a_limit_with_their_prefix() {
    let limits = || Limits {
        id_bytes: 8,
        ..Limits::default()
    };
    let own = |id: &str| {
        SMALLEST.replace(
            "components: []",
            &format!("components: [{{id: {id}, type: t, execution: {{lane: main}}}}]"),
        )
    };
    load_with(&own("12345678").replace("12345678", "a2345678"), limits()).expect("at the limit");
    assert_eq!(
        messages_of(load_with(&own("a23456789"), limits())),
        ["id length exceeds limit 8"]
    );
    let text = format!(
        "{SMALLEST}subgraphs: [{{id: sub, components: [{{id: long1, type: t, execution: {{lane: main}}}}]}}]\n"
    );
    assert_eq!(
        messages_of(load_with(&text, limits())),
        ["id length exceeds limit 8"]
    );
}

#[test]
fn config_has_a_depth() {
    let nested = |levels: usize| {
        let config = format!("{}1{}", "{a: ".repeat(levels), "}".repeat(levels));
        SMALLEST.replace(
            "name: smallest",
            &format!("name: smallest, config: {config}"),
        )
    };
    load_with(&nested(8), Limits::default()).expect("at the limit");
    assert_eq!(
        messages_of(load_with(&nested(9), Limits::default())),
        ["config depth exceeds limit 8"]
    );
}

#[test]
fn strings_have_a_limit_and_scripts_a_larger_one() {
    let with = |key: &str, bytes: usize| {
        let text = "x".repeat(bytes);
        SMALLEST.replace(
            "name: smallest",
            &format!("name: smallest, config: {{{key}: {text}}}"),
        )
    };
    load_with(&with("text", 4096), Limits::default()).expect("at the limit");
    load_with(&with("script", 65536), Limits::default()).expect("at the limit");
    let over = |key: &str, bytes| messages_of(load_with(&with(key, bytes), Limits::default()));
    assert_eq!(over("text", 4097), ["string length exceeds limit 4096"]);
    assert_eq!(over("script", 65537), ["string length exceeds limit 65536"]);
    let name = SMALLEST.replace("smallest", &"n".repeat(4097));
    assert_eq!(
        messages_of(load_with(&name, Limits::default())),
        ["string length exceeds limit 4096"]
    );
}

#[test]
fn aliases_have_a_limit() {
    let with = |aliases: usize| {
        let list = vec!["*a"; aliases].join(", ");
        SMALLEST.replace(
            "name: smallest",
            &format!("name: &a smallest, config: {{l: [{list}]}}"),
        )
    };
    load_with(&with(32), Limits::default()).expect("at the limit");
    assert_eq!(
        messages_of(load_with(&with(33), Limits::default())),
        ["alias count exceeds limit 32"]
    );
}
