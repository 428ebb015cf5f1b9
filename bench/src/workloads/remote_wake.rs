//! How long a wake from a plain thread takes to reach a task while all workers are idle.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::peers::AsyncPeer;
use crate::sample::Sample;

/// How long the workers have had nothing to do before each wake: at least 1 ms.
pub const IDLE: Duration = Duration::from_micros(1_200);

pub fn tasks<P: AsyncPeer>(repetitions: u64) -> Sample {
    let bell = Arc::new(Doorbell::default());
    let ringer = Doorbell::ring_from_a_thread(&bell, repetitions);
    let latencies = P::run_on_worker(Doorbell::answer(bell, repetitions));
    ringer.join().expect("the ringer does not panic");
    Sample::latencies(&latencies)
}

/// Where a plain thread wakes a task and says when it did.
#[derive(Default)]
pub struct Doorbell(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Option<Waker>,
    rung: Option<Instant>,
}

impl Doorbell {
    /// Waits for the bell again and again. Returns how long each ring took to arrive.
    pub async fn answer(bell: Arc<Doorbell>, repetitions: u64) -> Vec<Duration> {
        let mut latencies = Vec::with_capacity(repetitions as usize);
        for _ in 0..repetitions {
            latencies.push(bell.rung().await);
        }
        latencies
    }

    async fn rung(&self) -> Duration {
        poll_fn(|context| {
            let now = Instant::now();
            let mut state = self.0.lock().unwrap();
            match state.rung.take() {
                Some(rung) => Poll::Ready(now - rung),
                None => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Starts the thread that rings, each time after [`IDLE`].
    pub fn ring_from_a_thread(bell: &Arc<Doorbell>, repetitions: u64) -> thread::JoinHandle<()> {
        let bell = Arc::clone(bell);
        thread::spawn(move || {
            for _ in 0..repetitions {
                let waiting = loop {
                    thread::sleep(IDLE);
                    if let Some(waiting) = bell.0.lock().unwrap().waiting.take() {
                        break waiting;
                    }
                };
                bell.0.lock().unwrap().rung = Some(Instant::now());
                waiting.wake();
            }
        })
    }
}
