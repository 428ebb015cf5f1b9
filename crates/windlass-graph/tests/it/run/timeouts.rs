//! `timeout_ms`: what takes too long is ended, and nothing else.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass_graph::component::{Component, Descriptor, Failure, Interrupt, Invocation};
use windlass_graph::model::BoundaryRole;
use windlass_graph::run::TraceName;
use windlass_graph::{RunOptions, RunResult, StopReason};
use windlass_runtime::Runtime;

use super::replay::{Folder, recorded, replay, same};
use super::stage::{Stage, count, traced};

/// What would never end is taken for lost after this time.
const LOST: Duration = Duration::from_secs(60);

/// What a guest and its interrupt know.
#[derive(Default)]
struct Guest {
    asked: AtomicBool,
    calls: AtomicU64,
    interrupts: AtomicU64,
    forgotten: AtomicU64,
    /// The invocations that saw an interrupt.
    hit: Mutex<BTreeSet<u64>>,
}

impl Interrupt for Guest {
    fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
        self.asked.store(true, Ordering::SeqCst);
    }

    fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.asked.store(false, Ordering::SeqCst);
    }
}

impl Guest {
    fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// Works until this time is over, or until it is interrupted.
    fn work(&self, invocation: &Invocation<'_>, time: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        while began.elapsed() < time {
            if self.asked.load(Ordering::SeqCst) {
                self.hit.lock().unwrap().insert(invocation.transaction());
                return Err(Failure::new("out of breath"));
            }
            std::hint::spin_loop();
        }
        assert!(time < LOST, "nobody ended it");
        Ok(())
    }
}

/// Passes numbers on; for 0 it never ends by itself.
struct Spins(Arc<Guest>);

impl Component for Spins {
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        let number = invocation.input("in").and_then(|m| m.payload().as_i64());
        invocation.publish_to("out", number.unwrap_or_default());
        match number.unwrap_or_default() {
            0 => self.0.work(invocation, LOST),
            _ => Ok(()),
        }
    }

    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        Some(self.0.clone())
    }
}

fn open() -> Descriptor {
    Descriptor::new().open_ports().open_config()
}

fn version_2(text: &str) -> Stage {
    Stage::file(&format!(
        "schema_version: 2\ngraph: {{name: timeouts, kind: internal_test}}{text}"
    ))
}

/// A source of 1, 0 and 2, a `test.Spins` on `lane` with a limit of 20 ms, and a sink.
fn stage(lane: &str, execution: &str) -> (Stage, Arc<Guest>) {
    let mut stage = version_2(&format!(
        "
lanes:
  main: {{type: event_loop}}
  own: {lane}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1], [0], [2]]}}, execution: {{lane: main}}}}
  - {{id: g, type: test.Spins, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: own, timeout_ms: 20, {execution}}}}}
  - {{id: z, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: g.in, kind: immediate}}
  - {{id: f, from: g.out, to: z.in, kind: immediate}}
"
    ));
    let guest = Arc::<Guest>::default();
    let made = guest.clone();
    stage
        .registry
        .register_with("test.Spins", open().preemptible(), move || {
            Box::new(Spins(made.clone()))
        });
    (stage, guest)
}

const LANES: [&str; 5] = [
    "{type: event_loop}",
    "{type: event_loop, thread_name: named}",
    "{type: thread_pool, max_threads: 2}",
    "{type: isolated_thread}",
    "{type: fixed_rate, period_ms: 5, wall_clock_enabled: true}",
];

/// What the guest did and what the run says of it: one of its invocations was ended.
#[track_caller]
fn ended_once(result: &RunResult, guest: &Guest, fatal: bool) {
    let errors = &result.errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code.name(), "component_execute");
    assert_eq!(errors[0].component_id, "g");
    assert_eq!(errors[0].fatal, fatal);
    let message = &errors[0].message;
    assert!(message.starts_with("was ended after 20 ms"), "{message}");
    assert_eq!(count(result, "component.timeout_count", "g"), 1);
    assert_eq!(count(result, "component.error_count", "g"), 1);
    assert_eq!(traced(result, "component_timeout"), ["component_timeout"]);
    assert_eq!(
        result.metrics.sum("runtime.publication.error_discarded"),
        1.0
    );
    assert_eq!(guest.interrupts(), 1);
    assert_eq!(guest.forgotten.load(Ordering::SeqCst), 1);
}

