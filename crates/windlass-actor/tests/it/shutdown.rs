//! The end of a host.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use windlass_actor::supervisor::{ChildSpec, Strategy, Supervisor};
use windlass_actor::{Context, ExitReason, Host, Message, SpawnError, Status};
use windlass_runtime::observe::Query;
use windlass_runtime::{Runtime, join_all, time};
use windlass_value::Payload;

use crate::support::{Log, Machine, deaf, idle, real, simulated};

#[test]
fn new_processes_are_refused_and_a_second_call_waits() {
    simulated(|host| async move {
        let slow = host
            .spawn(|mut ctx: Context<Message>| async move {
                ctx.recv().await;
                time::sleep(Duration::from_millis(30)).await;
            })
            .expect("a process");
        let began = time::Instant::now();
        let stop = |host: Host| async move {
            let report = host.shutdown(Duration::from_secs(3)).await;
            (report, began.elapsed())
        };
        let both = [host.clone(), host.clone()].map(|host| Box::pin(stop(host)));
        for (report, took) in join_all(Vec::from(both)).await {
            assert!(report.stuck.is_empty());
            assert_eq!(took, Duration::from_millis(30));
        }
        assert_eq!(slow.join().await.reason, ExitReason::Normal);
        assert_eq!(host.spawn(idle).expect_err("over"), SpawnError::Stopping);
    });
}

#[test]
fn supervisors_stop_their_children_in_reverse() {
    simulated(|host| async move {
        let log = Log::default();
        let child = |name: &'static str| {
            let log = log.clone();
            ChildSpec::new(name, move |spawn| {
                let log = log.clone();
                let process = spawn.spawn(move |mut ctx: Context<()>| async move {
                    ctx.recv().await;
                    time::sleep(Duration::from_millis(5)).await;
                    log.add(name);
                })?;
                Ok(process.pid())
            })
        };
        let inner = Supervisor::new(Strategy::OneForOne)
            .child(child("c"))
            .child(child("d"));
        let top = Supervisor::new(Strategy::OneForOne)
            .child(child("a"))
            .child(ChildSpec::supervisor("inner", inner))
            .child(child("e"));
        let top = top.start(&host).expect("a supervisor");
        top.started().await.expect("all start");
        let began = time::Instant::now();
        let report = host.shutdown(Duration::from_secs(3)).await;
        assert!(report.stuck.is_empty());
        assert_eq!(log.all(), ["e", "d", "c", "a"]);
        assert_eq!(began.elapsed(), Duration::from_millis(20));
        assert_eq!(
            top.join().await.reason,
            ExitReason::Cancelled("shutdown".into())
        );
    });
}

/// A step that does not return: the shutdown does, names it, and resolves the waits for its end.
#[test]
fn a_step_that_never_returns_is_named() {
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    let (leave, left) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    let stuck = host
        .process()
        .name("stuck")
        .step(Machine::new(move |_, _, _| {
            enter.send(()).expect("the test waits");
            let _ = left.recv();
            Ok(Status::Continue)
        }))
        .expect("a process");
    let other = host.step(deaf()).expect("a process");
    entered.recv().expect("it runs");
    let began = Instant::now();
    let report = runtime.block_on(async { host.shutdown(Duration::from_millis(100)).await });
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(report.stuck.len(), 1, "{report:?}");
    assert_eq!(report.stuck[0].pid, stuck.pid());
    assert!(report.stuck[0].in_step);
    let text = report.stuck[0].to_string();
    assert!(
        text.contains("stuck") && text.contains("shutdown.rs"),
        "{text}"
    );
    let reasons =
        runtime.block_on(async { [stuck.join().await.reason, other.join().await.reason] });
    assert_eq!(reasons, [ExitReason::Killed, ExitReason::Killed]);
    // It asked for another step, and gets none.
    drop(leave);
    crate::support::LONG
        .checked_sub(Duration::ZERO)
        .expect("a time");
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.stuck_workers.is_empty(), "{report}");
}

