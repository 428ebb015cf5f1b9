//! Subgraphs: their parts get a prefix, and so do references to them.

use crate::support::{SMALLEST, load_text, messages};

#[test]
fn parts_and_references_get_the_prefix() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: root, type: t, depends_on: [s.a], execution: {lane: main}}
edges:
  - {id: in, from: root.out, to: s.a.in, kind: immediate}
composite_loops: []
subgraphs:
  - id: s
    components:
      - {id: a, type: t, depends_on: [b, root], trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
      - {id: b, type: t, execution: {lane: main}}
    edges:
      - {id: ab, from: a.out, to: b.in, kind: immediate}
      - {id: ba, from: s.b.out, to: a.back, kind: immediate}
      - {id: up, from: b.out, to: root.in, kind: delay}
    composite_loops:
      - {id: l, components: [a, b], loop_policy: {type: transaction}}
";
    let loaded = load_text(text).expect("a valid file");
    let graph = &loaded.graph;
    let ids: Vec<&str> = graph.components.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["root", "s.a", "s.b"]);
    assert_eq!(graph.components[1].depends_on, ["s.b", "root"]);
    assert_eq!(graph.components[1].trigger.inputs, ["in"]);
    let ends: Vec<String> = graph
        .edges
        .iter()
        .map(|e| format!("{}: {} -> {}", e.id, e.from, e.to))
        .collect();
    let expected = [
        "in: root.out -> s.a.in",
        "s.ab: s.a.out -> s.b.in",
        "s.ba: s.b.out -> s.a.back",
        "s.up: s.b.out -> root.in",
    ];
    assert_eq!(ends, expected);
    assert_eq!(graph.loops[0].id, "s.l");
    assert_eq!(graph.loops[0].components, ["s.a", "s.b"]);
    assert_eq!(graph.hierarchy.len(), 1);
    assert_eq!(graph.hierarchy[0].components, ["s.a", "s.b"]);
    let line = |path: &str| {
        let span = loaded.sources.span_of(path).expect("a place");
        loaded.sources.line_col(span.start).0
    };
    assert_eq!(line("components[2]"), 13);
    assert_eq!(line("edges[3].kind"), 17);
    assert_eq!(line("composite_loops[0].components[1]"), 19);
}

#[test]
fn subgraphs_have_their_own_form() {
    let component = "components: [{id: a, type: t, execution: {lane: main}}]";
    let cases = [
        (
            format!("subgraphs: [{{{component}}}]"),
            "missing field subgraphs[0].id",
        ),
        (
            "subgraphs: [{id: s}]".to_owned(),
            "missing field subgraphs[0].components",
        ),
        (
            format!("subgraphs: [{{id: s, {component}, lanes: {{}}}}]"),
            "unexpected field subgraphs[0].lanes",
        ),
        (
            format!("subgraphs: [{{id: s, {component}, subgraphs: []}}]"),
            "unexpected field subgraphs[0].subgraphs",
        ),
    ];
    for (tail, message) in cases {
        assert_eq!(messages(&format!("{SMALLEST}{tail}\n")), [message]);
    }
}
