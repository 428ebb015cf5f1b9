//! Places that are reserved in a channel, and senders that do not keep it open.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use windlass_core::block_on;
use windlass_sync::channel::mpsc::error::{SendError, TryRecvError, TrySendError};
use windlass_sync::channel::{broadcast, mpsc, oneshot};
use windlass_sync::lock::Semaphore;

use crate::support::{counting, panic_message, poll_with, runtime};

#[test]
fn a_permit_keeps_its_place_free() {
    let (sender, mut receiver) = mpsc::channel(2);
    let permit = sender.try_reserve().unwrap();
    assert_eq!((sender.capacity(), sender.max_capacity()), (1, 2));
    sender.try_send(1).unwrap();
    assert!(matches!(sender.try_send(2), Err(TrySendError::Full(2))));
    permit.send(3);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(3)));
    drop(sender.try_reserve().unwrap());
    assert_eq!(sender.capacity(), 2, "an unused place goes back");
}

#[test]
fn a_reserve_waits_for_room_in_its_turn() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (first, second) = (counting(), counting());
    let mut reserve = pin!(sender.reserve());
    let mut send = pin!(sender.send(2));
    assert!(poll_with(reserve.as_mut(), &first.1).is_pending());
    assert!(poll_with(send.as_mut(), &second.1).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((first.0.count(), second.0.count()), (1, 0));
    block_on(reserve).unwrap().send(1);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(second.0.count(), 1);
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn many_places_are_reserved_at_once_or_not_at_all() {
    let (sender, mut receiver) = mpsc::channel(3);
    assert_eq!(block_on(sender.reserve_many(4)).unwrap_err(), SendError(()));
    sender.try_send(0).unwrap();
    assert!(sender.try_reserve_many(3).is_err());
    let (count, waker) = counting();
    let mut all = pin!(sender.reserve_many(3));
    assert!(poll_with(all.as_mut(), &waker).is_pending());
    assert!(sender.try_send(9).is_err(), "the big request comes first");
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(count.count(), 1);
    let mut permits = block_on(all).unwrap();
    assert_eq!(permits.len(), 3);
    permits.next().unwrap().send(1);
    drop(permits);
    assert_eq!((sender.capacity(), receiver.try_recv()), (2, Ok(1)));
}

#[test]
fn a_dropped_big_request_lets_those_behind_it_in() {
    let (sender, mut receiver) = mpsc::channel(2);
    sender.try_send(0).unwrap();
    let (count, waker) = counting();
    let mut big = Box::pin(sender.reserve_many(2));
    let mut small = Box::pin(sender.send(1));
    assert!(poll_with(big.as_mut(), &waker).is_pending());
    assert!(poll_with(small.as_mut(), &waker).is_pending());
    drop(big);
    assert_eq!(count.count(), 1);
    block_on(small).unwrap();
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(0), Ok(1)));
}

#[test]
fn a_reserve_that_was_served_and_dropped_passes_its_place_on() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (_, waker) = counting();
    let mut reserve = Box::pin(sender.reserve());
    assert!(poll_with(reserve.as_mut(), &waker).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(sender.capacity(), 0);
    drop(reserve);
    assert_eq!(sender.capacity(), 1);
}

#[test]
fn a_closed_channel_goes_on_until_its_permits_are_gone() {
    let (sender, mut receiver) = mpsc::channel(2);
    let (used, unused) = (sender.try_reserve().unwrap(), sender.try_reserve().unwrap());
    receiver.close();
    assert_eq!(block_on(sender.reserve()).unwrap_err(), SendError(()));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let (count, waker) = counting();
    assert!(poll_with(pin!(receiver.recv()), &waker).is_pending());
    used.send(7);
    assert_eq!(block_on(receiver.recv()), Some(7));
    let mut end = Box::pin(receiver.recv());
    assert!(poll_with(end.as_mut(), &waker).is_pending());
    let before = count.count();
    drop(unused);
    assert_eq!(count.count(), before + 1);
    assert!(block_on(end).is_none(), "nothing comes any more");
}

#[test]
fn a_reserve_that_sees_the_close_gives_its_place_back() {
    let (sender, mut receiver) = mpsc::channel::<()>(1);
    let held = sender.try_reserve().unwrap();
    let ((served, sender_waker), (count, waker)) = (counting(), counting());
    let mut reserve = Box::pin(sender.reserve());
    assert!(poll_with(reserve.as_mut(), &sender_waker).is_pending());
    drop(held);
    assert_eq!(served.count(), 1);
    receiver.close();
    let mut end = Box::pin(receiver.recv());
    assert!(poll_with(end.as_mut(), &waker).is_pending());
    let ended = poll_with(reserve.as_mut(), &sender_waker);
    assert!(matches!(ended, Poll::Ready(Err(_))), "{ended:?}");
    assert_eq!(count.count(), 1);
    assert_eq!(poll_with(end.as_mut(), &waker), Poll::Ready(None));
}

#[test]
fn what_a_permit_sends_without_a_receiver_is_dropped_at_once() {
    let value = Arc::new(());
    let (sender, receiver) = mpsc::channel(1);
    let permit = sender.clone().try_reserve_owned().unwrap();
    drop(receiver);
    permit.send(value.clone());
    assert_eq!(Arc::strong_count(&value), 1);
    drop(sender);
}

