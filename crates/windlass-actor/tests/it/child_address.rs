//! Addresses of children that survive restarts.

use std::time::Duration;

use windlass_actor::supervisor::{
    Backoff, ChildAddress, ChildSpec, Strategy, Supervisor, SupervisorHandle,
};
use windlass_actor::{
    ActorError, AskError, Context, Destination, Host, MailboxPolicy, Reply, SendErrorKind,
};
use windlass_runtime::time::{Instant, sleep};
use windlass_runtime::{TaskGroup, task::yield_now};

use crate::support::{Count, Log, everywhere, real, simulated};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[derive(Debug)]
enum Line {
    Note(u32),
    Incarnation(Reply<usize>),
    Crash,
    Done,
}

/// A child that writes down its incarnation with each number.
fn child(log: &Log<(usize, u32)>) -> (ChildSpec, ChildAddress<Line>) {
    let (log, starts) = (log.clone(), Count::default());
    ChildSpec::addressed("child", move |spawn| {
        let (log, incarnation) = (log.clone(), starts.up());
        let process = spawn.mailbox(MailboxPolicy::Bounded(4));
        process.spawn(move |mut ctx: Context<Line>| async move {
            while let Some(line) = ctx.recv().await {
                match line {
                    Line::Note(number) => log.add((incarnation, number)),
                    Line::Incarnation(reply) => reply.send(incarnation),
                    Line::Crash => return Err(ActorError::new("asked to")),
                    Line::Done => return Ok(()),
                }
            }
            Ok(())
        })
    })
}

/// Pauses of exactly 100 ms, 200 ms, ..
fn exact() -> Backoff {
    Backoff {
        jitter: 0.0,
        ..Backoff::default()
    }
}

async fn supervise(host: &Host, child: ChildSpec) -> SupervisorHandle {
    let supervisor = Supervisor::new(Strategy::OneForOne).backoff(exact());
    let supervisor = supervisor.child(child).start(host).expect("a supervisor");
    supervisor.started().await.expect("its child starts");
    supervisor
}

#[test]
fn a_send_between_incarnations_waits_for_the_next_one() {
    simulated(|host| async move {
        let log = Log::default();
        let (spec, address) = child(&log);
        let _supervisor = supervise(&host, spec).await;
        address.send(Line::Note(1)).await.expect("it runs");
        let first = address.current().expect("it runs");
        address.send(Line::Crash).await.expect("it runs");
        first.ended().await;
        let began = Instant::now();
        address.send(Line::Note(2)).await.expect("it comes back");
        assert_eq!(began.elapsed(), ms(100));
        let second = address.current().expect("it runs");
        assert_ne!(first.pid(), second.pid());
        assert_eq!(address.ask(Line::Incarnation).await, Ok(2));
        assert_eq!(log.all(), [(1, 1), (2, 2)]);
        address.tell(Line::Crash).expect("it runs");
        second.ended().await;
        assert_eq!(
            address.ask(Line::Incarnation).await,
            Ok(3),
            "asks wait, too"
        );
        assert_eq!(began.elapsed(), ms(300));
    });
}

#[test]
fn a_send_before_the_first_start_waits_for_it() {
    simulated(|host| async move {
        let log = Log::default();
        let (spec, address) = child(&log);
        let early = address.tell(Line::Note(1)).expect_err("it does not run");
        assert_eq!(early.kind, SendErrorKind::Restarting);
        let mut group = TaskGroup::new();
        let waits = address.clone();
        group.spawn(async move { waits.send(early.message).await.is_ok() });
        sleep(ms(10)).await;
        let _supervisor = supervise(&host, spec).await;
        assert_eq!(group.join().await.expect("no panic"), [true]);
        assert_eq!(address.ask(Line::Incarnation).await, Ok(1));
        assert_eq!(log.all(), [(1, 1)]);
    });
}

#[test]
fn senders_choose_not_to_wait_or_for_how_long() {
    simulated(|host| async move {
        let (spec, address) = child(&Log::default());
        let _supervisor = supervise(&host, spec).await;
        let first = address.current().expect("it runs");
        address.send(Line::Crash).await.expect("it runs");
        first.ended().await;
        let began = Instant::now();
        let refused = address.tell(Line::Note(1)).expect_err("it does not run");
        assert_eq!(refused.kind, SendErrorKind::Restarting);
        assert!(matches!(refused.message, Line::Note(1)));
        let late = address.send_within(ms(30), Line::Note(2)).await;
        let late = late.expect_err("it comes later");
        assert_eq!(
            (late.kind, began.elapsed()),
            (SendErrorKind::TimedOut, ms(30))
        );
        assert!(matches!(late.message, Line::Note(2)));
        let asked = address.ask_within(ms(30), Line::Incarnation).await;
        assert_eq!((asked, began.elapsed()), (Err(AskError::TimedOut), ms(60)));
        address
            .send_within(ms(100), Line::Note(3))
            .await
            .expect("in time");
        assert_eq!(began.elapsed(), ms(100));
    });
}

