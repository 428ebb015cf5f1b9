//! What ends with its thread.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use windlass_runtime::task::{LocalSet, yield_now};
use windlass_runtime::{Runtime, coroutine};

use crate::support::{quiet, runtime};

/// Says when it is destroyed.
struct Loud(Arc<AtomicBool>);

impl Drop for Loud {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Its destructor runs on a coroutine's stack, or never.
struct Look<'a>(&'a Loud);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        assert!(!self.0.0.load(SeqCst), "the value is still there");
    }
}

#[test]
fn a_local_coroutine_is_not_resumed_by_the_end_of_its_thread() {
    thread_local! {
        static VALUE: RefCell<Option<Loud>> = const { RefCell::new(None) };
        static SET: RefCell<Option<LocalSet>> = const { RefCell::new(None) };
    }
    let destroyed = Arc::new(AtomicBool::new(false));
    let inner = destroyed.clone();
    thread::spawn(move || {
        // Registered first, so destroyed last.
        SET.with(|set| drop(set.borrow_mut().take()));
        let set = LocalSet::new();
        windlass_core::block_on(set.run_until(async move {
            drop(coroutine::spawn_local(move || {
                VALUE.with(|value| {
                    *value.borrow_mut() = Some(Loud(inner));
                    let value = value.borrow();
                    let _look = Look(value.as_ref().unwrap());
                    coroutine::wait(std::future::pending::<()>());
                });
            }));
            for _ in 0..3 {
                yield_now().await;
            }
        }));
        SET.with(|place| *place.borrow_mut() = Some(set));
    })
    .join()
    .expect("the thread ends");
    assert!(destroyed.load(SeqCst));
}

#[test]
fn a_runtime_may_end_with_a_thread() {
    thread_local! {
        static KEPT: RefCell<Option<Runtime>> = const { RefCell::new(None) };
        static SIMULATED: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    }
    for _ in 0..10 {
        thread::spawn(|| {
            KEPT.with(|kept| drop(kept.borrow_mut().take()));
            SIMULATED.with(|kept| drop(kept.borrow_mut().take()));
            let real = runtime(1);
            let simulated = Runtime::simulated(1);
            real.block_on(real.spawn(yield_now())).unwrap();
            simulated.block_on(simulated.spawn(yield_now())).unwrap();
            real.spawn(std::future::pending::<()>()).detach();
            simulated.spawn(std::future::pending::<()>()).detach();
            KEPT.with(|kept| *kept.borrow_mut() = Some(real));
            SIMULATED.with(|kept| *kept.borrow_mut() = Some(simulated));
        })
        .join()
        .expect("the thread ends");
    }
}

/// Keeps a local set and runs it again when its thread ends.
struct RunsAtTheEnd(Option<LocalSet>);

impl Drop for RunsAtTheEnd {
    fn drop(&mut self) {
        if let Some(set) = self.0.take() {
            windlass_core::block_on(set.run_until(yield_now()));
            drop(set);
        }
    }
}

#[test]
fn a_local_coroutine_does_not_go_on_in_another_block_on() {
    thread_local! {
        static VALUE: RefCell<Option<Loud>> = const { RefCell::new(None) };
        static SET: RefCell<RunsAtTheEnd> = const { RefCell::new(RunsAtTheEnd(None)) };
    }
    quiet();
    let destroyed = Arc::new(AtomicBool::new(false));
    let inner = destroyed.clone();
    thread::spawn(move || {
        // Registered first, so destroyed last.
        SET.with(|set| drop(set.borrow_mut().0.take()));
        let set = LocalSet::new();
        windlass_core::block_on(set.run_until(async move {
            drop(coroutine::spawn_local(move || {
                VALUE.with(|value| {
                    *value.borrow_mut() = Some(Loud(inner));
                    let value = value.borrow();
                    let _look = Look(value.as_ref().unwrap());
                    loop {
                        coroutine::yield_now();
                        assert!(!value.as_ref().unwrap().0.load(SeqCst), "it is still there");
                    }
                });
            }));
            for _ in 0..3 {
                yield_now().await;
            }
        }));
        SET.with(|place| place.borrow_mut().0 = Some(set));
    })
    .join()
    .expect("the thread ends");
    assert!(destroyed.load(SeqCst));
}

#[test]
fn a_local_coroutine_is_refused_outside_of_a_block_on() {
    quiet();
    let set = LocalSet::new();
    let ran = Arc::new(AtomicBool::new(false));
    let inner = ran.clone();
    let mut driven = Box::pin(set.run_until(async move {
        let refused = coroutine::spawn_local(move || inner.store(true, SeqCst));
        refused.await.is_err()
    }));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = (0..10).find_map(|_| match driven.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(refused) => Some(refused),
        std::task::Poll::Pending => None,
    });
    assert_eq!(polled, Some(true));
    assert!(!ran.load(SeqCst));
}
