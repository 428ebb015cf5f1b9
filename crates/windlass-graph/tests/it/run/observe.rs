//! Watching a run: what is said at which level, what gets out, and what has to hold.

use std::future::Future;
use std::time::Duration;

use windlass_graph::observe::{
    AssertionFailure, Assertions, Filter, Level, ObserveOptions, Observed, observe,
};
use windlass_graph::{RunOptions, RunResult, StopReason};
use windlass_runtime::Runtime;

use super::stage::Stage;

const TEXT: &str = "
components:
  - {id: in, type: test.Source, config: {epochs: [[1, 2], [3], []]}, execution: {lane: main}}
  - {id: mid, type: test.Pass, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: bad, type: test.Fail, trigger_policy: {type: any_input, input: in}, execution: {lane: main, on_error: continue}}
edges:
  - {id: e, from: in.out, to: mid.in, kind: immediate}
  - {id: f, from: mid.out, to: bad.in, kind: immediate, policy: {mode: queue, capacity: 4}}
";

/// Runs it, and collects everything afterwards.
fn observed(
    text: &str,
    options: ObserveOptions,
    steps: u64,
) -> (RunResult, Vec<Observed>, Vec<AssertionFailure>) {
    let stage = Stage::new(text);
    let (observer, events) = observe(options);
    let options = RunOptions {
        observer: Some(observer.clone()),
        ..RunOptions::steps(steps)
    };
    let result = stage.run(options);
    let mut seen = Vec::new();
    Runtime::simulated(1).block_on(async {
        while let Some(event) = events.next().await {
            seen.push(event);
        }
    });
    (result, seen, observer.failures())
}

fn at(level: Level) -> ObserveOptions {
    ObserveOptions {
        level,
        interval: Duration::ZERO,
        ..ObserveOptions::default()
    }
}

fn names(events: &[Observed]) -> Vec<String> {
    let name = |event: &Observed| {
        let of = format!("{}{}", event.component_id, event.channel_id);
        match of.as_str() {
            "" => event.name.clone(),
            of => format!("{} {of}", event.name),
        }
    };
    events.iter().map(name).collect()
}

#[test]
fn each_level_says_what_the_one_before_says_and_more() {
    let (_, off, _) = observed(TEXT, at(Level::Off), 3);
    assert!(off.is_empty());

    let (_, summary, _) = observed(TEXT, at(Level::Summary), 3);
    // `latest` keeps one of two: that is a health event.
    let expected = [
        "run_started",
        "error bad",
        "health_event mide",
        "epoch",
        "error bad",
        "epoch",
        "epoch",
        "run_ended",
    ];
    assert_eq!(names(&summary), expected);
    let epoch = &summary[3].attributes;
    assert_eq!(
        (&epoch["invocations"], &epoch["staged"]),
        (&3.into(), &3.into())
    );
    assert_eq!(summary[7].attributes["stop_reason"], "tick_bound");

    let (_, detailed, _) = observed(TEXT, at(Level::Detailed), 3);
    for name in expected {
        assert!(names(&detailed).contains(&name.to_owned()), "{name}");
    }
    let component = detailed
        .iter()
        .find(|e| e.component_id == "mid" && e.name == "component");
    assert_eq!(component.expect("it ran").attributes["invocations"], 1);
    let channel = detailed
        .iter()
        .find(|e| e.channel_id == "e" && e.name == "channel");
    let channel = &channel.expect("it carried something").attributes;
    assert_eq!(
        (&channel["published"], &channel["delivered"]),
        (&2.into(), &1.into())
    );

    let (result, debug, _) = observed(TEXT, at(Level::Debug), 3);
    assert!(
        names(&debug)
            .iter()
            .any(|name| name == "component_execute_begin mid")
    );
    assert!(
        names(&debug)
            .iter()
            .any(|name| name.starts_with("channel_commit"))
    );
    assert!(result.trace.events.is_empty(), "nobody asked for a trace");
    assert!(
        debug
            .iter()
            .map(|event| event.seq)
            .eq(1..=debug.len() as u64)
    );
}

#[test]
fn short_epochs_are_reported_together_and_nothing_of_them_is_missing() {
    let rare = ObserveOptions {
        interval: Duration::from_secs(3600),
        ..at(Level::Detailed)
    };
    let (_, seen, _) = observed(TEXT, rare, 3);
    let epochs: Vec<&Observed> = seen.iter().filter(|e| e.name == "epoch").collect();
    // The first, and the rest at the end; what goes wrong is said at once.
    assert_eq!(epochs.len(), 2);
    assert_eq!(epochs[1].attributes["epochs"], 2);
    let errors: Vec<u64> = seen
        .iter()
        .filter(|e| e.name == "error")
        .map(|e| e.epoch)
        .collect();
    assert_eq!(errors, [1, 2]);
    let sum = |events: &[Observed], name: &str, attribute: &str| -> u64 {
        let events = events.iter().filter(|event| event.name == name);
        let values = events.filter_map(|event| event.attributes.get(attribute)?.as_u64());
        values.sum::<u64>()
    };
    let (_, all, _) = observed(TEXT, at(Level::Detailed), 3);
    for (name, attribute) in [
        ("epoch", "invocations"),
        ("epoch", "staged"),
        ("component", "invocations"),
        ("channel", "published"),
        ("channel", "delivered"),
    ] {
        assert_eq!(
            sum(&seen, name, attribute),
            sum(&all, name, attribute),
            "{name} {attribute}"
        );
    }
}

