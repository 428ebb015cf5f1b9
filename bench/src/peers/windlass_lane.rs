//! Windlass's lanes on the real clock: how late a tick begins.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windlass::graph::component::{Descriptor, Registry};
use windlass::graph::model::{Component, Graph, Lane, LaneKind};
use windlass::graph::{Prepared, RunOptions};

use super::AsyncPeer;
use super::windlass::Windlass;
use crate::sample::Sample;

/// What each tick works.
const WORK: Duration = Duration::from_micros(300);
const HOGS: usize = 3;

/// How late the ticks of a lane begin, in microseconds, and how many did not take place: these have
/// no lateness.
struct Late {
    p50: f64,
    p99: f64,
    skipped: f64,
}

/// The line is that of a real-time lane beside hogs; the three others are shown beside it.
pub fn jitter(duration: Duration) -> Sample {
    let (quiet, quiet_fifo) = (late(None, duration), late(Some("fifo"), duration));
    let hogs: Vec<Hog> = (0..HOGS).map(|_| Hog::start()).collect();
    let (crowded, fifo) = (late(None, duration), late(Some("fifo"), duration));
    drop(hogs);
    let mut sample = Sample {
        p99: Some(fifo.p99),
        ..Sample::of(fifo.p50)
    }
    .with("skipped", fifo.skipped);
    for (name, late) in [
        ("fifo alone", quiet_fifo),
        ("no policy", crowded),
        ("no policy alone", quiet),
    ] {
        sample = sample
            .with(name, late.p50)
            .with(&format!("{name} p99"), late.p99)
            .with(&format!("{name} skipped"), late.skipped);
    }
    sample
}

/// A lane of 1 kHz for so long.
fn late(policy: Option<&str>, duration: Duration) -> Late {
    let mut lane = Lane::new("clock", LaneKind::FixedRate);
    lane.hz = 1_000.0;
    lane.wall_clock_enabled = true;
    if let Some(policy) = policy {
        lane.rt_policy = Some(policy.to_owned());
        lane.rt_priority = 50;
    }
    let mut graph = Graph::new("jitter");
    graph.lanes.push(lane);
    graph
        .components
        .push(Component::new("works", "bench.Works", "clock"));
    let mut registry = Registry::built_in();
    registry.function("bench.Works", Descriptor::new(), |_| {
        let began = Instant::now();
        while began.elapsed() < WORK {
            spin_loop();
        }
        Ok(())
    });
    let prepared = Prepared::new(graph, registry).expect("it compiles");
    let options = RunOptions {
        duration: Some(duration),
        ..RunOptions::default()
    };
    let result = Windlass::run_on_worker(async move { prepared.run(options).await });
    assert!(result.is_ok(), "{:?}", result.errors);
    let refused: Vec<&String> = result.lane_grants.iter().flat_map(|g| &g.refused).collect();
    assert!(
        refused.is_empty(),
        "the system refused {refused:?}: `windlass doctor` tells how to get it"
    );
    let of_lane = |name: &str| {
        let sample = result.metrics.of(name, "clock");
        sample.expect("it was measured")
    };
    Late {
        p50: of_lane("runtime.scheduler.lateness_p50_ms") * 1_000.0,
        p99: of_lane("runtime.scheduler.lateness_p99_ms") * 1_000.0,
        skipped: of_lane("runtime.scheduler.skipped_tick_count"),
    }
}

/// Keeps a CPU busy until it is dropped.
struct Hog {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    fn start() -> Hog {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                spin_loop();
            }
        });
        Hog {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()), "a hog only spins");
    }
}
