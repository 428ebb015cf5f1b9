//! A run that was recorded can be had again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_graph::component::{Descriptor, Failure, Registry};
use windlass_graph::model::{Config, OnError};
use windlass_graph::record::{Recording, Replayed};
use windlass_graph::run::{ConfigTransaction, Record};
use windlass_graph::{Prepared, RunOptions, RunResult, StopReason};
use windlass_record::RecordingError;
use windlass_runtime::{Runtime, time};
use windlass_value::Payload;

use super::outside::{self, BRINGS};
use super::overlap::{Calls, registry, threaded_graph};
use super::stage::Stage;

/// A folder that is gone afterwards.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-replay-{}-{number}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join("run.ndjson")).expect("a recording");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn recorded(folder: &Folder, options: RunOptions) -> RunOptions {
    RunOptions {
        record: Some(Record::to(folder.path())),
        ..options
    }
}

pub(crate) fn replay(prepared: &Prepared, folder: &Folder) -> Replayed {
    let recording = Recording::open(folder.path()).expect("a recording");
    Runtime::simulated(9).block_on(prepared.replay(&recording, RunOptions::default()))
}

#[track_caller]
pub(crate) fn same(replayed: &Replayed, run: &RunResult) {
    if let Some(difference) = &replayed.difference {
        panic!("{difference}");
    }
    assert_eq!(Some(&replayed.hash), replayed.recorded_hash.as_ref());
    assert!(replayed.is_same());
    assert_eq!(replayed.result.stop_reason, run.stop_reason);
    assert_eq!(replayed.result.order, run.order);
    assert_eq!(replayed.result.epochs, run.epochs);
    assert_eq!(replayed.result.errors, run.errors);
}

#[test]
fn random_graphs_are_replayed_as_they_ran() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    for seed in 0..40 {
        let mut graph = threaded_graph(seed);
        if seed % 4 == 0 {
            // Without putting up with errors: the run ends with the first.
            let all = graph.components.iter_mut();
            all.for_each(|c| c.execution.on_error = OnError::FailFast);
        }
        let order_is_given_up = graph.edges.iter_mut().step_by(3);
        order_is_given_up.for_each(|edge| edge.policy.preserve_order = false);
        let calls = Calls::default();
        let prepared = Prepared::new(graph, registry(&calls, seed)).unwrap();
        let folder = Folder::new();
        let options = recorded(&folder, RunOptions::steps(10));
        let run = runtime.block_on(prepared.run(options));
        same(&replay(&prepared, &folder), &run);
    }
}

#[test]
fn what_came_from_outside_comes_again_and_nothing_outside_is_touched() {
    let stage = outside::stage(BRINGS);
    let folder = Folder::new();
    let options = RunOptions {
        until_idle: true,
        ..RunOptions::default()
    };
    let run = stage.run_really(recorded(&folder, options));
    assert_eq!(run.stop_reason, StopReason::Idle, "{:?}", run.errors);
    let seen = stage.log.take();
    // What comes within one epoch is replaced by the newest: how many those are depends on the
    // machine.
    assert_eq!(seen.last().map(String::as_str), Some("out: in=4"));
    let began = std::time::Instant::now();
    let replayed = replay(&stage.prepared(), &folder);
    same(&replayed, &run);
    // The sink has an input and no boundary: it is called. The source is not, and the run does not
    // wait.
    assert_eq!(stage.log.take(), seen);
    assert!(began.elapsed() < Duration::from_secs(5));

    let sink = BRINGS.replace(
        "{id: out, type: test.Sink,",
        "{id: out, type: test.Sink, boundary: {role: output},",
    );
    let stage = outside::stage(&sink);
    let run = stage.run_really(recorded(&folder, RunOptions::steps(2)));
    stage.log.take();
    let replayed = replay(&stage.prepared(), &folder);
    same(&replayed, &run);
    assert!(
        stage.log.take().is_empty(),
        "an output boundary is not called"
    );
}

const ON_THE_CLOCK: &str = "
lanes:
  fast: {type: fixed_rate, period_ms: 3, wall_clock_enabled: true}
  slow: {type: fixed_rate, period_ms: 7, wall_clock_enabled: true}
  main: {type: event_loop}