#[test]
fn a_limit_holds_for_the_wait_for_room_as_well() {
    simulated(|host| async move {
        let (spec, address) = ChildSpec::addressed("busy", |spawn| {
            let process = spawn.mailbox(MailboxPolicy::Bounded(1));
            process.spawn(|mut ctx: Context<u32>| async move {
                sleep(ms(50)).await;
                while ctx.recv().await.is_some() {}
            })
        });
        let _supervisor = supervise(&host, spec).await;
        let began = Instant::now();
        address.tell(1).expect("room");
        let full = address.tell(2).expect_err("no room");
        assert_eq!(full.kind, SendErrorKind::Full);
        let late = address.send_within(ms(20), 3).await.expect_err("no room");
        assert_eq!((late.kind, late.message), (SendErrorKind::TimedOut, 3));
        assert_eq!(began.elapsed(), ms(20));
        Destination::send(&address, 4).await.expect("room comes");
        assert_eq!(began.elapsed(), ms(50));
    });
}

#[test]
fn when_the_supervisor_gives_up_all_that_wait_have_their_message_back() {
    everywhere(|host| async move {
        let (spec, address) = child(&Log::default());
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(1, Duration::from_secs(60))
            .backoff(exact())
            .child(spec)
            .start(&host)
            .expect("a supervisor");
        address.send(Line::Crash).await.expect("it runs");
        let first = address.current();
        if let Some(first) = first {
            first.ended().await;
        }
        // Waits for the second incarnation, and ends it. The next one does not come.
        address.send(Line::Crash).await.expect("it comes back");
        let mut group = TaskGroup::new();
        for number in 0..20 {
            let address = address.clone();
            group.spawn(async move {
                // The second incarnation may accept the first few before it reads the crash.
                for _ in 0..10 {
                    if let Err(error) = address.send(Line::Note(number)).await {
                        assert!(matches!(error.message, Line::Note(back) if back == number));
                        return Some(error.kind);
                    }
                    yield_now().await;
                }
                None
            });
        }
        let kinds = group.join().await.expect("no panic");
        assert_eq!(kinds, [Some(SendErrorKind::Abandoned); 20]);
        assert!(!supervisor.join().await.reason.is_normal());
        let refused = address.tell(Line::Done).expect_err("it is over");
        assert_eq!(refused.kind, SendErrorKind::Abandoned);
        let abandoned = Err(AskError::Undelivered(SendErrorKind::Abandoned));
        assert_eq!(address.ask(Line::Incarnation).await, abandoned);
        assert!(address.current().is_none());
    });
}

/// How a child can be over, apart from its supervisor giving up.
#[derive(Debug, Clone, Copy)]
enum End {
    Stopped,
    Done,
    Cancelled,
    Killed,
}

#[test]
fn a_child_that_is_over_is_abandoned_however_that_came() {
    for end in [End::Stopped, End::Done, End::Cancelled, End::Killed] {
        everywhere(move |host| async move {
            let (spec, address) = child(&Log::default());
            let supervisor = supervise(&host, spec.transient()).await;
            let process = address.current().expect("it runs");
            match end {
                End::Stopped => supervisor.stop_child("child").await.expect("it stops"),
                End::Done => address.send(Line::Done).await.expect("it runs"),
                End::Cancelled => supervisor.cancel("enough"),
                End::Killed => supervisor.kill(),
            }
            process.ended().await;
            let error = address.send(Line::Note(1)).await.expect_err("it is over");
            assert_eq!(error.kind, SendErrorKind::Abandoned, "{end:?}");
            assert!(matches!(error.message, Line::Note(1)));
        });
    }
}

#[test]
fn a_spec_that_no_supervisor_has_abandons_its_address() {
    everywhere(|_| async move {
        let (spec, address) = child(&Log::default());
        let waits = address.clone();
        let mut group = TaskGroup::new();
        group.spawn(async move { waits.send(Line::Note(1)).await.map_err(|error| error.kind) });
        yield_now().await;
        drop(spec);
        let sent = group.join().await.expect("no panic");
        assert_eq!(sent, [Err(SendErrorKind::Abandoned)]);
        let told = address.tell(Line::Note(2)).expect_err("it is over");
        assert_eq!(told.kind, SendErrorKind::Abandoned);
    });
}