#[test]
fn an_owned_permit_gives_its_sender_back() {
    let (sender, mut receiver) = mpsc::channel(1);
    let other = sender.clone();
    let permit = block_on(sender.reserve_owned()).unwrap();
    assert!(permit.same_channel_as_sender(&other));
    let refused = other.try_reserve_owned().unwrap_err();
    let sender = permit.release();
    assert!(sender.same_channel(&refused.into_inner()));
    let sender = block_on(sender.reserve_owned()).unwrap().send(5);
    assert_eq!(receiver.try_recv(), Ok(5));
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_rendezvous_refuses_reservations_by_name() {
    let (sender, _receiver) = mpsc::rendezvous::<u8>();
    let message = panic_message(|| drop(block_on(sender.reserve())));
    assert!(message.contains("rendezvous"), "{message}");
    assert!(matches!(sender.try_reserve(), Err(TrySendError::Full(()))));
}

#[test]
fn a_weak_sender_does_not_keep_the_channel_open() {
    let (sender, mut receiver) = mpsc::channel(1);
    let weak = sender.downgrade();
    assert_eq!((sender.strong_count(), weak.weak_count()), (1, 1));
    weak.upgrade().unwrap().try_send(1).unwrap();
    assert_eq!(receiver.sender_strong_count(), 1);
    drop(sender);
    assert!(weak.upgrade().is_none());
    assert_eq!(block_on(receiver.recv()), Some(1));
    assert!(block_on(receiver.recv()).is_none());
    let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    let weak = sender.downgrade();
    drop(sender);
    assert!(weak.clone().upgrade().is_none());
}

#[test]
fn permits_and_sends_of_many_tasks_never_exceed_the_capacity() {
    let runtime = runtime(4);
    let (sender, mut receiver) = mpsc::channel(4);
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let sender = sender.clone();
            runtime.spawn(async move {
                for round in 0..300 {
                    match (number + round) % 3 {
                        0 => sender.send(1).await.unwrap(),
                        1 => sender.reserve().await.unwrap().send(1),
                        _ => {
                            let mut permits = sender.reserve_many(2).await.unwrap();
                            permits.next().unwrap().send(1);
                        }
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let total = runtime.block_on(async {
        let mut total = 0;
        while let Some(value) = receiver.recv().await {
            assert!(receiver.len() <= 4, "{}", receiver.len());
            total += value;
        }
        total
    });
    assert_eq!(total, 8 * 300);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
}

#[test]
fn a_weak_broadcast_sender_does_not_keep_the_channel_open() {
    let (sender, mut receiver) = broadcast::channel(4);
    let weak = sender.downgrade();
    let again = weak.upgrade().expect("there is a sender");
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 1));
    assert_eq!(again.send(7), Ok(1));
    drop((sender, again));
    assert!(weak.upgrade().is_none());
    assert_eq!(block_on(receiver.recv()), Ok(7));
    assert_eq!(
        block_on(receiver.recv()),
        Err(broadcast::error::RecvError::Closed)
    );
    drop(weak);
    assert_eq!(receiver.sender_weak_count(), 0);
}

#[test]
fn a_broadcast_sender_hears_that_the_last_receiver_left() {
    let sender = broadcast::Sender::<u32>::new(4);
    block_on(sender.closed());
    let (first, second) = (sender.subscribe(), sender.subscribe());
    let (woken, waker) = counting();
    let mut closed = pin!(sender.closed());
    assert!(poll_with(closed.as_mut(), &waker).is_pending());
    drop(first);
    assert_eq!(woken.count(), 0);
    drop(second);
    assert_eq!(woken.count(), 1);
    assert!(poll_with(closed.as_mut(), &waker).is_ready());
}

#[test]
fn a_oneshot_receiver_knows_whether_it_is_empty_and_done() {
    let (sender, mut receiver) = oneshot::channel();
    assert!(receiver.is_empty() && !receiver.is_terminated());
    sender.send(7).unwrap();
    assert!(!receiver.is_empty() && !receiver.is_terminated());
    assert_eq!(block_on(&mut receiver), Ok(7));
    assert!(receiver.is_empty() && receiver.is_terminated());

    let (sender, mut receiver) = oneshot::channel::<u32>();
    drop(sender);
    assert!(receiver.is_empty() && !receiver.is_terminated());
    assert!(receiver.try_recv().is_err());
    assert!(receiver.is_terminated());
}

#[test]
fn many_values_are_received_at_once() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    for value in 0..5 {
        sender.send(value).unwrap();
    }
    let mut values = Vec::new();
    assert_eq!(receiver.blocking_recv_many(&mut values, 3), 3);
    let (_, waker) = counting();
    let mut cx = std::task::Context::from_waker(&waker);
    let ready = receiver.poll_recv_many(&mut cx, &mut values, 9);
    assert_eq!(ready, std::task::Poll::Ready(2));
    assert_eq!(values, [0, 1, 2, 3, 4]);
    assert!(
        receiver
            .poll_recv_many(&mut cx, &mut values, 9)
            .is_pending()
    );
    drop(sender);
    assert_eq!(receiver.blocking_recv_many(&mut values, 9), 0);
}

#[test]
fn a_thread_waits_for_permits_that_it_owns() {
    let semaphore = Arc::new(Semaphore::new(4));
    let one = semaphore.clone().blocking_acquire_owned().unwrap();
    let three = semaphore.clone().blocking_acquire_many_owned(3).unwrap();
    assert_eq!(semaphore.available_permits(), 0);
    drop((one, three));
    assert_eq!(semaphore.available_permits(), 4);
}

#[test]
fn the_ends_of_a_channel_cross_a_catch_of_panics() {
    fn is_unwind_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_unwind_safe::<mpsc::Sender<std::cell::Cell<u8>>>();
    is_unwind_safe::<mpsc::Receiver<std::cell::Cell<u8>>>();
    is_unwind_safe::<mpsc::OwnedPermit<std::cell::Cell<u8>>>();
}