components:
  - {id: f, type: test.Time, execution: {lane: fast}}
  - {id: s, type: test.Time, execution: {lane: slow}}
  - {id: m, type: test.Pass, trigger_policy: {type: time_sync, inputs: [a, b], sync_slop_ms: 2}, execution: {lane: main}}
  - {id: d, type: test.Sink, trigger_policy: {type: debounce, inputs: [in], debounce_window_ms: 4}, execution: {lane: main}}
edges:
  - {id: a, from: f.out, to: m.a, kind: immediate, policy: {mode: queue, capacity: 4}}
  - {id: b, from: s.out, to: m.b, kind: immediate, policy: {mode: queue, capacity: 4}}
  - {id: c, from: m.out, to: d.in, kind: immediate}
";

#[test]
fn real_time_passes_again_as_it_did() {
    let mut stage = Stage::new(ON_THE_CLOCK);
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Time", open, |invocation| {
        let now = invocation.now() as i64;
        invocation.publish_to("out", now);
        Ok(())
    });
    let folder = Folder::new();
    let run = stage.run_really(recorded(&folder, RunOptions::steps(25)));
    assert!(run.is_ok(), "{:?}", run.errors);
    let seen = stage.log.take();
    let replayed = replay(&stage.prepared(), &folder);
    same(&replayed, &run);
    assert_eq!(stage.log.take(), seen);
}

fn doubling(by: i64) -> Stage {
    let mut stage = Stage::new(
        "
components:
  - {id: in, type: test.Source, config: {epochs: [[1], [2], [3]]}, execution: {lane: main}}
  - {id: double, type: test.Double, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: in.out, to: double.in, kind: immediate}
  - {id: f, from: double.out, to: out.in, kind: immediate}
",
    );
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Double", open, move |invocation| {
            let value = invocation.input("in").and_then(|m| m.payload().as_i64());
            let value = value.ok_or_else(|| Failure::new("no number"))?;
            // The change shows with the second message.
            let factor = if value < 2 { 2 } else { by };
            invocation.publish_to("out", value * factor);
            Ok(())
        });
    stage
}

#[test]
fn a_component_that_has_changed_shows_the_first_difference() {
    let folder = Folder::new();
    let run = doubling(2).run(recorded(&folder, RunOptions::steps(3)));
    same(&replay(&doubling(2).prepared(), &folder), &run);
    let replayed = replay(&doubling(3).prepared(), &folder);
    assert!(!replayed.is_same());
    let difference = replayed.difference.expect("it differs");
    assert_eq!(
        (difference.epoch, difference.component.as_str()),
        (2, "double")
    );
    assert!(
        difference.difference.recorded.contains("\"value\":4}"),
        "{difference}"
    );
    assert!(
        difference.difference.replayed.contains("\"value\":6}"),
        "{difference}"
    );
    assert!(difference.to_string().contains("epoch 2, component double"));
}

#[test]
fn a_graph_that_has_changed_is_fitted_to_the_recording() {
    let folder = Folder::new();
    let stage = doubling(2);
    stage.run(recorded(&folder, RunOptions::steps(3)));
    let turned = stage.text().replace(
        "  - {id: e, from: in.out, to: double.in, kind: immediate}\n",
        "",
    );
    let turned = format!("{turned}  - {{id: e, from: in.out, to: double.in, kind: immediate}}\n");
    let mut other = Stage::file(&turned);
    other.registry = doubling(2).registry;
    let replayed = replay(&other.prepared(), &folder);
    assert!(replayed.difference.is_none(), "{:?}", replayed.difference);
    let later = stage.text().replace(
        "to: double.in, kind: immediate",
        "to: double.in, kind: delay",
    );
    let mut other = Stage::file(&later);
    other.registry = doubling(2).registry;
    assert!(replay(&other.prepared(), &folder).difference.is_some());
}

