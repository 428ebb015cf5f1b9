//! The threads of lanes: which have some, what the system gives them, which are stepped, and what a
//! deadline means.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windlass_graph::component::Descriptor;
use windlass_graph::run::{HealthKind, StepError};
use windlass_graph::{RunOptions, RunResult, StopReason};
use windlass_runtime::{Runtime, time};

use super::stage::{Log, Stage, count, health, traced};

const MS: Duration = Duration::from_millis(1);

fn version_2(text: &str) -> Stage {
    let head = "schema_version: 2\ngraph: {name: stage, kind: internal_test}\n";
    Stage::file(&format!("{head}{text}"))
}

/// Which component is called on which thread, with which CPUs, niceness and policy, as the kernel
/// says it.
fn with_who(mut stage: Stage) -> Stage {
    let log: Log = stage.log.clone();
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Who", open, move |invocation| {
            let name = std::thread::current().name().unwrap_or("").to_owned();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
            let cpus = status
                .lines()
                .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
            let field = |number: usize| fields.get(number - 3).copied().unwrap_or("?").to_owned();
            let cpus = cpus.unwrap_or("").trim();
            let (nice, rt_priority, policy) = (field(19), field(40), field(41));
            let id = invocation.component();
            log.push(format!(
                "{id}: {name} cpus={cpus} nice={nice} policy={policy}/{rt_priority}"
            ));
            Ok(())
        });
    stage
}

/// Whether this process may have what only few may.
fn is_privileged() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let mask = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    const CAP_SYS_NICE: u64 = 1 << 23;
    mask.unwrap_or_default() & CAP_SYS_NICE != 0
}

#[test]
fn any_lane_that_names_attributes_has_a_thread_with_them() {
    for kind in [
        "event_loop",
        "fixed_rate, hz: 100",
        "thread_pool",
        "isolated_thread",
        "manual_step",
    ] {
        let text = "
lanes:
  plain: {type: event_loop}
  own: {type: KIND, thread_name: mine, cpu_affinity: [0], nice_priority: 7}
components:
  - {id: a, type: test.Who, execution: {lane: own}}
  - {id: b, type: test.Who, execution: {lane: plain}}
edges: []
";
        let stage = with_who(version_2(&text.replace("KIND", kind)));
        let options = RunOptions {
            step_lanes: match kind {
                "manual_step" => vec!["own".to_owned()],
                _ => Vec::new(),
            },
            ..RunOptions::steps(2)
        };
        let result = stage.run_really(options);
        assert!(result.is_ok(), "{:?}", result.errors);
        let lines = stage.log.take();
        let own: Vec<&String> = lines.iter().filter(|l| l.starts_with("a:")).collect();
        assert_eq!(own.len(), 2, "{kind}: {lines:?}");
        for line in own {
            assert!(line.contains("mine"), "{kind}: {line}");
            assert!(line.contains(" cpus=0 nice=7 "), "{kind}: {line}");
        }
        assert!(
            lines
                .iter()
                .any(|l| l.starts_with("b:") && !l.contains("mine"))
        );
        assert_eq!(result.order, ["a", "b", "a", "b"]);
        let grant = &result.lane_grants[0];
        assert_eq!(grant.lane, "own");
        assert_eq!(grant.threads, ["cpus [0], nice 7"]);
        assert!(grant.refused.is_empty());
    }
}

#[test]
fn real_time_policies_are_given_or_it_is_said_that_they_are_not() {
    let stage = with_who(version_2(
        "
lanes:
  fifo: {type: isolated_thread, rt_policy: SCHED_FIFO, rt_priority: 5}
  rr: {type: event_loop, rt_policy: rr, rt_priority: 6}
  deadline: {type: fixed_rate, period_ms: 20, wall_clock_enabled: true, tick_budget_ms: 2, rt_policy: deadline}
components:
  - {id: a, type: test.Who, execution: {lane: fifo}}
  - {id: b, type: test.Who, execution: {lane: rr}}
  - {id: c, type: test.Who, execution: {lane: deadline}}
edges: []
",
    ));
    let result = stage.run_really(RunOptions::steps(1));
    assert!(result.is_ok(), "{:?}", result.errors);
    let mut lines = stage.log.take();
    // They overlap.
    lines.sort();
    let asked = ["policy=1/5", "policy=2/6", "policy=6/0"];
    for ((line, asked), grant) in lines.iter().zip(asked).zip(&result.lane_grants) {
        match is_privileged() {
            true => {
                assert!(line.contains(asked), "{line}");
                assert!(grant.refused.is_empty(), "{grant:?}");
            }
            false => {
                assert!(line.contains("policy=0/0"), "{line}");
                assert_eq!(grant.refused.len(), 1, "{grant:?}");
            }
        }
    }
}