#[test]
fn what_takes_too_long_is_ended_and_ends_the_run_on_every_kind_of_lane() {
    for lane in LANES {
        let (stage, guest) = stage(lane, "on_error: fail_fast");
        let began = Instant::now();
        let result = stage.run_really(RunOptions::steps(3).traced());
        assert_eq!(result.stop_reason, StopReason::Error, "{lane}");
        ended_once(&result, &guest, true);
        assert_eq!(stage.log.take(), ["z: in=1"], "{lane}");
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(20), "{lane}: {took:?}");
        assert!(took < Duration::from_secs(10), "{lane}: {took:?}");
    }
}

#[test]
fn the_run_goes_on_without_what_it_published_on_every_kind_of_lane() {
    for lane in LANES {
        let (stage, guest) = stage(lane, "on_error: continue");
        let result = stage.run_really(RunOptions::steps(3).traced());
        assert!(result.is_ok(), "{lane}: {:?}", result.errors);
        ended_once(&result, &guest, false);
        assert_eq!(stage.log.take(), ["z: in=1", "z: in=2"], "{lane}");
    }
}

#[test]
fn what_is_isolated_is_not_called_again_on_every_kind_of_lane() {
    for lane in LANES {
        let (stage, guest) = stage(lane, "on_error: isolate");
        let result = stage.run_really(RunOptions::steps(3).traced());
        assert!(result.is_ok(), "{lane}: {:?}", result.errors);
        ended_once(&result, &guest, false);
        assert_eq!(stage.log.take(), ["z: in=1"], "{lane}");
        assert_eq!(guest.calls.load(Ordering::SeqCst), 2, "{lane}");
        assert_eq!(result.metrics.sum("runtime.lifecycle.isolated_count"), 1.0);
    }
}

#[test]
fn a_member_of_a_loop_beside_the_epochs_is_ended_too() {
    for kind in ["fixed_point", "async_task"] {
        let (template, guest) = stage("{type: event_loop}", "on_error: continue");
        let mut stage = version_2(&format!(
            "
lanes: {{main: {{type: event_loop}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[0]]}}, execution: {{lane: main}}}}
  - {{id: g, type: test.Spins, trigger_policy: {{type: any_input, inputs: [in, back]}}, execution: {{lane: main, timeout_ms: 20, on_error: continue}}}}
  - {{id: h, type: test.Pass, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: g.in, kind: immediate}}
  - {{id: f, from: g.out, to: h.in, kind: immediate}}
  - {{id: b, from: h.out, to: g.back, kind: immediate}}
composite_loops: [{{id: l, components: [g, h], loop_policy: {{type: {kind}}}}}]
"
        ));
        stage.registry = template.registry;
        let result = stage.run_really(RunOptions::steps(2).traced());
        assert!(result.is_ok(), "{kind}: {:?}", result.errors);
        ended_once(&result, &guest, false);
    }
}

/// Works for about as long as it may, now a little less, now a little more.
struct CoarseClock {
    guest: Arc<Guest>,
    times: u64,
}

impl Component for CoarseClock {
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        self.times = self.times.wrapping_mul(6364136223846793005).wrapping_add(1);
        let time = Duration::from_micros(850 + (self.times >> 33) % 300);
        self.guest.work(invocation, time)
    }

    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        Some(self.guest.clone())
    }
}

