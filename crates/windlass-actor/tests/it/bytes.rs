//! Mailboxes are bounded in bytes: which senders wait, which are notified, and what counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use windlass_actor::{Address, Context, Host, MailboxPolicy, Message, SendErrorKind, Weigh};
use windlass_runtime::task::yield_now;
use windlass_runtime::{join_all, time};
use windlass_sync::channel::oneshot;
use windlass_value::Payload;

use crate::support::{LONG, Log, eventually, everywhere, real, simulated};

/// A process that reads nothing.
fn deaf(host: &Host, policy: MailboxPolicy) -> Address<Message> {
    let process = host.process().mailbox(policy).mailbox_bytes(10_000);
    let process = process.spawn(|_: Context<Message>| std::future::pending::<()>());
    process.expect("a process").address()
}

fn message(bytes: usize) -> Message {
    Message::new("bytes", vec![0_u8; bytes])
}

/// Waits long enough for every task to have run until it waits.
async fn settle() {
    time::sleep(Duration::from_millis(20)).await;
}

/// Runs a test on a thread of its own; fails if the thread hangs in a lock.
fn without_hanging(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        test();
        done.send(()).expect("the test waits for it");
    });
    is_done
        .recv_timeout(LONG)
        .expect("it hangs, or has panicked");
}

#[test]
fn every_sender_that_waits_for_bytes_is_told_of_the_end() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(100));
        process.tell(message(9_000)).expect("room");
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let process = process.clone();
                let send = async move { process.send(message(9_000)).await };
                host.runtime().spawn(send)
            })
            .collect();
        settle().await;
        process.kill();
        process.ended().await;
        for sender in waiting {
            let told = time::timeout(LONG / 4, sender).await.expect("it is told");
            let refused = told.expect("it ends").expect_err("the process has ended");
            assert_eq!(
                (refused.kind, refused.message),
                (SendErrorKind::NoProcess, message(9_000))
            );
        }
        for bytes in [10, 9_000, 20_000] {
            let refused = process.tell(message(bytes)).expect_err("it has ended");
            assert_eq!(refused.kind, SendErrorKind::NoProcess, "{bytes}");
            let refused = process.send(message(bytes)).await.expect_err("as above");
            assert_eq!(refused.kind, SendErrorKind::NoProcess, "{bytes}");
        }
    });
}

/// Many light senders would keep a heavy one waiting for ever.
#[test]
fn a_heavy_message_that_waits_is_not_overtaken_by_lighter_ones() {
    simulated(|host| async move {
        let log = Log::default();
        let read = log.clone();
        let process = host.process().mailbox_bytes(10_000);
        let process = process.spawn(|mut ctx: Context<Message>| async move {
            loop {
                time::sleep(Duration::from_millis(1)).await;
                let Some(message) = ctx.recv().await else {
                    return;
                };
                read.add(message.topic.to_string());
            }
        });
        let process = process.expect("a process").address();
        for _ in 0..3 {
            process.tell(message(3_000)).expect("room");
        }
        let big = process.clone();
        let big = host.runtime().spawn(async move {
            let message = Message::new("big", vec![0_u8; 9_500]);
            big.send(message).await.expect("it lives");
        });
        while process.tell(message(3_000)).is_ok() {
            yield_now().await;
        }
        let small = (0..4).map(|_| async {
            for _ in 0..20 {
                process.send(message(3_000)).await.expect("it lives");
            }
        });
        // The heavy one has to be the first that waits.
        time::sleep(Duration::from_micros(1)).await;
        join_all(small).await;
        time::timeout(Duration::from_secs(1), big)
            .await
            .expect("it is sent")
            .expect("it ends");
        eventually("all are read", || log.all().len() == 84).await;
        let place = log.all().iter().position(|topic| topic == "big");
        assert!(place.is_some_and(|place| place <= 4), "{place:?}");
    });
}

#[test]
fn a_told_message_does_not_overtake_one_that_waits_for_bytes() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(100));
        process.tell(message(6_000)).expect("room");
        let mut heavy = Box::pin(process.send(message(9_000)));
        let waited = time::timeout(Duration::from_millis(5), &mut heavy).await;
        assert!(waited.is_err(), "it waits");
        let refused = process.tell(message(2_000)).expect_err("another one waits");
        assert_eq!(refused.kind, SendErrorKind::Full);
        // It takes no bytes, so it has none to wait for.
        process.tell(message(10)).expect("room");
        // One that no longer waits is in the way of no other.
        drop(heavy);
        process.tell(message(2_000)).expect("room");
    });
}

