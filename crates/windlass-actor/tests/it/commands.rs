//! Commands: those that are built in, those of others, and how they are answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_actor::command::{
    Blocking, Broadcast, Cancel, ChannelReceive, ChannelSend, Completer, Demonitor, Exec, Join,
    Leave, Link, Monitor, Register, Select, Send, Sleep, SpawnProcess, StopTimer, Terminate,
    Ticker, Timer, Unlink, Whereis, YieldError,
};
use windlass_actor::{
    ActorError, BuildError, Event, ExitReason, Host, Message, Output, ProcessHandle, Status,
};
use windlass_runtime::time;
use windlass_sync::channel::mpmc;
use windlass_value::Payload;

use crate::support::{
    Count, Log, Machine, deaf, everywhere, expect_panics, idle, name_of, simulated,
};

/// A process that asks for one thing and ends with what came of it.
fn asks<C: std::marker::Send + 'static>(host: &Host, command: C) -> ProcessHandle<Message> {
    let mut command = Some(command);
    host.step(Machine::new(move |_, events, out| {
        if let Some(command) = command.take() {
            out.request(7, command);
            return Ok(Status::Blocked);
        }
        match events.next() {
            Some(Event::YieldComplete {
                tag: 7,
                result: Ok(value),
            }) => Ok(Status::Done(value)),
            Some(Event::YieldComplete {
                tag: 7,
                result: Err(error),
            }) => Err(ActorError::new(error.to_string())),
            other => panic!("{other:?} was not expected"),
        }
    }))
    .expect("a process")
}

async fn answer<C: std::marker::Send + 'static>(host: &Host, command: C) -> Payload {
    let exit = asks(host, command).join().await;
    assert_eq!(exit.reason, ExitReason::Normal);
    exit.value
}

async fn failure<C: std::marker::Send + 'static>(host: &Host, command: C) -> String {
    match asks(host, command).join().await.reason {
        ExitReason::Error(Payload::Text(text)) => text.to_string(),
        other => panic!("{other} was not expected"),
    }
}

type Request = Box<dyn FnOnce(&mut Output) + std::marker::Send>;

/// Runs requests one after another in one process; returns the events that came meanwhile.
async fn told(host: &Host, requests: Vec<Request>) -> Vec<String> {
    let log = Log::default();
    let record = log.clone();
    let mut requests = requests.into_iter();
    let process = host
        .step(Machine::new(move |ctx, events, out| {
            ctx.trap_links(true);
            while let Some(event) = events.next() {
                record.add(name_of(&event));
            }
            match requests.next() {
                Some(request) => request(out),
                None => return Ok(Status::Idle),
            }
            Ok(Status::Blocked)
        }))
        .expect("a process");
    time::sleep(Duration::from_millis(100)).await;
    process.kill();
    process.join().await;
    log.all()
}

#[test]
fn sleep_takes_its_time() {
    simulated(|host| async move {
        let began = time::Instant::now();
        assert_eq!(
            answer(&host, Sleep(Duration::from_millis(70))).await,
            Payload::Nil
        );
        assert_eq!(began.elapsed(), Duration::from_millis(70));
    });
}

#[test]
fn several_yields_may_be_outstanding_and_complete_in_any_order() {
    simulated(|host| async move {
        let log = Log::default();
        let record = log.clone();
        let mut begun = false;
        let process = host
            .step(Machine::new(move |_, events, out| {
                if !std::mem::replace(&mut begun, true) {
                    for tag in [30, 10, 20] {
                        out.request(tag, Sleep(Duration::from_millis(tag)));
                    }
                }
                let mut last = false;
                while let Some(event) = events.next() {
                    last = matches!(event, Event::YieldComplete { tag: 30, .. });
                    record.add(name_of(&event));
                }
                Ok(if last {
                    Status::Done(Payload::Nil)
                } else {
                    Status::Blocked
                })
            }))
            .expect("a process");
        time::sleep(Duration::from_millis(15)).await;
        process.tell(Message::new("hi", 1)).expect("room");
        process.join().await;
        let expected = [
            "complete 10 Ok(nil)",
            "message hi 1",
            "complete 20 Ok(nil)",
            "complete 30 Ok(nil)",
        ];
        assert_eq!(log.all(), expected);
    });
}

