//! Rules that a file alone does not show.

use std::time::Duration;

use windlass_graph::component::built_in;
use windlass_plan::check::{HostInfo, Level, check as check_here};
use windlass_plan::diagnostic::{Code, Severity};
use windlass_plan::model::{
    Component, CompositeLoop, Edge, EdgeKind, Graph, Lane, LaneKind, LoopKind, LoopPolicy, Scope,
};

use crate::support::{check, load_text};

#[test]
fn unknown_types_are_accepted_without_a_registry() {
    let text = "\
schema_version: 1
graph: {name: g}
lanes: {main: {type: event_loop}}
components:
  - {id: a, type: mine.Source, execution: {lane: main}}
  - {id: b, type: windlass.transform.Identity, execution: {lane: main}}
edges:
  - {id: e, from: a.anything, to: b.wrong, kind: immediate}
";
    let graph = load_text(text).expect("a valid file").graph;
    let codes = |level| {
        check(&graph, level)
            .iter()
            .map(|d| d.code)
            .collect::<Vec<_>>()
    };
    let schema = codes(Level::Schema);
    assert!(!schema.contains(&Code::UnknownComponent));
    assert!(schema.contains(&Code::UnknownPort));
    assert_eq!(
        schema
            .iter()
            .filter(|code| **code == Code::DiagnosticNote)
            .count(),
        2
    );
    assert!(codes(Level::Registry).contains(&Code::UnknownComponent));
}

#[test]
fn an_expression_is_checked_without_the_code_of_its_type() {
    let text = "\
schema_version: 2
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: fine, type: test.Condition, config: {expr: value > 1}, execution: {lane: main}}
  - {id: wrong, type: test.Condition, config: {expr: valve > 1}, execution: {lane: main}}
edges: []
";
    let graph = load_text(text).expect("a valid file").graph;
    let found = check(&graph, Level::Registry).into_iter();
    let found: Vec<_> = found
        .filter(|d| d.code == Code::GraphValidationError)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].graph_path, "components[1].config.expr");
    assert_eq!(
        found[0].message,
        "\"valve > 1\" is no expression: there is no valve; there are value, epoch, now_ms, port, \
         event_ms (column 1)"
    );
}

#[test]
fn a_limit_is_questioned_only_if_its_type_is_known_to_go_on() {
    let text = "\
schema_version: 2
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: unknown, type: mine.Source, execution: {lane: main, timeout_ms: 5}}
  - {id: guest, type: test.Guest, execution: {lane: main, timeout_ms: 5}}
  - {id: native, type: windlass.example.Sensor, execution: {lane: main, timeout_ms: 5}}
edges: []
";
    let graph = load_text(text).expect("a valid file").graph;
    let found = check(&graph, Level::Schema).into_iter();
    let found: Vec<_> = found.filter(|d| d.code == Code::CannotPreempt).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].involved_components, ["native"]);
    assert_eq!(found[0].severity(), Severity::Warning);
    assert!(found[0].message.contains("cannot be pre-empted"));
    assert!(found[0].suggested_fix.contains("max_callback_ms"));
    let plan = windlass_plan::compile::compile(graph).expect("it compiles");
    let explained = plan.explain().to_string();
    assert!(
        explained.contains("lane main, for 5ms at most"),
        "{explained}"
    );
}

#[test]
fn errors_come_first() {
    let mut graph = Graph::new("g");
    graph.lanes.push(Lane {
        wall_clock_enabled: true,
        ..Lane::new("l", LaneKind::EventLoop)
    });
    graph.components.push(Component::new("a", "t", "nowhere"));
    let severities: Vec<Severity> = check(&graph, Level::Registry)
        .iter()
        .map(|d| d.severity())
        .collect();
    assert!(severities.is_sorted_by(|a, b| a >= b), "{severities:?}");
    assert!(severities.len() > 2);
}

#[test]
fn names_that_are_nearly_right_are_suggested() {
    let mut graph = Graph::new("g");
    graph.lanes.push(Lane::new("control", LaneKind::EventLoop));
    graph
        .components
        .push(Component::new("estimator", "t", "contrl"));
    graph.edges.push(Edge::new(
        "e",
        "estimtor.out",
        "estimator.in",
        EdgeKind::Delay,
    ));
    let fixes: Vec<String> = check(&graph, Level::Schema)
        .into_iter()
        .map(|d| d.suggested_fix)
        .collect();
    assert!(
        fixes.contains(&"did you mean \"control\"?".to_owned()),
        "{fixes:?}"
    );
    assert!(
        fixes.contains(&"did you mean \"estimator\"?".to_owned()),
        "{fixes:?}"
    );
}

#[test]
fn any_graph_can_be_checked() {
    let mut graph = Graph::new("");
    graph.lanes.push(Lane {
        hz: f64::NAN,
        max_threads: usize::MAX,
        ..Lane::new("", LaneKind::FixedRate)
    });
    for id in ["", "a", "a"] {
        let mut component = Component::new(id, "", "");
        component.event_sources.clear();
        component.depends_on = vec!["a".to_owned(), "ghost".to_owned()];
        component.trigger.batch_window = Duration::MAX;
        graph.components.push(component);
    }
    let mut edge = Edge::new("", "ghost.x", "a.y", EdgeKind::Immediate);
    edge.policy.capacity = usize::MAX;
    graph.edges.extend([
        edge.clone(),
        edge,
        Edge::new("e", "a.x", "a.x", EdgeKind::Immediate),
    ]);
    for components in [
        vec![],
        vec!["ghost".to_owned()],
        vec!["a".to_owned(), "a".to_owned()],
    ] {
        graph.loops.push(CompositeLoop {
            id: "a".to_owned(),
            components,
            policy: LoopPolicy::new(LoopKind::FixedPoint),
        });
    }
    graph.hierarchy = vec![
        Scope {
            id: "s".to_owned(),
            components: vec!["ghost".to_owned()],
            ..Scope::default()
        };
        2
    ];
    for level in [Level::Schema, Level::Registry] {
        assert!(!check(&graph, level).is_empty());
        assert!(!check_here(&graph, &built_in::descriptors(), level).is_empty());
    }
    assert!(HostInfo::this().cpus >= 1);
}
