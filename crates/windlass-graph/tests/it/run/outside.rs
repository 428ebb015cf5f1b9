//! Components with a task of their own: what comes from outside, sinks that need a pause, ends that
//! take time.

use std::time::Duration;

use windlass_core::task::JoinHandle;
use windlass_graph::component::{
    Component, Descriptor, Drain, Failure, Invocation, Output, Outside, Setup, WeakOutside,
};
use windlass_graph::run::ConfigTransaction;
use windlass_graph::{RunOptions, StopReason};
use windlass_runtime::{Runtime, time};
use windlass_sync::channel::mpsc;

use super::stage::{Log, Stage, count};

const MS: Duration = Duration::from_millis(1);

/// Brings `config.count` numbers, one every `config.every_ms`, and then closes its door.
#[derive(Default)]
struct Bringer {
    output: Output<i64>,
    begin: Option<(Outside, mpsc::Sender<i64>)>,
    come: Option<mpsc::Receiver<i64>>,
    count: i64,
    every: Duration,
}

impl Component for Bringer {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let number = |name: &str| setup.config().get(name).and_then(|n| n.as_i64());
        self.count = number("count").unwrap_or(3);
        self.every = MS * number("every_ms").unwrap_or(10) as u32;
        self.output = setup.output("out")?;
        let (send, come) = mpsc::channel(4);
        self.begin = Some((setup.outside(), send));
        self.come = Some(come);
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        let (outside, send) = self.begin.take().expect("configured");
        let (count, every) = (self.count, self.every);
        let bring = async move {
            for number in 0..count {
                time::sleep(every).await;
                if send.send(number).await.is_err() {
                    return;
                }
                outside.wake();
            }
        };
        windlass_runtime::spawn(bring).detach();
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let come = self.come.as_mut().expect("configured");
        while let Ok(number) = come.try_recv() {
            invocation.publish(self.output, number);
        }
        Ok(())
    }
}

/// Writes one line in `config.takes_ms`, and wants to be left alone meanwhile.
#[derive(Default)]
struct Slow {
    log: Log,
    takes: Duration,
    door: Option<WeakOutside>,
    send: Option<mpsc::Sender<String>>,
    begin: Option<(WeakOutside, mpsc::Receiver<String>)>,
    writer: Option<JoinHandle<()>>,
}

impl Component for Slow {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let takes = setup.config().get("takes_ms").and_then(|n| n.as_i64());
        self.takes = MS * takes.unwrap_or(50) as u32;
        let door = setup.outside().downgrade();
        let (send, receive) = mpsc::channel(1);
        self.begin = Some((door.clone(), receive));
        (self.door, self.send) = (Some(door), Some(send));
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        let (door, mut receive) = self.begin.take().expect("configured");
        let (log, takes) = (self.log.clone(), self.takes);
        self.writer = Some(windlass_runtime::spawn(async move {
            while let Some(line) = receive.recv().await {
                time::sleep(takes).await;
                log.push(line);
                door.resume();
            }
        }));
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let send = self.send.as_ref().expect("configured");
        for message in invocation.inputs() {
            let line = format!("{:?}", message.payload());
            send.try_send(line)
                .map_err(|_| Failure::new("there is no room"))?;
        }
        let door = self.door.as_ref().expect("configured");
        door.hold_off();
        if !send.is_full() {
            door.resume();
        }
        Ok(())
    }

    fn drain(&mut self) -> Option<Drain> {
        drop(self.send.take());
        let writer = self.writer.take()?;
        Some(Box::pin(async move { writer.await.map_err(Failure::from) }))
    }
}

pub(crate) fn stage(text: &str) -> Stage {
    let mut stage = Stage::new(text);
    let open = || Descriptor::new().open_ports().open_config();
    stage
        .registry
        .register_with("test.Bringer", open(), || Box::new(Bringer::default()));
    let log = stage.log.clone();
    stage.registry.register_with("test.Slow", open(), move || {
        Box::new(Slow {
            log: log.clone(),
            ..Slow::default()
        })
    });
    stage
}

pub(crate) const BRINGS: &str = "
components:
  - {id: in, type: test.Bringer, config: {count: 5}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: in.out, to: out.in, kind: immediate}
";

fn until_idle() -> RunOptions {
    RunOptions {
        until_idle: true,
        ..RunOptions::default()
    }
}

