//! Channels of many senders: closing, meeting, order, room, values.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use futures_core::Stream;
use windlass_core::block_on;
use windlass_runtime::Runtime;
use windlass_sync::channel::mpmc::error::{SendError, TryRecvError, TrySendError};
use windlass_sync::channel::{mpmc, mpsc};

use crate::support::{
    Drops, Guard, Random, counting, in_time, join, panic_message, poll_once, poll_with, runtime,
};

// ---- D4: closing ----

#[test]
fn d4_a_close_tells_each_waiting_receiver_once() {
    for count in [1, 4, 5, 1000] {
        let (sender, receiver) = mpmc::buffered::<u32>(4);
        let mut waits: Vec<_> = (0..count)
            .map(|_| (Box::pin(receiver.recv()), counting()))
            .collect();
        for (wait, (_, waker)) in &mut waits {
            assert!(poll_with(wait.as_mut(), waker).is_pending());
        }
        sender.close();
        receiver.close();
        drop(sender);
        for (wait, (woken, waker)) in &mut waits {
            assert_eq!(woken.count(), 1, "of {count}");
            assert_eq!(poll_with(wait.as_mut(), waker), Poll::Ready(None));
        }
    }
}

#[test]
fn d4_a_close_hands_each_waiting_sender_its_own_value_back() {
    for count in [1, 4, 5, 1000] {
        let (sender, receiver) = mpmc::buffered(2);
        sender.try_send(1_000_000).unwrap();
        sender.try_send(1_000_001).unwrap();
        let mut waits: Vec<_> = (0..count)
            .map(|value| (Box::pin(sender.send(value)), counting()))
            .collect();
        for (wait, (_, waker)) in &mut waits {
            assert!(poll_with(wait.as_mut(), waker).is_pending());
        }
        receiver.close();
        for (value, (wait, (woken, waker))) in waits.iter_mut().enumerate() {
            assert_eq!(woken.count(), 1, "of {count}");
            assert_eq!(
                poll_with(wait.as_mut(), waker),
                Poll::Ready(Err(SendError(value)))
            );
        }
        assert_eq!(sender.try_send(5), Err(TrySendError::Closed(5)));
        let left = [
            receiver.try_recv(),
            receiver.try_recv(),
            receiver.try_recv(),
        ];
        assert_eq!(
            left,
            [
                Ok(1_000_000),
                Ok(1_000_001),
                Err(TryRecvError::Disconnected)
            ],
            "what was buffered comes first"
        );
    }
}

#[test]
fn d4_tasks_that_wait_end_when_the_channel_does() {
    let runtime = runtime(2);
    for count in [1, 4, 5, 1000] {
        let (sender, receiver) = mpmc::rendezvous::<u32>();
        let receivers: Vec<_> = (0..count)
            .map(|_| {
                let receiver = receiver.clone();
                runtime.spawn(async move { receiver.recv().await })
            })
            .collect();
        drop(sender);
        for task in receivers {
            assert_eq!(join("a receiver", task), None);
        }
        let (sender, receiver) = mpmc::rendezvous();
        let senders: Vec<_> = (0..count)
            .map(|value| {
                let sender = sender.clone();
                runtime.spawn(async move { sender.send(value).await })
            })
            .collect();
        drop(receiver);
        for (value, task) in senders.into_iter().enumerate() {
            assert_eq!(join("a sender", task), Err(SendError(value)));
        }
    }
}

