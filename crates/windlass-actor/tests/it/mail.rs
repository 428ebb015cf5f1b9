//! Mailboxes: bounds, policies, order, choice.

use std::time::Duration;

use windlass_actor::{
    ActorEvent, AskError, Context, ExitReason, Host, MailboxPolicy, Message, Pattern, Reply,
    SendErrorKind, Status, carry,
};
use windlass_runtime::{join_all, time};
use windlass_sync::channel::oneshot;
use windlass_value::Payload;

use crate::support::{Log, Machine, everywhere, idle, real, simulated};

fn sleepy(
    host: &Host,
    policy: MailboxPolicy,
    log: &Log<u32>,
) -> windlass_actor::ProcessHandle<u32> {
    let log = log.clone();
    host.process()
        .mailbox(policy)
        .spawn(move |mut ctx: Context<u32>| async move {
            time::sleep(Duration::from_millis(10)).await;
            while let Some(number) = ctx.recv().await {
                log.add(number);
            }
        })
        .expect("a process")
}

#[test]
fn a_full_mailbox_hands_messages_back_or_makes_senders_wait() {
    simulated(|host| async move {
        let log = Log::default();
        let process = sleepy(&host, MailboxPolicy::Bounded(2), &log);
        process.tell(1).expect("room");
        process.tell(2).expect("room");
        let refused = process.tell(3).expect_err("it is full");
        assert_eq!((refused.message, refused.kind), (3, SendErrorKind::Full));
        assert_eq!(process.unread(), Some(2));
        let began = time::Instant::now();
        process.send(4).await.expect("room comes");
        assert_eq!(began.elapsed(), Duration::from_millis(10), "when it reads");
        time::sleep(Duration::from_millis(1)).await;
        assert_eq!((log.all(), process.unread()), (vec![1, 2, 4], Some(0)));
    });
}

#[test]
fn those_who_wait_for_room_get_their_message_back_when_the_process_ends() {
    everywhere(|host| async move {
        let process = host
            .process()
            .mailbox(MailboxPolicy::Bounded(1))
            .spawn(|_: Context<u32>| std::future::pending::<()>())
            .expect("a process");
        process.tell(1).expect("room");
        let address = process.address();
        let waits = host.runtime().spawn(async move { address.send(2).await });
        time::sleep(Duration::from_millis(2)).await;
        process.kill();
        let refused = waits.await.expect("no panic").expect_err("it ended");
        assert_eq!(
            (refused.message, refused.kind),
            (2, SendErrorKind::NoProcess)
        );
        let refused = process.tell(3).expect_err("it ended");
        assert_eq!(
            (refused.message, refused.kind),
            (3, SendErrorKind::NoProcess)
        );
    });
}

#[test]
fn policies_drop_the_oldest_or_the_newest_and_count() {
    simulated(|host| async move {
        for (policy, kept) in [
            (MailboxPolicy::DropOldest(3), vec![3, 4, 5]),
            (MailboxPolicy::DropNewest(3), vec![1, 2, 3]),
            (MailboxPolicy::Unbounded, vec![1, 2, 3, 4, 5]),
        ] {
            let log = Log::default();
            let process = sleepy(&host, policy, &log);
            for number in 1..=5 {
                process.tell(number).expect("it never refuses");
            }
            assert_eq!(process.dropped(), 5 - kept.len() as u64);
            time::sleep(Duration::from_millis(20)).await;
            assert_eq!(log.all(), kept, "{policy:?}");
            process.tell(9).expect("it reads on");
            time::sleep(Duration::from_millis(1)).await;
            assert_eq!(log.all().last(), Some(&9), "{policy:?}");
        }
        let none = host
            .process()
            .mailbox(MailboxPolicy::Bounded(0))
            .spawn(idle);
        assert_eq!(
            none.expect_err("no room").to_string(),
            "a mailbox holds at least one message"
        );
    });
}

