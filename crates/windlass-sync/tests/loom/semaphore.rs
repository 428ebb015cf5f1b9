//! The semaphore, and the lock made of it.

use std::sync::Arc;

use windlass_core::sync::UnsafeCell;
use windlass_sync::lock::{Mutex, OnceCell, Semaphore};

use crate::support::{Count, poll};

#[test]
fn semaphore_a_wait_meets_a_release() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let giver = semaphore.clone();
        let thread = loom::thread::spawn(move || giver.add_permits(1));
        // Sleeps until it is served; a lost wake-up is a deadlock.
        windlass_core::block_on(semaphore.acquire())
            .unwrap()
            .forget();
        thread.join().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn semaphore_a_cancelled_wait_loses_no_permit() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let giver = semaphore.clone();
        let (_, waker) = Count::new();
        let mut wait = Box::pin(semaphore.acquire());
        assert!(poll(wait.as_mut(), &waker).is_pending());
        let thread = loom::thread::spawn(move || giver.add_permits(1));
        drop(wait);
        thread.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.try_acquire().is_ok(), "nobody waits any more");
    });
}

#[test]
fn semaphore_a_cancelled_big_request_lets_the_next_one_pass() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let waits = semaphore.clone();
        let (_, waker) = Count::new();
        let mut big = Box::pin(semaphore.acquire_many(2));
        assert!(poll(big.as_mut(), &waker).is_pending());
        let thread = loom::thread::spawn(move || {
            windlass_core::block_on(waits.acquire()).unwrap().forget();
        });
        drop(big);
        thread.join().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn semaphore_close_tells_who_waits() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let closer = semaphore.clone();
        let thread = loom::thread::spawn(move || closer.close());
        assert!(windlass_core::block_on(semaphore.acquire()).is_err());
        thread.join().unwrap();
    });
}

struct Guarded(UnsafeCell<u32>);
// SAFETY: used under a lock only; loom checks that.
unsafe impl Send for Guarded {}

#[test]
fn mutex_orders_its_holders() {
    loom::model(|| {
        let mutex = Arc::new(Mutex::new(Guarded(UnsafeCell::new(0))));
        let add = |mutex: &Mutex<Guarded>| {
            let guarded = windlass_core::block_on(mutex.lock());
            // SAFETY: the lock is held.
            guarded.0.with_mut(|count| unsafe { *count += 1 });
        };
        let other = mutex.clone();
        let thread = loom::thread::spawn(move || add(&other));
        add(&mutex);
        thread.join().unwrap();
        let guarded = mutex.try_lock().unwrap();
        // SAFETY: the lock is held.
        assert_eq!(guarded.0.with(|count| unsafe { *count }), 2);
    });
}

struct Shared(UnsafeCell<u32>);
// SAFETY: written before and read after what the model is about; loom checks that.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[test]
fn semaphore_permits_of_two_givers_carry_what_both_did() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let done = Arc::new(Shared(UnsafeCell::new(0)));
        let (giver, by_giver) = (semaphore.clone(), done.clone());
        let first = loom::thread::spawn(move || {
            // SAFETY: nobody reads before the permit is there.
            by_giver.0.with_mut(|done| unsafe { *done = 7 });
            giver.add_permits(1);
        });
        let taker = semaphore.clone();
        let waits = loom::thread::spawn(move || {
            windlass_core::block_on(taker.acquire_many(2))
                .unwrap()
                .forget();
            // SAFETY: both givers are done.
            assert_eq!(done.0.with(|done| unsafe { *done }), 7);
        });
        semaphore.add_permits(1);
        first.join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn once_cell_who_waited_sees_the_value() {
    loom::model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let make = |value: u32| {
            move || async move {
                let made = Shared(UnsafeCell::new(0));
                // SAFETY: new and ours.
                made.0.with_mut(|place| unsafe { *place = value });
                made
            }
        };
        // SAFETY: it is made, and only read from then on.
        let read = |made: &Shared| made.0.with(|value| unsafe { *value });
        let thread =
            loom::thread::spawn(move || read(windlass_core::block_on(other.get_or_init(make(1)))));
        let mine = read(windlass_core::block_on(cell.get_or_init(make(2))));
        assert_eq!(thread.join().unwrap(), mine, "it was made once");
    });
}

#[test]
fn semaphore_a_permit_that_comes_and_goes_is_not_missed() {
    let mut model = loom::model::Builder::new();
    // Between two looks of the waiter the permit is given, taken and given again.
    model.preemption_bound = Some(5);
    model.check(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let waits = semaphore.clone();
        let thread = loom::thread::spawn(move || {
            windlass_core::block_on(waits.acquire()).unwrap().forget();
        });
        semaphore.add_permits(1);
        // None if the waiter has it, or is in the queue for it.
        drop(semaphore.try_acquire());
        thread.join().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
    });
}
