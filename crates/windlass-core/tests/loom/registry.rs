//! The registry: a walker against the completer.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use windlass_core::context;
use windlass_core::task::{Entry, Header, Registry, RunOutcome, Scheduler, Shard};

struct Worker(Shard);

impl Scheduler for Worker {
    fn register(&self, header: &Header) {
        self.0.register(header);
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

#[test]
fn registry_a_walker_never_holds_a_task_that_is_gone() {
    loom::model(|| {
        let registry = Registry::new();
        let walked = registry.clone();
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = dropped.clone();
        let mut polls = 0;
        let (entry, handle) = Entry::for_model(poll_fn(move |cx| {
            polls += 1;
            if polls == 2 {
                guard.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(());
            }
            // As a waker on another thread would: the task stays held and gets another turn.
            let waker = cx.waker().clone();
            context::outside_task(|| waker.wake());
            Poll::Pending
        }));
        drop(handle);
        let walker = loom::thread::spawn(move || {
            let mut seen = 0;
            walked.walk(|task| {
                // Ours for as long as we like.
                assert!(task.header().state().references() >= 1);
                seen += 1;
                true
            });
            seen
        });
        let worker = Worker(registry.owner());
        let RunOutcome::Again(entry) = entry.run(&worker) else {
            panic!("it was woken during its poll")
        };
        assert!(matches!(entry.run(&worker), RunOutcome::Complete));
        assert!(walker.join().unwrap() <= 1);
        assert!(registry.is_empty());
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}