#[test]
fn the_runtime_stops_processes_before_tasks() {
    let log = Log::default();
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    let (record, task_log) = (log.clone(), log.clone());
    let (begin, begun) = mpsc::channel();
    let task = runtime.spawn(async move {
        struct Last(Log<&'static str>);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.add("task");
            }
        }
        let _last = Last(task_log);
        begin.send(()).expect("the test waits");
        std::future::pending::<()>().await;
    });
    let process = host
        .spawn(move |mut ctx: Context<Message>| async move {
            ctx.recv().await;
            time::sleep(Duration::from_millis(20)).await;
            record.add("process");
            Payload::Int(1)
        })
        .expect("a process");
    begun.recv().expect("it runs");
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report}");
    assert_eq!(log.all(), ["process", "task"]);
    assert_eq!(
        windlass_core::block_on(process.join()).value,
        Payload::Int(1)
    );
    assert!(windlass_core::block_on(task).is_err());
}

#[test]
fn what_the_runtime_could_not_stop_is_in_its_report() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    let (leave, left) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    let _stuck = host
        .step(Machine::new(move |_, _, _| {
            enter.send(()).expect("the test waits");
            let _ = left.recv();
            Ok(Status::Idle)
        }))
        .expect("a process");
    entered.recv().expect("it runs");
    let report = runtime.shutdown(Duration::from_millis(200));
    assert_eq!(report.not_stopped.len(), 1, "{report}");
    assert!(report.to_string().contains("inside a step"), "{report}");
    assert!(!report.is_clean());
    drop(leave);
}

#[test]
fn a_dump_lists_the_processes() {
    real(1, |host| async move {
        let process = host.process().name("clerk").spawn(idle).expect("a process");
        let mut text = Vec::new();
        host.runtime().debug_dump(&mut text).expect("it writes");
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains(&process.pid().to_string()), "{text}");
        assert!(
            text.contains("\"clerk\"") && text.contains("shutdown.rs"),
            "{text}"
        );
    });
}

#[test]
fn processes_are_visited_page_by_page() {
    real(2, |host| async move {
        let clerk = host.process().name("clerk").spawn(idle).expect("a process");
        for _ in 1..500 {
            host.spawn(idle).expect("a process");
        }
        let runtime = host.runtime();
        let (mut query, mut pids) = (Query::first(37), Vec::new());
        let mut visit = |query: &Query| {
            runtime.entities("processes", query, |process| {
                assert_eq!(process.kind, "process");
                pids.push(process.id);
            })
        };
        while let Some(next) = visit(&query) {
            query = query.after(next);
        }
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 500);

        let mut found = Vec::new();
        let query = Query::first(10).containing("clerk");
        runtime.entities("processes", &query, |process| found.push(process));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].id, clerk.pid().to_string());
        let snapshot = runtime.snapshot();
        let processes = snapshot.sources("processes").next().expect("a host");
        assert_eq!(processes.sample("live"), Some(500.0));
        assert!(processes.has_more && processes.entities.len() == 64);
    });
}

/// A spawn and a shutdown at the same time: a process that was let in is cancelled, too.
#[test]
fn a_process_that_slips_in_is_told_to_stop() {
    for _ in 0..100 {
        let runtime = Runtime::builder().workers(1).build().expect("a runtime");
        let host = Host::of(runtime.handle()).expect("a host");
        let spawns = host.clone();
        let (enter, entered) = mpsc::channel();
        let spawner = std::thread::spawn(move || {
            enter.send(()).expect("the test waits");
            while spawns.spawn(idle).is_ok() {}
        });
        entered.recv().expect("it runs");
        let began = Instant::now();
        let report = runtime.block_on(host.shutdown(Duration::from_secs(20)));
        assert!(began.elapsed() < Duration::from_secs(10), "{report:?}");
        spawner.join().expect("no panic");
    }
}
