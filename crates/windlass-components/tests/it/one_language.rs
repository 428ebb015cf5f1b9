//! Filters and assertions have one expression language: the same text gives the same answer in
//! both, and the same mistake is reported in the same words.

use std::time::Duration;

use serde_json::Value;
use windlass_graph::RunOptions;
use windlass_graph::observe::{
    AssertionFailure, Assertions, Level, ObserveOptions, Observed, observe,
};
use windlass_runtime::Runtime;

use crate::stage::{Stage, contains};

/// A graph that has four reports about its edge, each with other numbers.
fn observed_stage() -> Stage {
    Stage::sink("test.Sink", "", "[[1], [1, 2], [1, 2, 3], [1, 2]]")
}

/// Observes a run of it, and returns the reports about the edge and what failed.
fn observed(assertions: Assertions) -> (Vec<Observed>, Vec<AssertionFailure>) {
    let (observer, events) = observe(ObserveOptions {
        level: Level::Detailed,
        interval: Duration::ZERO,
        assertions,
        ..ObserveOptions::default()
    });
    let options = RunOptions {
        observer: Some(observer.clone()),
        ..RunOptions::steps(4)
    };
    Runtime::simulated(1).block_on(async {
        let result = observed_stage().prepared().run(options).await;
        assert!(result.is_ok(), "{:?}", result.errors);
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            if event.name == "channel" {
                seen.push(event);
            }
        }
        (seen, observer.failures())
    })
}

/// A filter with this expression, and the attributes of the reports as its messages.
fn filter(expression: &str) -> Stage {
    let (reports, _) = observed(Assertions::default());
    assert_eq!(reports.len(), 4);
    let messages = reports.into_iter().map(|it| Value::Object(it.attributes));
    let messages = Value::Array(messages.collect());
    let config = format!("expr: {}", Value::from(expression));
    Stage::through(
        "windlass.filter",
        &config,
        &["out", "else"],
        &format!("[{messages}]"),
    )
}

/// An assertion that this many reports fit this expression.
fn fits(expression: &str, count: usize) -> String {
    let expression = Value::from(expression);
    let matcher = format!("{{event: channel, channel: e, where: {expression}}}");
    let assertion = format!("{{id: it, counter_equals: {{match: {matcher}, count: {count}}}}}");
    format!("version: \"1\"\nassertions: [{assertion}]\n")
}

fn failures(expression: &str, count: usize) -> Vec<AssertionFailure> {
    let text = fits(expression, count);
    let assertions = Assertions::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    observed(assertions).1
}

#[test]
fn the_same_text_gives_the_same_answer_in_a_filter_and_in_an_assertion() {
    for (expression, expected) in [
        ("value.published > 1", 3),
        ("value.published == 2.0", 2),
        (
            "value['published'] + value.delivered >= 4 && value.dropped == 0",
            3,
        ),
        ("value.missing == null ? value.published < 2 : false", 1),
        ("!contains(value, 'depth')", 0),
        (
            "matches(str(value.published), '*3') || default(value.x, 1) > 1",
            1,
        ),
        ("sum([value.published, value.delivered]) % 4 == 0", 2),
        ("type(value.published) == 'number' && epoch > 0", 4),
    ] {
        let passed = filter(expression).seen();
        let passed = passed.iter().filter(|line| line.starts_with("out="));
        assert_eq!(passed.count(), expected, "a filter with {expression}");
        assert_eq!(failures(expression, expected), [], "{expression}");
        assert_eq!(failures(expression, expected + 1).len(), 1, "{expression}");
    }
}

#[test]
fn a_text_that_is_no_expression_is_reported_in_the_same_words() {
    for expression in [
        "value.published +",
        "value.published = 2",
        "valve.published > 1",
        "cuont(value) > 1",
        "len(value, 2) > 1",
        "'open",
    ] {
        let error = Assertions::parse(&fits(expression, 1)).expect_err(expression);
        assert_eq!(error.place, "assertions[0].counter_equals.match.where");
        let (message, caret) = error.message.split_once('\n').expect("a caret");
        let told = filter(expression).fails();
        // The names differ, which is what one of the texts gets wrong.
        match message.split_once("; there are ") {
            Some((message, _)) => contains(&told, &[message, caret]),
            None => contains(&told, &[&format!("config.expr {}", error.message)]),
        }
    }
}

#[test]
fn an_expression_that_cannot_be_computed_is_reported_in_the_same_words() {
    for expression in [
        "value.missing > 1",
        "value.published / 0 == 1",
        "value.published",
        "value.published && true",
    ] {
        let failures = failures(expression, 4);
        assert_eq!(failures.len(), 1, "{expression}");
        assert_eq!(failures[0].epoch, 1, "{expression}");
        contains(&failures[0].message, &["the expression cannot be computed"]);
        contains(&filter(expression).fails(), &[&failures[0].message]);
    }
}
