//! A file waits for its readers: no record is lost unless a policy says so.

use windlass_graph::run::LossKind;
use windlass_graph::{RunResult, StopReason};

use crate::stage::{Scratch, Stage};

const LINES: usize = 2500;

fn numbers() -> Scratch {
    let lines: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    Scratch::new(lines)
}

/// A file, and what reads it.
fn reading(file: &Scratch, trigger: &str, kind: &str, policy: &str) -> Stage {
    let config = file.config();
    Stage::new(&format!(
        "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: in, type: windlass.lines.source, config: {{{config}, records: 100}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{{trigger}}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: {kind}{policy}}}
"
    ))
}

fn kinds(result: &RunResult) -> Vec<LossKind> {
    result.losses.iter().map(|loss| loss.kind).collect()
}

#[test]
fn every_record_of_a_file_arrives_in_order_whoever_reads_it() {
    let file = numbers();
    let any = "type: any_input, input: in";
    let cases = [
        (any, "immediate", ""),
        (any, "delay", ""),
        (any, "async", ""),
        (any, "immediate", ", policy: {mode: queue, capacity: 16}"),
        (
            any,
            "immediate",
            ", policy: {mode: queue, capacity: 16, overflow: reject}",
        ),
        (
            any,
            "delay",
            ", policy: {mode: queue, capacity: 16, overflow: block}",
        ),
        (
            any,
            "async",
            ", policy: {mode: queue, capacity: 4, overflow: reject, max_inflight: 8}",
        ),
        (any, "immediate", ", policy: {mode: barrier, capacity: 4}"),
        (
            "type: rate_limit, input: in, min_interval_ms: 20",
            "immediate",
            "",
        ),
        ("type: batch, input: in, batch_size: 10", "immediate", ""),
        (
            "type: any_input, input: in, min_interval_ms: 20",
            "immediate",
            ", policy: {mode: queue, capacity: 3}",
        ),
    ];
    for (trigger, kind, policy) in cases {
        let stage = reading(&file, trigger, kind, policy);
        let result = stage.simulate();
        let case = format!("{trigger}, {kind}{policy}");
        assert_eq!(
            result.stop_reason,
            StopReason::Idle,
            "{case}: {:?}",
            result.errors
        );
        assert_eq!(result.losses, [], "{case}");
        let seen = stage.log.take().join(" ");
        let seen: Vec<&str> = seen.split(' ').collect();
        let expected: Vec<String> = (0..LINES)
            .map(|number| format!("in=\"{number}\""))
            .collect();
        assert_eq!(seen, expected, "{case}");
        assert!(result.epochs > 20, "{case}");
    }
}

#[test]
fn a_file_waits_for_the_slowest_of_its_readers() {
    let file = numbers();
    let config = file.config();
    let stage = Stage::new(&format!(
        "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: in, type: windlass.lines.source, config: {{{config}, records: 7}}, execution: {{lane: main}}}}
  - {{id: fast, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
  - {{id: slow, type: test.Sink, trigger_policy: {{type: rate_limit, input: in, min_interval_ms: 30}}, execution: {{lane: main}}}}
edges:
  - {{id: a, from: in.out, to: fast.in, kind: immediate, policy: {{mode: queue, capacity: 8}}}}
  - {{id: b, from: in.out, to: slow.in, kind: immediate}}
"
    ));
    let result = stage.simulate();
    assert_eq!(result.losses, []);
    for edge in ["a", "b"] {
        let delivered = result.metrics.of("runtime.channel.delivery_count", edge);
        assert_eq!(delivered, Some(LINES as f64), "{edge}");
    }
}

#[test]
fn two_files_that_are_read_together_wait_for_each_other() {
    let (many, few) = (numbers(), Scratch::new("a\nb\nc\n"));
    let (many, few) = (many.config(), few.config());
    let stage = Stage::new(&format!(
        "
components:
  - {{id: many, type: windlass.lines.source, config: {{{many}, records: 100}}, execution: {{lane: main}}}}
  - {{id: few, type: windlass.lines.source, config: {{{few}}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: all_inputs, inputs: [a, b]}}, execution: {{lane: main}}}}
edges:
  - {{id: a, from: many.out, to: out.a, kind: immediate}}
  - {{id: b, from: few.out, to: out.b, kind: immediate}}
"
    ));
    let result = stage.simulate();
    assert_eq!(
        stage.log.take(),
        [
            "a=\"0\"", "b=\"a\"", "a=\"1\"", "b=\"b\"", "a=\"2\"", "b=\"c\""
        ]
    );
    // The rest of the longer file can never be read, and that ends the run instead of keeping it
    // going.
    assert_eq!(result.stop_reason, StopReason::Idle);
    assert!(
        kinds(&result).contains(&LossKind::LeftInSource),
        "{:?}",
        result.losses
    );
    assert!(
        !kinds(&result).contains(&LossKind::DroppedByTrigger),
        "{:?}",
        result.losses
    );
}

#[test]
fn a_policy_that_gives_up_back_pressure_loses_records_and_the_result_says_so() {
    let file = numbers();
    for (policy, kind) in [
        ("{mode: latest}", LossKind::Replaced),
        ("{overflow: overwrite}", LossKind::Replaced),
        (
            "{mode: queue, capacity: 4, overflow: drop_oldest}",
            LossKind::Replaced,
        ),
        (
            "{mode: queue, capacity: 4, overflow: drop_newest}",
            LossKind::Refused,
        ),
    ] {
        let trigger = "type: any_input, input: in";
        let stage = reading(&file, trigger, "immediate", &format!(", policy: {policy}"));
        let result = stage.simulate();
        let seen = stage.log.take().len();
        assert!(seen < LINES, "{policy}");
        assert_eq!(kinds(&result), [kind], "{policy}");
        let lost = &result.losses[0];
        assert_eq!(
            (lost.subject.as_str(), lost.count),
            ("e", (LINES - seen) as u64),
            "{policy}"
        );
    }
}

#[test]
fn a_replayed_file_waits_too_and_may_take_longer_than_a_thousand_epochs() {
    let lines: String = (0..40)
        .map(|number| {
            format!(
                "{{\"at_ms\": {}, \"value\": {number}}}\n",
                number / 4 * 20_000
            )
        })
        .collect();
    let file = Scratch::new(lines);
    let config = file.config();
    let stage = Stage::new(&format!(
        "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: in, type: windlass.replay, config: {{{config}}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: immediate}}
"
    ));
    let result = stage.simulate();
    assert_eq!(result.stop_reason, StopReason::Idle, "{:?}", result.errors);
    assert_eq!(stage.log.take().len(), 40);
    assert!(result.epochs > 1000, "{}", result.epochs);
    // Where no time passes, what is due later never is: the bound of a graph that is never idle
    // counts.
    let still = stage.with("type: fixed_rate, period_ms: 10", "type: event_loop");
    let result = still.simulate();
    assert_eq!(result.stop_reason, StopReason::TickBound);
    assert!(result.epochs < 1100, "{}", result.epochs);
}