#[test]
fn what_comes_from_outside_makes_its_component_run_and_the_run_ends_when_no_more_can_come() {
    let stage = stage(BRINGS);
    let began = std::time::Instant::now();
    let result = stage.run(until_idle());
    assert_eq!(result.stop_reason, StopReason::Idle, "{:?}", result.errors);
    let seen = ["0", "1", "2", "3", "4"].map(|n| format!("out: in={n}"));
    assert_eq!(stage.log.take(), seen);
    assert_eq!(count(&result, "component.execution_count", "in"), 5);
    // It waits; it does not look again and again.
    assert!(result.epochs < 20, "{} epochs", result.epochs);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn to_look_whether_something_has_come_is_no_step() {
    let stage = stage(BRINGS);
    let result = stage.run(RunOptions::steps(3));
    assert_eq!(result.stop_reason, StopReason::TickBound);
    assert_eq!(stage.log.take().len(), 3);
}

#[test]
fn time_is_real_for_what_comes_from_outside() {
    let stage = stage(
        "
components:
  - {id: in, type: test.Bringer, config: {count: 3, every_ms: 10}, execution: {lane: main}}
  - {id: out, type: test.Sink, execution: {lane: main},
     trigger_policy: {type: debounce, inputs: [in], debounce_window_ms: 25}}
edges:
  - {id: e, from: in.out, to: out.in, kind: immediate}
",
    );
    Runtime::simulated(3).block_on(async {
        let began = time::Instant::now();
        let result = stage.prepared().run(until_idle()).await;
        assert_eq!(result.stop_reason, StopReason::Idle);
        assert_eq!(began.elapsed(), Duration::from_millis(55));
    });
    assert_eq!(stage.log.take(), ["out: in=2"]);
}

#[test]
fn a_run_that_waits_is_stopped_and_reconfigured_and_ends_with_its_time() {
    let forever = BRINGS.replace("count: 5", "count: 1, every_ms: 3600000");
    Runtime::simulated(5).block_on(async {
        let stage = stage(&forever);
        let running = stage.begin(until_idle()).start();
        time::sleep(20 * MS).await;
        let transaction = ConfigTransaction::new().set("out", Default::default());
        running.control().reconfigure(transaction).expect("it runs");
        time::sleep(20 * MS).await;
        let began = time::Instant::now();
        running.stop();
        let result = running.await.expect("no panic");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(result.stop_reason, StopReason::StopRequested);
        assert_eq!(
            result.metrics.of("runtime.config.commit_count", ""),
            Some(1.0)
        );

        let began = time::Instant::now();
        let options = RunOptions {
            duration: Some(70 * MS),
            ..RunOptions::default()
        };
        let result = stage.prepared().run(options).await;
        assert_eq!(result.stop_reason, StopReason::DurationBound);
        assert_eq!(began.elapsed(), 70 * MS);
    });
}

#[test]
fn a_sink_that_holds_off_loses_nothing_and_its_edge_decides_what_waits() {
    let text = "
components:
  - {id: in, type: test.Source, config: {epochs: [[0, 1, 2, 3], [4, 5]]}, execution: {lane: main},
     event_sources: [{type: timer, period_ms: 10}]}
  - {id: out, type: test.Slow, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: in.out, to: out.in, kind: immediate, policy: {mode: queue, capacity: 8, overflow: reject}}
";
    let for_a_second = || RunOptions {
        duration: Some(Duration::from_secs(1)),
        ..RunOptions::default()
    };
    let patient = stage(text);
    let result = patient.run(for_a_second());
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(patient.log.take(), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(count(&result, "channel.reject_count", "e"), 0);

    let hasty = stage(&text.replace("capacity: 8", "capacity: 1"));
    let result = hasty.run(for_a_second());
    assert!(result.is_ok(), "{:?}", result.errors);
    let (seen, refused) = (
        hasty.log.take(),
        count(&result, "channel.reject_count", "e"),
    );
    assert!(refused >= 3, "{refused}");
    assert_eq!(seen.len() as u64 + refused, 6, "{seen:?}");
}

#[test]
fn nobody_waits_for_a_component_that_was_deactivated_while_it_held_off() {
    let mut stage = stage(
        "
components:
  - {id: in, type: test.Two, execution: {lane: main}}
  - {id: out, type: test.Slow, config: {takes_ms: 3600000}, execution: {lane: main, on_error: isolate},
     trigger_policy: {type: any_input, input: in, max_latency_ms: 1000}}
edges:
  - {id: e, from: in.out, to: out.in, kind: immediate, policy: {mode: queue, capacity: 4, overflow: reject}}
",
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Two", open, |invocation| {
        invocation.publish_to("out", 1);
        invocation.publish_to("out", 2);
        invocation.finish();
        Ok(())
    });
    // Both are taken together: the first makes it hold off, the second finds no room.
    Runtime::simulated(8).block_on(async {
        let began = time::Instant::now();
        let result = stage.prepared().run(until_idle()).await;
        assert_eq!(result.stop_reason, StopReason::Idle);
        assert_eq!(result.metrics.sum("runtime.lifecycle.isolated_count"), 1.0);
        assert!(began.elapsed() < Duration::from_secs(1));
    });
}

/// Publishes `config.lines` numbers, one at a time, and then is finished.
#[derive(Default)]
struct Ends {
    output: Output<i64>,
    next: i64,
    last: i64,
}

impl Component for Ends {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        let last = setup.config().get("lines").and_then(|n| n.as_i64());
        self.last = last.unwrap_or_default();
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        if self.next < self.last {
            invocation.publish(self.output, self.next);
            self.next += 1;
        }
        if self.next == self.last {
            invocation.finish();
        }
        Ok(())
    }
}

