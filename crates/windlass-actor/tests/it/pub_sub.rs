//! Typed values for all that subscribe.

use std::sync::Arc;
use std::time::Duration;

use windlass_actor::{
    Context, ExitReason, Host, MailboxPolicy, ProcessHandle, PubSub, RegisterError, WhenFull,
};
use windlass_runtime::TaskGroup;
use windlass_runtime::time::{Instant, sleep, timeout};

use crate::support::{Log, everywhere, expect_panics, real, simulated};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Writes down what it gets; with a mailbox for so many messages, one each `pause`.
fn reader(host: &Host, room: usize, pause: Duration, log: &Log<u32>) -> ProcessHandle<u32> {
    let log = log.clone();
    let process = host.process().mailbox(MailboxPolicy::Bounded(room));
    let process = process.spawn(move |mut ctx: Context<u32>| async move {
        loop {
            sleep(pause).await;
            let Some(number) = ctx.recv().await else {
                return;
            };
            log.add(number);
        }
    });
    process.expect("a process")
}

#[test]
fn all_subscribers_get_all_values_in_order_each_in_its_own_type() {
    #[derive(Debug, PartialEq)]
    enum Other {
        Number(u32),
        End,
    }
    everywhere(|host| async move {
        let (log, others) = (Log::default(), Log::default());
        let plain = reader(&host, 100, Duration::ZERO, &log);
        let seen = others.clone();
        let other = host.spawn(move |mut ctx: Context<Other>| async move {
            while let Some(Other::Number(number)) = ctx.recv().await {
                seen.add(number);
            }
        });
        let other = other.expect("a process");
        let numbers = PubSub::new();
        numbers.subscribe(&plain, WhenFull::Drop).expect("it lives");
        numbers
            .subscribe_with(&other, WhenFull::Wait, Other::Number)
            .expect("it lives");
        assert_eq!(numbers.subscribers(), [plain.pid(), other.pid()]);
        for number in 0..50 {
            let published = numbers.publish(number).await;
            assert_eq!((published.delivered, published.dropped), (2, 0));
        }
        other.send(Other::End).await.expect("it lives");
        other.join().await;
        assert!(others.all().into_iter().eq(0..50));
        while log.all().len() < 50 {
            sleep(ms(1)).await;
        }
        assert!(log.all().into_iter().eq(0..50));
        let counts = numbers.counts();
        assert_eq!(
            (counts.published, counts.delivered, counts.dropped),
            (50, 100, 0)
        );
        assert_eq!(counts.subscribers, 1, "the other has left by itself");
    });
}

