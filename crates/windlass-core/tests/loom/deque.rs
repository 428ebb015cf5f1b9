//! The deque of fork-join jobs: owner, thieves, growth; and the waiter that helps its thief.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use windlass_core::queue::{Deque, JobRef, Taker};
use windlass_core::sched::fork::Latch;
use windlass_core::sync::Parker;

/// A job that is never run: its data is a value on the heap, which the maker writes and the taker
/// reads, so that loom reports a race if the deque does not order the two.
fn make(value: usize) -> JobRef {
    unsafe fn never(_: *const (), _: Taker) {
        unreachable!("the models only pass jobs around");
    }
    let cell = Box::new(UnsafeCell::new(0));
    // SAFETY: ours until it is pushed.
    cell.with_mut(|there| unsafe { *there = value });
    JobRef::new(Box::into_raw(cell).cast_const().cast(), never)
}

fn open(job: JobRef) -> usize {
    // SAFETY: the deque handed the job over; its data was leaked in `make`.
    let cell = unsafe { Box::from_raw(job.data().cast_mut().cast::<UnsafeCell<usize>>()) };
    // SAFETY: ours.
    cell.with(|there| unsafe { *there })
}

fn drain(deque: &Deque) -> Vec<usize> {
    std::iter::from_fn(|| deque.pop()).map(open).collect()
}

fn assert_each_once(mut got: Vec<usize>, count: usize) {
    got.sort_unstable();
    assert_eq!(got, (0..count).collect::<Vec<_>>());
}

fn thief(deque: &Arc<Deque>, tries: usize) -> loom::thread::JoinHandle<Vec<usize>> {
    let victim = deque.clone();
    loom::thread::spawn(move || {
        (0..tries)
            .filter_map(|_| victim.steal())
            .map(open)
            .collect()
    })
}

#[test]
fn deque_each_job_is_taken_once_by_owner_or_thief() {
    loom::model(|| {
        let deque = Arc::new(Deque::new());
        let thief = thief(&deque, 2);
        deque.push(make(0));
        deque.push(make(1));
        let mut got: Vec<usize> = deque.pop().map(open).into_iter().collect();
        deque.push(make(2));
        got.extend(drain(&deque));
        got.extend(thief.join().unwrap());
        got.extend(drain(&deque));
        assert_each_once(got, 3);
    });
}

#[test]
fn deque_two_thieves_and_the_owner_share_the_jobs() {
    loom::model(|| {
        let deque = Arc::new(Deque::new());
        deque.push(make(0));
        deque.push(make(1));
        let thieves = [thief(&deque, 1), thief(&deque, 1)];
        let mut got: Vec<usize> = deque.pop().map(open).into_iter().collect();
        deque.push(make(2));
        got.extend(drain(&deque));
        for thief in thieves {
            got.extend(thief.join().unwrap());
        }
        got.extend(drain(&deque));
        assert_each_once(got, 3);
    });
}

#[test]
fn deque_a_slot_is_not_written_again_before_its_thief_has_read_it() {
    loom::model(|| {
        // Two slots: the third job goes where the first was.
        let deque = Arc::new(Deque::new());
        deque.push(make(0));
        let thief = thief(&deque, 1);
        for value in 1..3 {
            deque.push(make(value));
        }
        let mut got = thief.join().unwrap();
        got.extend(drain(&deque));
        assert_each_once(got, 3);
    });
}

#[test]
fn deque_it_grows_while_a_thief_reads() {
    loom::model(|| {
        let deque = Arc::new(Deque::new());
        deque.push(make(0));
        deque.push(make(1));
        let thief = thief(&deque, 2);
        // One of these needs a larger buffer, unless the thief was faster.
        deque.push(make(2));
        deque.push(make(3));
        let mut got = thief.join().unwrap();
        got.extend(drain(&deque));
        assert_each_once(got, 4);
    });
}