#[test]
fn a_dropped_wait_for_bytes_gives_its_place_to_the_next() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(100));
        process.tell(message(6_000)).expect("room");
        let mut first = Box::pin(process.send(message(9_000)));
        let waited = time::timeout(Duration::from_millis(5), &mut first).await;
        assert!(waited.is_err(), "it waits");
        let mut second = Box::pin(process.send(message(3_000)));
        let waited = time::timeout(Duration::from_millis(5), &mut second).await;
        assert!(waited.is_err(), "it waits behind the first");
        drop(first);
        let sent = time::timeout(LONG / 4, second).await;
        sent.expect("there is room").expect("it lives");
        assert_eq!(process.unread(), Some(2));
    });
}

#[test]
fn senders_that_wait_for_bytes_are_no_unread_messages() {
    everywhere(|host| async move {
        let process = deaf(&host, MailboxPolicy::Bounded(4));
        process.tell(message(9_000)).expect("room");
        for _ in 0..3 {
            let process = process.clone();
            let send = async move { process.send(message(9_000)).await };
            drop(host.runtime().spawn(send));
        }
        settle().await;
        assert_eq!(process.unread(), Some(1));
        process.tell(message(10)).expect("room for three more");
        assert_eq!(process.unread(), Some(2));
        let before = host.unread_at_exit();
        process.kill();
        process.ended().await;
        assert_eq!(host.unread_at_exit() - before, 2);
    });
}

/// Bytes that a message has are given back also where there are too many messages for it.
#[test]
fn a_message_that_finds_no_room_takes_no_bytes() {
    everywhere(|host| async move {
        let (read, may_read) = oneshot::channel::<()>();
        let process = host.process().mailbox(MailboxPolicy::Bounded(1));
        let process = process.mailbox_bytes(10_000);
        let process = process.spawn(|mut ctx: Context<Message>| async move {
            may_read.await.expect("the test says so");
            ctx.recv().await;
            std::future::pending::<()>().await
        });
        let process = process.expect("a process").address();
        process.tell(message(10)).expect("room");
        for _ in 0..3 {
            let refused = process.tell(message(9_000)).expect_err("it is full");
            assert_eq!(refused.kind, SendErrorKind::Full);
            let wait = process.send(message(9_000));
            let waited = time::timeout(Duration::from_millis(1), wait).await;
            assert!(waited.is_err(), "it waits");
        }
        read.send(()).expect("it waits");
        let sent = time::timeout(LONG / 4, process.send(message(9_000))).await;
        sent.expect("there is room").expect("it lives");
    });
}

#[test]
fn a_part_that_is_in_a_message_many_times_counts_once() {
    let text: Arc<str> = "x".repeat(5_000).into();
    let bytes: Arc<[u8]> = vec![0; 5_000].into();
    let texts = vec![Payload::Text(text.clone()); 100];
    let maps = (0..100).map(|number| {
        let entry = (text.clone(), Payload::Int(number));
        Payload::map([entry])
    });
    let lists = [texts, vec![Payload::Bytes(bytes); 100], maps.collect()];
    for list in lists {
        let weight = Payload::from(list).weigh();
        assert!((5_000..25_000).contains(&weight), "{weight}");
    }
    // Equal parts that are not the same one count each.
    let apart = (0..10).map(|_| Payload::from("x".repeat(5_000)));
    let weight = Payload::from(apart.collect::<Vec<_>>()).weigh();
    assert!(weight >= 50_000, "{weight}");
}

/// A message that looks at its own mailbox while it is weighed and dropped.
struct Curious {
    bytes: usize,
    mailbox: Arc<Watched>,
}

#[derive(Default)]
struct Watched {
    address: Mutex<Option<Address<Curious>>>,
    /// The process weighs a message, and the test has not sent the newest one yet.
    reader_weighs: AtomicBool,
    is_read: AtomicBool,
    newest_is_told: AtomicBool,
}

impl Watched {
    fn look(&self) {
        let address = self.address.lock().expect("no panic inside").clone();
        if let Some(address) = address {
            address.unread();
        }
    }
}

