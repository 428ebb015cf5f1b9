//! The driver of SLEEP.md: while a worker is parked, the driver is taken, or an awake worker looks
//! at it before it parks or leaves. A worker that is parked elsewhere with nobody in the driver
//! would never hear of a timer: that is a deadlock, which loom reports.

use std::sync::Arc;

use loom::sync::atomic::fence;
use windlass_core::sched::Idle;
use windlass_core::sched::driver::DriverLock;
use windlass_core::sync::Parker;
use windlass_core::sync::atomic::{AtomicBool, Ordering};

struct Pool {
    idle: Idle,
    driver: DriverLock,
    parkers: Vec<Parker>,
    /// The timer that everybody waits for was seen in the driver.
    fired: AtomicBool,
}

impl Pool {
    /// All workers are awake.
    fn new(workers: usize) -> Arc<Pool> {
        Arc::new(Pool {
            idle: Idle::new(workers),
            driver: DriverLock::default(),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            fired: AtomicBool::new(false),
        })
    }

    /// What `Worker::retire` does.
    fn leave(&self, searching: bool) {
        if self.driver.leave(&self.idle, searching)
            && let Some(worker) = self.idle.announce()
        {
            let _ = self.parkers[worker].unpark();
        }
    }

    /// What `Worker::park` does, until the timer has fired.
    fn wait_for_timer(&self, worker: usize) {
        let mut searching = false;
        loop {
            self.idle.publish(worker, searching);
            if self.fired.load(Ordering::Relaxed) {
                if !self.idle.withdraw(worker) {
                    self.parkers[worker].park();
                }
                return;
            }
            let Some(guard) = self.driver.try_take() else {
                self.parkers[worker].park();
                if self.fired.load(Ordering::Relaxed) {
                    return;
                }
                searching = true;
                continue;
            };
            // In the driver, where the timer fires.
            self.fired.store(true, Ordering::Relaxed);
            if !self.idle.withdraw(worker) {
                self.parkers[worker].park();
            }
            drop(guard);
            self.wake_all();
            return;
        }
    }

    /// What `Pool::unpark_all` does.
    fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for (worker, parker) in self.parkers.iter().enumerate() {
            if self.idle.claim_worker(worker) {
                let _ = parker.unpark();
            }
        }
    }
}

/// A worker comes back from the driver and leaves, while another parks.
#[test]
fn driver_guard_a_holder_that_leaves_calls_a_parker() {
    loom::model(|| {
        let pool = Pool::new(2);
        assert!(pool.idle.try_search());
        let other = pool.clone();
        let leaver = loom::thread::spawn(move || {
            let guard = other.driver.try_take();
            drop(guard);
            other.leave(true);
        });
        pool.wait_for_timer(1);
        leaver.join().unwrap();
        assert!(pool.fired.load(Ordering::Relaxed));
    });
}

/// A busy worker looks into the driver and leaves it to others, while another parks.
#[test]
fn driver_guard_a_busy_worker_that_looks_parks_there_later() {
    loom::model(|| {
        let pool = Pool::new(2);
        let other = pool.clone();
        let busy = loom::thread::spawn(move || {
            drop(other.driver.try_take());
            other.wait_for_timer(0);
        });
        pool.wait_for_timer(1);
        busy.join().unwrap();
        assert!(pool.fired.load(Ordering::Relaxed));
    });
}

/// Two workers leave that both search, one of them out of the driver. Its announcement counts on
/// the other one, which has to look after it has left.
#[test]
fn driver_guard_of_two_that_leave_the_last_one_looks() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let pool = Pool::new(3);
        assert!(pool.idle.try_search() && pool.idle.try_search());
        let leavers: Vec<_> = [true, false]
            .into_iter()
            .map(|was_in_driver| {
                let pool = pool.clone();
                loom::thread::spawn(move || {
                    if was_in_driver {
                        drop(pool.driver.try_take());
                    }
                    pool.leave(true);
                })
            })
            .collect();
        pool.wait_for_timer(2);
        for leaver in leavers {
            leaver.join().unwrap();
        }
        assert!(pool.fired.load(Ordering::Relaxed));
    });
}
