//! Oneshot, broadcast and watch.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use windlass_core::block_on;
use windlass_sync::channel::oneshot::error::TryRecvError;
use windlass_sync::channel::watch::error::SendError;
use windlass_sync::channel::{broadcast, oneshot, watch};

use crate::support::{Drops, counting, join, panic_message, poll_once, poll_with, runtime, wait};

// ---- oneshot ----

#[test]
fn a_oneshot_delivers_hands_back_or_says_so() {
    let (sender, receiver) = oneshot::channel();
    sender.send(1).unwrap();
    assert_eq!(block_on(receiver), Ok(1));

    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send(2), Err(2));

    let (sender, mut receiver) = oneshot::channel::<u32>();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert!(poll_once(&mut receiver).is_pending());
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert!(matches!(poll_once(&mut receiver), Poll::Ready(Err(_))));

    let (sender, mut receiver) = oneshot::channel();
    receiver.close();
    assert_eq!(sender.send(3), Err(3));
    assert!(matches!(poll_once(&mut receiver), Poll::Ready(Err(_))));

    let (sender, mut receiver) = oneshot::channel();
    sender.send(4).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(4), "it was sent before");

    let drops = Drops::default();
    let (sender, receiver) = oneshot::channel();
    sender.send(drops.guard()).ok().unwrap();
    drop(receiver);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_oneshot_wakes_the_newest_waker_of_either_side() {
    let ((old, old_waker), (new, new_waker)) = (counting(), counting());
    let (sender, mut receiver) = oneshot::channel();
    assert!(poll_with(Pin::new(&mut receiver), &old_waker).is_pending());
    assert!(poll_with(Pin::new(&mut receiver), &new_waker).is_pending());
    sender.send(1).unwrap();
    assert_eq!((old.count(), new.count()), (0, 1));
    assert_eq!(block_on(receiver), Ok(1));

    let ((old, old_waker), (new, new_waker)) = (counting(), counting());
    let (mut sender, receiver) = oneshot::channel::<u32>();
    assert!(
        sender
            .poll_closed(&mut Context::from_waker(&old_waker))
            .is_pending()
    );
    assert!(
        sender
            .poll_closed(&mut Context::from_waker(&new_waker))
            .is_pending()
    );
    drop(receiver);
    assert_eq!((old.count(), new.count()), (0, 1));
    block_on(sender.closed());
}

#[test]
fn oneshots_work_between_tasks_and_threads() {
    let runtime = runtime(4);
    let sum = wait("the answers", async move {
        let mut sum = 0;
        for value in 0..5_000_u32 {
            let (sender, receiver) = oneshot::channel();
            let task = runtime.spawn(async move { sender.send(value).unwrap() });
            task.detach();
            sum += receiver.await.unwrap();
        }
        drop(runtime);
        sum
    });
    assert_eq!(sum, 4_999 * 5_000 / 2);
    let (sender, receiver) = oneshot::channel();
    let thread = thread::spawn(move || receiver.blocking_recv());
    sender.send(7).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(7));
}

// ---- broadcast ----

#[test]
fn every_receiver_of_a_broadcast_gets_every_value() {
    let (sender, mut first) = broadcast::channel(4);
    let mut second = sender.subscribe();
    assert_eq!(sender.send(1), Ok(2));
    let mut late = first.resubscribe();
    assert_eq!(sender.send(2), Ok(3));
    assert_eq!([first.try_recv(), first.try_recv()], [Ok(1), Ok(2)]);
    assert_eq!([second.try_recv(), second.try_recv()], [Ok(1), Ok(2)]);
    assert_eq!(late.try_recv(), Ok(2));
    assert!(sender.is_empty(), "everybody has seen everything");
    assert_eq!(first.try_recv(), Err(broadcast::error::TryRecvError::Empty));
    drop((first, second, late));
    assert_eq!(sender.send(3), Err(SendError(3)));
}

#[test]
fn a_slow_receiver_is_told_once_what_it_missed() {
    let (sender, mut slow) = broadcast::channel(2);
    for value in 0..5 {
        sender.send(value).unwrap();
    }
    assert_eq!(slow.len(), 5);
    assert_eq!(
        slow.try_recv(),
        Err(broadcast::error::TryRecvError::Lagged(3))
    );
    assert_eq!([slow.try_recv(), slow.try_recv()], [Ok(3), Ok(4)]);
    sender.send(5).unwrap();
    drop(sender);
    assert_eq!(block_on(slow.recv()), Ok(5));
    assert_eq!(
        block_on(slow.recv()),
        Err(broadcast::error::RecvError::Closed)
    );
}

#[test]
fn a_receiver_cannot_miss_what_it_has_taken() {
    let (sender, mut receiver) = broadcast::channel(8);
    for value in 0..8 {
        sender.send(value).unwrap();
    }
    // A quarter of the capacity at once.
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((receiver.len(), sender.len()), (7, 6));
    for value in 8..18 {
        sender.send(value).unwrap();
    }
    assert_eq!(block_on(receiver.recv()), Ok(1));
    assert_eq!(
        block_on(receiver.recv()),
        Err(broadcast::error::RecvError::Lagged(8))
    );
    assert_eq!(block_on(receiver.recv()), Ok(10));
    drop(sender);
    let left: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    assert_eq!(left, [11, 12, 13, 14, 15, 16, 17]);
    assert_eq!(
        receiver.try_recv(),
        Err(broadcast::error::TryRecvError::Closed)
    );
}

/// Counts its clones.
struct Cloned(Arc<AtomicUsize>);

impl Clone for Cloned {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::SeqCst);
        Cloned(self.0.clone())
    }
}