#[test]
fn a_full_subscriber_drops_and_counts_and_holds_up_none() {
    simulated(|host| async move {
        let (slow_log, fast_log) = (Log::default(), Log::default());
        let slow = reader(&host, 2, ms(1_000), &slow_log);
        let fast = reader(&host, 100, Duration::ZERO, &fast_log);
        let numbers = PubSub::new();
        numbers.subscribe(&slow, WhenFull::Drop).expect("it lives");
        numbers.subscribe(&fast, WhenFull::Drop).expect("it lives");
        let began = Instant::now();
        for number in 0..10 {
            numbers.publish(number).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        sleep(ms(10_000)).await;
        assert_eq!(slow_log.all(), [0, 1]);
        assert!(fast_log.all().into_iter().eq(0..10));
        let each = numbers.subscriber_counts();
        assert_eq!(
            (each[0].pid, each[0].delivered, each[0].dropped),
            (slow.pid(), 2, 8)
        );
        assert_eq!(
            (each[1].pid, each[1].delivered, each[1].dropped),
            (fast.pid(), 10, 0)
        );
        assert_eq!(
            (numbers.counts().delivered, numbers.counts().dropped),
            (12, 8)
        );
    });
}

#[test]
fn a_publish_waits_for_those_it_is_to_wait_for_after_all_others_have_the_value() {
    simulated(|host| async move {
        let (slow_log, fast_log) = (Log::default(), Log::default());
        let numbers = PubSub::new();
        let slow: Vec<_> = (0..3)
            .map(|_| reader(&host, 1, ms(100), &slow_log))
            .collect();
        for slow in &slow {
            numbers.subscribe(slow, WhenFull::Wait).expect("it lives");
        }
        let fast = reader(&host, 100, Duration::ZERO, &fast_log);
        numbers.subscribe(&fast, WhenFull::Drop).expect("it lives");
        let began = Instant::now();
        numbers.publish(1).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let publisher = numbers.clone();
        let mut group = TaskGroup::new();
        group.spawn(async move { publisher.publish(2).await });
        sleep(ms(50)).await;
        assert_eq!(fast_log.all(), [1, 2], "the last of them has it already");
        let published = group.join().await.expect("no panic");
        assert_eq!((published[0].delivered, published[0].dropped), (4, 0));
        assert_eq!(began.elapsed(), ms(100), "all at the same time");
        // Without waiting, what is to be waited for is dropped.
        let published = numbers.publish_now(3);
        assert_eq!((published.delivered, published.dropped), (1, 3));
    });
}

#[test]
fn a_subscriber_that_ends_while_it_is_waited_for_frees_the_publisher() {
    simulated(|host| async move {
        let stuck = reader(&host, 1, ms(1_000_000), &Log::default());
        let numbers = PubSub::new();
        numbers.subscribe(&stuck, WhenFull::Wait).expect("it lives");
        numbers.publish(1).await;
        let waits = timeout(ms(10), numbers.publish(2));
        assert!(waits.await.is_err(), "it waits");
        let publisher = numbers.clone();
        let mut group = TaskGroup::new();
        group.spawn(async move { publisher.publish(3).await });
        sleep(ms(10)).await;
        stuck.kill();
        let published = group.join().await.expect("no panic");
        assert_eq!((published[0].delivered, published[0].dropped), (0, 0));
        assert_eq!(numbers.counts().subscribers, 0);
    });
}

#[test]
fn the_dead_leave_by_themselves_and_cannot_subscribe() {
    everywhere(|host| async move {
        let numbers = PubSub::new();
        let held = Arc::new(());
        let process = reader(&host, 1, Duration::ZERO, &Log::default());
        let holds = held.clone();
        let maps = move |number| {
            let _ = &holds;
            number
        };
        numbers
            .subscribe_with(&process, WhenFull::Wait, maps)
            .expect("it lives");
        process.kill();
        process.join().await;
        // When the end is announced it has left, without a publish.
        assert!(numbers.subscribers().is_empty());
        assert_eq!(Arc::strong_count(&held), 1);
        let gone = numbers.subscribe(&process, WhenFull::Drop);
        assert_eq!(gone, Err(RegisterError::NoProcess));
        assert_eq!(numbers.publish(1).await.delivered, 0);
    });
}

#[test]
fn a_subscription_is_one_for_each_process_and_can_be_ended() {
    simulated(|host| async move {
        let log = Log::default();
        let process = reader(&host, 10, Duration::ZERO, &log);
        let numbers = PubSub::new();
        numbers
            .subscribe(&process, WhenFull::Wait)
            .expect("it lives");
        let tenfold = |number| number * 10;
        numbers
            .subscribe_with(&process, WhenFull::Drop, tenfold)
            .expect("it lives");
        assert_eq!(numbers.subscribers(), [process.pid()]);
        numbers.publish(1).await;
        assert!(numbers.unsubscribe(&process));
        assert!(!numbers.unsubscribe(&process));
        numbers.publish(2).await;
        numbers
            .subscribe(&process, WhenFull::Drop)
            .expect("it lives");
        numbers.publish(3).await;
        sleep(ms(1)).await;
        assert_eq!(log.all(), [10, 3]);
        // Publishers that are gone leave nothing behind in the process.
        for _ in 0..100 {
            PubSub::new()
                .subscribe(&process, WhenFull::Drop)
                .expect("it lives");
        }
        process.kill();
        process.join().await;
    });
}

#[test]
fn a_panic_of_a_mapping_ends_its_subscriber_alone() {
    expect_panics();
    everywhere(|host| async move {
        let log = Log::default();
        let broken = reader(&host, 10, Duration::ZERO, &Log::default());
        let healthy = reader(&host, 10, Duration::ZERO, &log);
        let numbers = PubSub::new();
        let panics = |_: u32| -> u32 { panic!("a mapping, on purpose") };
        numbers
            .subscribe_with(&broken, WhenFull::Drop, panics)
            .expect("it lives");
        numbers
            .subscribe(&healthy, WhenFull::Drop)
            .expect("it lives");
        assert_eq!(numbers.publish(1).await.delivered, 1);
        assert_eq!(broken.join().await.reason, ExitReason::Killed);
        assert_eq!(numbers.subscribers(), [healthy.pid()]);
    });
}

/// Publishers, subscribers that come and go, and exact counts.
#[test]
fn counts_are_exact_under_traffic() {
    real(4, |host| async move {
        let numbers = PubSub::new();
        let mut group = TaskGroup::new();
        for _ in 0..4 {
            let numbers = numbers.clone();
            group.spawn(async move {
                let mut delivered = 0;
                for number in 0..500 {
                    delivered += numbers.publish(number).await.delivered;
                }
                delivered
            });
        }
        for _ in 0..4 {
            let (host, numbers) = (host.clone(), numbers.clone());
            group.spawn(async move {
                for round in 0..50 {
                    let when_full = if round % 2 == 0 {
                        WhenFull::Wait
                    } else {
                        WhenFull::Drop
                    };
                    let process = reader(&host, 2, Duration::ZERO, &Log::default());
                    numbers.subscribe(&process, when_full).expect("it lives");
                    sleep(Duration::from_micros(200)).await;
                    process.kill();
                    process.join().await;
                }
                0
            });
        }
        let delivered: usize = group.join().await.expect("no panic").into_iter().sum();
        let counts = numbers.counts();
        assert_eq!(counts.delivered, delivered as u64);
        assert_eq!((counts.subscribers, counts.published), (0, 2_000));
    });
}