#[test]
fn a_strict_lane_that_is_refused_something_keeps_the_run_from_beginning() {
    for lane in [
        "{type: thread_pool, cpu_affinity: [1023], os_policy: strict}",
        "{type: event_loop, cpu_affinity: [1023], os_policy: strict}",
        "{type: fixed_rate, hz: 100, wall_clock_enabled: true, cpu_affinity: [1023], os_policy: strict}",
    ] {
        let text = "lanes: {own: LANE}\ncomponents: [{id: a, type: test.Who, execution: {lane: own}}]\nedges: []\n";
        let stage = with_who(version_2(&text.replace("LANE", lane)));
        let result = stage.run_really(RunOptions::steps(1));
        assert_eq!(result.stop_reason, StopReason::Error, "{lane}");
        let message = &result.errors[0].message;
        assert!(message.contains("lane own has no thread"), "{message}");
        assert!(stage.log.take().is_empty(), "nothing has begun");

        let warns = with_who(version_2(
            &text.replace("LANE", &lane.replace("strict", "warn")),
        ));
        let result = warns.run_really(RunOptions::steps(1));
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(result.lane_grants[0].refused, ["cpus [1023]"]);
        assert_eq!(warns.log.take().len(), 1);
    }
}

#[test]
fn exclusive_cpus_are_kept_from_the_other_lanes() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let stage = with_who(version_2(
        "
lanes:
  kept: {type: isolated_thread, cpu_affinity: [1], isolation_intent: exclusive}
  both: {type: thread_pool, cpu_affinity: [0, 1]}
  any: {type: thread_pool}
components:
  - {id: a, type: test.Who, execution: {lane: kept}}
  - {id: b, type: test.Who, execution: {lane: both}}
  - {id: c, type: test.Who, execution: {lane: any}}
edges: []
",
    ));
    let result = stage.run_really(RunOptions::steps(1));
    assert!(result.is_ok(), "{:?}", result.errors);
    let lines = stage.log.take();
    let cpus = |id: &str| {
        let line = lines.iter().find(|l| l.starts_with(id)).expect("it ran");
        let from = line.find("cpus=").expect("cpus") + 5;
        line[from..].split(' ').next().expect("a list").to_owned()
    };
    // Such as 0,2-7.
    let allows = |list: &str, cpu: usize| {
        let mut ranges = list
            .split(',')
            .map(|range| range.split_once('-').unwrap_or((range, range)));
        let number = |text: &str| text.parse::<usize>().expect("a number");
        ranges.any(|(first, last)| (number(first)..=number(last)).contains(&cpu))
    };
    assert_eq!(cpus("a:"), "1");
    assert_eq!(cpus("b:"), "0");
    assert!(
        allows(&cpus("c:"), 0) && !allows(&cpus("c:"), 1),
        "{}",
        cpus("c:")
    );
}

#[test]
fn memory_is_locked_while_a_run_asks_for_it() {
    let mut stage = version_2(
        "
lanes: {main: {type: event_loop, mlock: true}}
components: [{id: a, type: test.Locked, execution: {lane: main}}]
edges: []
",
    );
    let locked = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmLck:"));
        line.map(|l| l.trim() != "0 kB").unwrap_or_default()
    };
    let log = stage.log.clone();
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Locked", open, move |_| {
        log.push(locked().to_string());
        Ok(())
    });
    let result = stage.run_really(RunOptions::steps(1));
    assert!(result.is_ok(), "{:?}", result.errors);
    let grant = &result.lane_grants[0];
    match grant.refused.is_empty() {
        true => {
            assert_eq!(stage.log.take(), ["true"]);
            assert_eq!(grant.threads, ["memory locked"]);
        }
        false => assert!(grant.refused[0].starts_with("mlock: "), "{grant:?}"),
    }
    assert!(!locked(), "not longer than the run");
}