#[test]
fn signals_do_not_wait_behind_messages() {
    everywhere(|host| async move {
        let log = Log::default();
        let record = log.clone();
        let (begin, begun) = oneshot::channel::<()>();
        let process = host
            .process()
            .mailbox(MailboxPolicy::Bounded(3))
            .spawn(move |mut ctx: Context<u32>| async move {
                begun.await.expect("the test says when");
                for _ in 0..4 {
                    match ctx.event().await {
                        ActorEvent::Message(number) => record.add(number.to_string()),
                        other => record.add(format!("{other:?}")),
                    }
                }
            })
            .expect("a process");
        (1..=3).for_each(|number| process.tell(number).expect("room"));
        process.cancel("now");
        begin.send(()).expect("it waits");
        process.join().await;
        assert_eq!(log.all(), ["Cancel(\"now\")", "1", "2", "3"]);
    });
}

#[test]
fn messages_of_each_sender_keep_their_order() {
    everywhere(|host| async move {
        const SENDERS: usize = 4;
        const EACH: u64 = 500;
        let process = host
            .process()
            .mailbox(MailboxPolicy::Bounded(8))
            .spawn(|mut ctx: Context<(usize, u64)>| async move {
                let mut next = [0; SENDERS];
                while next.iter().sum::<u64>() < SENDERS as u64 * EACH {
                    let (sender, number) = ctx.recv().await.expect("nobody stops it");
                    assert_eq!(next[sender], number, "sender {sender}");
                    next[sender] += 1;
                }
            })
            .expect("a process");
        let senders = (0..SENDERS).map(|sender| {
            let address = process.address();
            host.runtime().spawn(async move {
                for number in 0..EACH {
                    address.send((sender, number)).await.expect("it lives");
                }
            })
        });
        for sender in join_all(senders.collect::<Vec<_>>()).await {
            sender.expect("no panic");
        }
        assert_eq!(process.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn topics_are_chosen_and_the_rest_stays_in_order() {
    everywhere(|host| async move {
        let log = Log::default();
        let record = log.clone();
        let process = host
            .spawn(move |mut ctx: Context<Message>| async move {
                let paid = ctx.subscribe(Pattern::glob("order.*.paid"));
                let exact = ctx.subscribe(Pattern::exact("stop"));
                for _ in 0..2 {
                    let message = ctx.recv_from(paid).await.expect("it comes");
                    record.add(message.topic.to_string());
                }
                for _ in 0..2 {
                    let message = ctx.recv_other().await.expect("it comes");
                    record.add(message.topic.to_string());
                }
                ctx.recv_from(exact).await.expect("it comes");
                ctx.unsubscribe(paid);
                let message = ctx.recv_other().await.expect("it comes");
                record.add(format!("{} {:?}", message.topic, message.payload));
            })
            .expect("a process");
        for (topic, number) in [
            ("a", 1),
            ("order.1.paid", 2),
            ("b", 3),
            ("order.2.paid", 4),
            ("order.3.paid", 5),
            ("stop", 6),
        ] {
            process.tell(Message::new(topic, number)).expect("room");
            time::sleep(Duration::from_millis(1)).await;
        }
        assert!(process.join().await.reason.is_normal());
        let expected = ["order.1.paid", "order.2.paid", "a", "b", "order.3.paid 5"];
        assert_eq!(log.all(), expected);
    });
}

#[test]
fn a_step_machine_chooses_topics_too() {
    everywhere(|host| async move {
        let mut order = Vec::new();
        let process = host
            .step(Machine::new(move |_, events, _| {
                while let Some(message) = events.next_message(&Pattern::exact("first")) {
                    order.push(message.payload);
                }
                if order.len() < 2 {
                    return Ok(Status::Idle);
                }
                while let Some(windlass_actor::Event::Message(message)) = events.next() {
                    order.push(message.payload);
                }
                Ok(Status::Done(std::mem::take(&mut order).into()))
            }))
            .expect("a process");
        for (topic, number) in [("later", 1), ("first", 2), ("later", 3), ("first", 4)] {
            process.tell(Message::new(topic, number)).expect("room");
        }
        let value = process.join().await.value;
        let numbers: Vec<Payload> = [2, 4, 1, 3].map(Payload::from).into();
        assert_eq!(value, numbers.into());
    });
}

#[test]
fn asking_has_a_deadline_and_an_end() {
    enum Ask {
        Echo(u32, Reply<u32>),
        Forget(Reply<u32>),
        Hang(Reply<u32>),
        Die(#[allow(dead_code, reason = "is dropped with the process")] Reply<u32>),
    }
    simulated(|host| async move {
        let process = host
            .spawn(|mut ctx: Context<Ask>| async move {
                while let Some(question) = ctx.recv().await {
                    match question {
                        Ask::Echo(number, reply) => reply.send(number),
                        Ask::Forget(reply) => drop(reply),
                        Ask::Hang(reply) => {
                            time::sleep(Duration::from_secs(1)).await;
                            assert!(!reply.is_wanted());
                        }
                        Ask::Die(_) => return,
                    }
                }
            })
            .expect("a process");
        assert_eq!(process.ask(|reply| Ask::Echo(7, reply)).await, Ok(7));
        assert_eq!(process.ask(Ask::Forget).await, Err(AskError::NoAnswer));
        let began = time::Instant::now();
        let late = process.ask_within(Duration::from_millis(50), Ask::Hang);
        assert_eq!(late.await, Err(AskError::TimedOut));
        assert_eq!(began.elapsed(), Duration::from_millis(50));
        assert_eq!(process.ask(Ask::Die).await, Err(AskError::NoAnswer));
        assert_eq!(
            process.ask(Ask::Forget).await,
            Err(AskError::NoAnswer),
            "it has ended"
        );
    });
}

#[test]
fn typed_processes_take_typed_messages_by_pid_and_refuse_others() {
    everywhere(|host| async move {
        let process = host
            .spawn(|mut ctx: Context<String>| async move {
                Payload::from(ctx.recv().await.unwrap_or_default())
            })
            .expect("a process");
        let pid = process.pid();
        let refused = host
            .send(pid, Message::new("hello", 7))
            .expect_err("no text");
        assert_eq!(
            (refused.kind, refused.message.payload),
            (SendErrorKind::NotUnderstood, 7.into())
        );
        assert!(host.address::<u32>(pid).is_none());
        assert!(host.address::<String>(pid).is_some());
        let message = Message::new("hello", carry("typed".to_owned()));
        host.send(pid, message).expect("it is the right type");
        assert_eq!(process.join().await.value, "typed".into());
        let refused = host.send(pid, Message::new("hello", 7)).expect_err("gone");
        assert_eq!(refused.kind, SendErrorKind::NoProcess);
    });
}

/// A reader inside `join_all`, or in another task, is woken all the same.
#[test]
fn mail_is_received_wherever_the_context_is_awaited() {
    real(2, |host| async move {
        for _ in 0..200 {
            let process = host
                .spawn(|mut ctx: Context<u64>| async move {
                    let inside = async {
                        let first = ctx.recv().await.unwrap_or_default();
                        (first, ctx)
                    };
                    let mut done = join_all(vec![Box::pin(inside)]).await;
                    let (first, mut ctx) = done.pop().expect("one");
                    let other = ctx.host().runtime().spawn(async move {
                        let second = ctx.recv().await.unwrap_or_default();
                        second + ctx.recv().await.unwrap_or_default()
                    });
                    Payload::Int((first + other.await.expect("no panic")) as i64)
                })
                .expect("a process");
            for number in [1, 2, 4] {
                process.send(number).await.expect("it lives");
                windlass_runtime::task::yield_now().await;
            }
            assert_eq!(process.join().await.value, Payload::Int(7));
        }
    });
}

#[test]
fn try_recv_gives_what_is_left_after_a_cancel() {
    everywhere(|host| async move {
        let (begin, begun) = oneshot::channel::<()>();
        let process = host
            .spawn(|mut ctx: Context<i64>| async move {
                begun.await.expect("the test says when");
                assert_eq!(ctx.recv().await, None);
                let mut sum = 0;
                while let Some(number) = ctx.try_recv() {
                    sum += number;
                }
                Payload::Int(sum)
            })
            .expect("a process");
        (1..=4).for_each(|number| process.tell(number).expect("room"));
        process.cancel("enough");
        begin.send(()).expect("it waits");
        assert_eq!(process.join().await.value, Payload::Int(10));
    });
}

/// A process that has read something gives the room back also when it then waits for something
/// else.
#[test]
fn nobody_waits_for_room_that_is_there() {
    simulated(|host| async move {
        for capacity in [1, 4, 63, 64, 1024] {
            let (release, released) = oneshot::channel::<()>();
            let process = host
                .process()
                .mailbox(MailboxPolicy::Bounded(capacity))
                .spawn(|mut ctx: Context<usize>| async move {
                    time::sleep(Duration::from_millis(1)).await;
                    let first = ctx.recv().await.expect("it is full");
                    released.await.expect("the blocked sender does it");
                    // One was read and one was sent since: it is full again.
                    assert_eq!(ctx.address().unread(), Some(first));
                })
                .expect("a process");
            for _ in 0..capacity {
                process.tell(capacity).expect("room");
            }
            let sent = time::timeout(Duration::from_secs(1), process.send(0)).await;
            sent.expect("there is room").expect("it lives");
            release.send(()).expect("it waits");
            assert_eq!(process.join().await.reason, ExitReason::Normal);
        }
    });
}

#[test]
fn unread_messages_are_counted_exactly() {
    simulated(|host| async move {
        let process = host
            .spawn(|mut ctx: Context<u32>| async move {
                time::sleep(Duration::from_millis(1)).await;
                for read in 1..=20 {
                    ctx.recv().await;
                    assert_eq!(ctx.address().unread(), Some(100 - read));
                }
                std::future::pending::<()>().await
            })
            .expect("a process");
        (0..100).for_each(|number| process.tell(number).expect("room"));
        time::sleep(Duration::from_millis(2)).await;
        assert_eq!(process.unread(), Some(80));
    });
}

#[test]
fn what_is_not_read_at_the_end_is_counted() {
    everywhere(|host| async move {
        let before = host.unread_at_exit();
        let process = host
            .spawn(|_: Context<u32>| std::future::pending::<()>())
            .expect("a process");
        (0..5).for_each(|number| process.tell(number).expect("room"));
        process.kill();
        process.join().await;
        assert_eq!(host.unread_at_exit() - before, 5);
    });
}

/// The context is with another task, which reads, when the process ends.
#[test]
fn a_process_may_end_while_another_task_reads_its_mail() {
    real(2, |host| async move {
        for _ in 0..300 {
            let process = host
                .process()
                .mailbox(MailboxPolicy::Unbounded)
                .spawn(|mut ctx: Context<u32>| async move {
                    drop(
                        ctx.host()
                            .runtime()
                            .spawn(async move { while ctx.recv().await.is_some() {} }),
                    );
                    windlass_runtime::task::yield_now().await;
                })
                .expect("a process");
            while process.tell(1).is_ok() {}
            assert_eq!(process.join().await.reason, ExitReason::Normal);
        }
    });
}

/// A process that reads nothing before it is cancelled.
fn deaf(host: &Host, policy: MailboxPolicy, bytes: usize) -> windlass_actor::Address<Message> {
    let process = host.process().mailbox(policy).mailbox_bytes(bytes);
    let process = process.spawn(|_: Context<Message>| std::future::pending::<()>());
    process.expect("a process").address()
}

fn message(bytes: usize) -> Message {
    Message::new("bytes", vec![0_u8; bytes])
}

#[test]
fn a_mailbox_is_bounded_in_bytes_and_says_why() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(100), 10_000);
        process.tell(message(6_000)).expect("room");
        let refused = process.tell(message(6_000)).expect_err("it is full");
        assert_eq!(
            (refused.kind, refused.message),
            (SendErrorKind::Full, message(6_000))
        );
        let refused = process.tell(message(10_001)).expect_err("never");
        assert_eq!(refused.kind, SendErrorKind::TooLarge);
        assert!(refused.to_string().contains("mailbox_bytes"), "{refused}");
        // Light ones count by their number.
        process.tell(message(10)).expect("room");
        process.tell(message(3_000)).expect("room");
        let unbounded = deaf(&host, MailboxPolicy::Unbounded, 10_000);
        unbounded.tell(message(100_000)).expect("any");
    });
}

#[test]
fn bytes_are_bounded_by_default() {
    everywhere(|host| async move {
        let process = host.process();
        let process = process.spawn(|_: Context<Message>| std::future::pending::<()>());
        let process = process.expect("a process");
        let half = message(33 << 20);
        process.tell(half.clone()).expect("room");
        assert_eq!(
            process.tell(half).expect_err("full").kind,
            SendErrorKind::Full
        );
    });
}

#[test]
fn a_part_that_is_in_a_message_twice_counts_once() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(100), 10_000);
        let part = Payload::from(vec![Payload::from("x".repeat(6_000))]);
        let twice = Payload::from(vec![part.clone(), part]);
        process.tell(Message::new("shared", twice)).expect("room");
    });
}