#[test]
fn d4_an_mpsc_receiver_gets_what_is_left_and_then_closed() {
    let (sender, mut receiver) = mpsc::buffered(8);
    for value in 0..8 {
        sender.try_send(value).unwrap();
    }
    assert_eq!(receiver.try_recv(), Ok(0));
    let mut waits = Box::pin(sender.send(8));
    assert!(poll_once(&mut waits).is_ready());
    let mut waits = Box::pin(sender.send(9));
    assert!(poll_once(&mut waits).is_pending());
    receiver.close();
    assert_eq!(poll_once(&mut waits), Poll::Ready(Err(SendError(9))));
    for value in 1..=8 {
        assert_eq!(poll_once(&mut receiver.recv()), Poll::Ready(Some(value)));
    }
    assert_eq!(poll_once(&mut receiver.recv()), Poll::Ready(None));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

// ---- D5: meeting ----

#[test]
fn d5_every_pairing_meets_at_a_rendezvous() {
    let (sender, receiver) = mpmc::rendezvous();
    assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));

    let mut parked = Box::pin(receiver.recv());
    assert!(poll_once(&mut parked).is_pending());
    assert_eq!(
        sender.try_send(1),
        Ok(()),
        "an attempt meets a parked receiver"
    );
    assert_eq!(poll_once(&mut parked), Poll::Ready(Some(1)));

    let mut parked = Box::pin(sender.send(2));
    assert!(poll_once(&mut parked).is_pending());
    assert_eq!(
        receiver.try_recv(),
        Ok(2),
        "an attempt meets a parked sender"
    );
    assert_eq!(poll_once(&mut parked), Poll::Ready(Ok(())));

    let mut parked = Box::pin(receiver.recv());
    assert!(poll_once(&mut parked).is_pending());
    assert_eq!(
        poll_once(&mut Box::pin(sender.send(3))),
        Poll::Ready(Ok(()))
    );
    assert_eq!(poll_once(&mut parked), Poll::Ready(Some(3)));

    let mut parked = Box::pin(sender.send(4));
    assert!(poll_once(&mut parked).is_pending());
    assert_eq!(
        poll_once(&mut Box::pin(receiver.recv())),
        Poll::Ready(Some(4))
    );
    assert_eq!(poll_once(&mut parked), Poll::Ready(Ok(())));

    let (sender, mut receiver) = mpsc::rendezvous();
    let mut parked = Box::pin(sender.send(5));
    assert!(poll_once(&mut parked).is_pending());
    assert_eq!(
        receiver.try_recv(),
        Ok(5),
        "an attempt meets a parked sender"
    );
    let mut waits = receiver.recv();
    assert!(poll_once(&mut waits).is_pending());
    assert_eq!(
        sender.try_send(6),
        Ok(()),
        "an attempt meets a parked receiver"
    );
    assert_eq!(poll_once(&mut waits), Poll::Ready(Some(6)));
    drop(waits);
    let mut given_up = receiver.recv();
    assert!(poll_once(&mut given_up).is_pending());
    drop(given_up);
    assert_eq!(
        sender.try_send(7),
        Err(TrySendError::Full(7)),
        "nobody waits"
    );
}

#[test]
fn d5_threads_meet_at_a_rendezvous() {
    in_time("the threads", || {
        let (sender, receiver) = mpmc::rendezvous();
        let thread = thread::spawn(move || {
            (0..1000).for_each(|value| sender.blocking_send(value).unwrap());
        });
        let got: Vec<u32> = std::iter::from_fn(|| receiver.blocking_recv()).collect();
        thread.join().unwrap();
        assert_eq!(got, (0..1000).collect::<Vec<_>>());
    });
}

fn messages() -> usize {
    if std::env::var_os("WINDLASS_SOAK").is_some() {
        1_000_000
    } else {
        200_000
    }
}

fn four_by_four(runtime: &Runtime, sender: mpmc::Sender<usize>, receiver: mpmc::Receiver<usize>) {
    let seen: Arc<Vec<AtomicU8>> = Arc::new((0..messages()).map(|_| AtomicU8::new(0)).collect());
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let (receiver, seen) = (receiver.clone(), seen.clone());
            runtime.spawn(async move {
                let mut newest = [0; 4];
                while let Some(value) = receiver.recv().await {
                    seen[value].fetch_add(1, Ordering::Relaxed);
                    assert!(newest[value % 4] <= value, "in the order of its sender");
                    newest[value % 4] = value;
                }
            })
        })
        .collect();
    let senders: Vec<_> = (0..4)
        .map(|first| {
            let sender = sender.clone();
            runtime.spawn(async move {
                for value in (first..messages()).step_by(4) {
                    sender.send(value).await.unwrap();
                }
            })
        })
        .collect();
    drop((sender, receiver));
    for task in senders.into_iter().chain(receivers) {
        block_on(task).expect("no task fails");
    }
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

