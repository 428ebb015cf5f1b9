//! Coroutines that are driven by hand, without a runtime.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use windlass_runtime::coroutine::{self, CoroutineState, Finish};

use crate::support::{expect_panics, panic_message};

#[test]
fn it_goes_on_at_each_resume() {
    coroutine::drive(|driver| {
        let seen = Rc::new(Cell::new(0));
        let inner = seen.clone();
        let mut steps = driver
            .coroutine(move || {
                for number in 1..=3 {
                    inner.set(number);
                    coroutine::yield_now();
                }
                "done"
            })
            .expect("a stack");
        for number in 1..=3 {
            assert_eq!(steps.resume(), CoroutineState::Suspended);
            assert_eq!(seen.get(), number);
        }
        assert!(!steps.is_finished());
        assert_eq!(steps.resume(), CoroutineState::Finished("done"));
        assert!(steps.is_finished());
    });
}

#[test]
fn resuming_one_that_has_ended_panics() {
    expect_panics();
    coroutine::drive(|driver| {
        let mut ended = driver.coroutine(|| ()).expect("a stack");
        assert_eq!(ended.resume(), CoroutineState::Finished(()));
        let message = panic_message(AssertUnwindSafe(|| ended.resume()));
        assert!(message.contains("has ended"), "{message}");
    });
}

#[test]
fn its_panic_comes_out_of_resume() {
    expect_panics();
    coroutine::drive(|driver| {
        let mut panics = driver
            .coroutine::<()>(|| panic!("inside, on purpose"))
            .expect("a stack");
        let caught = catch_unwind(AssertUnwindSafe(|| panics.resume()));
        assert_eq!(
            caught.expect_err("it panics").downcast_ref::<&str>(),
            Some(&"inside, on purpose")
        );
        assert!(panics.is_finished());
    });
}

#[test]
fn a_parked_one_goes_on_after_an_unpark() {
    coroutine::drive(|driver| {
        let other = Rc::new(Cell::new(None));
        let inner = other.clone();
        let mut parked = driver
            .coroutine(move || {
                inner.set(Some(coroutine::current()));
                coroutine::park();
            })
            .expect("a stack");
        for _ in 0..3 {
            assert_eq!(parked.resume(), CoroutineState::Suspended);
        }
        other.take().expect("it has begun").unpark();
        assert_eq!(parked.resume(), CoroutineState::Finished(()));
    });
}

#[test]
fn one_may_drive_another() {
    fn drive_inner() -> u32 {
        coroutine::drive(|driver| {
            let mut inner = driver
                .coroutine(|| {
                    coroutine::yield_now();
                    2
                })
                .expect("a stack");
            let mut resumes = 0;
            loop {
                resumes += 1;
                if let CoroutineState::Finished(value) = inner.resume() {
                    return value * 10 + resumes;
                }
                coroutine::yield_now();
            }
        })
    }
    coroutine::drive(|driver| {
        let mut outer = driver.coroutine(drive_inner).expect("a stack");
        assert_eq!(outer.resume(), CoroutineState::Suspended);
        assert_eq!(outer.resume(), CoroutineState::Finished(22));
    });
}

struct Count(Rc<Cell<u32>>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn finishing_one_half_way_lets_it_unwind() {
    let dropped = Rc::new(Cell::new(0));
    coroutine::drive(|driver| {
        let inner = Count(dropped.clone());
        let mut half = driver
            .coroutine(move || {
                let _inner = inner;
                coroutine::yield_now();
                unreachable!("it was told to end");
            })
            .expect("a stack");
        assert_eq!(half.resume(), CoroutineState::<()>::Suspended);
        assert_eq!(half.finish(), Finish::Ended);
        assert_eq!(dropped.get(), 1);
        let unstarted = Count(dropped.clone());
        let unstarted = driver.coroutine(move || drop(unstarted)).expect("a stack");
        assert_eq!(unstarted.finish(), Finish::NotBegun);
        assert_eq!(dropped.get(), 2, "one that has not begun is just dropped");
    });
}

#[test]
fn dropping_one_half_way_lets_it_unwind() {
    let dropped = Rc::new(Cell::new(0));
    coroutine::drive(|driver| {
        let inner = Count(dropped.clone());
        let mut half = driver
            .coroutine(move || {
                let _inner = inner;
                coroutine::yield_now();
                unreachable!("it was told to end");
            })
            .expect("a stack");
        half.resume();
        drop(half);
        assert_eq!(dropped.get(), 1);
    });
}

#[test]
fn one_that_returns_although_it_is_told_to_end_gives_its_value() {
    coroutine::drive(|driver| {
        let mut stubborn = driver
            .coroutine(|| {
                let waited = catch_unwind(coroutine::yield_now);
                if waited.is_err() { "caught" } else { "resumed" }
            })
            .expect("a stack");
        stubborn.resume();
        assert_eq!(stubborn.finish(), Finish::Returned("caught"));
    });
}

#[test]
fn one_that_swallows_its_end_for_ever_is_leaked() {
    let finished = on_a_thread_that_stays(|| {
        coroutine::drive(|driver| {
            let mut endless = driver
                .coroutine(|| {
                    loop {
                        let _ = catch_unwind(coroutine::yield_now);
                    }
                })
                .expect("a stack");
            endless.resume();
            endless.finish()
        })
    });
    assert_eq!(finished, Finish::<()>::Leaked);
}

/// What `f` returns. The thread on which a coroutine was leaked does not end: nobody joins it.
fn on_a_thread_that_stays<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(f()));
    told.recv().expect("it returns")
}

#[test]
fn one_that_is_inside_foreign_code_is_leaked() {
    let (finished, dropped) = on_a_thread_that_stays(|| {
        let dropped = Rc::new(Cell::new(0));
        let finished = coroutine::drive(|driver| {
            let inner = Count(dropped.clone());
            let mut inside = driver
                .coroutine(move || {
                    let _inner = inner;
                    coroutine::foreign(coroutine::yield_now);
                })
                .expect("a stack");
            assert_eq!(inside.resume(), CoroutineState::Suspended);
            inside.finish()
        });
        (finished, dropped.get())
    });
    assert_eq!(finished, Finish::Leaked);
    assert_eq!(dropped, 0);
}
