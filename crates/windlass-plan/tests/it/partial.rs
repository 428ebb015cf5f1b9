//! A file that is wrong in form is checked for its meaning, too, without findings that only follow
//! from its form.

use windlass_plan::check::{Level, check_partial};
use windlass_plan::diagnostic::{Diagnostic, Severity};

use crate::support::{catalog, examples, load_text};

/// What is wrong with the meaning of a file that is wrong in form.
fn meaning(text: &str) -> Vec<Diagnostic> {
    let errors = load_text(text).expect_err("it is wrong in form");
    let partial = errors.partial.as_ref();
    partial.map_or_else(Vec::new, |partial| {
        check_partial(partial, &catalog(), Level::OwnTypes)
    })
}

fn errors(text: &str) -> Vec<String> {
    let found = meaning(text).into_iter();
    let found = found.filter(|finding| finding.severity() == Severity::Error);
    found.map(|finding| finding.to_string()).collect()
}

/// Where the values of fields begin and end in a text of one-line maps.
fn values(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut values = Vec::new();
    for (at, _) in text.match_indices(": ") {
        let start = at + 2;
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find([',', '}', ']', '\n', '{', '[', '#']);
        let end = start + end.unwrap_or(text.len() - start);
        if end > start && !text[line..start].contains('#') {
            values.push(start..end);
        }
    }
    values
}

#[test]
fn a_value_of_the_wrong_form_makes_no_errors_of_meaning() {
    let mut tried = 0;
    for path in examples() {
        let text = std::fs::read_to_string(&path).expect("a readable example");
        for value in values(&text) {
            // Nothing takes a list of lists.
            let broken = format!("{}[[]]{}", &text[..value.start], &text[value.end..]);
            if load_text(&broken).is_ok() {
                // The user's own value, which may be anything.
                continue;
            }
            let follow_on = errors(&broken);
            let was = &text[value];
            assert!(
                follow_on.is_empty(),
                "{} without {was}: {follow_on:#?}",
                path.display()
            );
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_line_that_is_no_map_makes_no_errors_of_meaning() {
    for path in examples() {
        let text = std::fs::read_to_string(&path).expect("a readable example");
        for (at, _) in text.match_indices("- {") {
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            let broken = format!("{}- something{}", &text[..at], &text[end..]);
            if load_text(&broken).is_ok() {
                continue;
            }
            let follow_on = errors(&broken);
            let was = &text[at..end];
            assert!(
                follow_on.is_empty(),
                "{} without {was}: {follow_on:#?}",
                path.display()
            );
        }
    }
}

const MISTAKES: &str = "\
schema_version: 1
graph: {name: mistakes, kind: internal_test}
lanes:
  main: {type: event_lop}
components:
  - {id: a, type: windlass.boundary.Inptu, execution: {lane: mian}}
  - {id: b, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main, priority: urgent}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: batch, input: in}, execution: {lane: main}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: b.in, kind: immediate}
  - {id: f, from: b.outt, to: c.in, kind: immediate, policy: {mode: sometimes, overflow: drop_newest}}
  - {id: g, from: b.out, to: c.in, kind: immediate, policy: {capacity: 0}}
";

#[test]
fn mistakes_of_form_and_of_meaning_are_found_in_one_pass() {
    let form = load_text(MISTAKES).expect_err("three mistakes of form");
    assert_eq!(form.problems.len(), 3, "{form}");
    assert_eq!(
        errors(MISTAKES),
        [
            "error [duplicate_id] there is another component `c` (components[3].id); \
             give one of the two another id",
            "error [unknown_component] component type \"windlass.boundary.Inptu\" does not exist \
             (components[0].type); did you mean \"windlass.boundary.Input\"?",
            "error [graph_validation_error] lane \"mian\" does not exist \
             (components[0].execution.lane); did you mean \"main\"?",
            "error [unknown_port] `b` has no output `outt` (edges[1].from); its outputs are: out",
            "error [port_multiplicity_mismatch] `c.in` takes one edge, and `f` ends there already \
             (edges[2].to); remove one of the edges, or join them in a component before",
            "error [invalid_channel_policy] a channel of capacity 0 holds nothing \
             (edges[2].policy.capacity); use 1 or more",
            "error [graph_validation_error] a batch needs a size or a window \
             (components[2].trigger_policy); set `batch_size` or `batch_window_ms`",
        ]
    );
}

#[test]
fn types_of_other_projects_may_be_unknown() {
    let text = |name: &str| MISTAKES.replace("windlass.boundary.Inptu", name);
    let is_unknown = |name: &str| {
        let found = errors(&text(name));
        found.iter().any(|line| line.contains("component type"))
    };
    for name in ["acme.boundary.Input", "Input", "mine.Sensor"] {
        assert!(!is_unknown(name), "{name}");
    }
    for name in [
        "windlass.boundary.Nothing",
        "topoexec.boundary.Nothing",
        "windlas.map",
        "topoexc.example.Sensor",
    ] {
        assert!(is_unknown(name), "{name}");
    }
}

#[test]
fn a_mistyped_former_name_has_a_present_one_as_its_fix() {
    for (name, fix) in [
        ("topoexec.boundary.Inptu", "windlass.boundary.Input"),
        ("topoexec.transforms.Jion", "windlass.transform.Join"),
    ] {
        let found = errors(&MISTAKES.replace("windlass.boundary.Inptu", name));
        let line = format!("component type \"{name}\" does not exist");
        let line = found.iter().find(|found| found.contains(&line));
        let line = line.expect("the type is reported under the name in the file");
        assert!(
            line.ends_with(&format!("did you mean \"{fix}\"?")),
            "{line}"
        );
    }
}

#[test]
fn an_edge_that_leads_nowhere_is_one_mistake() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: a, type: windlass.boundary.Input, execution: {lane: main}}
  - {id: b, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: TARGET, kind: immediate}
";
    for (target, told) in [
        ("bee.in", "component \"bee\" does not exist"),
        ("b.inn", "`b` has no input `inn`"),
    ] {
        let graph = load_text(&text.replace("TARGET", target))
            .expect("a file")
            .graph;
        let found = crate::support::check(&graph, Level::Registry);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].message, told);
    }
}

#[test]
fn a_duplicate_is_one_mistake() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: a, type: windlass.boundary.Input, execution: {lane: main}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: c, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: c.in, kind: immediate}
";
    let graph = load_text(text).expect("a file").graph;
    let found = crate::support::check(&graph, Level::Registry);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].graph_path, "components[2].id");
}
