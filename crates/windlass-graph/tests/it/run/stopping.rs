//! A run that is to stop ends in time, and names the components that did not return.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_graph::component::{Component, Descriptor, Failure, Interrupt, Invocation};
use windlass_graph::{RunOptions, RunResult, StopReason};
use windlass_runtime::Runtime;
use windlass_sync::CancellationToken;
use windlass_sync::channel::oneshot;

use super::stage::Stage;

/// What would never end is taken for lost after this time.
const LOST: Duration = Duration::from_secs(60);

/// How long the runs have to end.
const WITHIN: Duration = Duration::from_millis(400);

#[derive(Default)]
struct Asked(AtomicBool);

impl Interrupt for Asked {
    fn interrupt(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn forget(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Asked {
    fn wait(&self) -> Result<(), Failure> {
        let began = Instant::now();
        while !self.0.load(Ordering::SeqCst) {
            assert!(began.elapsed() < LOST, "nobody ended it");
            std::hint::spin_loop();
        }
        Err(Failure::new("out of breath"))
    }
}

/// Does not return from one of its calls before it is interrupted.
struct Endless {
    asked: Arc<Asked>,
    in_call: &'static str,
    begun: Arc<AtomicBool>,
}

impl Endless {
    fn call(&self, call: &str) -> Result<(), Failure> {
        if self.in_call != call {
            return Ok(());
        }
        self.begun.store(true, Ordering::SeqCst);
        self.asked.wait()
    }
}

impl Component for Endless {
    fn activate(&mut self) -> Result<(), Failure> {
        self.call("activate")
    }

    fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
        self.call("execute")
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.call("deactivate")
    }

    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        Some(self.asked.clone())
    }
}

const LANES: [&str; 5] = [
    "{type: event_loop}",
    "{type: event_loop, thread_name: named}",
    "{type: thread_pool, max_threads: 2}",
    "{type: isolated_thread}",
    "{type: fixed_rate, period_ms: 5, wall_clock_enabled: true}",
];

fn stage(lane: &str, in_call: &'static str, execution: &str) -> (Stage, Arc<AtomicBool>) {
    let mut stage = Stage::file(&format!(
        "schema_version: 2
graph: {{name: stopping, kind: internal_test}}
lanes: {{own: {lane}}}
components:
  - {{id: g, type: test.Endless, execution: {{lane: own{execution}}}}}
edges: []
"
    ));
    let begun = Arc::<AtomicBool>::default();
    let told = begun.clone();
    let type_ = Descriptor::new().open_ports().preemptible();
    stage
        .registry
        .register_with("test.Endless", type_, move || {
            Box::new(Endless {
                asked: Arc::default(),
                in_call,
                begun: told.clone(),
            })
        });
    (stage, begun)
}

fn options(stop: &CancellationToken) -> RunOptions {
    RunOptions {
        steps: Some(1000),
        stop: stop.clone(),
        stop_within: WITHIN,
        ..RunOptions::default()
    }
}

/// Runs it, and stops it when the endless call has begun.
fn stopped(stage: &Stage, begun: &AtomicBool) -> RunResult {
    let stop = CancellationToken::new();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let prepared = stage.prepared();
    let (send, mut ended) = oneshot::channel();
    let run = prepared.begin(options(&stop));
    let task = runtime.spawn(async move { send.send(run.run().await) });
    let began = Instant::now();
    while !begun.load(Ordering::SeqCst) {
        assert!(began.elapsed() < LOST, "it does not begin");
        std::thread::yield_now();
    }
    stop.cancel();
    let stopped = Instant::now();
    let result = runtime.block_on(&mut ended).expect("a result");
    drop(task);
    let took = stopped.elapsed();
    assert!(took < WITHIN * 10, "{took:?}");
    result
}

#[track_caller]
fn was_forced(result: &RunResult, phase: &str, reason: StopReason) {
    assert_eq!(result.stop_reason, reason, "{:?}", result.errors);
    assert_eq!(result.forced, ["g"]);
    assert!(!result.is_ok() || phase == "deactivate");
    let error = result.errors.iter().find(|error| error.phase == phase);
    let error = error.unwrap_or_else(|| panic!("{phase}: {:?}", result.errors));
    assert_eq!(error.component_id, "g");
    let expected = "was ended by force: the run had to stop within 400 ms";
    assert!(error.message.starts_with(expected), "{}", error.message);
}

#[test]
fn an_invocation_that_does_not_return_is_ended_when_the_run_is_to_stop() {
    for lane in LANES {
        for execution in ["", ", on_error: continue", ", timeout_ms: 50000"] {
            let (stage, begun) = stage(lane, "execute", execution);
            let result = stopped(&stage, &begun);
            was_forced(&result, "execute", StopReason::StopRequested);
        }
    }
}

#[test]
fn an_activation_that_does_not_return_is_ended_when_the_run_is_to_stop() {
    for lane in LANES {
        let (stage, begun) = stage(lane, "activate", "");
        let result = stopped(&stage, &begun);
        was_forced(&result, "activate", StopReason::StopRequested);
    }
}

#[test]
fn a_deactivation_that_does_not_return_is_ended_when_the_run_is_to_stop() {
    let (stage, begun) = stage(LANES[0], "deactivate", "");
    let stop = CancellationToken::new();
    stop.cancel();
    let runtime = Runtime::new().expect("a runtime");
    let result = runtime.block_on(stage.prepared().run(options(&stop)));
    assert!(begun.load(Ordering::SeqCst));
    was_forced(&result, "deactivate", StopReason::StopRequested);
}

#[test]
fn an_invocation_that_does_not_return_is_ended_when_the_duration_is_over() {
    for lane in LANES {
        let (stage, _) = stage(lane, "execute", "");
        let runtime = Runtime::new().expect("a runtime");
        let began = Instant::now();
        let result = runtime.block_on(stage.prepared().run(RunOptions {
            duration: Some(Duration::from_millis(100)),
            ..options(&CancellationToken::new())
        }));
        assert!(began.elapsed() >= Duration::from_millis(100) + WITHIN / 2);
        was_forced(&result, "execute", StopReason::DurationBound);
    }
}

#[test]
fn a_component_that_cannot_be_ended_is_named() {
    let mut stage = Stage::file(
        "schema_version: 2
graph: {name: stopping, kind: internal_test}
lanes: {own: {type: event_loop}}
components:
  - {id: deaf, type: test.Deaf, execution: {lane: own}}
edges: []
",
    );
    let (free, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (until, told) = (free.clone(), begun.clone());
    stage
        .registry
        .function("test.Deaf", Descriptor::new(), move |_| {
            told.store(true, Ordering::SeqCst);
            while !until.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            Ok(())
        });
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let run = stage.prepared().begin(RunOptions::steps(1));
    let control = run.control().clone();
    assert_eq!(control.under_way(), Vec::<String>::new());
    drop(runtime.spawn(async move { run.run().await }));
    while !begun.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert_eq!(control.under_way(), ["deaf"]);
    let report = runtime.shutdown(Duration::from_millis(300));
    free.store(true, Ordering::SeqCst);
    let said = "graph stopping did not stop: component deaf has not returned";
    assert_eq!(report.not_stopped, [said]);
}
