//! The oneshot: sender against receiver in every order.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use windlass_sync::channel::oneshot;

use crate::support::{Count, Parcel, poll};

#[test]
fn oneshot_an_awaited_value_arrives() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = oneshot::channel();
        let parcel = Parcel::new(&drops, 7);
        let thread = loom::thread::spawn(move || sender.send(parcel).unwrap());
        assert_eq!(windlass_core::block_on(receiver).unwrap().content(), 7);
        thread.join().unwrap();
    });
}

#[test]
fn oneshot_a_value_is_taken_dropped_or_handed_back_once() {
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = oneshot::channel();
        let parcel = Parcel::new(&drops, 7);
        let thread = loom::thread::spawn(move || sender.send(parcel).err());
        drop(receiver);
        let back = thread.join().unwrap();
        assert_eq!(
            drops.load(Ordering::Relaxed) + usize::from(back.is_some()),
            1
        );
    });
}

#[test]
fn oneshot_the_newest_waker_is_woken() {
    loom::model(|| {
        let (sender, mut receiver) = oneshot::channel();
        let thread = loom::thread::spawn(move || sender.send(7).unwrap());
        let ((first_count, first), (second_count, second)) = (Count::new(), Count::new());
        let mut polled = poll(Pin::new(&mut receiver), &first);
        if polled.is_pending() {
            polled = poll(Pin::new(&mut receiver), &second);
        }
        thread.join().unwrap();
        if polled.is_pending() {
            assert_eq!(second_count.wakes(), 1);
            polled = poll(Pin::new(&mut receiver), &second);
        }
        assert_eq!(polled, Poll::Ready(Ok(7)));
        drop((receiver, first, second));
        assert_eq!(
            Arc::strong_count(&first_count) + Arc::strong_count(&second_count),
            2,
            "no waker is left behind"
        );
    });
}

#[test]
fn oneshot_a_dropped_receiver_wakes_the_sender() {
    loom::model(|| {
        let (mut sender, receiver) = oneshot::channel::<u32>();
        let thread = loom::thread::spawn(move || drop(receiver));
        windlass_core::block_on(sender.closed());
        assert!(sender.is_closed());
        thread.join().unwrap();
    });
}

#[test]
fn oneshot_a_dropped_sender_wakes_the_receiver() {
    loom::model(|| {
        let (sender, receiver) = oneshot::channel::<u32>();
        let thread = loom::thread::spawn(move || drop(sender));
        assert!(windlass_core::block_on(receiver).is_err());
        thread.join().unwrap();
    });
}