#[test]
fn a_source_that_is_finished_is_not_invoked_again() {
    for lane in ["type: event_loop", "type: thread_pool, max_threads: 2"] {
        let mut stage = stage(&format!(
            "
lanes: {{main: {{type: event_loop}}, other: {{{lane}}}}}
components:
  - {{id: in, type: test.Ends, config: {{lines: 4}}, execution: {{lane: other}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: delay}}
"
        ));
        let open = Descriptor::new().open_ports().open_config();
        stage
            .registry
            .register_with("test.Ends", open, || Box::new(Ends::default()));
        let result = stage.run_really(until_idle());
        assert_eq!(result.stop_reason, StopReason::Idle);
        assert_eq!(count(&result, "component.execution_count", "in"), 4);
        assert_eq!(stage.log.take().len(), 4);
    }
}

/// Says what it does at its end.
struct Drains {
    log: Log,
    id: String,
    how: &'static str,
}

impl Component for Drains {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.id = setup.id().to_owned();
        Ok(())
    }

    fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn drain(&mut self) -> Option<Drain> {
        let (log, id, how) = (self.log.clone(), self.id.clone(), self.how);
        Some(Box::pin(async move {
            time::sleep(10 * MS).await;
            log.push(format!("{id} drained"));
            match how {
                "fails" => Err(Failure::new("the disk is full")),
                "panics" => panic!("on purpose"),
                "hangs" => std::future::pending().await,
                _ => Ok(()),
            }
        }))
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.log.push(format!("{} deactivated", self.id));
        Ok(())
    }
}

fn drains(how: &'static str) -> Stage {
    let mut stage = stage(
        "
components:
  - {id: a, type: test.Drains, execution: {lane: main}}
  - {id: b, type: test.Drains, depends_on: [a], execution: {lane: main}}
edges: []
",
    );
    let log = stage.log.clone();
    let open = Descriptor::new().open_ports().open_config();
    stage.registry.register_with("test.Drains", open, move || {
        let (log, id) = (log.clone(), String::new());
        Box::new(Drains { log, id, how })
    });
    stage
}

#[test]
fn components_are_drained_before_they_are_deactivated_the_last_first() {
    let stage = drains("well");
    let result = stage.run(RunOptions::steps(1));
    assert!(result.errors.is_empty());
    let expected = ["b drained", "b deactivated", "a drained", "a deactivated"];
    assert_eq!(stage.log.take(), expected);
}

#[test]
fn a_component_that_is_not_drained_is_told_and_stops_nobody() {
    for (how, message) in [
        ("fails", "the disk is full"),
        ("panics", "panicked: on purpose"),
        ("hangs", "did not come to its end within"),
    ] {
        let stage = drains(how);
        Runtime::simulated(2).block_on(async {
            let began = time::Instant::now();
            let options = RunOptions {
                drain: 100 * MS,
                ..RunOptions::steps(1)
            };
            let result = stage.prepared().run(options).await;
            assert_eq!(result.errors.len(), 2, "{how}");
            for error in &result.errors {
                assert_eq!(error.phase, "drain");
                assert!(error.message.contains(message), "{how}: {}", error.message);
                assert!(!error.fatal);
            }
            assert!(began.elapsed() <= 100 * MS);
        });
        let lines = stage.log.take();
        assert!(
            lines.contains(&"a deactivated".to_owned()),
            "{how}: {lines:?}"
        );
    }
}
