//! The barrier: all pass together, one leads, and a cancelled wait does not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use windlass_core::block_on;
use windlass_sync::lock::Barrier;

use crate::support::{Count, Tracked, poll};

#[test]
fn barrier_all_pass_and_one_leads() {
    loom::model(|| {
        let barrier = Arc::new(Barrier::new(3));
        let notes = Arc::new([0; 3].map(Tracked::new));
        let pass = |barrier: &Barrier, notes: &[Tracked; 3], index: usize| {
            notes[index].write(1);
            let passed = block_on(barrier.wait());
            // Whoever passes sees what all of them did before they came.
            assert!(notes.iter().all(|note| note.read() == 1));
            usize::from(passed.is_leader())
        };
        let threads = [1, 2].map(|index| {
            let (barrier, notes) = (barrier.clone(), notes.clone());
            loom::thread::spawn(move || pass(&barrier, &notes, index))
        });
        let mut leaders = pass(&barrier, &notes, 0);
        for thread in threads {
            leaders += thread.join().unwrap();
        }
        assert_eq!(leaders, 1);
    });
}

#[test]
fn barrier_each_round_waits_for_all() {
    loom::model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let note = Arc::new(Tracked::new(0));
        let (other, by_other) = (barrier.clone(), note.clone());
        let thread = loom::thread::spawn(move || {
            let first = block_on(other.wait()).is_leader();
            by_other.write(7);
            let second = block_on(other.wait()).is_leader();
            [first, second]
        });
        let first = block_on(barrier.wait()).is_leader();
        // The other thread may have come to the second round before the first was told to all.
        let second = block_on(barrier.wait()).is_leader();
        assert_eq!(note.read(), 7);
        assert_eq!(thread.join().unwrap(), [!first, !second], "one leads");
    });
}

#[test]
fn barrier_a_cancelled_wait_counts_only_if_the_barrier_has_opened() {
    loom::model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(barrier.wait());
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let began = Arc::new(AtomicBool::new(false));
        let (other, begins) = (barrier.clone(), began.clone());
        let thread = loom::thread::spawn(move || {
            begins.store(true, Ordering::Relaxed);
            block_on(other.wait()).is_leader()
        });
        drop(cancelled);
        let came_later = !began.load(Ordering::Relaxed);
        let mut second = Box::pin(barrier.wait());
        let polled = poll(second.as_mut(), &waker);
        // The thread passes with the cancelled wait or with the second one.
        assert_eq!(thread.join().unwrap(), polled.is_pending(), "one leads");
        if polled.is_pending() && poll(second.as_mut(), &waker).is_pending() {
            assert!(!came_later, "the thread passed with a wait that was gone");
            // The second wait counts, and nothing else does.
            let third = poll(Box::pin(barrier.wait()).as_mut(), &waker);
            assert!(matches!(third, Poll::Ready(passed) if passed.is_leader()));
            let second = poll(second.as_mut(), &waker);
            assert!(matches!(second, Poll::Ready(passed) if !passed.is_leader()));
        }
    });
}
