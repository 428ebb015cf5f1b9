//! A value that is set once.

use std::sync::Arc;

use windlass_core::block_on;
use windlass_sync::lock::SetOnce;

use crate::support::{counting, poll_with, runtime};

static ANSWER: SetOnce<u32> = SetOnce::const_new();

#[test]
fn every_waiter_is_woken_by_the_value() {
    let cell = SetOnce::new();
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(cell.wait())).collect();
    let (count, waker) = counting();
    for wait in &mut waits {
        assert!(poll_with(wait.as_mut(), &waker).is_pending());
    }
    cell.set("a").unwrap();
    assert_eq!(count.count(), 3);
    for wait in waits {
        assert_eq!(block_on(wait), &"a");
    }
}

#[test]
fn a_second_value_comes_back() {
    let cell = SetOnce::new_with(Some(1));
    assert_eq!(cell.set(2).unwrap_err().0, 2);
    assert_eq!(cell.get(), Some(&1));
    assert_eq!(cell.into_inner(), Some(1));
}

#[test]
fn one_of_many_setters_wins_and_all_waiters_see_its_value() {
    let runtime = runtime(4);
    let cell = Arc::new(SetOnce::new());
    let waits: Vec<_> = (0..8)
        .map(|_| {
            let cell = cell.clone();
            runtime.spawn(async move { *cell.wait().await })
        })
        .collect();
    let sets: Vec<_> = (0..8)
        .map(|number| {
            let cell = cell.clone();
            runtime.spawn(async move { cell.set(number).is_ok().then_some(number) })
        })
        .collect();
    let winners: Vec<i32> = sets
        .into_iter()
        .filter_map(|set| runtime.block_on(set).unwrap())
        .collect();
    assert_eq!(winners.len(), 1);
    for wait in waits {
        assert_eq!(runtime.block_on(wait).unwrap(), winners[0]);
    }
}

#[test]
fn a_cell_in_a_static_is_waited_for_from_a_plain_thread() {
    let waiter = std::thread::spawn(|| *block_on(ANSWER.wait()));
    ANSWER.set(42).unwrap();
    assert_eq!(waiter.join().unwrap(), 42);
}