impl Weigh for Curious {
    fn weigh(&self) -> usize {
        self.mailbox.look();
        // The slow weight of a message that is being read.
        if self.mailbox.is_read.load(Ordering::SeqCst) {
            self.mailbox.reader_weighs.store(true, Ordering::SeqCst);
            for _ in 0..1_000 {
                if self.mailbox.newest_is_told.load(Ordering::SeqCst) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.bytes
    }
}

impl Drop for Curious {
    fn drop(&mut self) {
        self.mailbox.look();
    }
}

#[test]
fn a_weight_may_look_at_the_mailbox_that_it_is_asked_for() {
    for policy in [
        MailboxPolicy::Bounded(100),
        MailboxPolicy::DropNewest(100),
        MailboxPolicy::DropOldest(100),
    ] {
        without_hanging(move || {
            real(2, |host| async move {
                let mailbox = Arc::new(Watched::default());
                let process = host.process().mailbox(policy).mailbox_bytes(10_000);
                let process = process.weighed::<Curious>();
                let process = process.spawn(|_: Context<Curious>| std::future::pending::<()>());
                let process = process.expect("a process").address();
                *mailbox.address.lock().expect("no panic") = Some(process.clone());
                for _ in 0..5 {
                    let mailbox = mailbox.clone();
                    let bytes = 6_000;
                    let _ = process.tell(Curious { bytes, mailbox });
                }
                assert_eq!(process.unread(), Some(1), "{policy:?}");
                process.kill();
                process.ended().await;
                mailbox.address.lock().expect("no panic").take();
            });
        });
    }
}

/// The bytes of a message that is being read are free before the sender can see it gone.
#[test]
fn the_newest_message_comes_in_while_the_oldest_is_being_read() {
    for looks_when_dropped in [false, true] {
        without_hanging(move || {
            real(2, |host| async move {
                let mailbox = Arc::new(Watched::default());
                let reading = mailbox.clone();
                let (read, may_read) = oneshot::channel::<()>();
                let process = host.process().mailbox(MailboxPolicy::DropOldest(100));
                let process = process.mailbox_bytes(10_000).weighed::<Curious>();
                let process = process.spawn(move |mut ctx: Context<Curious>| async move {
                    may_read.await.expect("the test says so");
                    reading.is_read.store(true, Ordering::SeqCst);
                    drop(ctx.recv().await);
                    reading.reader_weighs.store(true, Ordering::SeqCst);
                    std::future::pending::<()>().await
                });
                let process = process.expect("a process").address();
                let tell = |bytes| {
                    let mailbox = mailbox.clone();
                    let told = process.tell(Curious { bytes, mailbox });
                    told.map_err(|refused| refused.kind)
                };
                for bytes in [6_000, 2_000, 2_000] {
                    tell(bytes).expect("room");
                }
                if looks_when_dropped {
                    *mailbox.address.lock().expect("no panic") = Some(process.clone());
                }
                read.send(()).expect("it waits");
                eventually("it reads", || mailbox.reader_weighs.load(Ordering::SeqCst)).await;
                mailbox.is_read.store(false, Ordering::SeqCst);
                let told = tell(6_000);
                mailbox.newest_is_told.store(true, Ordering::SeqCst);
                assert_eq!(told, Ok(()), "nothing stands in its way");
                assert_eq!((process.dropped(), process.unread()), (0, Some(3)));
                mailbox.address.lock().expect("no panic").take();
            });
        });
    }
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_reader_asleep() {
    struct Fragile(u32);
    impl Drop for Fragile {
        fn drop(&mut self) {
            assert!(self.0 != 1, "on purpose");
        }
    }
    crate::support::expect_panics();
    // On real workers the process may read the second message before the third is sent.
    simulated(|host| async move {
        let process = host.process().mailbox(MailboxPolicy::DropOldest(1));
        let process = process.spawn(|mut ctx: Context<Fragile>| async move {
            while let Some(message) = ctx.recv().await {
                if message.0 == 2 {
                    return;
                }
            }
        });
        let process = process.expect("a process");
        process.tell(Fragile(0)).expect("room");
        settle().await;
        process.tell(Fragile(1)).expect("room");
        process.tell(Fragile(2)).expect("the oldest makes room");
        time::timeout(LONG / 4, process.join())
            .await
            .expect("it reads the newest");
    });
}
