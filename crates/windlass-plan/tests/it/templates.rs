//! Templates: placeholders become what an instance says.

use windlass_plan::model::Graph;

use crate::support::{SMALLEST, load_text, messages};

fn file(parameters: &str, component: &str, given: &str) -> String {
    format!(
        "{SMALLEST}templates:\n  - id: t\n    parameters: [{parameters}]\n    components:\n      - {component}\n\
         template_instances:\n  - {{id: i, template: t, parameters: {{{given}}}}}\n"
    )
}

fn graph(text: &str) -> Graph {
    load_text(text)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .graph
}

#[test]
fn a_placeholder_alone_has_the_type_of_the_parameter() {
    let component = "{id: \"{{name}}\", type: t, execution: {lane: main}, config: \
        {number: \"{{n}}\", text: \"{{s}}\", flag: \"{{ b }}\", longer: \"x{{n}}\", \"k_{{name}}\": 1}}";
    let graph = graph(&file(
        "name, n, s, b",
        component,
        "name: a, n: 5, s: \"5\", b: true",
    ));
    let component = &graph.components[0];
    assert_eq!(component.id, "i.a");
    let config = serde_json::Value::Object(component.config.clone());
    let expected =
        serde_json::json!({"number": 5, "text": "5", "flag": true, "longer": "x5", "k_a": 1});
    assert_eq!(config, expected);
}

#[test]
fn text_around_a_placeholder_takes_the_type_of_its_place() {
    let component = "{id: a, type: t, execution: {lane: main, budget_ms: \"1{{n}}\", priority: \"{{p}}\", reentrant: \"{{b}}\"}}";
    let graph = graph(&file("n, p, b", component, "n: 5, p: high, b: true"));
    let execution = &graph.components[0].execution;
    assert_eq!(execution.budget, std::time::Duration::from_millis(15));
    assert!(execution.reentrant);
}

#[test]
fn a_number_can_be_a_part_of_a_name_or_a_name() {
    let component =
        "{id: \"{{n}}\", type: \"{{n}}\", execution: {lane: \"{{n}}\", budget_ms: \"{{n}}\"}}";
    let graph = graph(&file("n", component, "n: 7"));
    let component = &graph.components[0];
    assert_eq!(
        (component.id.as_str(), component.type_name.as_str()),
        ("i.7", "7")
    );
    assert_eq!(
        component.execution.budget,
        std::time::Duration::from_millis(7)
    );
    let text = file(
        "n",
        "{id: a, type: t, execution: {lane: main, budget_ms: \"{{n}}\"}}",
        "n: \"7\"",
    );
    assert_eq!(
        messages(&text),
        ["expected a number, found the string \"7\""]
    );
}

