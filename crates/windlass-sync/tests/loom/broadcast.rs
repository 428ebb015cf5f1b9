//! The broadcast channel: values, the close and lags against receivers that wait, cancel or leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use windlass_core::block_on;
use windlass_sync::channel::broadcast;
use windlass_sync::channel::broadcast::error::{RecvError, TryRecvError};

use crate::support::{Count, Tracked, poll};

#[test]
fn broadcast_every_receiver_that_waits_gets_the_value() {
    loom::model(|| {
        let (sender, mut first) = broadcast::channel(1);
        let mut second = sender.subscribe();
        let note = Arc::new(Tracked::new(0));
        let by_second = note.clone();
        let thread = loom::thread::spawn(move || {
            assert_eq!(block_on(second.recv()), Ok(7));
            assert_eq!(by_second.read(), 8);
        });
        let by_sender = note.clone();
        let sends = loom::thread::spawn(move || {
            by_sender.write(8);
            assert_eq!(sender.send(7).unwrap(), 2);
            // Kept until both have it: this model is not about the close.
            sender
        });
        assert_eq!(block_on(first.recv()), Ok(7));
        assert_eq!(note.read(), 8);
        thread.join().unwrap();
        assert!(sends.join().unwrap().is_empty());
    });
}

#[test]
fn broadcast_the_close_tells_every_receiver_that_waits_once() {
    loom::model(|| {
        let (sender, mut first) = broadcast::channel::<u32>(1);
        let mut second = sender.subscribe();
        let (count, waker) = Count::new();
        let mut waits = Box::pin(first.recv());
        assert!(poll(waits.as_mut(), &waker).is_pending());
        let thread = loom::thread::spawn(move || block_on(second.recv()));
        drop(sender);
        assert_eq!(thread.join().unwrap(), Err(RecvError::Closed));
        assert_eq!(count.wakes(), 1);
        let told = poll(waits.as_mut(), &waker);
        assert_eq!(told, Poll::Ready(Err(RecvError::Closed)));
    });
}

#[test]
fn broadcast_a_slow_receiver_is_told_once_how_much_it_missed() {
    loom::model(|| {
        let (sender, mut receiver) = broadcast::channel(1);
        let thread = loom::thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        match block_on(receiver.recv()) {
            Ok(first) => assert_eq!(first, 1),
            missed => assert_eq!(missed, Err(RecvError::Lagged(1))),
        }
        assert_eq!(block_on(receiver.recv()), Ok(2));
        assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        thread.join().unwrap();
    });
}

/// Counts how many of its kind there are.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(alive.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn broadcast_a_receiver_that_cancels_and_leaves_keeps_no_value() {
    loom::model(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, mut stays) = broadcast::channel(2);
        let mut leaves = sender.subscribe();
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(leaves.recv());
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let value = Counted::new(&alive);
        let thread = loom::thread::spawn(move || {
            sender.send(value).unwrap_or_else(|_| panic!("one stays"));
            sender
        });
        let waits = loom::thread::spawn(move || {
            drop(block_on(stays.recv()).unwrap());
            stays
        });
        // The sender may be anywhere: before, within, or after telling this receiver.
        drop(cancelled);
        drop(leaves);
        let mut stays = waits.join().unwrap();
        let sender = thread.join().unwrap();
        assert_eq!(stays.try_recv().err(), Some(TryRecvError::Empty));
        assert_eq!(sender.len(), 0);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}