#[test]
fn a_sender_waits_for_bytes_and_gets_its_message_back_when_the_process_ends() {
    everywhere(|host| async move {
        let slow = host.process().mailbox_bytes(10_000);
        let slow = slow.spawn(|mut ctx: Context<Message>| async move {
            time::sleep(Duration::from_millis(5)).await;
            let mut read = 0;
            while let Some(message) = ctx.recv().await {
                read += message.payload.as_bytes().map_or(0, <[u8]>::len);
                if read >= 18_000 {
                    break;
                }
            }
        });
        let slow = slow.expect("a process");
        for _ in 0..3 {
            slow.send(message(6_000)).await.expect("room comes");
        }
        slow.join().await;

        let process = deaf(&host, MailboxPolicy::Bounded(100), 10_000);
        process.tell(message(6_000)).expect("room");
        let address = process.clone();
        let waits = host
            .runtime()
            .spawn(async move { address.send(message(7_000)).await });
        let dropped = time::timeout(Duration::from_millis(1), process.send(message(8_000))).await;
        assert!(dropped.is_err(), "it waits");
        process.kill();
        let refused = waits.await.expect("it ends").expect_err("it is over");
        assert_eq!(
            (refused.kind, refused.message),
            (SendErrorKind::NoProcess, message(7_000))
        );
    });
}

#[test]
fn drop_policies_count_bytes_too() {
    everywhere(|host| async move {
        let newest = deaf(&host, MailboxPolicy::DropNewest(100), 10_000);
        newest.tell(message(6_000)).expect("room");
        newest.tell(message(6_000)).expect("dropped");
        let oldest = deaf(&host, MailboxPolicy::DropOldest(100), 10_000);
        for _ in 0..5 {
            oldest.tell(message(6_000)).expect("the oldest makes room");
        }
        let dropped = |address: &windlass_actor::Address<Message>| {
            let info = host.list().into_iter();
            let mut own = info.filter(|info| info.pid == address.pid());
            own.next().expect("it is there").dropped
        };
        assert_eq!((dropped(&newest), dropped(&oldest)), (1, 4));
    });
}
