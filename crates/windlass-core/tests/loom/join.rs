//! The join cell: the completer against the handle.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::sync::UnsafeCell;
use windlass_core::task::{Job, Options};

/// Counts its drops; loom checks the access to its content.
struct Output {
    value: UnsafeCell<u32>,
    drops: Arc<AtomicUsize>,
}

// SAFETY: the join cell hands the output from the completer to the handle.
unsafe impl Send for Output {}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: ours.
        assert_eq!(self.value.with(|value| unsafe { *value }), 7);
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

fn job(drops: &Arc<AtomicUsize>) -> (Job, windlass_core::task::JoinHandle<Output>) {
    let drops = drops.clone();
    let body = move || {
        let output = Output {
            value: UnsafeCell::new(0),
            drops,
        };
        // SAFETY: new and ours.
        output.value.with_mut(|value| unsafe { *value = 7 });
        output
    };
    Job::new(body, 1, Options::here())
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn join_an_awaited_output_arrives_once() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (job, handle) = job(&drops);
        let worker = loom::thread::spawn(move || job.run());
        // Sleeps until the completer wakes it; a lost wake is a deadlock.
        let output = windlass_core::block_on(handle).expect("it does not fail");
        drop(output);
        worker.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn join_a_dropped_handle_leaves_nothing_behind() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let wakes = Arc::new(Count(AtomicUsize::new(0)));
        let (job, mut handle) = job(&drops);
        let worker = loom::thread::spawn(move || job.run());
        let waker = Waker::from(wakes.clone());
        let polled = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
        drop(polled);
        drop(handle);
        worker.join().unwrap();
        drop(waker);
        assert_eq!(
            drops.load(Ordering::Relaxed),
            1,
            "the output is dropped exactly once"
        );
        assert_eq!(Arc::strong_count(&wakes), 1, "the waker is dropped");
    });
}

#[test]
fn join_the_newest_waker_is_the_one_woken() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (first, second) = (
            Arc::new(Count(AtomicUsize::new(0))),
            Arc::new(Count(AtomicUsize::new(0))),
        );
        let (job, mut handle) = job(&drops);
        let worker = loom::thread::spawn(move || job.run());
        let (a, b) = (Waker::from(first.clone()), Waker::from(second.clone()));
        let mut pending = Pin::new(&mut handle)
            .poll(&mut Context::from_waker(&a))
            .is_pending();
        if pending {
            let polled = Pin::new(&mut handle).poll(&mut Context::from_waker(&b));
            pending = polled.is_pending();
        }
        worker.join().unwrap();
        if pending {
            assert_eq!(second.0.load(Ordering::Relaxed), 1, "told once");
            let again = Pin::new(&mut handle).poll(&mut Context::from_waker(&b));
            assert!(matches!(again, Poll::Ready(Ok(_))));
        }
        drop(handle);
        drop((a, b));
        assert_eq!(Arc::strong_count(&first) + Arc::strong_count(&second), 2);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}
