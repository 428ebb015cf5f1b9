//! Timers: a new deadline against a worker that goes to sleep, and firing against the owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use windlass_sync::time::model::Model;

#[test]
fn timers_a_new_deadline_reaches_the_one_who_goes_to_sleep() {
    loom::model(|| {
        let rung = Arc::new(AtomicBool::new(false));
        let ring = rung.clone();
        let timers = Arc::new(Model::new(move || ring.store(true, Ordering::Relaxed)));
        let registrar = {
            let timers = timers.clone();
            loom::thread::spawn(move || timers.set(500, Waker::noop().clone()))
        };
        let until = timers.begin_sleep();
        let timer = registrar.join().expect("it does not panic");
        assert!(
            until == Some(500) || rung.load(Ordering::Relaxed),
            "asleep until {until:?}, and nobody rang"
        );
        drop(timer);
    });
}

#[test]
fn timers_an_earlier_deadline_reaches_the_one_who_goes_to_sleep() {
    loom::model(|| {
        let rung = Arc::new(AtomicBool::new(false));
        let ring = rung.clone();
        let timers = Arc::new(Model::new(move || ring.store(true, Ordering::Relaxed)));
        let later = timers.set(900, Waker::noop().clone());
        let registrar = {
            let timers = timers.clone();
            loom::thread::spawn(move || timers.set(500, Waker::noop().clone()))
        };
        let until = timers.begin_sleep();
        let timer = registrar.join().expect("it does not panic");
        assert!(
            until == Some(500) || rung.load(Ordering::Relaxed),
            "asleep until {until:?}, and nobody rang"
        );
        drop((timer, later));
    });
}

#[test]
fn timers_a_told_entry_is_its_owners_alone() {
    loom::model(|| {
        let timers = Arc::new(Model::new(|| {}));
        let timer = timers.set(500, Waker::noop().clone());
        let driver = {
            let timers = timers.clone();
            loom::thread::spawn(move || timers.expire(1_000))
        };
        // Reset if it has fired, dropped if it has not, without waiting for the driver.
        timer.renew_if_due(2_000, Waker::noop().clone());
        drop(timer);
        driver.join().expect("it does not panic");
    });
}