#[test]
fn new_configurations_come_again() {
    let text = "
components:
  - {id: in, type: test.Source, config: {epochs: [[1]], repeat: true}, execution: {lane: main}}
  - {id: scale, type: test.Scale, config: {by: 1}, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges: [{id: e, from: in.out, to: scale.in, kind: immediate}, {id: f, from: scale.out, to: scale2.in, kind: immediate}]
";
    let text = text.replace(
        "edges:",
        "  - {id: scale2, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}\nedges:",
    );
    #[derive(Default)]
    struct Scale(i64);
    impl windlass_graph::component::Component for Scale {
        fn execute(
            &mut self,
            invocation: &mut windlass_graph::component::Invocation<'_>,
        ) -> Result<(), Failure> {
            let by = self.0;
            invocation.publish_to("out", by);
            Ok(())
        }
        fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
            self.0 = config
                .get("by")
                .and_then(|by| by.as_i64())
                .unwrap_or_default();
            Ok(())
        }
    }
    let mut stage = Stage::new(&text);
    let open = Descriptor::new().open_ports().open_config();
    stage
        .registry
        .register_with("test.Scale", open, || Box::new(Scale::default()));
    let folder = Folder::new();
    let run = Runtime::builder()
        .workers(2)
        .build()
        .unwrap()
        .block_on(async {
            let running = stage
                .begin(recorded(&folder, RunOptions::steps(u64::MAX)))
                .start();
            let control = running.control().clone();
            for by in [7, 8] {
                let before = control.progress().epochs;
                while control.progress().epochs < before + 20 {
                    time::sleep(Duration::from_millis(1)).await;
                }
                let config: Config = [("by".to_owned(), by.into())].into_iter().collect();
                let change = ConfigTransaction::new().set("scale", config);
                control.reconfigure(change).expect("it runs");
            }
            time::sleep(Duration::from_millis(5)).await;
            running.stop();
            running.await.expect("no panic")
        });
    let seen = stage.log.take();
    same(&replay(&stage.prepared(), &folder), &run);
    assert_eq!(stage.log.take(), seen);
}