#[test]
fn an_address_works_again_when_the_supervisor_itself_is_restarted() {
    simulated(|host| async move {
        let (spec, address) = child(&Log::default());
        let inner = Supervisor::new(Strategy::OneForOne)
            .intensity(0, ms(1))
            .child(spec);
        let outer = supervise(&host, ChildSpec::supervisor("inner", inner)).await;
        let first = address.current().expect("it runs");
        address.send(Line::Crash).await.expect("it runs");
        first.ended().await;
        sleep(ms(50)).await;
        let refused = address
            .tell(Line::Note(1))
            .expect_err("its supervisor gave up");
        assert_eq!(refused.kind, SendErrorKind::Abandoned);
        sleep(ms(51)).await;
        assert_eq!(address.ask(Line::Incarnation).await, Ok(2));
        outer.cancel("enough");
        outer.join().await;
    });
}

#[test]
fn no_other_process_gets_a_message_not_even_one_with_the_name() {
    simulated(|host| async move {
        let (log, starts) = (Log::<&str>::default(), Count::default());
        let (seen, counted) = (log.clone(), starts.clone());
        let (spec, address) = ChildSpec::addressed("named", move |spawn| {
            // The first incarnation has the name; the second does not try to have it.
            let spawn = match counted.up() {
                1 => spawn.name("named"),
                _ => spawn,
            };
            let log = seen.clone();
            spawn.spawn(move |mut ctx: Context<bool>| async move {
                while let Some(crash) = ctx.recv().await {
                    log.add("child");
                    if crash {
                        return Err(ActorError::new("asked to"));
                    }
                }
                Ok(())
            })
        });
        let _supervisor = supervise(&host, spec).await;
        let first = address.current().expect("it runs");
        address.send(true).await.expect("it runs");
        first.ended().await;
        let thief = log.clone();
        let other = host.process().name("named");
        let other = other.spawn(move |mut ctx: Context<bool>| async move {
            while ctx.recv().await.is_some() {
                thief.add("other");
            }
        });
        let other = other.expect("the name is free");
        assert!(address.tell(false).is_err());
        address.send(false).await.expect("it comes back");
        sleep(ms(10)).await;
        assert_eq!(log.all(), ["child", "child"]);
        assert_eq!(host.whereis("named"), Some(other.pid()));
    });
}

#[test]
fn all_children_of_a_strategy_are_waited_for() {
    simulated(|host| async move {
        let (one, first) = child(&Log::default());
        let (two, second) = ChildSpec::addressed("two", |spawn| {
            spawn.spawn(|mut ctx: Context<Reply<()>>| async move {
                while let Some(reply) = ctx.recv().await {
                    reply.send(());
                }
            })
        });
        let supervisor = Supervisor::new(Strategy::OneForAll).backoff(exact());
        let supervisor = supervisor.child(one).child(two).start(&host);
        supervisor
            .as_ref()
            .expect("a supervisor")
            .started()
            .await
            .expect("all start");
        let old = second.current().expect("it runs");
        first.send(Line::Crash).await.expect("it runs");
        old.ended().await;
        let began = Instant::now();
        assert_eq!(second.ask(|reply| reply).await, Ok(()));
        assert_eq!(began.elapsed(), ms(100));
        assert_ne!(second.current().expect("it runs").pid(), old.pid());
    });
}

/// Senders and crashes without pauses: each message that is accepted is read at most once, each
/// other one comes back.
#[test]
fn under_crashes_no_message_comes_twice() {
    real(4, |host| async move {
        let log = Log::default();
        let (spec, address) = child(&log);
        let at_once = Backoff {
            first: Duration::ZERO,
            ..Backoff::default()
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(10_000, Duration::from_secs(60))
            .backoff(at_once)
            .child(spec)
            .start(&host)
            .expect("a supervisor");
        let mut group = TaskGroup::new();
        for sender in 0..8 {
            let address = address.clone();
            group.spawn(async move {
                for number in 0..200 {
                    if number % 20 == 7 {
                        address.send(Line::Crash).await.expect("it comes back");
                    }
                    let number = sender * 1_000 + number;
                    address
                        .send(Line::Note(number))
                        .await
                        .expect("it comes back");
                }
            });
        }
        group.join().await.expect("no panic");
        let last = address.ask(Line::Incarnation).await.expect("it runs");
        assert!(last > 1);
        let mut numbers: Vec<_> = log.all().into_iter().map(|(_, number)| number).collect();
        let all = numbers.len();
        // In order for each sender, whatever the incarnation.
        for sender in 0..8 {
            let own = numbers.iter().filter(|number| *number / 1_000 == sender);
            assert!(own.is_sorted());
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "a message came twice");
        supervisor.cancel("enough");
        supervisor.join().await;
    });
}