#[test]
fn filters_and_samples_say_what_gets_out() {
    let filter = |include: &[&str], exclude: &[&str], sample| {
        let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        ObserveOptions {
            filter: Filter {
                include: own(include),
                exclude: own(exclude),
                sample,
            },
            ..at(Level::Detailed)
        }
    };
    let (_, seen, _) = observed(TEXT, filter(&["mid"], &[], 1), 3);
    assert_eq!(
        names(&seen),
        ["health_event mide", "component mid", "component mid"]
    );
    let (_, seen, _) = observed(TEXT, filter(&["component", "run_*"], &["in", "bad"], 0), 3);
    let expected = ["run_started", "component mid", "component mid", "run_ended"];
    assert_eq!(names(&seen), expected);
    let (_, all, _) = observed(TEXT, filter(&[], &[], 1), 3);
    let (_, some, _) = observed(TEXT, filter(&[], &[], 4), 3);
    assert_eq!(some.len(), all.len().div_ceil(4));
    assert_eq!(some[1], all[4].clone());
}

#[test]
fn what_nobody_collects_is_dropped_and_counted_and_the_run_goes_on() {
    let options = ObserveOptions {
        capacity: 3,
        ..at(Level::Detailed)
    };
    let (result, seen, _) = observed(TEXT, options, 3);
    assert_eq!(result.stop_reason, StopReason::TickBound);
    assert_eq!(seen.len(), 3);
    assert!(result.metrics.sum("runtime.observer.dropped_count") >= 10.0);
    let made = result.metrics.sum("runtime.observer.event_count");
    assert_eq!(
        made,
        3.0 + result.metrics.sum("runtime.observer.dropped_count")
    );
}

fn judged(assertions: &str) -> (RunResult, Vec<AssertionFailure>) {
    let text = format!("version: \"1\"\n{assertions}");
    let options = ObserveOptions {
        // Nothing gets out, and everything is looked at.
        level: Level::Off,
        capacity: 1,
        assertions: Assertions::parse(&text).unwrap_or_else(|error| panic!("{error}")),
        ..ObserveOptions::default()
    };
    let (result, seen, failures) = observed(TEXT, options, 3);
    assert!(seen.is_empty());
    (result, failures)
}

#[test]
fn what_holds_holds_and_what_does_not_is_said() {
    for (assertion, holds) in [
        ("never: {event: error, component: mid}", true),
        ("never: {event: error}", false),
        (
            "always: {event: channel, channel: e, where: {published: {lte: 2, gt: 0}}}",
            true,
        ),
        (
            "always: {event: channel, channel: e, where: {published: 1}}",
            false,
        ),
        (
            "always: {event: channel, channel: e, where: 'value.published <= 2'}",
            true,
        ),
        (
            "always: {event: channel, channel: e, where: 'value.published == 1'}",
            false,
        ),
        ("never: \"event == 'error' && component == 'mid'\"", true),
        ("never: \"event == 'error' && component == 'bad'\"", false),
        ("always: 'seq > 0 && at_ns >= 0'", true),
        (
            "eventually: \"event == 'channel_publish' && lane == 'main'\"",
            true,
        ),
        (
            "eventually: {event: channel, where: {absent: {ne: 1}}}",
            true,
        ),
        ("eventually: {event: channel, where: {absent: null}}", false),
        (
            "eventually: {event: channel, where: {absent: {lt: 1}}}",
            false,
        ),
        (
            "eventually: {event: channel, where: {published: {lt: x}}}",
            false,
        ),
        ("eventually: {event: error, where: {phase: {gt: a}}}", true),
        ("eventually: {event: component, component: mid}", true),
        ("eventually: {event: component, component: nobody}", false),
        ("eventually: {event: channel_publish, channel: f}", true),
        (
            "within_epochs: {match: {event: component, component: bad}, epochs: 1}",
            true,
        ),
        (
            "within_epochs: {match: {event: epoch, where: {invocations: 1}}, epochs: 2}",
            false,
        ),
        (
            "within_epochs: {match: {event: epoch, where: {invocations: 1}}, epochs: 3}",
            true,
        ),
        (
            "within_events: {match: {event: run_started}, events: 1}",
            true,
        ),
        (
            "within_events: {match: {event: run_ended}, events: 2}",
            false,
        ),
        ("counter_equals: {match: {event: error}, count: 2}", true),
        ("counter_equals: {match: {event: error}, count: 1}", false),
        ("counter_equals: {match: {event: error}, count: 3}", false),
        (
            "sequence: {steps: [{event: component, component: in}, {event: component, component: mid}, {event: error}]}",
            true,
        ),
        (
            "sequence: {steps: [{event: run_ended}, {event: epoch}]}",
            false,
        ),
        (
            "sequence: {steps: [{event: epoch}, {event: epoch}, {event: epoch}], epochs: 2}",
            false,
        ),
        (
            "metric_equals: {name: runtime.channel.publish_count, id: e, value: 3}",
            true,
        ),
        (
            "metric_lte: {name: runtime.component.error_count, value: 2}",
            true,
        ),
        (
            "metric_gte: {name: runtime.component.error_count, id: bad, value: 3}",
            false,
        ),
        ("metric_equals: {name: runtime.nothing, value: 0}", false),
    ] {
        let (result, failures) = judged(&format!("assertions:\n  - {{id: it, {assertion}}}\n"));
        assert_eq!(failures.is_empty(), holds, "{assertion}: {failures:?}");
        assert!(failures.iter().all(|failure| failure.id == "it"));
        assert!(result.is_ok(), "without fail_fast the run goes on");
    }
}