#[test]
fn timers_and_tickers_send_messages_until_they_are_stopped() {
    simulated(|host| async move {
        let log = told(
            &host,
            vec![
                Box::new(|out| {
                    let after = Duration::from_millis(10);
                    out.request(
                        1,
                        Timer {
                            after,
                            topic: "ring".into(),
                            payload: 5.into(),
                        },
                    );
                }),
                Box::new(|out| {
                    let every = Duration::from_millis(8);
                    out.request(
                        2,
                        Ticker {
                            every,
                            topic: "tick".into(),
                        },
                    );
                }),
                Box::new(|out| out.request(3, Sleep(Duration::from_millis(20)))),
            ],
        )
        .await;
        let ticks = log
            .iter()
            .filter(|told| told.starts_with("message tick"))
            .count();
        assert_eq!(ticks, 12, "every 8 ms until 100: {log:?}");
        assert_eq!(
            log.iter().filter(|told| *told == "message ring 5").count(),
            1
        );
        // Stopped, they are silent.
        let log = Log::default();
        let record = log.clone();
        let mut ticker = 0;
        let process = host
            .step(Machine::new(move |_, events, out| {
                match events.next() {
                    None => out.request(
                        1,
                        Ticker {
                            every: Duration::from_millis(5),
                            topic: "t".into(),
                        },
                    ),
                    Some(Event::YieldComplete {
                        tag: 1,
                        result: Ok(number),
                    }) => {
                        ticker = number.as_i64().expect("a number") as u64;
                        out.request(2, Sleep(Duration::from_millis(12)));
                        out.request(4, StopTimer(ticker + 99));
                    }
                    Some(Event::YieldComplete { tag: 2, .. }) => out.request(3, StopTimer(ticker)),
                    Some(event) => record.add(name_of(&event)),
                }
                Ok(Status::Idle)
            }))
            .expect("a process");
        time::sleep(Duration::from_millis(50)).await;
        process.kill();
        let expected = [
            "complete 4 Ok(false)",
            "message t 1",
            "message t 2",
            "complete 3 Ok(true)",
        ];
        assert_eq!(log.all(), expected);
    });
}