#[test]
fn a_lane_that_waits_for_steps_runs_when_it_is_stepped() {
    let text = "
lanes: {main: {type: event_loop}, hand: {type: manual_step}}
components:
  - {id: in, type: test.Source, config: {epochs: [[1], [2], [3], [4]]}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: hand}}
edges:
  - {id: e, from: in.out, to: out.in, kind: immediate, policy: {mode: queue, capacity: 8}}
";
    let stage = version_2(text);
    let result = stage.run(RunOptions::steps(4));
    assert_eq!(count(&result, "channel.waiting", "e"), 4);
    assert!(stage.log.take().is_empty());

    let always = RunOptions {
        step_lanes: vec!["hand".to_owned()],
        ..RunOptions::steps(4)
    };
    stage.run(always);
    assert_eq!(stage.log.take().len(), 4);

    for (lane, message) in [("nowhere", "there is no lane"), ("main", "runs by itself")] {
        let wrong = RunOptions {
            step_lanes: vec![lane.to_owned()],
            ..RunOptions::steps(1)
        };
        let result = stage.run(wrong);
        assert!(
            result.errors[0].message.contains(message),
            "{:?}",
            result.errors
        );
    }
}

#[test]
fn a_run_that_has_nothing_else_to_do_waits_for_steps() {
    let stage = version_2(
        "
lanes: {hand: {type: manual_step}}
components: [{id: a, type: test.Sink, execution: {lane: hand}}]
edges: []
",
    );
    Runtime::simulated(4).block_on(async {
        let running = stage.begin(RunOptions::steps(u64::MAX)).start();
        let control = running.control().clone();
        time::sleep(10 * MS).await;
        assert!(stage.log.take().is_empty());
        for _ in 0..3 {
            control.step("hand").expect("it waits");
        }
        time::sleep(10 * MS).await;
        assert_eq!(stage.log.take().len(), 3, "each step is an epoch");
        assert_eq!(
            control.step("nowhere"),
            Err(StepError::NoLane("nowhere".to_owned()))
        );
        running.stop();
        let result = running.await.expect("no panic");
        assert_eq!(result.stop_reason, StopReason::StopRequested);
        assert!(result.epochs < 10, "{} epochs", result.epochs);
        assert_eq!(control.step("hand"), Err(StepError::Ended));
    });
}

/// A lane on the clock whose third tick takes too long.
fn late(fields: &str) -> RunResult {
    let mut stage = version_2(&format!(
        "
lanes: {{clock: {{type: fixed_rate, period_ms: 20, wall_clock_enabled: true, {fields}}}}}
components: [{{id: a, type: test.Late, execution: {{lane: clock}}}}]
edges: []
"
    ));
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Late", open, |invocation| {
        if invocation.epoch() == 3 {
            std::thread::sleep(Duration::from_millis(15));
        }
        Ok(())
    });
    stage.run_really(RunOptions::steps(6).traced())
}

#[test]
fn a_tick_that_misses_its_deadline_does_what_the_lane_says_in_real_time() {
    let event = late("deadline_ms: 10");
    assert!(event.is_ok(), "{:?}", event.errors);
    assert!(count(&event, "scheduler.deadline_miss_count", "clock") >= 1);
    assert!(health(&event, HealthKind::LaneDeadlineMiss) >= 1);
    assert!(!traced(&event, "fixed_rate_deadline_miss").is_empty());

    let skip = late("deadline_ms: 10, on_deadline_miss: skip");
    assert!(skip.is_ok(), "{:?}", skip.errors);
    assert!(count(&skip, "scheduler.skipped_tick_count", "clock") >= 1);

    let stop = late("deadline_ms: 10, on_deadline_miss: stop");
    assert_eq!(stop.stop_reason, StopReason::Error);
    assert!(
        stop.errors[0].message.contains("after its deadline"),
        "{:?}",
        stop.errors
    );
    assert!(stop.epochs <= 3);

    let in_time = late("deadline_ms: 2000");
    assert_eq!(count(&in_time, "scheduler.deadline_miss_count", "clock"), 0);
}

