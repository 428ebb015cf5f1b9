//! The state word.

use std::sync::Arc;

use windlass_core::sync::UnsafeCell;
use windlass_core::sync::atomic::{AtomicUsize, Ordering};
use windlass_core::task::Class;
use windlass_core::task::state::{Completion, Home, Lower, Park, Start, State, Wake};

fn scheduled(joinable: bool) -> State {
    State::scheduled(Home::Pool, Class::Normal, joinable)
}

/// Runs the task until it is idle; gives what its polls saw.
fn run(state: &State, data: &[AtomicUsize; 2]) -> [bool; 2] {
    loop {
        assert_eq!(state.start(), Start::Poll);
        // What the last poll saw is what counts.
        let seen = [
            data[0].load(Ordering::Relaxed) == 1,
            data[1].load(Ordering::Relaxed) == 1,
        ];
        match state.park() {
            Park::Idle => return seen,
            Park::Requeue => {}
            Park::Cancel => unreachable!("nobody cancels"),
        }
    }
}

#[test]
fn state_a_poll_sees_what_every_waker_wrote() {
    loom::model(|| {
        let state = Arc::new(scheduled(true));
        let data = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let wakers: Vec<_> = (0..2)
            .map(|index| {
                let (state, data) = (state.clone(), data.clone());
                loom::thread::spawn(move || {
                    data[index].store(1, Ordering::Relaxed);
                    match state.wake() {
                        Wake::Submit => run(&state, &data),
                        Wake::Nothing => [false; 2],
                    }
                })
            })
            .collect();
        let mut seen = run(&state, &data);
        for waker in wakers {
            let by_waker = waker.join().unwrap();
            seen = [seen[0] | by_waker[0], seen[1] | by_waker[1]];
        }
        assert_eq!(seen, [true, true], "a wake was lost, or its writes were");
        assert!(state.load().is_idle());
    });
}

#[test]
fn state_a_cancellation_is_applied_exactly_once() {
    loom::model(|| {
        let state = Arc::new(scheduled(true));
        let dropped = Arc::new(AtomicUsize::new(0));
        let end = |state: &State, dropped: &AtomicUsize| {
            let ended = match state.start() {
                Start::Cancel => true,
                Start::Poll => match state.park() {
                    Park::Cancel => true,
                    Park::Idle => false,
                    Park::Requeue => {
                        assert_eq!(state.start(), Start::Cancel);
                        true
                    }
                },
            };
            if ended {
                dropped.fetch_add(1, Ordering::Relaxed);
                assert_eq!(state.complete(), Completion::Handed);
            }
        };
        let cancellers: Vec<_> = (0..2)
            .map(|_| {
                let (state, dropped) = (state.clone(), dropped.clone());
                loom::thread::spawn(move || {
                    if state.cancel() == Wake::Submit {
                        end(&state, &dropped);
                    }
                })
            })
            .collect();
        end(&state, &dropped);
        for canceller in cancellers {
            canceller.join().unwrap();
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        assert!(state.load().is_complete());
    });
}

#[test]
fn state_a_cancellation_waits_for_the_shield_and_then_comes() {
    loom::model(|| {
        let state = Arc::new(scheduled(true));
        state.raise_shield().unwrap();
        // Idle inside the section.
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.park(), Park::Idle);
        let other = state.clone();
        let canceller = loom::thread::spawn(move || other.cancel());
        let lowered = state.lower_shield();
        let cancelled = canceller.join().unwrap();
        // Whoever came second queues the task; exactly one does.
        let submits =
            usize::from(lowered == Lower::Submit) + usize::from(cancelled == Wake::Submit);
        assert_eq!(submits, 1);
        assert_eq!(state.start(), Start::Cancel);
    });
}

#[test]
fn state_the_last_reference_sees_everything() {
    loom::model(|| {
        let state = Arc::new(scheduled(true));
        state.retain();
        let cells = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)]);
        let release = |state: &State, cells: &[UnsafeCell<i32>; 3], index: usize| {
            // SAFETY: each thread writes its own cell before it gives up its reference.
            cells[index].with_mut(|cell| unsafe { *cell = 1 });
            if state.release() {
                // SAFETY: the last reference is in everybody's future.
                let sum: i32 = cells
                    .iter()
                    .map(|cell| cell.with(|cell| unsafe { *cell }))
                    .sum();
                assert_eq!(sum, 3);
                return 1;
            }
            0
        };
        let others: Vec<_> = (0..2)
            .map(|index| {
                let (state, cells) = (state.clone(), cells.clone());
                loom::thread::spawn(move || release(&state, &cells, index))
            })
            .collect();
        let mut freed = release(&state, &cells, 2);
        for other in others {
            freed += other.join().unwrap();
        }
        assert_eq!(freed, 1);
    });
}

#[test]
fn state_a_wake_by_value_gives_up_exactly_its_reference() {
    loom::model(|| {
        let state = Arc::new(scheduled(false));
        let data = Arc::new([AtomicUsize::new(0), AtomicUsize::new(1)]);
        // Two wakers exist beside the entry.
        state.retain();
        state.retain();
        let wakers: Vec<_> = (0..2)
            .map(|index| {
                let (state, data) = (state.clone(), data.clone());
                loom::thread::spawn(move || {
                    data[index].store(1, Ordering::Relaxed);
                    match state.wake_by_value() {
                        Some(Wake::Submit) => run(&state, &data)[0],
                        Some(Wake::Nothing) => false,
                        None => unreachable!("nobody completes it"),
                    }
                })
            })
            .collect();
        let mut seen = run(&state, &data)[0];
        for waker in wakers {
            seen |= waker.join().unwrap();
        }
        assert!(seen, "a wake was lost, or its writes were");
        assert!(state.load().is_idle());
        assert_eq!(state.load().references(), 1, "the entry's is left");
    });
}
