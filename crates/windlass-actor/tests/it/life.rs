//! Beginning, running and ending.

use std::time::Duration;

use windlass_actor::command::Sleep;
use windlass_actor::{
    Actor, ActorError, Context, Event, Events, ExitReason, Host, MailboxPolicy, Message, Output,
    Pid, Process, ProcessContext, ProcessState, SpawnError, Status, Upgrade,
};
use windlass_runtime::{Runtime, time};
use windlass_value::{Payload, Payloads};

use crate::support::{
    Count, Log, Machine, deaf, eventually, everywhere, expect_panics, idle, real, simulated, waits,
};

#[test]
fn an_async_process_ends_with_its_value() {
    everywhere(|host| async move {
        let process = host
            .spawn(|mut ctx: Context<i64>| async move {
                let (a, b) = (ctx.recv().await, ctx.recv().await);
                Payload::Int(a.unwrap_or(0) + b.unwrap_or(0))
            })
            .expect("a process");
        process.tell(40).expect("it lives");
        process.tell(2).expect("it lives");
        let exit = process.join().await;
        assert_eq!(exit.reason, ExitReason::Normal);
        assert_eq!(exit.value, Payload::Int(42));
        assert_eq!(process.join().await, exit, "also the second time");
        assert!(!process.is_alive());
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn errors_and_panics_are_exit_reasons_and_end_nobody_else() {
    expect_panics();
    everywhere(|host| async move {
        let bystander = host.spawn(idle).expect("a process");
        let error = host.spawn(|_: Context<()>| async {
            let _: u32 = "x".parse()?;
            Ok::<_, ActorError>(())
        });
        let reason = error.expect("a process").join().await.reason;
        assert!(
            matches!(&reason, ExitReason::Error(Payload::Text(text)) if text.contains("invalid")),
            "{reason}"
        );
        let panics = host.spawn(|mut ctx: Context<()>| async move {
            assert!(ctx.try_recv().is_some(), "on purpose");
        });
        let reason = panics.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Panic("on purpose".into()));
        let step = host.step(Machine::new(|_, _, _| panic!("on purpose, in a step")));
        let reason = step.expect("a process").join().await.reason;
        assert_eq!(reason, ExitReason::Panic("on purpose, in a step".into()));
        assert!(bystander.is_alive());
    });
}

#[test]
fn a_panic_in_a_drop_ends_that_process_with_the_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose, in a drop");
        }
    }
    expect_panics();
    everywhere(|host| async move {
        // In the process, killed while it waits.
        let process = host
            .spawn(|mut ctx: Context<()>| async move {
                let _bomb = Bomb;
                ctx.recv().await;
            })
            .expect("a process");
        waits(&host, process.pid()).await;
        process.kill();
        let reason = process.join().await.reason;
        assert_eq!(reason, ExitReason::Panic("on purpose, in a drop".into()));
        // In messages that are never read.
        let policies = [MailboxPolicy::Bounded(8), MailboxPolicy::DropOldest(8)];
        for policy in policies {
            let process = host
                .process()
                .mailbox(policy)
                .spawn(|_: Context<Bomb>| std::future::pending::<()>())
                .expect("a process");
            for _ in 0..3 {
                process.tell(Bomb).expect("it lives");
            }
            process.kill();
            assert_eq!(process.join().await.reason, ExitReason::Killed);
        }
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn close_runs_once_on_every_path() {
    expect_panics();
    everywhere(|host| async move {
        type Step = fn(&ProcessContext, &mut Events<'_>, &mut Output) -> Result<Status, ActorError>;
        let paths: [(&str, Step, bool); 6] = [
            ("done", |_, _, _| Ok(Status::Done(1.into())), false),
            ("error", |_, _, _| Err(ActorError::new("broken")), false),
            ("panic", |_, _, _| panic!("on purpose"), false),
            ("killed while idle", |_, _, _| Ok(Status::Idle), true),
            ("killed while busy", |_, _, _| Ok(Status::Continue), true),
            (
                "killed while blocked",
                |_, events, out| {
                    if events.next().is_none() {
                        out.request(1, Sleep(Duration::from_secs(60)));
                    }
                    Ok(Status::Blocked)
                },
                true,
            ),
        ];
        for (name, step, kill) in paths {
            let closed = Count::default();
            let process = host.step(Machine::counting(step, &closed)).expect(name);
            if kill {
                time::sleep(Duration::from_millis(1)).await;
                process.kill();
            }
            process.join().await;
            assert_eq!(closed.get(), 1, "{name}");
        }
    });
}

#[test]
fn a_process_that_cannot_begin_is_closed_and_fails_the_spawn() {
    struct Picky(Count, bool);
    impl Process for Picky {
        fn methods(&self) -> &[&str] {
            &["main", "other"]
        }

        fn init(
            &mut self,
            _: &ProcessContext,
            method: &str,
            input: Payloads,
        ) -> Result<(), ActorError> {
            assert!(!self.1, "on purpose");
            match (method, input.len()) {
                ("other", 1) => Ok(()),
                _ => Err(ActorError::new("I want one input at other")),
            }
        }

        fn step(&mut self, _: &mut Events<'_>, _: &mut Output) -> Result<Status, ActorError> {
            Ok(Status::Done(Payload::Nil))
        }

        fn close(&mut self) {
            self.0.up();
        }
    }
    expect_panics();
    everywhere(|host| async move {
        let closed = Count::default();
        let picky = |panics| Box::new(Picky(closed.clone(), panics));
        let spawn = |process, method, input| host.process().step_at(process, method, input);
        let error = spawn(picky(false), "none", vec![]).expect_err("no such method");
        assert!(matches!(error, SpawnError::UnknownMethod { .. }), "{error}");
        let error = spawn(picky(false), "main", vec![]).expect_err("init fails");
        assert!(
            matches!(&error, SpawnError::Init(ExitReason::Error(_))),
            "{error}"
        );
        let error = spawn(picky(true), "main", vec![]).expect_err("init panics");
        assert!(
            matches!(&error, SpawnError::Init(ExitReason::Panic(_))),
            "{error}"
        );
        assert_eq!((closed.get(), host.processes()), (3, 0));
        let works = spawn(picky(false), "other", vec![7.into()]).expect("it begins");
        assert!(works.join().await.reason.is_normal());
        assert_eq!(closed.get(), 4);
    });
}

#[test]
fn everything_is_closed_when_the_runtime_goes() {
    let closed = Count::default();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    let step = |_: &ProcessContext, events: &mut Events<'_>, _: &mut Output| {
        Ok(match events.next() {
            Some(Event::Cancel(_)) => Status::Done("told".into()),
            _ => Status::Idle,
        })
    };
    let polite = host
        .step(Machine::counting(step, &closed))
        .expect("a process");
    drop(runtime);
    assert_eq!(closed.get(), 1);
    let exit = windlass_core::block_on(polite.join());
    assert_eq!(exit.value, "told".into());
    let late = host.step(deaf()).expect_err("the host has stopped");
    assert_eq!(late, SpawnError::Stopping);
}

#[test]
fn an_actor_has_hooks_for_its_life() {
    struct Talker(Log<&'static str>);
    impl Actor for Talker {
        type Message = &'static str;

        async fn started(&mut self, _: &mut Context<&'static str>) -> Result<(), ActorError> {
            self.0.add("started");
            Ok(())
        }

        async fn handle(
            &mut self,
            message: &'static str,
            ctx: &mut Context<&'static str>,
        ) -> Result<(), ActorError> {
            self.0.add(message);
            match message {
                "stop" => ctx.stop(),
                "fail" => return Err(ActorError::new("asked to")),
                _ => {}
            }
            Ok(())
        }

        async fn stopped(&mut self, cancelled: Option<&str>, _: &mut Context<&'static str>) {
            time::sleep(Duration::from_millis(5)).await;
            self.0.add(if cancelled.is_some() {
                "cancelled"
            } else {
                "stopped"
            });
        }
    }
    everywhere(|host| async move {
        for (last, reason) in [
            ("stop", ExitReason::Normal),
            ("fail", ExitReason::Error("asked to".into())),
        ] {
            let log = Log::default();
            let actor = host.actor(Talker(log.clone())).expect("an actor");
            for message in ["one", last, "too late"] {
                actor.tell(message).expect("it lives");
            }
            assert_eq!(actor.join().await.reason, reason);
            assert_eq!(log.all(), ["started", "one", last, "stopped"]);
        }
        let log = Log::default();
        let actor = host.actor(Talker(log.clone())).expect("an actor");
        actor.cancel("enough");
        assert_eq!(
            actor.join().await.reason,
            ExitReason::Cancelled("enough".into())
        );
        assert_eq!(log.all().last(), Some(&"cancelled"));
    });
}

#[test]
fn states_are_published() {
    real(1, |host| async move {
        let state = |pid: Pid| {
            let found = host.list().into_iter().find(|info| info.pid == pid);
            found.map(|info| info.state)
        };
        let waits = host.spawn(idle).expect("a process").pid();
        let sleeps = host
            .spawn(|_: Context<()>| async { time::sleep(Duration::from_secs(60)).await })
            .expect("a process")
            .pid();
        let blocked = Machine::new(|_, events, out| {
            if events.next().is_none() {
                out.request(1, Sleep(Duration::from_secs(60)));
            }
            // A yield is outstanding: this is Blocked by construction.
            Ok(Status::Idle)
        });
        let blocked = host.step(blocked).expect("a process").pid();
        let is = |pid, wanted| state(pid) == Some(wanted);
        eventually("they wait", || {
            is(waits, ProcessState::Idle)
                && is(sleeps, ProcessState::Blocked)
                && is(blocked, ProcessState::Blocked)
        })
        .await;
        let (enter, entered) = std::sync::mpsc::channel();
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let busy = host.step(Machine::new(move |_, _, _| {
            enter.send(()).expect("the test waits");
            let _ = left.recv();
            Ok(Status::Done(Payload::Nil))
        }));
        let busy = busy.expect("a process").pid();
        entered.recv().expect("it runs");
        assert!(is(busy, ProcessState::Running));
        let ready = host.step(deaf()).expect("a process").pid();
        assert!(is(ready, ProcessState::Ready), "the only worker is busy");
        drop(leave);
        eventually("it ends", || state(busy).is_none()).await;
    });
}

#[test]
fn what_step_does_not_take_is_not_forced_upon_it() {
    // It leaves its mail alone until the third comes.
    everywhere(|host| async move {
        let steps = Count::default();
        let counted = steps.clone();
        let mut seen = Vec::new();
        let process = host
            .step(Machine::new(move |_, events, _| {
                if counted.up() < 4 {
                    return Ok(Status::Idle);
                }
                while let Some(Event::Message(message)) = events.next() {
                    seen.push(message.payload);
                }
                Ok(Status::Done(std::mem::take(&mut seen).into()))
            }))
            .expect("a process");
        for number in 1..=3_i32 {
            eventually("it has looked", || steps.get() == number as usize).await;
            waits(&host, process.pid()).await;
            process.tell(Message::new("n", number)).expect("it lives");
        }
        let value = process.join().await.value;
        assert_eq!(value.as_list(), Some(&[1.into(), 2.into(), 3.into()][..]));
        assert_eq!(steps.get(), 4, "one by itself, and one for each message");
    });
}

#[test]
fn a_machine_that_takes_one_event_a_step_gets_all() {
    everywhere(|host| async move {
        let mut seen = 0;
        let process = host
            .step(Machine::new(move |_, events, _| {
                seen += events.next().is_some() as i64;
                Ok(match seen {
                    100 => Status::Done(seen.into()),
                    _ => Status::Idle,
                })
            }))
            .expect("a process");
        for number in 0..100 {
            process.tell(Message::new("n", number)).expect("room");
        }
        assert_eq!(process.join().await.value, 100_i64.into());
    });
}

#[test]
fn an_upgrade_closes_the_old_code_and_may_fail() {
    everywhere(|host| async move {
        let closed = Count::default();
        let (old, new) = (closed.clone(), closed.clone());
        let process = host
            .step(Machine::counting(
                move |_, _, _| {
                    let done = |_: &ProcessContext, _: &mut Events<'_>, _: &mut Output| {
                        Ok(Status::Done("new".into()))
                    };
                    Ok(Status::Upgrade(Upgrade::to(Machine::counting(done, &new))))
                },
                &old,
            ))
            .expect("a process");
        assert_eq!(process.join().await.value, "new".into());
        assert_eq!(closed.get(), 2);
        let lost =
            Machine::new(|_, _, _| Ok(Status::Upgrade(Upgrade::to(deaf()).method("nowhere"))));
        let reason = host.step(lost).expect("a process").join().await.reason;
        assert!(matches!(reason, ExitReason::Error(_)), "{reason}");
    });
}

#[test]
fn a_kill_ends_at_the_next_boundary_and_a_cancel_is_an_event() {
    simulated(|host| async move {
        let log = Log::default();
        let process = host
            .step(crate::support::recorder(&log))
            .expect("a process");
        process.cancel("first");
        process.cancel("second");
        time::sleep(Duration::from_millis(1)).await;
        assert_eq!(log.all(), ["cancel first"], "it is told once");
        assert!(process.is_alive(), "it ignores that");
        let began = time::Instant::now();
        process.cancel_then_kill("third", Duration::from_millis(30));
        assert_eq!(process.join().await.reason, ExitReason::Killed);
        assert_eq!(began.elapsed(), Duration::from_millis(30));
        // One that listens is not killed.
        let listens = host.spawn(idle).expect("a process");
        listens.cancel_then_kill("now", Duration::from_millis(30));
        assert_eq!(listens.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn a_process_can_wait_for_its_cancel_without_reading_mail() {
    everywhere(|host| async move {
        let process = host
            .spawn(|mut ctx: Context<i64>| async move {
                assert_eq!(&*ctx.cancelled().await, "enough");
                assert!(!ctx.token().is_cancelled(), "that is for its end");
                Payload::Int(ctx.try_recv().unwrap_or(0))
            })
            .expect("a process");
        process.tell(7).expect("room");
        time::sleep(Duration::from_millis(2)).await;
        assert_eq!(process.unread(), Some(1));
        process.cancel("enough");
        assert_eq!(process.join().await.value, Payload::Int(7));
    });
}