#[test]
fn a_loop_that_ran_out_of_time_does_so_again() {
    let mut stage = Stage::new(
        "
components:
  - {id: in, type: test.Source, config: {epochs: [[1], [1]]}, execution: {lane: main}}
  - {id: a, type: test.Slow, trigger_policy: {type: any_input, inputs: [in, back]}, execution: {lane: main}}
  - {id: b, type: test.Pass, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: in.out, to: a.in, kind: immediate}
  - {id: f, from: a.out, to: b.in, kind: immediate}
  - {id: g, from: b.out, to: a.back, kind: immediate}
composite_loops:
  - {id: l, components: [a, b], loop_policy: {type: fixed_point, max_iterations: 1000, budget_ms: 5}}
",
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Slow", open, |invocation| {
        if !invocation.env_is_fast() {
            std::thread::sleep(Duration::from_millis(1));
        }
        invocation.publish_to("out", 1);
        Ok(())
    });
    let folder = Folder::new();
    let run = stage.run_really(recorded(&folder, RunOptions::steps(2)));
    assert!(run.metrics.sum("runtime.loop.budget_overrun") >= 1.0);
    let lines = folder.lines();
    assert!(lines.iter().any(|line| line.contains(r#""budget":true"#)));
    same(&replay(&stage.prepared(), &folder), &run);
}

/// For the test above: a replay need not be as slow as the run was.
trait Speed {
    fn env_is_fast(&self) -> bool;
}

impl Speed for windlass_graph::component::Invocation<'_> {
    fn env_is_fast(&self) -> bool {
        windlass_core::sync::with_world(|world| world.is_some())
    }
}

#[test]
fn loops_beside_the_epochs_are_compared_too() {
    let stage = super::beside::stage("async_task", "kind: delay");
    let folder = Folder::new();
    let run = stage.run_really(recorded(&folder, RunOptions::steps(6)));
    assert!(run.is_ok(), "{:?}", run.errors);
    assert!(
        folder
            .lines()
            .iter()
            .any(|line| line.contains(r#""component":"b""#))
    );
    same(&replay(&stage.prepared(), &folder), &run);
    every_part_is_same(&stage, &folder);
}

#[test]
fn a_loop_that_took_long_comes_back_in_the_same_epoch() {
    let stage = super::beside::slow_stage(Duration::from_millis(35));
    let folder = Folder::new();
    let options = RunOptions {
        duration: Some(Duration::from_millis(200)),
        ..RunOptions::default()
    };
    let run = stage.run_really(recorded(&folder, options));
    assert!(run.is_ok(), "{:?}", run.errors);
    let seen = stage.log.take();
    assert!(
        folder
            .lines()
            .iter()
            .any(|line| line.contains(r#""joined":["loop"]"#))
    );
    same(&replay(&stage.prepared(), &folder), &run);
    assert_eq!(stage.log.take(), seen);
    every_part_is_same(&stage, &folder);
}

#[test]
fn who_was_asked_to_cancel_is_asked_again_at_the_same_place() {
    let mut stage = Stage::new(
        "
lanes: {main: {type: event_loop, max_callback_ms: 3}}
components:
  - {id: in, type: test.Source, config: {epochs: [[1], [1]]}, execution: {lane: main}}
  - {id: a, type: test.Long, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: in.out, to: a.in, kind: immediate}
  - {id: f, from: a.out, to: out.in, kind: immediate}
",
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Long", open, |invocation| {
        let mut rounds = 0;
        while !invocation.cancel_requested() && rounds < 1_000_000 {
            rounds += 1;
            std::hint::spin_loop();
        }
        invocation.publish_to("out", rounds);
        Ok(())
    });
    let folder = Folder::new();
    let run = stage.run_really(recorded(&folder, RunOptions::steps(2)));
    let seen = stage.log.take();
    same(&replay(&stage.prepared(), &folder), &run);
    assert_eq!(stage.log.take(), seen, "after as many rounds");
}

#[test]
fn recordings_that_are_none_or_have_no_end_are_told_apart() {
    let folder = Folder::new();
    let missing = Recording::open(folder.path());
    assert!(
        matches!(missing, Err(RecordingError::File { .. })),
        "{missing:?}"
    );

    doubling(2).run(recorded(&folder, RunOptions::steps(3)));
    let file = folder.path().join("run.ndjson");
    let lines = folder.lines();
    let write = |lines: &[String], tail: &str| {
        let text = lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        std::fs::write(&file, format!("{text}{tail}")).expect("a file");
        Recording::open(folder.path())
    };
    assert!(write(&lines, "").is_ok());

    let cut = write(&lines[..lines.len() - 1], "");
    let Err(RecordingError::Truncated { lines: 13, .. }) = cut else {
        panic!("{cut:?}");
    };
    let cut = write(&lines[..4], "{\"call\":2,\"comp");
    assert!(
        matches!(cut, Err(RecordingError::Truncated { .. })),
        "{cut:?}"
    );
    let part = Recording::open_part(folder.path()).expect("a part");
    assert!(!part.is_complete());
    let replayed =
        Runtime::simulated(1).block_on(doubling(2).prepared().replay(&part, RunOptions::default()));
    assert!(replayed.result.is_ok());

    let mut garbage = lines.clone();
    garbage[2] = "{\"nonsense\":true}".to_owned();
    let bad = write(&garbage, "");
    assert!(
        matches!(bad, Err(RecordingError::BadLine { line: 3, .. })),
        "{bad:?}"
    );
    let after = write(&lines, "{\"epoch\":9}\n{\"epoch\":10}\n");
    assert!(
        matches!(after, Err(RecordingError::BadLine { .. })),
        "{after:?}"
    );

    for text in ["", "hello\n", "{\"recording\":99}\n", "\u{0}\u{0}"] {
        std::fs::write(&file, text).expect("a file");
        let foreign = Recording::open(folder.path());
        assert!(
            matches!(foreign, Err(RecordingError::Foreign { .. })),
            "{text:?}: {foreign:?}"
        );
    }
    std::fs::write(&file, [0xff, 0xfe, 0x00]).expect("a file");
    let foreign = Recording::open(folder.path());
    assert!(
        matches!(foreign, Err(RecordingError::Foreign { .. })),
        "{foreign:?}"
    );
}

/// Writes the beginning of a recording, as a program that was killed leaves it.
fn cut_off(folder: &Folder, text: &[u8]) -> Recording {
    std::fs::write(folder.path().join("run.ndjson"), text).expect("a file");
    Recording::open_part(folder.path()).expect("a part")
}

/// Breaks a recording off after each of its lines, and demands that the rest of it is replayed
/// without a difference.
#[track_caller]
fn every_part_is_same(stage: &Stage, folder: &Folder) {
    let lines = folder.lines();
    for cut in 1..lines.len() {
        let part = cut_off(folder, lines[..cut].join("\n").as_bytes());
        let replayed = replay_part(&stage.prepared(), &part);
        let difference = replayed.difference;
        assert!(difference.is_none(), "{cut} lines: {difference:?}");
    }
}

fn replay_part(prepared: &Prepared, part: &Recording) -> Replayed {
    Runtime::simulated(9).block_on(prepared.replay(part, RunOptions::default()))
}

#[test]
fn a_recording_that_breaks_off_is_compared_up_to_its_last_whole_epoch() {
    let folder = Folder::new();
    doubling(2).run(recorded(&folder, RunOptions::steps(3)));
    let text = format!("{}\n", folder.lines().join("\n"));
    let header = text.find('\n').expect("a line") + 1;
    let end = text.trim_end().rfind('\n').expect("a line") + 1;
    for cut in (header..end).step_by(7) {
        let part = cut_off(&folder, &text.as_bytes()[..cut]);
        let epochs = text[..cut].matches("{\"epoch\":{").count() as u64;
        assert_eq!(part.whole_epochs(), part.epochs().saturating_sub(1));
        assert!(
            epochs.abs_diff(part.epochs()) <= 1,
            "an epoch's own line may be cut"
        );
        let replayed = replay_part(&doubling(2).prepared(), &part);
        assert!(
            replayed.is_same(),
            "cut at {cut}: {:?}",
            replayed.difference
        );
        assert!(replayed.result.is_ok(), "{:?}", replayed.result.errors);
        assert_eq!(replayed.result.epochs, part.whole_epochs());
        assert_eq!(replayed.recorded_hash, None);
        // What was changed in a whole epoch is still found.
        let changed = replay_part(&doubling(3).prepared(), &part);
        assert_eq!(changed.is_same(), part.whole_epochs() < 2, "cut at {cut}");
    }
}

#[test]
fn a_recording_may_break_off_within_a_character() {
    let text = "
components:
  - {id: in, type: test.Source, config: {epochs: [[\"é\"], [\"é\"]]}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges: [{id: e, from: in.out, to: out.in, kind: immediate}]
";
    let folder = Folder::new();
    Stage::new(text).run(recorded(&folder, RunOptions::steps(2)));
    let whole = folder.lines().join("\n");
    let last = whole.rfind('é').expect("it is there");
    let part = cut_off(&folder, &whole.as_bytes()[..=last]);
    assert_eq!((part.epochs(), part.whole_epochs()), (2, 1));
    assert!(replay_part(&Stage::new(text).prepared(), &part).is_same());
}

#[test]
fn random_recordings_that_break_off_say_the_same_as_far_as_they_go() {
    for seed in 0..12 {
        let calls = Calls::default();
        let prepared = Prepared::new(threaded_graph(seed), registry(&calls, seed)).unwrap();
        let folder = Folder::new();
        let options = recorded(&folder, RunOptions::steps(6));
        Runtime::simulated(seed).block_on(prepared.run(options));
        let lines = folder.lines();
        for cut in (1..lines.len()).step_by(3) {
            let part = cut_off(&folder, lines[..cut].join("\n").as_bytes());
            let replayed = replay_part(&prepared, &part);
            assert!(
                replayed.is_same(),
                "seed {seed}, {cut} lines: {:?}",
                replayed.difference
            );
        }
    }
}

#[test]
fn a_line_that_was_edited_is_named_although_the_replay_does_what_it_says() {
    let folder = Folder::new();
    doubling(2).run(recorded(&folder, RunOptions::steps(3)));
    let lines = folder.lines();
    let edited = |from: &str, to: &str| {
        let nth = lines.iter().position(|line| line.contains(from));
        let nth = nth.expect("a line");
        let mut lines = lines.clone();
        lines[nth] = lines[nth].replacen(from, to, 1);
        let part = cut_off(&folder, format!("{}\n", lines.join("\n")).as_bytes());
        assert!(part.is_complete());
        let replayed = replay_part(&doubling(2).prepared(), &part);
        assert!(!replayed.is_same());
        (nth + 1, replayed.difference.expect("it is named"))
    };
    // The source is played back: it says what its line says. Its second value is a 3 with the same
    // consequences.
    let source = lines
        .iter()
        .filter(|line| line.contains("\"component\":\"in\""));
    let second = source.clone().nth(1).expect("a line");
    let (line, difference) = edited(second, &second.replace("\"value\":2}", "\"value\":3}"));
    assert!(difference.difference.is_edited, "{difference}");
    assert_eq!(difference.difference.line, line);
    assert_eq!((difference.epoch, difference.component.as_str()), (2, "in"));
    let said = difference.to_string();
    assert!(
        said.contains(&format!("line {line}, which was edited")),
        "{said}"
    );
    assert!(said.contains("\"value\":3}"), "{said}");
    // A component that is called does not care what its line says, and so both are shown.
    let double = lines.iter().find(|line| line.contains("\"value\":4}"));
    let double = double.expect("a line");
    let (_, difference) = edited(double, &double.replace("\"value\":4}", "\"value\":5}"));
    assert!(!difference.difference.is_edited);
    assert!(
        difference.difference.recorded.contains("\"value\":5}"),
        "{difference}"
    );
    assert!(
        difference.difference.replayed.contains("\"value\":4}"),
        "{difference}"
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_said() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "a file is in the way").expect("a file");
    let run = doubling(2).run(recorded(&folder, RunOptions::steps(1)));
    assert_eq!(run.stop_reason, StopReason::Error);
    assert!(
        run.errors[0].message.contains("cannot record to"),
        "{:?}",
        run.errors
    );
    std::fs::remove_file(folder.path()).expect("it is there");

    let mut options = recorded(&folder, RunOptions::steps(3));
    if let Some(record) = &mut options.record {
        record.limit = 700;
    }
    let run = doubling(2).run(options);
    assert!(run.is_ok(), "the run goes on: {:?}", run.errors);
    assert!(
        run.errors[0].message.contains("as large as it may be"),
        "{:?}",
        run.errors
    );
    let cut = Recording::open(folder.path());
    assert!(
        matches!(cut, Err(RecordingError::Truncated { .. })),
        "{cut:?}"
    );
}

#[test]
fn a_value_that_cannot_be_written_is_compared_inside_and_refused_at_the_boundary() {
    #[derive(Clone, PartialEq)]
    struct Pose(f64);
    let stage = |boundary: &str| {
        let mut stage = Stage::new(&format!(
            "
components:
  - {{id: in, type: test.{boundary}, execution: {{lane: main}}}}
  - {{id: mid, type: test.Make, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: mid.in, kind: immediate}}
  - {{id: f, from: mid.out, to: out.in, kind: immediate}}
"
        ));
        let open = || Descriptor::new().open_ports();
        stage
            .registry
            .function("test.Number", open(), |invocation| {
                invocation.publish_to("out", 1);
                Ok(())
            });
        stage.registry.function("test.Make", open(), |invocation| {
            invocation.publish_to("out", Payload::object(Pose(1.0)));
            Ok(())
        });
        stage
    };
    let folder = Folder::new();
    let inside = stage("Number");
    let run = inside.run(recorded(&folder, RunOptions::steps(2)));
    same(&replay(&inside.prepared(), &folder), &run);

    let boundary = stage("Make");
    let run = boundary.run(recorded(&folder, RunOptions::steps(2)));
    assert!(run.is_ok());
    let replayed = replay(&boundary.prepared(), &folder);
    let message = &replayed.result.errors[0].message;
    assert!(message.contains("cannot be recorded"), "{message}");
    assert!(!replayed.is_same());
}

#[test]
fn a_replay_needs_no_types_for_what_is_played_back() {
    let folder = Folder::new();
    let stage = doubling(2);
    stage.run(recorded(&folder, RunOptions::steps(2)));
    let mut registry = Registry::new();
    let log = Arc::new(AtomicU64::new(0));
    let count = log.clone();
    let open = || Descriptor::new().open_ports();
    registry.function("test.Sink", open(), move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    registry.function("test.Double", open(), |invocation| {
        let value = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        invocation.publish_to("out", value * 2);
        Ok(())
    });
    let loaded = windlass_graph::load(stage.text(), &Default::default()).expect("it loads");
    let prepared = Prepared::new(loaded.graph, registry).expect("it compiles");
    assert!(replay(&prepared, &folder).is_same());
    assert_eq!(log.load(Ordering::Relaxed), 2);
}