#[test]
fn an_interrupt_never_hits_the_next_invocation() {
    for lane in ["{type: event_loop}", "{type: thread_pool, max_threads: 2}"] {
        let mut stage = version_2(&format!(
            "
lanes: {{own: {lane}}}
components:
  - {{id: g, type: test.g, execution: {{lane: own, timeout_ms: 1, on_error: continue}}}}
  - {{id: h, type: test.h, execution: {{lane: own, timeout_ms: 1, on_error: continue}}}}
edges: []
"
        ));
        let guests = [Arc::<Guest>::default(), Arc::default()];
        for (guest, name) in guests.iter().zip(["test.g", "test.h"]) {
            let guest = guest.clone();
            let descriptor = open().preemptible();
            stage.registry.register_with(name, descriptor, move || {
                let guest = guest.clone();
                Box::new(CoarseClock { guest, times: 1 })
            });
        }
        let result = stage.run_really(RunOptions::steps(700).traced());
        assert!(result.is_ok(), "{:?}", result.errors);
        for (guest, id) in guests.iter().zip(["g", "h"]) {
            let events = result.trace.events.iter();
            let ended: BTreeSet<u64> = events
                .filter(|event| event.name == TraceName::ComponentTimeout)
                .filter(|event| event.component_id == id)
                .map(|event| event.transaction_id)
                .collect();
            let count = count(&result, "component.timeout_count", id);
            assert_eq!(ended.len() as u64, count, "{lane}");
            // Each ended the invocation that it came in, and no other saw it.
            assert_eq!(guest.interrupts(), count, "{lane}");
            assert_eq!(guest.forgotten.load(Ordering::SeqCst), count, "{lane}");
            let hit = guest.hit.lock().unwrap();
            assert!(hit.is_subset(&ended), "{lane}: {hit:?} {ended:?}");
            assert!(!ended.is_empty(), "{lane}: none was ended");
            assert!(count < 700, "{lane}: all were ended");
        }
    }
}

#[test]
fn an_invocation_that_was_interrupted_is_ended_even_if_it_returns_without_an_error() {
    let (mut stage, guest) = stage("{type: event_loop}", "on_error: continue");
    struct Polite(Spins);
    impl Component for Polite {
        fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
            let _ = self.0.execute(invocation);
            Ok(())
        }
        fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
            self.0.interrupt()
        }
    }
    let made = guest.clone();
    stage
        .registry
        .register_with("test.Spins", open().preemptible(), move || {
            Box::new(Polite(Spins(made.clone())))
        });
    let result = stage.run_really(RunOptions::steps(3).traced());
    ended_once(&result, &guest, false);
    assert_eq!(stage.log.take(), ["z: in=1", "z: in=2"]);
}

#[test]
fn an_interrupt_that_panics_harms_nobody() {
    struct Clumsy(Arc<Guest>);
    impl Interrupt for Clumsy {
        fn interrupt(&self) {
            self.0.interrupt();
            panic!("on purpose");
        }
        fn forget(&self) {
            self.0.forget();
            panic!("on purpose");
        }
    }
    struct Falls(Spins);
    impl Component for Falls {
        fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
            self.0.execute(invocation)
        }
        fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
            Some(Arc::new(Clumsy(self.0.0.clone())))
        }
    }
    let (mut stage, guest) = stage("{type: event_loop}", "on_error: continue");
    let made = guest.clone();
    stage
        .registry
        .register_with("test.Spins", open().preemptible(), move || {
            Box::new(Falls(Spins(made.clone())))
        });
    let result = stage.run_really(RunOptions::steps(3).traced());
    ended_once(&result, &guest, false);
}

#[test]
fn a_type_that_cannot_be_preempted_is_asked_to_cancel() {
    for lane in LANES {
        let (mut stage, _) = stage(lane, "on_error: continue");
        // Before the run: the time of a call counts from before its first line.
        let began = Instant::now();
        stage
            .registry
            .function("test.Spins", open(), move |invocation| {
                while !invocation.cancel_requested() {
                    assert!(began.elapsed() < LOST, "nobody asked");
                    std::hint::spin_loop();
                }
                assert!(began.elapsed() >= Duration::from_millis(19));
                invocation.publish_to("out", 5);
                Ok(())
            });
        let result = stage.run_really(RunOptions::steps(1).traced());
        assert!(result.errors.is_empty(), "{lane}: {:?}", result.errors);
        for name in ["cancellation_requested", "cancellation_observed"] {
            let name = format!("component.{name}_count");
            assert_eq!(count(&result, &name, "g"), 1, "{lane}");
        }
        assert_eq!(count(&result, "component.timeout_count", "g"), 0);
        assert!(traced(&result, "component_timeout").is_empty());
        assert_eq!(stage.log.take(), ["z: in=5"], "its result counts: {lane}");
    }
}