#[test]
fn d5_four_by_four_at_a_rendezvous_each_once() {
    let (sender, receiver) = mpmc::rendezvous();
    four_by_four(&runtime(4), sender, receiver);
}

#[test]
fn d5_four_by_four_through_a_buffer_each_once() {
    let (sender, receiver) = mpmc::buffered(16);
    four_by_four(&runtime(4), sender, receiver);
}

#[test]
fn d5_waits_that_are_given_up_lose_nothing() {
    let runtime = runtime(4);
    let (sender, receiver) = mpmc::buffered(2);
    let seen: Arc<Vec<AtomicU8>> = Arc::new((0..40_000).map(|_| AtomicU8::new(0)).collect());
    let receivers: Vec<_> = (0..4)
        .map(|number| {
            let (receiver, seen) = (receiver.clone(), seen.clone());
            runtime.spawn(async move {
                let mut random = Random::new(number + 1);
                loop {
                    if random.below(3) == 0 {
                        // Polls, lets others work, and gives up; a value may have come meanwhile.
                        let mut given_up = pin!(receiver.recv());
                        if let Poll::Ready(Some(value)) =
                            poll_with(given_up.as_mut(), Waker::noop())
                        {
                            seen[value as usize].fetch_add(1, Ordering::Relaxed);
                        }
                        windlass_runtime::task::yield_now().await;
                        continue;
                    }
                    let Some(value) = receiver.recv().await else {
                        break;
                    };
                    seen[value as usize].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let senders: Vec<_> = (0..4)
        .map(|first: u64| {
            let sender = sender.clone();
            runtime.spawn(async move {
                let mut random = Random::new(first + 11);
                for mut value in (first..40_000).step_by(4) {
                    if random.below(3) == 0 {
                        let mut given_up = pin!(sender.send(value));
                        let polled = poll_with(given_up.as_mut(), Waker::noop());
                        windlass_runtime::task::yield_now().await;
                        value = match (polled, given_up.cancel()) {
                            (Poll::Pending, Some(back)) => back,
                            (_, back) => {
                                assert_eq!(back, None, "delivered and handed back");
                                continue;
                            }
                        };
                    }
                    sender.send(value).await.unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    for task in senders {
        join("a sender", task);
    }
    for task in receivers {
        join("a receiver", task);
    }
    // What was handed to a receiver after its last look is still in the channel.
    while let Ok(value) = receiver.try_recv() {
        seen[value as usize].fetch_add(1, Ordering::Relaxed);
    }
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

// ---- order, room, values ----

#[test]
fn waiters_are_served_in_their_order() {
    let (sender, receiver) = mpmc::buffered(1);
    let mut receivers: Vec<_> = (0..3).map(|_| Box::pin(receiver.recv())).collect();
    for recv in &mut receivers {
        assert!(poll_once(recv).is_pending());
    }
    for value in 0..3 {
        sender.try_send(value).unwrap();
    }
    for (value, recv) in receivers.iter_mut().enumerate() {
        assert_eq!(poll_once(recv), Poll::Ready(Some(value)));
    }
    sender.try_send(10).unwrap();
    let mut senders: Vec<_> = (11..14).map(|value| Box::pin(sender.send(value))).collect();
    for send in &mut senders {
        assert!(poll_once(send).is_pending());
    }
    drop(senders.remove(1));
    assert_eq!(receiver.try_recv(), Ok(10));
    assert_eq!(
        sender.try_send(20),
        Err(TrySendError::Full(20)),
        "no overtaking"
    );
    let got: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    assert_eq!(got, [11, 13], "the dropped one took its value with it");
    assert!(senders.iter_mut().all(|send| poll_once(send).is_ready()));
}

#[test]
fn a_value_of_a_dropped_receive_goes_to_the_next_or_to_the_front() {
    let (sender, receiver) = mpmc::buffered(1);
    let (mut first, mut second) = (Box::pin(receiver.recv()), Box::pin(receiver.recv()));
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    sender.try_send(1).unwrap();
    drop(first);
    assert_eq!(poll_once(&mut second), Poll::Ready(Some(1)));

    let mut dropped = Box::pin(receiver.recv());
    assert!(poll_once(&mut dropped).is_pending());
    sender.try_send(2).unwrap();
    sender.try_send(3).unwrap();
    drop(dropped);
    assert_eq!(receiver.len(), 2, "beyond its capacity");
    assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!([receiver.try_recv(), receiver.try_recv()], [Ok(2), Ok(3)]);
}

#[test]
fn a_cancelled_send_hands_its_value_back_unless_it_was_delivered() {
    let (sender, receiver) = mpmc::rendezvous();
    let mut unpolled = Box::pin(sender.send(1));
    assert_eq!(unpolled.as_mut().cancel(), Some(1));
    let mut waiting = Box::pin(sender.send(2));
    assert!(poll_once(&mut waiting).is_pending());
    assert_eq!(waiting.as_mut().cancel(), Some(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let mut delivered = Box::pin(sender.send(3));
    assert!(poll_once(&mut delivered).is_pending());
    assert_eq!(receiver.try_recv(), Ok(3));
    assert_eq!(delivered.as_mut().cancel(), None);
    let mut closed = Box::pin(sender.send(4));
    assert!(poll_once(&mut closed).is_pending());
    receiver.close();
    assert_eq!(closed.as_mut().cancel(), Some(4));
}

#[test]
fn attempts_fail_exactly_when_the_channel_is_full_or_empty() {
    for capacity in [1, 2, 3, 4, 5, 8, 9, 300] {
        let mut random = Random::new(capacity as u64);
        let (sender, mut receiver) = mpsc::buffered(capacity);
        let (many_sender, many_receiver) = mpmc::buffered(capacity);
        let mut model = VecDeque::new();
        for step in 0..20_000 {
            // Fills for a while, then empties.
            if random.below(8) < if step / 700 % 2 == 0 { 5 } else { 3 } {
                let full = model.len() == capacity;
                let expected = if full {
                    Err(TrySendError::Full(step))
                } else {
                    model.push_back(step);
                    Ok(())
                };
                assert_eq!(sender.try_send(step), expected);
                assert_eq!(many_sender.try_send(step), expected);
            } else {
                let expected = model.pop_front().ok_or(TryRecvError::Empty);
                let got = match poll_once(&mut receiver.recv()) {
                    Poll::Ready(got) => got.ok_or(TryRecvError::Disconnected),
                    Poll::Pending => Err(TryRecvError::Empty),
                };
                assert_eq!(got, expected);
                assert_eq!(many_receiver.try_recv(), expected);
            }
            assert_eq!(receiver.len(), model.len());
            assert_eq!(many_receiver.len(), model.len());
        }
    }
}

#[test]
fn a_sender_is_let_in_as_soon_as_there_is_room() {
    // Also while the receiver still has values that it took out before.
    let (sender, mut receiver) = mpsc::buffered(8);
    for value in 0..8 {
        sender.try_send(value).unwrap();
    }
    let mut waits: Vec<_> = (8..12).map(|value| Box::pin(sender.send(value))).collect();
    for wait in &mut waits {
        assert!(poll_once(wait).is_pending());
    }
    for (value, wait) in waits.iter_mut().enumerate() {
        assert_eq!(receiver.try_recv(), Ok(value));
        assert_eq!(poll_once(wait), Poll::Ready(Ok(())), "one out, one in");
        assert_eq!(receiver.len(), 8);
    }
}

#[test]
fn an_mpsc_value_of_a_dropped_receive_is_the_next_one_and_takes_room() {
    let (sender, mut receiver) = mpsc::buffered(2);
    let mut dropped = receiver.recv();
    assert!(poll_once(&mut dropped).is_pending());
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    drop(dropped);
    assert_eq!(receiver.len(), 2);
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(sender.try_send(3), Ok(()));
    assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!([receiver.try_recv(), receiver.try_recv()], [Ok(2), Ok(3)]);
}

#[test]
fn four_producers_and_one_consumer_keep_every_order() {
    let runtime = runtime(4);
    for capacity in [1, 2, 7, 100] {
        let (sender, mut receiver) = mpsc::channel(capacity);
        let inside = Arc::new(AtomicUsize::new(0));
        let producers: Vec<_> = (0..4)
            .map(|first| {
                let (sender, inside) = (sender.clone(), inside.clone());
                runtime.spawn(async move {
                    for value in (first..20_000).step_by(4) {
                        sender.send(value).await.unwrap();
                        inside.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        drop(sender);
        let consumer = runtime.spawn(async move {
            let (mut newest, mut count) = ([0; 4], 0);
            while let Some(value) = receiver.recv().await {
                assert!(newest[value % 4] <= value);
                newest[value % 4] = value;
                count += 1;
                // Those that are counted were sent, and at most `capacity` are in the channel.
                assert!(inside.load(Ordering::SeqCst) <= count + capacity);
            }
            count
        });
        assert_eq!(join("the consumer", consumer), 20_000);
        for task in producers {
            join("a producer", task);
        }
    }
}

#[test]
fn a_conflated_channel_keeps_the_newest() {
    let drops = Drops::default();
    let (sender, receiver) = mpmc::conflated();
    for number in 0..3 {
        sender.try_send((number, drops.guard())).unwrap();
    }
    assert_eq!(drops.count(), 2, "those that were replaced");
    assert_eq!(receiver.try_recv().unwrap().0, 2);
    assert!(receiver.try_recv().is_err());

    let mut dropped = Box::pin(receiver.recv());
    assert!(poll_once(&mut dropped).is_pending());
    sender.try_send((3, drops.guard())).unwrap();
    sender.try_send((4, drops.guard())).unwrap();
    drop(dropped);
    assert_eq!(
        receiver.try_recv().unwrap().0,
        4,
        "an old value does not come back"
    );
    assert!(receiver.try_recv().is_err());

    let (sender, mut receiver) = mpsc::conflated();
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn an_unbounded_channel_takes_everything_at_once() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    for value in 0..10_000 {
        sender.send(value).unwrap();
    }
    assert_eq!(receiver.len(), 10_000);
    let mut values = Vec::new();
    assert_eq!(block_on(receiver.recv_many(&mut values, 4000)), 4000);
    assert_eq!(block_on(receiver.recv_many(&mut values, usize::MAX)), 6000);
    assert_eq!(values, (0..10_000).collect::<Vec<_>>());
    receiver.close();
    assert_eq!(sender.send(1), Err(SendError(1)));
    assert_eq!(block_on(receiver.recv_many(&mut values, 1)), 0);
}

#[test]
fn the_last_receiver_drops_what_is_left() {
    let drops = Drops::default();
    let (sender, mut receiver) = mpsc::buffered(8);
    for _ in 0..8 {
        sender.try_send(drops.guard()).ok().unwrap();
    }
    drop(receiver.try_recv());
    drop(receiver);
    assert_eq!(drops.count(), 8);
    assert!(sender.is_closed());

    let (sender, receiver) = mpmc::unlimited();
    sender.try_send(drops.guard()).ok().unwrap();
    drop(receiver.clone());
    assert!(!sender.is_closed());
    drop(receiver);
    assert_eq!(drops.count(), 9);
}

/// Uses its own channel while it is dropped.
struct Reentrant(
    mpmc::Sender<Reentrant>,
    #[allow(dead_code, reason = "is there to be dropped")] Guard,
);

impl Drop for Reentrant {
    fn drop(&mut self) {
        assert!(
            format!("{:?}", self.0).contains("buffered"),
            "no lock is held"
        );
        let _ = self.0.is_closed();
    }
}

#[test]
fn values_are_dropped_outside_of_the_lock() {
    let drops = Drops::default();
    for (sender, receiver) in [mpmc::conflated(), mpmc::unlimited()] {
        for _ in 0..3 {
            let value = Reentrant(sender.clone(), drops.guard());
            sender.try_send(value).ok().unwrap();
        }
        drop(receiver);
    }
    assert_eq!(drops.count(), 6);
}

#[test]
fn a_sender_can_wait_for_the_end() {
    let (sender, receiver) = mpsc::channel::<u32>(1);
    let mut closed = Box::pin(sender.closed());
    assert!(poll_once(&mut closed).is_pending());
    drop(receiver);
    assert!(poll_once(&mut closed).is_ready());
    assert!(sender.same_channel(&sender.clone()));
}

#[test]
fn a_buffer_of_nothing_is_refused() {
    let message = panic_message(|| mpmc::buffered::<u32>(0));
    assert!(message.contains("rendezvous()"), "{message}");
}

#[test]
fn receivers_are_streams() {
    let (sender, mut receiver) = mpmc::buffered(2);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut receiver).poll_next(&mut cx).is_pending());
    sender.try_send(1).unwrap();
    let next = Pin::new(&mut receiver).poll_next(&mut cx);
    assert_eq!(next, Poll::Ready(Some(1)));
    assert!(Pin::new(&mut receiver).poll_next(&mut cx).is_pending());
    sender.try_send(2).unwrap();
    let other = receiver.clone();
    drop(receiver);
    assert_eq!(
        other.try_recv(),
        Ok(2),
        "not lost with the stream it reached"
    );

    let (sender, mut receiver) = mpsc::buffered(2);
    assert!(Pin::new(&mut receiver).poll_next(&mut cx).is_pending());
    sender.try_send(3).unwrap();
    drop(sender);
    let next = Pin::new(&mut receiver).poll_next(&mut cx);
    assert_eq!(next, Poll::Ready(Some(3)));
    let next = Pin::new(&mut receiver).poll_next(&mut cx);
    assert_eq!(next, Poll::Ready(None));
}

#[test]
fn a_loop_over_a_full_channel_gives_way() {
    let runtime = runtime(1);
    let ran = Arc::new(AtomicBool::new(false));
    let seen = ran.clone();
    let task = runtime.spawn(async move {
        let (sender, mut receiver) = mpsc::unlimited();
        (0..100_000).for_each(|value| sender.try_send(value).unwrap());
        let other = windlass_runtime::spawn(async move { ran.store(true, Ordering::SeqCst) });
        let mut before = 0;
        while !seen.load(Ordering::SeqCst) && before < 100_000 {
            before = receiver.recv().await.unwrap() + 1;
        }
        other.await.unwrap();
        before
    });
    let before = join("the loop that must give way", task);
    assert!(
        before < 100_000,
        "the other task ran only after {before} receives"
    );
}

#[test]
fn a_watch_channel_may_begin_without_a_receiver_and_knows_its_senders() {
    use windlass_sync::channel::watch;

    let sender = watch::Sender::new(1);
    assert!(sender.is_closed() && sender.send(2).is_err());
    let mut receiver = sender.subscribe();
    let second = sender.clone();
    assert_eq!(sender.sender_count(), 2);
    second.send(3).unwrap();
    drop((sender, second));
    assert!(receiver.is_closed(), "all senders are gone");
    assert_eq!(*receiver.borrow_and_update(), 3);
    assert_eq!(*watch::Sender::<u32>::default().borrow(), 0);
}
