//! The lock for readers and writers: exclusion, hand-over, cancellation, downgrade.

use std::sync::Arc;

use windlass_core::block_on;
use windlass_sync::lock::RwLock;

use crate::support::{Count, Tracked, poll};

#[test]
fn rwlock_a_writer_excludes_readers_and_writers() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let lock = Arc::new(RwLock::new(Tracked::new(0)));
        let add = |lock: &RwLock<Tracked>| {
            let guard = block_on(lock.write());
            guard.write(guard.read() + 1);
        };
        let (by_reader, by_writer) = (lock.clone(), lock.clone());
        // The cell reports a reader beside a writer. A reader or writer that no release wakes is a
        // deadlock.
        let reader = loom::thread::spawn(move || assert!(block_on(by_reader.read()).read() <= 2));
        let writer = loom::thread::spawn(move || add(&by_writer));
        add(&lock);
        reader.join().unwrap();
        writer.join().unwrap();
        assert_eq!(lock.try_read().unwrap().read(), 2);
    });
}

#[test]
fn rwlock_a_cancelled_writer_lets_the_readers_behind_it_in() {
    loom::model(|| {
        let lock = Arc::new(RwLock::new(Tracked::new(7)));
        let held = lock.try_read().unwrap();
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(lock.write());
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let behind = lock.clone();
        let reader = loom::thread::spawn(move || block_on(behind.read()).read());
        drop(cancelled);
        // The first reader still holds the lock: only the cancelled writer can let the second in.
        assert_eq!(reader.join().unwrap(), 7);
        drop(held);
        assert!(lock.try_write().is_ok(), "every permit came back");
    });
}

#[test]
fn rwlock_a_cancelled_writer_passes_the_lock_on() {
    loom::model(|| {
        let lock = Arc::new(RwLock::new(Tracked::new(0)));
        let other = lock.clone();
        let thread = loom::thread::spawn(move || {
            drop(block_on(other.read()));
            block_on(other.write()).write(7);
        });
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(lock.write());
        // The reader's release may hand this writer the lock before, within or after the drop.
        let _ = poll(cancelled.as_mut(), &waker);
        drop(cancelled);
        thread.join().unwrap();
        let guard = lock.try_write().expect("every permit came back");
        assert_eq!(guard.read(), 7);
    });
}

#[test]
fn rwlock_a_downgraded_writer_lets_readers_in() {
    loom::model(|| {
        let lock = Arc::new(RwLock::new(Tracked::new(0)));
        let guard = lock.try_write().unwrap();
        let other = lock.clone();
        let reader = loom::thread::spawn(move || block_on(other.read()).read());
        guard.write(7);
        let guard = guard.downgrade();
        // The downgraded guard is held until the reader was in.
        assert_eq!(reader.join().unwrap(), 7);
        drop(guard);
    });
}

#[test]
fn rwlock_a_downgraded_writer_keeps_writers_out() {
    loom::model(|| {
        let lock = Arc::new(RwLock::new(Tracked::new(0)));
        let guard = lock.try_write().unwrap();
        let other = lock.clone();
        let writer = loom::thread::spawn(move || block_on(other.write()).write(8));
        guard.write(7);
        let guard = guard.downgrade();
        assert_eq!(guard.read(), 7);
        drop(guard);
        writer.join().unwrap();
        assert_eq!(lock.try_read().unwrap().read(), 8);
    });
}