#[test]
fn instances_are_scopes_and_point_into_the_template() {
    let text = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes: {main: {type: event_loop}}
components: []
edges:
  - {id: between, from: one.b.out, to: two.a.in, kind: delay}
templates:
  - id: pair
    parameters: [lane]
    components:
      - {id: a, type: t, execution: {lane: \"{{lane}}\"}}
      - {id: b, type: t, depends_on: [a], execution: {lane: \"{{lane}}\"}}
    edges:
      - {id: e, from: a.out, to: b.in, kind: immediate}
    composite_loops:
      - {id: l, components: [a, b], loop_policy: {type: transaction}}
template_instances:
  - {id: one, template: pair, parameters: {lane: main}}
  - {id: two, template: pair, parameters: {lane: missing}}
";
    let loaded = load_text(text).expect("a valid file");
    let ids: Vec<&str> = loaded
        .graph
        .components
        .iter()
        .map(|c| c.id.as_str())
        .collect();
    assert_eq!(ids, ["one.a", "one.b", "two.a", "two.b"]);
    assert_eq!(loaded.graph.components[3].depends_on, ["two.a"]);
    assert_eq!(loaded.graph.components[3].execution.lane, "missing");
    assert_eq!(loaded.graph.edges[2].to.component, "two.b");
    assert_eq!(loaded.graph.loops[1].components, ["two.a", "two.b"]);
    let scope = &loaded.graph.hierarchy[1];
    assert_eq!(
        (scope.id.as_str(), &scope.edges[..], &scope.loops[..]),
        ("two", &["two.e".to_owned()][..], &["two.l".to_owned()][..])
    );
    let span = loaded
        .sources
        .span_of("components[3].execution.lane")
        .expect("a place");
    assert_eq!(loaded.sources.line_col(span.start).0, 12);
}

#[test]
fn faults_of_parameters_are_named() {
    let plain = "{id: \"{{a}}\", type: t, execution: {lane: main}}";
    let cases = [
        (file("a", plain, ""), "missing parameter `a`"),
        (
            file("a, unused", plain, "a: x"),
            "missing parameter `unused`",
        ),
        (
            file("a", plain, "a: x, b: y"),
            "unknown parameter \"b\": the template does not declare it",
        ),
        (
            file("", plain, ""),
            "unknown parameter {{a}}: the template does not declare it",
        ),
        (
            file("a, a", plain, "a: x"),
            "the parameter `a` is declared twice",
        ),
        (
            file("a", plain, "a: [x]"),
            "expected a scalar, found a list",
        ),
        (
            file("a", plain, "a: x").replace("template: t", "template: tt"),
            "there is no template \"tt\"",
        ),
        (
            file("a", plain, "a: \"x y\""),
            "the id \"x y\" has white space or control characters in it",
        ),
        (
            file(
                "a",
                "{id: x, type: t, execution: {lane: main}, \"{{a}}\": 1}",
                "a: colour",
            ),
            "unexpected field components[0].colour",
        ),
        (
            file(
                "a, b",
                "{id: x, type: t, execution: {lane: main}, config: {\"{{a}}\": 1, \"{{b}}\": 2}}",
                "a: k, b: k",
            ),
            "duplicate key \"k\" after substitution",
        ),
    ];
    for (text, message) in cases {
        let messages = messages(&text);
        assert!(
            messages.contains(&message.to_owned()),
            "{messages:?} lacks {message:?} of\n{text}"
        );
    }
}

#[test]
fn an_unquoted_placeholder_is_explained() {
    let errors = load_text(&file("a", "{id: {{a}}, type: t}", "a: x")).expect_err("a map as a key");
    assert!(
        errors.to_string().contains("quote a placeholder"),
        "{errors}"
    );
}

#[test]
fn what_is_substituted_is_not_looked_at_again() {
    let component = "{id: a, type: t, execution: {lane: main}, config: {x: \"{{p}}-\"}}";
    let graph = graph(&file("p", component, "p: \"{{p}}{{p}}\""));
    assert_eq!(graph.components[0].config["x"], "{{p}}{{p}}-");
}

#[test]
fn templates_cannot_blow_up() {
    let placeholders = "\"{{p}}{{p}}{{p}}{{p}}\", ".repeat(2000);
    let component =
        format!("{{id: a, type: t, execution: {{lane: main}}, config: {{x: [{placeholders}]}}}}");
    let text = file("p", &component, &format!("p: {}", "x".repeat(4096)));
    assert_eq!(
        messages(&text),
        ["text written for parameters exceeds limit 16777216"]
    );
    let mut text = file(
        "p",
        "{id: a, type: t, execution: {lane: main}, config: {x: [a]}}",
        "p: 1",
    );
    text = text.replace("[a]", &format!("[{}]", "a,".repeat(100_000)));
    (0..4000).for_each(|n| {
        text.push_str(&format!(
            "  - {{id: i{n}, template: t, parameters: {{p: 1}}}}\n"
        ))
    });
    assert_eq!(messages(&text), ["node count exceeds limit 1048576"]);
}