#[test]
fn a_type_that_breaks_its_promise_does_not_start() {
    let (mut stage, _) = stage("{type: event_loop}", "on_error: continue");
    struct Stubborn;
    impl Component for Stubborn {
        fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
            Ok(())
        }
    }
    stage
        .registry
        .register_with("test.Spins", open().preemptible(), || Box::new(Stubborn));
    let result = stage.run_really(RunOptions::steps(1));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(result.ticks, 0);
    assert_eq!(result.errors[0].code.name(), "component_activate");
    let message = &result.errors[0].message;
    assert!(message.contains("test.Spins"), "{message}");
    assert!(message.contains("Component::interrupt"), "{message}");
}

#[test]
fn nothing_is_ended_in_a_simulation() {
    let (mut stage, guest) = stage("{type: event_loop}", "on_error: fail_fast");
    let made = guest.clone();
    struct Slow(Arc<Guest>);
    impl Component for Slow {
        fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
            self.0.work(invocation, Duration::from_millis(60))
        }
        fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
            Some(self.0.clone())
        }
    }
    stage
        .registry
        .register_with("test.Spins", open().preemptible(), move || {
            Box::new(Slow(made.clone()))
        });
    let result = stage.steps(3);
    assert_eq!(count(&result, "component.execution_count", "g"), 3);
    assert_eq!(guest.interrupts(), 0);
}

