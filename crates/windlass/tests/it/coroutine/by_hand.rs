//! Coroutines that are driven by hand, without a runtime.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use windlass::coroutine::{self, Coroutine, Resumed};

use crate::support::{expect_panics, panic_message};

#[test]
fn it_goes_on_at_each_resume() {
    let seen = Rc::new(Cell::new(0));
    let inner = seen.clone();
    let mut steps = Coroutine::new(move || {
        for number in 1..=3 {
            inner.set(number);
            coroutine::yield_now();
        }
        "done"
    })
    .expect("a stack");
    for number in 1..=3 {
        assert_eq!(steps.resume(), Resumed::Suspended);
        assert_eq!(seen.get(), number);
    }
    assert!(!steps.is_finished());
    assert_eq!(steps.resume(), Resumed::Finished("done"));
    assert!(steps.is_finished());
}

#[test]
fn resuming_one_that_has_ended_panics() {
    expect_panics();
    let mut ended = Coroutine::new(|| ()).expect("a stack");
    assert_eq!(ended.resume(), Resumed::Finished(()));
    let message = panic_message(AssertUnwindSafe(|| ended.resume()));
    assert!(message.contains("has ended"), "{message}");
}

#[test]
fn its_panic_comes_out_of_resume() {
    expect_panics();
    let mut panics = Coroutine::<()>::new(|| panic!("inside, on purpose")).expect("a stack");
    let caught = catch_unwind(AssertUnwindSafe(|| panics.resume()));
    assert_eq!(
        caught.expect_err("it panics").downcast_ref::<&str>(),
        Some(&"inside, on purpose")
    );
    assert!(panics.is_finished());
}

#[test]
fn a_parked_one_goes_on_after_an_unpark() {
    let other = Rc::new(Cell::new(None));
    let inner = other.clone();
    let mut parked = Coroutine::new(move || {
        inner.set(Some(coroutine::current()));
        coroutine::park();
    })
    .expect("a stack");
    for _ in 0..3 {
        assert_eq!(parked.resume(), Resumed::Suspended);
    }
    other.take().expect("it has begun").unpark();
    assert_eq!(parked.resume(), Resumed::Finished(()));
}

#[test]
fn one_may_drive_another() {
    let mut outer = Coroutine::new(|| {
        let mut inner = Coroutine::new(|| {
            coroutine::yield_now();
            2
        })
        .expect("a stack");
        let mut resumes = 0;
        loop {
            resumes += 1;
            if let Resumed::Finished(value) = inner.resume() {
                return value * 10 + resumes;
            }
            coroutine::yield_now();
        }
    })
    .expect("a stack");
    assert_eq!(outer.resume(), Resumed::Suspended);
    assert_eq!(outer.resume(), Resumed::Finished(22));
}

struct Count(Rc<Cell<u32>>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn dropping_one_half_way_lets_it_unwind() {
    let dropped = Rc::new(Cell::new(0));
    let inner = Count(dropped.clone());
    let mut half = Coroutine::new(move || {
        let _inner = inner;
        coroutine::yield_now();
        unreachable!("it was dropped");
    })
    .expect("a stack");
    assert_eq!(half.resume(), Resumed::<()>::Suspended);
    drop(half);
    assert_eq!(dropped.get(), 1);
    let unstarted = Count(dropped.clone());
    drop(Coroutine::new(move || drop(unstarted)).expect("a stack"));
    assert_eq!(dropped.get(), 2, "one that has not begun is just dropped");
}

#[test]
fn one_that_is_dropped_inside_foreign_code_is_leaked() {
    let dropped = Rc::new(Cell::new(0));
    let inner = Count(dropped.clone());
    let mut inside = Coroutine::new(move || {
        let _inner = inner;
        coroutine::foreign(coroutine::yield_now);
    })
    .expect("a stack");
    assert_eq!(inside.resume(), Resumed::Suspended);
    drop(inside);
    assert_eq!(dropped.get(), 0);
}

#[test]
fn one_may_be_dropped_while_the_thread_unwinds() {
    expect_panics();
    let dropped = Rc::new(Cell::new(0));
    let inner = Count(dropped.clone());
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let mut half = Coroutine::new(move || {
            let _inner = inner;
            coroutine::yield_now();
        })
        .expect("a stack");
        half.resume();
        panic!("with a coroutine on the stack, on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(dropped.get(), 1);
    assert!(!std::thread::panicking());
}
