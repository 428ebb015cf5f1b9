//! Each rule of the lint.

use windlass_plan::lint::{Rule, lint};

use crate::support::{catalog, load_text};

#[test]
fn each_rule_finds_what_it_is_for() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes:
  main: {type: event_loop, overflow: block}
  rate: {type: fixed_rate, period_ms: 5}
components:
  - {id: a, type: windlass.boundary.BinaryInput, execution: {lane: main}}
  - {id: b, type: windlass.transform.Join, execution: {lane: rate, budget_ms: 6}}
  - {id: c, type: windlass.boundary.Input, execution: {lane: rate, budget_ms: 5}}
  - {id: file, type: test.File, execution: {lane: rate}}
edges:
  - {id: large, from: a.out, to: b.left, kind: immediate, policy: {mode: queue, capacity: 1025, overflow: block}}
  - {id: late, from: c.out, to: b.right, kind: delay, policy: {mode: previous_tick}}
  - {id: one, from: c.out, to: b.right, kind: state, policy: {copy_policy: loaned_view}}
  - {id: two, from: c.out, to: b.right, kind: state, policy: {readers: multi}}
  - {id: free, from: c.out, to: b.right, kind: async}
  - {id: many, from: c.out, to: b.right, kind: async, policy: {max_inflight: 4, capacity: 2}}
  - {id: waits, from: file.out, to: b.left, kind: immediate}
  - {id: queued, from: file.out, to: b.left, kind: immediate, policy: {mode: queue, capacity: 4, overflow: reject}}
  - {id: replaced, from: file.out, to: b.left, kind: immediate, policy: {mode: queue, capacity: 4, overflow: drop_oldest}}
  - {id: newest, from: file.out, to: b.left, kind: immediate, policy: {mode: latest}}
";
    let graph = load_text(text).expect("a valid file").graph;
    let found: Vec<(Rule, String)> = lint(&graph, &catalog())
        .into_iter()
        .map(|f| (f.rule, f.graph_path))
        .collect();
    let expected = [
        (Rule::BlockingOverflowEventLoop, "lanes.main.overflow"),
        (
            Rule::BudgetExceedsLanePeriod,
            "components[1].execution.budget_ms",
        ),
        (Rule::SuspiciousCapacity, "edges[0].policy.capacity"),
        (Rule::BlockingOverflowEventLoop, "edges[0].policy.overflow"),
        (Rule::LargePayloadCopy, "edges[0].policy.copy_policy"),
        (Rule::DelayEpochBoundary, "edges[1].kind"),
        (Rule::LoanedViewWithoutPoolOwner, "edges[2].policy.owner"),
        (Rule::SlowReaderDropRisk, "edges[3].policy.readers"),
        (Rule::StateMultipleWriters, "edges[3].to"),
        (Rule::AsyncCapacity, "edges[4].policy.max_inflight"),
        (Rule::AsyncCapacity, "edges[5].policy.max_inflight"),
        (Rule::BackpressureGivenUp, "edges[8].policy.overflow"),
        (Rule::BackpressureGivenUp, "edges[9].policy.mode"),
    ];
    let expected: Vec<(Rule, String)> = expected
        .into_iter()
        .map(|(rule, path)| (rule, path.to_owned()))
        .collect();
    assert_eq!(found, expected);
    for rule in Rule::ALL {
        assert!(found.iter().any(|(r, _)| r == rule), "{rule}");
    }
}