#[test]
fn a_recording_ends_again_what_was_ended_without_waiting() {
    for lane in LANES {
        for on_error in ["fail_fast", "continue", "isolate"] {
            let (stage, guest) = stage(lane, &format!("on_error: {on_error}"));
            let folder = Folder::new();
            let run = stage.run_really(recorded(&folder, RunOptions::steps(3)));
            let seen = stage.log.take();
            let calls = guest.calls.swap(0, Ordering::SeqCst);
            let ended = |line: &String| line.contains(r#""timed_out":true"#);
            assert_eq!(folder.lines().iter().filter(|line| ended(line)).count(), 1);
            let began = Instant::now();
            let replayed = replay(&stage.prepared(), &folder);
            same(&replayed, &run);
            assert_eq!(stage.log.take(), seen, "{lane} {on_error}");
            assert_eq!(
                count(&replayed.result, "component.timeout_count", "g"),
                1,
                "{lane} {on_error}"
            );
            // All but the one that was ended.
            assert_eq!(guest.calls.load(Ordering::SeqCst), calls - 1);
            assert_eq!(guest.interrupts(), 1, "nobody is interrupted again");
            assert!(began.elapsed() < Duration::from_secs(10));
        }
    }
}

#[test]
fn what_has_been_mended_can_be_replayed_without_its_limit() {
    let (broken, _) = stage("{type: event_loop}", "on_error: continue");
    let folder = Folder::new();
    broken.run_really(recorded(&folder, RunOptions::steps(2)));
    let mut mended = Stage::file(&broken.text().replace("timeout_ms: 20, ", ""));
    let lines = mended.log.clone();
    mended
        .registry
        .function("test.Spins", open(), move |invocation| {
            lines.push("called");
            invocation.publish_to("out", 7);
            Ok(())
        });
    let replayed = replay(&mended.prepared(), &folder);
    assert!(replayed.difference.is_some());
    assert_eq!(mended.log.take(), ["called", "z: in=7"].repeat(2), "both");
}

#[test]
fn a_boundary_that_was_ended_or_asked_to_cancel_is_played_back_as_it_was() {
    let (template, guest) = stage("{type: event_loop}", "on_error: continue");
    let mut stage = version_2(
        "
lanes: {main: {type: event_loop, max_callback_ms: 3}}
components:
  - {id: s, type: test.Spins, execution: {lane: main, timeout_ms: 20, on_error: continue}}
  - {id: c, type: test.Asks, execution: {lane: main}}
  - {id: z, type: test.Sink, trigger_policy: {type: any_input, inputs: [a, b]}, execution: {lane: main}}
edges:
  - {id: e, from: s.out, to: z.a, kind: immediate}
  - {id: f, from: c.out, to: z.b, kind: immediate}
",
    );
    stage.registry = template.registry;
    stage.registry.function(
        "test.Asks",
        open().boundary(BoundaryRole::Input),
        |invocation| {
            let began = Instant::now();
            while !invocation.cancel_requested() {
                assert!(began.elapsed() < LOST, "nobody asked");
            }
            invocation.publish_to("out", 1);
            Ok(())
        },
    );
    let folder = Folder::new();
    let run = stage.run_really(recorded(&folder, RunOptions::steps(2)));
    assert_eq!(count(&run, "component.timeout_count", "s"), 2);
    assert_eq!(count(&run, "component.cancellation_observed_count", "c"), 2);
    let replayed = replay(&stage.prepared(), &folder);
    same(&replayed, &run);
    assert_eq!(guest.calls.load(Ordering::SeqCst), 2, "not called again");
    let again = &replayed.result;
    assert_eq!(
        count(again, "component.cancellation_observed_count", "c"),
        2
    );
}

#[test]
fn an_invocation_is_ended_on_its_pool_even_if_the_run_was_dropped() {
    let (stage, guest) = stage("{type: thread_pool}", "on_error: continue");
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async {
        let running = stage.begin(RunOptions::steps(3)).start();
        while guest.calls.load(Ordering::SeqCst) < 2 {
            windlass_runtime::time::sleep(Duration::from_millis(1)).await;
        }
        drop(running);
    });
    let began = Instant::now();
    drop(runtime);
    while guest.interrupts() == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "it spins on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How many threads of this process have this name, which the kernel cuts off after 15 bytes.
#[cfg(target_os = "linux")]
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let named = tasks.filter_map(|task| {
        // It may have ended meanwhile.
        let comm = std::fs::read_to_string(task.ok()?.path().join("comm")).ok()?;
        (comm.trim() == name).then_some(())
    });
    named.count()
}

#[cfg(target_os = "linux")]
#[test]
fn only_a_run_with_something_to_watch_has_a_thread_for_that() {
    let seen = |kind: &str, limit: &str| {
        let name = format!("w{kind}{limit}");
        let (template, _) = stage("{type: event_loop}", "");
        let mut stage = Stage::file(&format!(
            "
schema_version: 2
graph: {{name: {name}, kind: internal_test}}
lanes: {{main: {{type: event_loop}}}}
components:
  - {{id: unused, type: test.{kind}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main, timeout_ms: {limit}}}}}
  - {{id: looks, type: test.Looks, execution: {{lane: main}}}}
edges: [{{id: e, from: looks.out, to: unused.in, kind: immediate}}]
"
        ));
        stage.registry = template.registry;
        let most = Arc::new(AtomicU64::new(0));
        let (thread, found) = (format!("watch-{name}"), most.clone());
        let looked = thread.clone();
        stage.registry.function("test.Looks", open(), move |_| {
            found.fetch_max(threads_named(&looked) as u64, Ordering::SeqCst);
            Ok(())
        });
        let result = stage.run_really(RunOptions::steps(3));
        assert!(result.is_ok(), "{:?}", result.errors);
        let began = Instant::now();
        while threads_named(&thread) > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "it stays");
            std::thread::sleep(Duration::from_millis(1));
        }
        most.load(Ordering::SeqCst)
    };
    assert_eq!(seen("Spins", "20"), 1);
    assert_eq!(
        seen("Spins", "0"),
        1,
        "it may have to be ended when the run stops"
    );
    assert_eq!(seen("Sink", "20"), 0, "nobody can end it");
}