#[test]
fn a_run_can_end_with_the_first_that_fails() {
    let (result, failures) =
        judged("fail_fast: true\nassertions:\n  - {id: calm, never: {event: error}}\n");
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(result.epochs, 1);
    assert_eq!((failures[0].id.as_str(), failures[0].epoch), ("calm", 1));
    assert!(
        failures[0]
            .to_string()
            .starts_with("calm in epoch 1: must not happen")
    );
}

#[test]
fn files_of_assertions_that_make_no_sense_are_refused_with_their_place() {
    for (text, place) in [
        ("", "version"),
        ("version: 2\nassertions: []", "version"),
        ("version: \"1\"", "assertions"),
        ("version: \"1\"\nassertions: {}", "assertions"),
        ("version: \"1\"\nassertions: []\ncolour: red", "colour"),
        (
            "version: \"1\"\nfail_fast: maybe\nassertions: []",
            "fail_fast",
        ),
        ("version: \"1\"\nassertions: [1]", "assertions[0]"),
        (
            "version: \"1\"\nassertions: [{never: {}}]",
            "assertions[0].id",
        ),
        ("version: \"1\"\nassertions: [{id: a}]", "assertions[0]"),
        (
            "version: \"1\"\nassertions: [{id: a, never: {}, always: {}}]",
            "assertions[0]",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {evnt: x}}]",
            "assertions[0].never.evnt",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {event: 1}}]",
            "assertions[0].never.event",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {where: {x: {about: 1}}}}]",
            "assertions[0].never.where.x.about",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {where: {x: {lt: true}}}}]",
            "assertions[0].never.where.x.lt",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {where: 1}}]",
            "assertions[0].never.where",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {where: 'value +'}}]",
            "assertions[0].never.where",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, sequence: {steps: ['port == 1']}}]",
            "assertions[0].sequence.steps[0]",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, sequence: {steps: []}}]",
            "assertions[0].sequence.steps",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, within_epochs: {match: {}, epochs: -1}}]",
            "assertions[0].within_epochs.epochs",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, metric_lte: {name: x}}]",
            "assertions[0].metric_lte.value",
        ),
        (
            "version: \"1\"\nassertions: [{id: a, never: {}}, {id: a, never: {}}]",
            "assertions[1].id",
        ),
        ("version: \"1\"\n  bad: [", "2:"),
    ] {
        let error = Assertions::parse(text).expect_err(text);
        assert!(error.place.starts_with(place), "{text}: {error}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_run_that_is_observed_does_the_same() {
    let told = |level: Option<Level>| {
        let stage = Stage::new(TEXT);
        let observer = level.map(|level| observe(at(level)).0);
        let options = RunOptions {
            observer,
            ..RunOptions::steps(3).traced()
        };
        let result = stage.run(options);
        let events: Vec<String> = result
            .trace
            .events
            .iter()
            .map(|e| e.name.to_string())
            .collect();
        (result.order, events, stage.log.take())
    };
    let alone = told(None);
    for level in [Level::Off, Level::Summary, Level::Detailed, Level::Debug] {
        assert_eq!(told(Some(level)), alone, "{level}");
    }
}

#[test]
fn whoever_collects_is_told_however_the_run_ends() {
    Runtime::simulated(6).block_on(async {
        // It never begins.
        let (observer, events) = observe(at(Level::Summary));
        let kept = observer.clone();
        let options = |observer| RunOptions {
            observer: Some(observer),
            ..RunOptions::steps(u64::MAX)
        };
        drop(Stage::new(TEXT).begin(options(observer)));
        assert_eq!(events.next().await, None);
        drop(kept);

        // It is dropped on its way.
        let (observer, events) = observe(at(Level::Summary));
        let kept = observer.clone();
        let run = Stage::new(TEXT).begin(options(observer)).run();
        let mut run = Box::pin(run);
        std::future::poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(run);
        while events.next().await.is_some() {}
        drop(kept);

        // It cannot begin.
        let (observer, events) = observe(at(Level::Summary));
        let stage = Stage::new(&TEXT.replace("test.Fail", "test.Nothing"));
        let result = stage.begin(options(observer)).run().await;
        assert!(!result.is_ok());
        assert_eq!(events.next().await, None);
    });
}
