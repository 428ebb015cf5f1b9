//! The sleep protocol of SLEEP.md: idle set, parker and injector together. There is no timeout, so
//! a lost wake-up is a deadlock, which loom reports.

use std::sync::Arc;

use windlass_core::queue::Injector;
use windlass_core::sched::Idle;
use windlass_core::sync::Parker;
use windlass_core::sync::atomic::{AtomicUsize, Ordering};

use crate::node::{self, Node};

struct Pool {
    idle: Idle,
    injector: Injector<Node>,
    parkers: Vec<Parker>,
    taken: AtomicUsize,
}

impl Pool {
    fn new(workers: usize) -> Arc<Pool> {
        Arc::new(Pool {
            idle: Idle::new(workers),
            injector: Injector::default(),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            taken: AtomicUsize::new(0),
        })
    }

    fn push(&self) {
        // SAFETY: the node is new and ours to queue.
        assert!(unsafe { self.injector.push(node::make(1)) }.is_ok());
        if let Some(worker) = self.idle.announce() {
            let _ = self.parkers[worker].unpark();
        }
    }

    /// What `Pool::leave_for` does.
    fn leave_for(&self, worker: usize) {
        // SAFETY: the node is new and ours to queue.
        assert!(unsafe { self.injector.push(node::make(1)) }.is_ok());
        if self.idle.call(worker) {
            let _ = self.parkers[worker].unpark();
        }
    }

    fn take(&self) -> bool {
        let taken = self
            .injector
            .take(1, |item| assert_eq!(node::open(item), 1));
        self.taken.fetch_add(taken, Ordering::Relaxed);
        taken > 0
    }

    /// What `Worker::park` does; true if the worker is counted as searching afterwards.
    fn park(&self, worker: usize, searching: bool) {
        self.idle.publish(worker, searching);
        if !self.injector.is_empty() {
            if !self.idle.withdraw(worker) {
                self.parkers[worker].park();
            }
        } else {
            self.parkers[worker].park();
        }
    }

    /// What `Worker::end_search` does.
    fn found(&self) {
        if self.idle.end_search()
            && !self.injector.is_empty()
            && let Some(worker) = self.idle.claim()
        {
            let _ = self.parkers[worker].unpark();
        }
    }
}

/// One worker, one pusher: whatever the worker is about to do, it ends up with the task.
#[test]
fn idle_a_push_reaches_the_worker_that_goes_to_sleep() {
    loom::model(|| {
        let pool = Pool::new(1);
        let other = pool.clone();
        let pusher = loom::thread::spawn(move || other.push());
        let searching = pool.idle.try_search();
        while !pool.take() {
            pool.park(0, searching);
        }
        pusher.join().unwrap();
        assert_eq!(pool.taken.load(Ordering::Relaxed), 1);
        assert_eq!(pool.idle.counts().unparked, 1);
    });
}

/// A task that only one worker may take reaches it, although another one searches all the time.
#[test]
fn idle_a_call_reaches_the_worker_it_is_for() {
    loom::model(|| {
        let pool = Pool::new(2);
        assert!(pool.idle.try_search(), "the other worker");
        let other = pool.clone();
        let caller = loom::thread::spawn(move || other.leave_for(1));
        let mut searching = false;
        while !pool.take() {
            pool.park(1, searching);
            searching = true;
        }
        caller.join().unwrap();
        assert_eq!(pool.taken.load(Ordering::Relaxed), 1);
        assert_eq!(pool.idle.counts().unparked, 2);
    });
}

/// Two workers each take one of two tasks. The second push may see a searcher and say nothing; then
/// the searcher that finds the first has to wake the other worker.
#[test]
fn idle_the_last_searcher_passes_the_call_on() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let pool = Pool::new(2);
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let pool = pool.clone();
                loom::thread::spawn(move || {
                    let mut searching = false;
                    loop {
                        if pool.take() {
                            if searching {
                                pool.found();
                            }
                            return;
                        }
                        pool.park(worker, searching);
                        searching = true;
                    }
                })
            })
            .collect();
        pool.push();
        pool.push();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(pool.taken.load(Ordering::Relaxed), 2);
        let counts = pool.idle.counts();
        assert_eq!((counts.searching, counts.unparked), (0, 2));
    });
}

/// A pusher may see a searcher and say nothing; if that one leaves the pool instead of searching
/// on, it has to tell somebody.
#[test]
fn idle_a_worker_that_leaves_passes_the_call_on() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let pool = Pool::new(2);
        assert!(pool.idle.try_search(), "worker 0");
        let stays = pool.clone();
        let worker = loom::thread::spawn(move || {
            let mut searching = false;
            while !stays.take() {
                stays.park(1, searching);
                searching = true;
            }
        });
        let leaves = pool.clone();
        let leaver = loom::thread::spawn(move || {
            leaves.idle.leave(true);
            // What `Worker::retire` does.
            if !leaves.injector.is_empty()
                && let Some(worker) = leaves.idle.announce()
            {
                let _ = leaves.parkers[worker].unpark();
            }
        });
        pool.push();
        leaver.join().unwrap();
        worker.join().unwrap();
        assert_eq!(pool.taken.load(Ordering::Relaxed), 1);
        assert_eq!(pool.idle.workers(), 1);
    });
}

/// A worker that wakes by itself (out of the driver) while somebody claims it waits for the token
/// before it goes on, so that the counts never go below zero.
#[test]
fn idle_a_claimed_worker_that_woke_by_itself_waits_for_its_token() {
    loom::model(|| {
        let pool = Pool::new(1);
        let other = pool.clone();
        let claimer = loom::thread::spawn(move || {
            if let Some(worker) = other.idle.announce() {
                let _ = other.parkers[worker].unpark();
            }
        });
        pool.idle.publish(0, false);
        // Something other than a token woke us.
        if !pool.idle.withdraw(0) {
            pool.parkers[0].park();
        }
        let _ = pool.idle.end_search();
        claimer.join().unwrap();
        let counts = pool.idle.counts();
        assert_eq!((counts.searching, counts.unparked), (0, 1));
    });
}
