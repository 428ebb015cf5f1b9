//! Channels: hand-offs against cancellation, waiters against a close, batches against senders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use windlass_sync::channel::mpmc::error::{SendError, TryRecvError};
use windlass_sync::channel::{mpmc, mpsc};

use crate::support::{Count, Parcel, poll};

#[test]
fn channel_a_value_handed_to_a_cancelled_receiver_is_not_lost() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpmc::buffered(1);
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(receiver.recv());
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let parcel = Parcel::new(&drops, 7);
        let thread = loom::thread::spawn(move || {
            sender.try_send(parcel).unwrap();
            sender
        });
        drop(cancelled);
        let sender = thread.join().unwrap();
        assert_eq!(receiver.try_recv().unwrap().content(), 7);
        assert_eq!(receiver.try_recv().unwrap_err(), TryRecvError::Empty);
        drop(sender);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn channel_a_cancelled_hand_off_reaches_the_next_receiver() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpmc::rendezvous::<Parcel>();
        let next = receiver.clone();
        let (_, waker) = Count::new();
        let mut cancelled = Box::pin(receiver.recv());
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        let thread =
            loom::thread::spawn(move || windlass_core::block_on(next.recv()).unwrap().content());
        sender.try_send(Parcel::new(&drops, 7)).unwrap();
        drop(cancelled);
        assert_eq!(thread.join().unwrap(), 7);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn channel_close_tells_a_waiting_receiver() {
    loom::model(|| {
        let (sender, receiver) = mpmc::buffered::<u32>(1);
        let thread = loom::thread::spawn(move || drop(sender));
        assert_eq!(windlass_core::block_on(receiver.recv()), None);
        thread.join().unwrap();
    });
}

#[test]
fn channel_close_hands_a_waiting_sender_its_value_back() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpmc::rendezvous();
        let thread = loom::thread::spawn(move || drop(receiver));
        let sent = windlass_core::block_on(sender.send(Parcel::new(&drops, 7)));
        let Err(SendError(back)) = sent else {
            panic!("nobody received it")
        };
        assert_eq!(back.content(), 7);
        thread.join().unwrap();
    });
}

#[test]
fn channel_a_cancelled_send_is_delivered_or_handed_back() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpmc::rendezvous();
        let (_, waker) = Count::new();
        let mut send = Box::pin(sender.send(Parcel::new(&drops, 7)));
        assert!(poll(send.as_mut(), &waker).is_pending());
        let thread = loom::thread::spawn(move || receiver.try_recv().ok());
        let back = send.as_mut().cancel();
        let got = thread.join().unwrap();
        assert_eq!(
            usize::from(back.is_some()) + usize::from(got.is_some()),
            1,
            "exactly one has it"
        );
    });
}

#[test]
fn channel_a_receiver_that_hands_out_its_batch_lets_a_sender_in() {
    loom::model(|| {
        let (sender, mut receiver) = mpsc::buffered(4);
        for value in 0..4 {
            sender.try_send(value).unwrap();
        }
        // Takes a batch of two: one is out, one is left and counts.
        assert_eq!(receiver.try_recv(), Ok(0));
        sender.try_send(4).unwrap();
        assert!(sender.try_send(5).is_err(), "four are in the channel");
        let thread = loom::thread::spawn(move || windlass_core::block_on(sender.send(5)));
        assert_eq!(receiver.try_recv(), Ok(1));
        // There is room now, and nothing else is received until the sender is in.
        assert_eq!(thread.join().unwrap(), Ok(()));
        assert_eq!(receiver.len(), 4);
    });
}

#[test]
fn channel_a_receiver_that_hands_out_its_batch_lets_a_reservation_in() {
    loom::model(|| {
        let (sender, mut receiver) = mpsc::channel(4);
        for value in 0..4 {
            sender.try_send(value).unwrap();
        }
        // As above: one is left of the batch, and three are in the buffer.
        assert_eq!(receiver.try_recv(), Ok(0));
        sender.try_send(4).unwrap();
        let thread = loom::thread::spawn(move || {
            windlass_core::block_on(sender.reserve()).unwrap().send(5);
        });
        assert_eq!(receiver.try_recv(), Ok(1));
        thread.join().unwrap();
        assert_eq!(receiver.len(), 4);
    });
}

#[test]
fn channel_each_value_of_two_senders_arrives_once() {
    loom::model(|| {
        let (sender, mut receiver) = mpsc::buffered(1);
        let other = sender.clone();
        let thread = loom::thread::spawn(move || {
            windlass_core::block_on(other.send(1)).unwrap();
        });
        let (_, waker) = Count::new();
        let mut send = Box::pin(sender.send(2));
        let sent = poll(send.as_mut(), &waker);
        let mut got = vec![windlass_core::block_on(receiver.recv()).unwrap()];
        if sent == Poll::Pending {
            got.push(windlass_core::block_on(receiver.recv()).unwrap());
            assert_eq!(poll(send.as_mut(), &waker), Poll::Ready(Ok(())));
        }
        thread.join().unwrap();
        drop(send);
        got.extend(receiver.try_recv());
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn channel_a_reserve_meets_a_receive() {
    loom::model(|| {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(1).unwrap();
        let thread = loom::thread::spawn(move || {
            // Sleeps until there is room; a lost wake-up is a deadlock.
            windlass_core::block_on(sender.reserve()).unwrap().send(2);
        });
        assert_eq!(windlass_core::block_on(receiver.recv()), Some(1));
        assert_eq!(windlass_core::block_on(receiver.recv()), Some(2));
        assert!(windlass_core::block_on(receiver.recv()).is_none());
        thread.join().unwrap();
    });
}

#[test]
fn channel_a_weak_sender_never_opens_a_closed_channel() {
    loom::model(|| {
        let (sender, mut receiver) = mpsc::channel(1);
        let weak = sender.downgrade();
        let thread = loom::thread::spawn(move || drop(sender));
        let sent = match weak.upgrade() {
            Some(sender) => {
                sender.try_send(1).unwrap();
                true
            }
            None => false,
        };
        thread.join().unwrap();
        assert_eq!(receiver.try_recv().is_ok(), sent);
        assert!(receiver.is_closed());
    });
}