#[test]
fn the_last_receiver_of_a_broadcast_gets_the_value_itself() {
    let clones = Arc::new(AtomicUsize::new(0));
    let (sender, mut first) = broadcast::channel(4);
    let mut second = sender.subscribe();
    sender.send(Cloned(clones.clone())).ok().unwrap();
    drop(first.try_recv().ok().unwrap());
    assert_eq!(clones.load(Ordering::SeqCst), 1);
    drop(second.try_recv().ok().unwrap());
    assert_eq!(clones.load(Ordering::SeqCst), 1);
    let third = sender.subscribe();
    sender.send(Cloned(clones.clone())).ok().unwrap();
    drop(first);
    assert_eq!(sender.len(), 1);
    drop(second.try_recv().ok().unwrap());
    assert_eq!(sender.len(), 1);
    drop(third);
    assert!(sender.is_empty(), "only who left had not seen it");
    sender.send(Cloned(clones.clone())).ok().unwrap();
    drop(second);
    assert!(sender.is_empty());
    assert_eq!(Arc::strong_count(&clones), 1, "nothing is left");
}

#[test]
fn a_broadcast_wakes_everybody_who_waits() {
    let runtime = runtime(4);
    let (sender, receiver) = broadcast::channel(64);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let mut receiver = receiver.resubscribe();
            runtime.spawn(async move {
                let mut sum = 0;
                loop {
                    match receiver.recv().await {
                        Ok(value) => sum += value,
                        Err(broadcast::error::RecvError::Lagged(missed)) => {
                            panic!("missed {missed}")
                        }
                        Err(broadcast::error::RecvError::Closed) => return sum,
                    }
                }
            })
        })
        .collect();
    drop(receiver);
    for value in 0..50_u64 {
        assert_eq!(sender.send(value), Ok(100));
    }
    let mut dropped = sender.subscribe();
    assert!(poll_once(&mut Box::pin(dropped.recv())).is_pending());
    drop(sender);
    for task in tasks {
        assert_eq!(join("a receiver", task), 49 * 50 / 2);
    }
}

// ---- watch ----

#[test]
fn a_watch_has_versions() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(receiver.has_changed(), Ok(false));
    assert!(poll_once(&mut Box::pin(receiver.changed())).is_pending());
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(receiver.has_changed(), Ok(true));
    assert_eq!(*receiver.borrow(), 2);
    assert_eq!(receiver.has_changed(), Ok(true), "only looked at");
    assert_eq!(
        poll_once(&mut Box::pin(receiver.changed())),
        Poll::Ready(Ok(()))
    );
    assert!(poll_once(&mut Box::pin(receiver.changed())).is_pending());
    assert!(!sender.send_if_modified(|_| false));
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send_modify(|value| *value += 1);
    assert!(receiver.borrow().has_changed());
    let seen = receiver.borrow_and_update();
    assert_eq!((*seen, seen.has_changed()), (3, true));
    drop(seen);
    assert_eq!(receiver.has_changed(), Ok(false));
    assert_eq!(sender.send_replace(4), 3);
    let late = sender.subscribe();
    assert_eq!(late.has_changed(), Ok(false));
    drop(sender);
    assert_eq!(
        poll_once(&mut Box::pin(receiver.changed())),
        Poll::Ready(Ok(()))
    );
    assert!(matches!(
        poll_once(&mut Box::pin(receiver.changed())),
        Poll::Ready(Err(_))
    ));
    assert_eq!(*receiver.borrow(), 4);
}

#[test]
fn a_watch_wakes_who_waits_for_a_change_or_the_end() {
    let (sender, mut receiver) = watch::channel(0);
    let (woken, waker) = counting();
    let mut changed = Box::pin(receiver.changed());
    assert!(poll_with(changed.as_mut(), &waker).is_pending());
    sender.send_if_modified(|_| false);
    assert_eq!(woken.count(), 0);
    sender.send(1).unwrap();
    assert_eq!(woken.count(), 1);
    assert_eq!(poll_with(changed.as_mut(), &waker), Poll::Ready(Ok(())));
    assert!(poll_with(changed.as_mut(), &waker).is_pending());
    drop(sender);
    assert_eq!(woken.count(), 2);
    assert!(matches!(
        poll_with(changed.as_mut(), &waker),
        Poll::Ready(Err(_))
    ));
}

#[test]
fn a_panic_in_a_change_leaves_the_watch_usable() {
    let (sender, mut receiver) = watch::channel(0);
    let message = panic_message(|| {
        sender.send_modify(|value| {
            *value = 1;
            panic!("modifying, on purpose");
        });
    });
    assert!(message.contains("on purpose"));
    assert_eq!(receiver.has_changed(), Ok(false), "nobody was told");
    assert_eq!(*receiver.borrow(), 1);
    sender.send(2).unwrap();
    assert_eq!(*receiver.borrow_and_update(), 2);
}

#[test]
fn watchers_wait_for_a_value_and_for_each_other_s_end() {
    let runtime = runtime(4);
    let (sender, receiver) = watch::channel(0_u32);
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let mut receiver = receiver.clone();
            runtime.spawn(async move { *receiver.wait_for(|value| *value >= 100).await.unwrap() })
        })
        .collect();
    drop(receiver);
    for value in 1..=100 {
        sender.send_replace(value);
    }
    for task in tasks {
        assert_eq!(join("a watcher", task), 100);
    }
    wait("the end of the receivers", async move {
        sender.closed().await;
        assert!(sender.is_closed());
        assert_eq!(sender.send(1), Err(SendError(1)));
        let mut again = sender.subscribe();
        drop(sender);
        assert!(again.wait_for(|value| *value == 7).await.is_err());
    });
}
