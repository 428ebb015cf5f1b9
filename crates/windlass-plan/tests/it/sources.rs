//! From paths to places in the text.

use crate::support::load_text;

const TEXT: &str = "\
schema_version: 1
graph: {name: größe, kind: internal_test}
lanes:
  control.fast:
    type: fixed_rate
    period_ms: 10
components:
  - id: a
    type: t
    execution:
      lane: control.fast
edges:
  - id: e
    from: a.x
    to: a.y
    kind: delay
    policy:
      capacity: 5
";

#[test]
fn paths_lead_to_what_they_name() {
    let sources = load_text(TEXT).expect("a valid file").sources;
    let text = |path: &str| {
        let span = sources.span_of(path).expect("a place");
        &sources.text()[span.start..span.end]
    };
    assert_eq!(text("graph.name"), "größe");
    assert_eq!(text("lanes.control.fast.period_ms"), "10");
    assert_eq!(text("components[0].execution.lane"), "control.fast");
    assert_eq!(text("edges[0].policy.capacity"), "5");
    assert_eq!(text("edges[0].policy"), "policy:\n      capacity: 5");
    assert!(
        text("components[0]").starts_with("id: a")
            && text("components[0]").ends_with("control.fast")
    );
}

#[test]
fn a_path_that_is_not_written_leads_to_what_is_around_it() {
    let sources = load_text(TEXT).expect("a valid file").sources;
    let around = |path: &str| sources.span_of(path);
    assert_eq!(
        around("edges[0].policy.overflow"),
        around("edges[0].policy")
    );
    assert_eq!(
        around("components[0].trigger_policy.inputs[3]"),
        around("components[0]")
    );
    assert_eq!(
        around("lanes.control.fast.hz"),
        around("lanes.control.fast")
    );
    assert_eq!(around("graph.kind"), sources.span_of("graph.kind"));
    assert_eq!(around("nothing.at.all"), around(""));
    assert!(around("").is_some());
}

#[test]
fn offsets_have_lines_and_columns() {
    let sources = load_text(TEXT).expect("a valid file").sources;
    assert_eq!(sources.line_col(0), (1, 1));
    let kind = TEXT.find("kind").expect("a kind");
    assert_eq!(sources.line_col(kind), (2, 22));
    assert_eq!(sources.line_col(TEXT.len()), (19, 1));
    assert_eq!(sources.line_col(usize::MAX), (19, 1));
}