#[test]
fn processes_are_started_awaited_and_ended() {
    expect_panics();
    everywhere(|host| async move {
        let done = || Machine::new(|_, _, _| Ok(Status::Done("done".into())));
        let pid = answer(&host, SpawnProcess::new(deaf()).named("deaf")).await;
        let pid = pid.as_pid().expect("a PID");
        assert_eq!(host.whereis("deaf"), Some(pid));
        let taken = failure(&host, SpawnProcess::new(deaf()).named("deaf")).await;
        assert!(taken.contains("belongs to"), "{taken}");
        assert_eq!(
            answer(&host, Exec(SpawnProcess::new(done()))).await,
            "done".into()
        );
        let broken = Machine::new(|_, _, _| Err(ActorError::new("broken")));
        let error = failure(&host, Exec(SpawnProcess::new(broken))).await;
        assert_eq!(error, "the process ended: error: broken");
        answer(&host, Terminate(pid)).await;
        assert!(!matches!(host.ended(pid).await.reason, ExitReason::Normal));
        let polite = host.spawn(idle).expect("a process");
        answer(
            &host,
            Cancel {
                pid: polite.pid(),
                reason: "bye".into(),
            },
        )
        .await;
        assert!(polite.join().await.reason.is_normal());
        // A process that asks for a result and ends takes the other along.
        let asks = asks(
            &host,
            Exec(
                SpawnProcess::new(Machine::new(|_, events, _| {
                    Ok(match events.next() {
                        Some(Event::Cancel(_)) => Status::Done(Payload::Nil),
                        _ => Status::Idle,
                    })
                }))
                .named("inner"),
            ),
        );
        crate::support::eventually("it starts", || host.whereis("inner").is_some()).await;
        let inner = host.whereis("inner").expect("it runs");
        asks.kill();
        host.ended(inner).await;
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn bonds_names_and_groups_by_command() {
    simulated(|host| async move {
        let other = host.spawn(idle).expect("a process");
        let (pid, kills) = (other.pid(), host.clone());
        let log = told(
            &host,
            vec![
                Box::new(|out| out.request(1, Register("me".into()))),
                Box::new(|out| out.request(2, Whereis("nobody".into()))),
                Box::new(|out| out.request(3, Join("all".into()))),
                Box::new(|out| {
                    let message = Message::new("hello", 1);
                    out.request(
                        4,
                        Broadcast {
                            group: "all".into(),
                            message,
                        },
                    );
                }),
                Box::new(|out| out.request(5, Leave("all".into()))),
                Box::new(move |out| out.request(6, Link(pid))),
                Box::new(move |out| out.request(7, Unlink(pid))),
                Box::new(move |out| out.request(8, Monitor(pid))),
                Box::new(|out| out.request(9, Demonitor(1))),
                Box::new(move |out| out.request(10, Monitor(pid))),
                Box::new(move |out| {
                    out.request(
                        11,
                        Send {
                            to: pid,
                            message: Message::new("x", ()),
                        },
                    );
                    kills.kill(pid);
                }),
            ],
        )
        .await;
        let completed: Vec<_> = log
            .iter()
            .filter(|told| told.starts_with("complete"))
            .collect();
        let expected = [
            "complete 1 Ok(nil)",
            "complete 2 Ok(nil)",
            "complete 3 Ok(nil)",
            "complete 4 Ok(1)",
            "complete 5 Ok(true)",
            "complete 6 Ok(nil)",
            "complete 7 Ok(nil)",
            "complete 8 Ok(1)",
            "complete 9 Ok(nil)",
            "complete 10 Ok(2)",
        ];
        assert_eq!(completed[..10], expected, "{log:?}");
        assert_eq!(
            log.iter().filter(|told| *told == "exit killed").count(),
            1,
            "one monitor is left: {log:?}"
        );
        assert_eq!(
            log.iter().filter(|told| *told == "message hello 1").count(),
            1
        );
        assert_eq!(host.whereis("me"), None, "it has ended");
    });
}

#[test]
fn channels_and_blocking_work_by_command() {
    everywhere(|host| async move {
        let (sender, receiver) = mpmc::buffered(1);
        let (other_sender, other) = mpmc::buffered::<Payload>(1);
        answer(
            &host,
            ChannelSend {
                sender: sender.clone(),
                value: 5.into(),
            },
        )
        .await;
        assert_eq!(
            answer(&host, ChannelReceive(receiver.clone())).await,
            5.into()
        );
        let select = asks(&host, Select(vec![receiver.clone(), other]));
        time::sleep(Duration::from_millis(2)).await;
        other_sender
            .send(9.into())
            .await
            .expect("somebody receives");
        let chosen = select.join().await.value;
        assert_eq!(chosen.as_list(), Some(&[1.into(), 9.into()][..]));
        drop(sender);
        let error = failure(&host, ChannelReceive(receiver.clone())).await;
        assert_eq!(error, "the channel is closed");
        assert_eq!(
            failure(&host, Select(vec![receiver])).await,
            "the channel is closed"
        );
        let on = std::thread::current().id();
        let blocking = Blocking::new(move || {
            assert_ne!(std::thread::current().id(), on, "not on a worker");
            Ok("blocked".into())
        });
        assert_eq!(answer(&host, blocking).await, "blocked".into());
    });
}

struct Echo(i64);
struct Keep;
struct Panics;
struct Unknown;

#[test]
fn handlers_are_open_and_answer_once() {
    expect_panics();
    let kept: Arc<Mutex<Vec<Completer>>> = Arc::default();
    let keeps = kept.clone();
    let build = |runtime: &windlass_runtime::Handle| {
        let kept = keeps.clone();
        Host::builder()
            .command(|Echo(number): Echo, completer: Completer| completer.complete(number))
            .command(move |Keep: Keep, completer: Completer| {
                kept.lock().expect("no panic").push(completer)
            })
            .command(|Panics: Panics, _: Completer| panic!("on purpose, in a handler"))
            .build(runtime)
            .expect("a host")
    };
    everywhere(|base| {
        let host = build(base.runtime());
        let kept = kept.clone();
        async move {
            assert_eq!(answer(&host, Echo(3)).await, 3_i64.into());
            let unknown = failure(&host, Unknown).await;
            assert!(
                unknown.contains("Unknown") && unknown.contains("register"),
                "{unknown}"
            );
            let reason = asks(&host, Panics).join().await.reason;
            assert_eq!(reason, ExitReason::Panic("on purpose, in a handler".into()));
            // Dropped without an answer, from another thread.
            let abandoned = asks(&host, Keep);
            crate::support::eventually("it asks", || !kept.lock().expect("no panic").is_empty())
                .await;
            let completer = kept.lock().expect("no panic").pop();
            std::thread::spawn(move || drop(completer))
                .join()
                .expect("no panic");
            let reason = abandoned.join().await.reason;
            assert_eq!(
                reason,
                ExitReason::Error(YieldError::Abandoned.to_string().into())
            );
            // Too late: the process has ended.
            let late = asks(&host, Keep);
            crate::support::eventually("it asks", || !kept.lock().expect("no panic").is_empty())
                .await;
            late.kill();
            late.join().await;
            let completer = kept.lock().expect("no panic").pop().expect("it asked");
            assert!(completer.token().is_cancelled());
            completer.complete(1);
        }
    });
}

#[test]
fn two_handlers_for_one_command_are_an_error() {
    let runtime = windlass_runtime::Runtime::simulated(0);
    let twice = Host::builder()
        .command(|Echo(_): Echo, completer: Completer| completer.complete(1))
        .command(|Echo(_): Echo, completer: Completer| completer.complete(2))
        .build(runtime.handle())
        .expect_err("twice");
    assert!(
        matches!(twice, BuildError::CommandTwice(name) if name.contains("Echo")),
        "{twice}"
    );
    let built_in = Host::builder().command(|_: Sleep, completer: Completer| completer.complete(1));
    let error = built_in
        .build(runtime.handle())
        .expect_err("it is built in");
    assert!(matches!(error, BuildError::CommandTwice(_)), "{error}");
    let name = Host::builder()
        .name("a|b")
        .build(runtime.handle())
        .expect_err("no name");
    assert!(matches!(name, BuildError::Name(_)), "{name}");
}

#[test]
fn a_completion_finds_room_in_a_full_mailbox() {
    simulated(|host| async move {
        let seen = Count::default();
        let counts = seen.clone();
        let process = host
            .process()
            .mailbox(windlass_actor::MailboxPolicy::Bounded(1))
            .step(Machine::new(move |_, events, out| {
                match events.next_signal() {
                    Some(Event::YieldComplete { .. }) => return Ok(Status::Done(Payload::Nil)),
                    _ if counts.up() == 1 => out.request(1, Sleep(Duration::from_millis(5))),
                    _ => {}
                }
                Ok(Status::Blocked)
            }))
            .expect("a process");
        time::sleep(Duration::from_millis(1)).await;
        process.tell(Message::new("x", 1)).expect("room");
        assert!(process.tell(Message::new("x", 2)).is_err(), "full");
        assert_eq!(process.join().await.reason, ExitReason::Normal);
        assert_eq!(seen.get(), 2, "a message wakes a blocked process");
    });
}
