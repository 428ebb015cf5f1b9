//! may's stackful coroutines.
//!
//! Where tasks only spawn, join and yield, may's own calls are used. Where a workload is defined by
//! a future (tokio's channel, a waker), a coroutine parks on it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use may::coroutine::{self, Coroutine, JoinHandle};
use may::go;

use super::{Job, Peer, STACKFUL, cannot, run_stackful};
use crate::countdown::Countdown;
use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::coroutines::Stackful;
use crate::workloads::{idle, memory, ping_pong, remote_wake, spawn, steal, yielding};

/// Not `spawn_internal`, `spawn_detached` and `fork_join_tasks`: they have 100,000 coroutines alive
/// at once, and each stack is two of the 65,530 mappings that the kernel allows a process.
pub const PEER: Peer = Peer {
    name: "may",
    workloads: &[
        &[
            Workload::SpawnExternal,
            Workload::YieldMany,
            Workload::PingPongPairs,
            Workload::PingPongOne,
            Workload::ChainedSpawn,
            Workload::RemoteWake,
            Workload::StealLatency,
            Workload::Idle,
            Workload::Memory,
        ],
        STACKFUL,
    ],
    run,
};

/// For the same reason `memory` has fewer coroutines than other peers have tasks.
const MOST_PENDING: u64 = 20_000;

fn run(job: Job) -> Sample {
    may::config().set_workers(job.workers);
    let size = match job.workload {
        Workload::CoroutineMemory => job.size.min(MOST_PENDING),
        _ => job.size,
    };
    if let Some(sample) = run_stackful::<May>(Job { size, ..job }) {
        return sample;
    }
    match job.workload {
        Workload::SpawnExternal => Sample::per_operation(size, || spawn_and_join(size)),
        Workload::YieldMany => on_worker(size * yielding::YIELDS, move || yield_many(size)),
        Workload::PingPongPairs => {
            let round_trips = ping_pong::ROUND_TRIPS;
            on_worker(size * round_trips * ping_pong::MESSAGES, move || {
                play(size, round_trips)
            })
        }
        Workload::PingPongOne => on_worker(size * ping_pong::MESSAGES, move || play(1, size)),
        Workload::ChainedSpawn => on_worker(size, move || chain(size)),
        Workload::RemoteWake => {
            let bell = Arc::new(remote_wake::Doorbell::default());
            let ringer = remote_wake::Doorbell::ring_from_a_thread(&bell, size);
            let answer = remote_wake::Doorbell::answer(bell, size);
            let latencies = join(go!(move || wait_for(answer)));
            ringer.join().expect("the ringer does not panic");
            Sample::latencies(&latencies)
        }
        Workload::StealLatency => steal::sample(&join(go!(move || steal_latencies(size)))),
        Workload::Idle => idle::after(size, || {
            join(go!(|| spawn_detached(idle::WARM_UP)));
        }),
        Workload::Memory => memory::growth(size.min(MOST_PENDING), || {
            drop(go!(|| {
                memory::polled();
                coroutine::park();
            }));
        }),
        other => cannot(other),
    }
}

struct May;

impl Stackful for May {
    type Join<T: Send + 'static> = JoinHandle<T>;

    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        go!(f)
    }
    fn join<T: Send + 'static>(coroutine: JoinHandle<T>) -> T {
        join(coroutine)
    }
    fn yield_now() {
        coroutine::yield_now();
    }
    fn park() {
        coroutine::park();
    }
}

/// Each pass in a coroutine of its own.
fn on_worker(operations: u64, pass: impl Fn() -> Duration + Copy + Send + 'static) -> Sample {
    Sample::per_operation(operations, || join(go!(pass)))
}

fn join<T>(coroutine: JoinHandle<T>) -> T {
    coroutine.join().expect("the coroutine does not panic")
}

fn spawn_and_join(count: u64) -> Duration {
    let start = Instant::now();
    let coroutines: Vec<JoinHandle<u64>> = (0..count).map(|i| go!(move || i)).collect();
    spawn::check_sum(count, coroutines.into_iter().map(join).sum());
    start.elapsed()
}

fn spawn_detached(count: u64) -> Duration {
    let start = Instant::now();
    let countdown = Arc::new(Countdown::from(count as usize));
    for _ in 0..count {
        let countdown = Arc::clone(&countdown);
        drop(go!(move || countdown.done()));
    }
    wait_for(countdown.finished());
    start.elapsed()
}

fn yield_many(count: u64) -> Duration {
    let start = Instant::now();
    let yielder = || {
        let mut yields = 0;
        while yields < yielding::YIELDS {
            coroutine::yield_now();
            yields += 1;
        }
        yields
    };
    let coroutines: Vec<JoinHandle<u64>> = (0..count).map(|_| go!(yielder)).collect();
    for coroutine in coroutines {
        assert_eq!(join(coroutine), yielding::YIELDS);
    }
    start.elapsed()
}

fn play(pairs: u64, round_trips: u64) -> Duration {
    let start = Instant::now();
    let mut players = Vec::with_capacity(2 * pairs as usize);
    for _ in 0..pairs {
        let (server, returner) = ping_pong::table();
        players.push(go!(move || wait_for(server.serve(round_trips))));
        players.push(go!(move || wait_for(returner.give_back())));
    }
    for player in players {
        assert_eq!(join(player), round_trips);
    }
    start.elapsed()
}

fn chain(depth: u64) -> Duration {
    fn link(left: u64, end: Arc<Countdown>) {
        drop(go!(move || if left == 1 {
            end.done()
        } else {
            link(left - 1, end)
        }));
    }
    let start = Instant::now();
    let end = Arc::new(Countdown::from(1));
    link(depth, Arc::clone(&end));
    wait_for(end.finished());
    start.elapsed()
}

fn steal_latencies(repetitions: u64) -> Vec<Option<Duration>> {
    (0..repetitions)
        .map(|_| {
            steal::stay_busy();
            let attempt = Arc::new(steal::Attempt::default());
            let theirs = Arc::clone(&attempt);
            attempt.begin();
            let coroutine = go!(move || theirs.stolen());
            let latency = attempt.spin();
            join(coroutine);
            latency
        })
        .collect()
}

/// Wakes a coroutine that is parked in [`wait_for`].
struct Unpark(Coroutine);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Parks the coroutine until the future is ready. An unpark that comes first is remembered.
fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(coroutine::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => coroutine::park(),
        }
    }
}