#[test]
fn a_run_on_the_clock_is_stopped_while_it_sleeps_in_real_time() {
    let stage = version_2(
        "
lanes: {clock: {type: fixed_rate, period_ms: 3600000, wall_clock_enabled: true}}
components: [{id: a, type: test.Sink, execution: {lane: clock}}]
edges: []
",
    );
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async {
        let running = stage.begin(RunOptions::steps(2)).start();
        while running.control().progress().epochs == 0 {
            time::sleep(MS).await;
        }
        let began = std::time::Instant::now();
        running.stop();
        let result = running.await.expect("no panic");
        assert_eq!(result.stop_reason, StopReason::StopRequested);
        assert!(began.elapsed() < Duration::from_secs(5));
    });
}

/// Says when it is dropped.
struct Drops(std::sync::mpsc::Sender<()>);

impl windlass_graph::component::Component for Drops {
    fn execute(
        &mut self,
        _: &mut windlass_graph::component::Invocation<'_>,
    ) -> Result<(), windlass_graph::component::Failure> {
        Ok(())
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_run_on_the_clock_that_is_dropped_ends_at_once_in_real_time() {
    let mut stage = version_2(
        "
lanes: {clock: {type: fixed_rate, period_ms: 3600000, wall_clock_enabled: true}}
components: [{id: a, type: test.Drops, execution: {lane: clock}}]
edges: []
",
    );
    let (send, dropped) = std::sync::mpsc::channel();
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .register_with("test.Drops", open, move || Box::new(Drops(send.clone())));
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async {
        let run = stage.begin(RunOptions::steps(2));
        let control = run.control().clone();
        let mut run = Box::pin(run.run());
        while control.progress().epochs == 0 {
            let _ = time::timeout(MS, run.as_mut()).await;
        }
        assert!(dropped.try_recv().is_err(), "it sleeps until its next tick");
        drop(run);
        // The thread and its components, which would sleep for an hour.
        let gone = dropped.recv_timeout(Duration::from_secs(10));
        assert!(gone.is_ok(), "its component is still there");
    });
}

/// Keeps a CPU busy until it is dropped.
struct Hog(Arc<AtomicBool>);

impl Hog {
    fn new() -> Hog {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Hog(stop)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What nearly all ticks of a lane of 1 kHz are not later than, in milliseconds; each works for 0.3
/// of them.
fn lateness(fields: &str) -> f64 {
    let mut stage = version_2(&format!(
        "
lanes: {{clock: {{type: fixed_rate, hz: 1000, wall_clock_enabled: true{fields}}}}}
components: [{{id: a, type: test.Works, execution: {{lane: clock}}}}]
edges: []
"
    ));
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Works", open, |_| {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_micros(300) {
            std::hint::spin_loop();
        }
        Ok(())
    });
    let result = stage.run_really(RunOptions {
        duration: Some(Duration::from_millis(1200)),
        ..RunOptions::default()
    });
    assert!(result.is_ok(), "{:?}", result.errors);
    let late = result
        .metrics
        .of("runtime.scheduler.lateness_p99_ms", "clock");
    late.expect("it was measured")
}

#[test]
fn a_lane_with_a_real_time_policy_is_in_time_beside_hogs_in_real_time() {
    if !is_privileged() {
        // What is refused then, `real_time_policies_are_given_or_it_is_said_that_they_are_not`
        // shows.
        return;
    }
    let _hogs = [Hog::new(), Hog::new(), Hog::new()];
    // The middle one of three, taking turns: a host that takes a core away for some milliseconds
    // does so for one of them.
    let (mut usual, mut fifo) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        usual.push(lateness(""));
        fifo.push(lateness(", rt_policy: fifo, rt_priority: 50"));
    }
    let middle = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (usual, fifo) = (middle(usual), middle(fifo));
    // A tenth is what the bench asks for (`lane_jitter`), with the machine to itself. Here it shows
    // that the policy is in force: without it both are the same.
    assert!(fifo * 3.0 <= usual, "usual {usual} ms, fifo {fifo} ms");
}
