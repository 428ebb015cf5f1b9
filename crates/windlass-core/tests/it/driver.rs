//! The driver in the sleep protocol, with a driver that delivers wakers on demand.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use windlass_core::sched::driver::Driver;
use windlass_core::sched::pool::{Config, Hooks, Pool};
use windlass_core::task::{FutureBody, Options, SpawnRequest};

#[derive(Default)]
struct Bell {
    state: Mutex<State>,
    arrived: Mutex<Vec<Waker>>,
    changed: Condvar,
    sleeping: AtomicUsize,
    rings: AtomicUsize,
    polls: AtomicUsize,
}

#[derive(Default)]
struct State {
    rung: bool,
    due: Vec<Waker>,
}

impl Bell {
    /// An event from outside: nobody rings, the sleeper notices by itself.
    fn event(&self, waker: Waker) {
        self.state.lock().unwrap().due.push(waker);
        self.changed.notify_all();
    }
}

impl Driver for Bell {
    fn sleep(&self) {
        assert_eq!(
            self.sleeping.fetch_add(1, Ordering::SeqCst),
            0,
            "one at a time"
        );
        let mut state = self.state.lock().unwrap();
        while !state.rung && state.due.is_empty() {
            state = self.changed.wait(state).unwrap();
        }
        state.rung = false;
        let due = std::mem::take(&mut state.due);
        drop(state);
        self.arrived.lock().unwrap().extend(due);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    fn deliver(&self) {
        let due = std::mem::take(&mut *self.arrived.lock().unwrap());
        due.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, _now: u64) {
        self.polls.fetch_add(1, Ordering::SeqCst);
        let due = std::mem::take(&mut self.state.lock().unwrap().due);
        due.into_iter().for_each(Waker::wake);
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.state.lock().unwrap().rung = true;
        self.changed.notify_all();
    }
}

fn start(workers: usize) -> (Arc<Pool>, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let config = Config {
        workers,
        ..Config::default()
    };
    let pool = Pool::start(config, Hooks::default(), Some(bell.clone())).expect("it starts");
    (pool, bell)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < limit, "not within 10 s: {what}");
        std::thread::yield_now();
    }
}

/// Pends until the driver's event; leaves its waker in `place`.
async fn one_event(place: Arc<Mutex<Option<Waker>>>) {
    let mut first = true;
    poll_fn(move |cx| {
        if !std::mem::replace(&mut first, false) {
            return Poll::Ready(());
        }
        *place.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

#[test]
fn an_event_wakes_the_worker_in_the_driver_without_a_ring() {
    for workers in [1, 2, 4] {
        let (pool, bell) = start(workers);
        for _ in 0..200 {
            let place: Arc<Mutex<Option<Waker>>> = Arc::default();
            let task = pool.spawn(SpawnRequest::new(
                FutureBody(one_event(place.clone())),
                Options::here(),
            ));
            wait_until("the task has suspended", || place.lock().unwrap().is_some());
            wait_until("a worker sleeps in the driver", || {
                bell.sleeping.load(Ordering::SeqCst) == 1
            });
            let waker = place.lock().unwrap().take().expect("just seen");
            bell.event(waker);
            windlass_core::block_on(task).expect("the event arrived");
        }
        assert!(pool.shutdown(None).stuck.is_empty());
    }
}

#[test]
fn the_sleeper_in_the_driver_is_claimed_last() {
    let (pool, bell) = start(2);
    for _ in 0..100 {
        wait_until("both sleep, one in the driver", || {
            pool.snapshot().unparked == 0 && bell.sleeping.load(Ordering::SeqCst) == 1
        });
        let rings = bell.rings.load(Ordering::SeqCst);
        let task = pool.spawn(SpawnRequest::new(FutureBody(async {}), Options::here()));
        windlass_core::block_on(task).expect("it runs");
        assert_eq!(
            bell.rings.load(Ordering::SeqCst),
            rings,
            "the other one was free"
        );
    }
    assert!(pool.shutdown(None).stuck.is_empty());
}

#[test]
fn busy_workers_look_into_the_driver() {
    let (pool, bell) = start(1);
    let stop = Arc::new(AtomicBool::new(false));
    let endless = stop.clone();
    let busy = pool.spawn(SpawnRequest::new(
        FutureBody(poll_fn(move |cx| {
            if endless.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })),
        Options::here(),
    ));
    let place: Arc<Mutex<Option<Waker>>> = Arc::default();
    let task = pool.spawn(SpawnRequest::new(
        FutureBody(one_event(place.clone())),
        Options::here(),
    ));
    wait_until("the task has suspended", || place.lock().unwrap().is_some());
    bell.event(place.lock().unwrap().take().expect("just seen"));
    windlass_core::block_on(task).expect("delivered although no worker ever sleeps");
    assert!(bell.polls.load(Ordering::SeqCst) > 0);
    stop.store(true, Ordering::Relaxed);
    windlass_core::block_on(busy).expect("it ends");
    assert!(pool.shutdown(None).stuck.is_empty());
}

#[test]
fn shutdown_reaches_the_worker_in_the_driver() {
    let (pool, bell) = start(3);
    wait_until("a worker sleeps in the driver", || {
        bell.sleeping.load(Ordering::SeqCst) == 1
    });
    assert!(pool.shutdown(None).stuck.is_empty());
    assert_eq!(bell.sleeping.load(Ordering::SeqCst), 0);
}