#[test]
fn fork_a_waiter_takes_no_job_of_somebody_else() {
    const OURS: usize = 1;
    const THEIRS: usize = 2;
    loom::model(|| {
        let forks = Arc::new(Deque::new());
        let latch = Arc::new(Latch::new(0));
        let (deque, waits) = (forks.clone(), latch.clone());
        let waiter = loom::thread::spawn(move || {
            waits.thief()?;
            deque.steal_if(|| !waits.is_set()).map(open)
        });
        // Before the waiter's job: something else.
        forks.push(make(THEIRS));
        let mut got = drain(&forks);
        // The waiter's job: it forks, takes back what is left, and ends.
        latch.stolen_by(1);
        forks.push(make(OURS));
        got.extend(drain(&forks));
        // SAFETY: the latch is in an `Arc`.
        unsafe { Latch::set(&raw const *latch, |_| {}) };
        // After it: something else again, in the same deque.
        forks.push(make(THEIRS));
        got.extend(drain(&forks));
        let taken = waiter.join().unwrap();
        assert_ne!(taken, Some(THEIRS));
        got.extend(taken);
        got.sort_unstable();
        assert_eq!(got, [OURS, THEIRS, THEIRS]);
    });
}

#[test]
fn fork_a_set_latch_carries_the_result_and_wakes_the_waiter() {
    loom::model(|| {
        struct Frame {
            latch: Latch,
            result: UnsafeCell<usize>,
        }
        struct Sent(*const Frame);
        // SAFETY: the latch orders the accesses; that is what is checked.
        unsafe impl Send for Sent {}
        let parker = Arc::new(Parker::new());
        let frame = Box::into_raw(Box::new(Frame {
            latch: Latch::new(7),
            result: UnsafeCell::new(0),
        }));
        let (sent, bell) = (Sent(frame), parker.clone());
        let setter = loom::thread::spawn(move || {
            let sent = sent;
            // SAFETY: the frame is there until its latch is set.
            unsafe {
                (*sent.0).result.with_mut(|there| *there = 42);
                Latch::set(&raw const (*sent.0).latch, |waiter| {
                    assert_eq!(waiter, 7);
                    let _ = bell.unpark();
                });
            }
        });
        // SAFETY: leaked above, and freed below.
        let waiter = unsafe { &*frame };
        if !waiter.latch.is_set() && waiter.latch.begin_sleep() {
            parker.park();
            assert!(waiter.latch.is_set());
        }
        // SAFETY: the latch is set.
        assert_eq!(waiter.result.with(|there| unsafe { *there }), 42);
        // The setter may still be inside `set`, and must not look at this any more.
        // SAFETY: made by `Box::into_raw`, and nobody uses it from here on.
        drop(unsafe { Box::from_raw(frame) });
        setter.join().unwrap();
    });
}

#[test]
fn fork_a_suspended_waiter_is_woken_by_the_waker_it_left() {
    struct Bell(Parker);
    impl std::task::Wake for Bell {
        fn wake(self: Arc<Self>) {
            let _ = self.0.unpark();
        }
    }
    loom::model(|| {
        struct Frame {
            latch: Latch,
            result: UnsafeCell<usize>,
        }
        struct Sent(*const Frame);
        // SAFETY: the latch orders the accesses; that is what is checked.
        unsafe impl Send for Sent {}
        let bell = Arc::new(Bell(Parker::new()));
        let frame = Box::into_raw(Box::new(Frame {
            latch: Latch::new(7),
            result: UnsafeCell::new(0),
        }));
        let sent = Sent(frame);
        let setter = loom::thread::spawn(move || {
            let sent = sent;
            // SAFETY: the frame is there until its latch is set.
            unsafe {
                (*sent.0).result.with_mut(|there| *there = 42);
                Latch::set(&raw const (*sent.0).latch, |_| {
                    unreachable!("no thread sleeps")
                });
            }
        });
        // SAFETY: leaked above, and freed below.
        let waiter = unsafe { &*frame };
        let waker = std::task::Waker::from(bell.clone());
        let cx = std::task::Context::from_waker(&waker);
        while !waiter.latch.poll(&cx) {
            bell.0.park();
        }
        // SAFETY: the latch is set.
        assert_eq!(waiter.result.with(|there| unsafe { *there }), 42);
        // SAFETY: made by `Box::into_raw`, and nobody uses it from here on.
        drop(unsafe { Box::from_raw(frame) });
        setter.join().unwrap();
    });
}
