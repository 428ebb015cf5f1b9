//! Links and monitors.

use std::time::Duration;

use windlass_actor::{
    ActorError, ActorEvent, Bond, Context, Events, ExitReason, Exited, Host, Message, Output, Pid,
    Process, ProcessContext, Status,
};
use windlass_runtime::{join_all, time};
use windlass_value::{Payload, Payloads};

use crate::support::{Log, eventually, everywhere, expect_panics, idle, real, waits};

/// Watches others and writes down their ends.
fn watcher(
    host: &Host,
    targets: Vec<Pid>,
    log: &Log<Exited>,
) -> windlass_actor::ProcessHandle<Message> {
    let log = log.clone();
    host.spawn(move |mut ctx: Context<Message>| async move {
        for target in targets {
            ctx.monitor(target);
        }
        loop {
            match ctx.event().await {
                ActorEvent::Exit(exited) => log.add(exited),
                ActorEvent::Cancel(_) => return,
                _ => {}
            }
        }
    })
    .expect("a process")
}

#[test]
fn a_monitor_is_told_once_of_any_end() {
    expect_panics();
    everywhere(|host| async move {
        let normal = host.spawn(idle).expect("a process");
        let broken = host.spawn(|mut ctx: Context<Message>| async move {
            ctx.recv().await;
            Err::<(), _>(ActorError::new("broken"))
        });
        let panics = host.spawn(|mut ctx: Context<Message>| async move {
            ctx.recv().await;
            panic!("on purpose");
            #[allow(unreachable_code, reason = "gives the type")]
            ()
        });
        let killed = host.spawn(idle).expect("a process");
        let (broken, panics) = (broken.expect("a process"), panics.expect("a process"));
        let all = [normal.pid(), broken.pid(), panics.pid(), killed.pid()];
        let log = Log::default();
        let watcher = watcher(&host, all.to_vec(), &log);
        waits(&host, watcher.pid()).await;
        normal.cancel("enough");
        broken.tell(Message::new("go", ())).expect("room");
        panics.tell(Message::new("go", ())).expect("room");
        killed.kill();
        for process in [&normal, &broken, &panics, &killed] {
            process.join().await;
        }
        eventually("it is told", || log.all().len() >= 4).await;
        waits(&host, watcher.pid()).await;
        let told = log.all();
        let reasons = all.map(|pid| {
            let of: Vec<_> = told.iter().filter(|exited| exited.pid == pid).collect();
            assert_eq!(of.len(), 1, "{pid}: {told:?}");
            assert!(matches!(of[0].by, Bond::Monitor(_)));
            of[0].reason.clone()
        });
        let expected = [
            ExitReason::Normal,
            ExitReason::Error("broken".into()),
            ExitReason::Panic("on purpose".into()),
            ExitReason::Killed,
        ];
        assert_eq!(reasons, expected);
        assert!(watcher.is_alive());
    });
}

#[test]
fn a_dead_target_answers_at_once() {
    everywhere(|host| async move {
        let dead = host.spawn(|_: Context<()>| async {}).expect("a process");
        dead.join().await;
        let log = Log::default();
        let watcher = watcher(&host, vec![dead.pid(), dead.pid()], &log);
        eventually("it is told", || log.all().len() >= 2).await;
        waits(&host, watcher.pid()).await;
        let reasons: Vec<_> = log.all().into_iter().map(|exited| exited.reason).collect();
        assert_eq!(reasons, [ExitReason::NoProcess, ExitReason::NoProcess]);
        assert_eq!(host.ended(dead.pid()).await.reason, ExitReason::NoProcess);
    });
}

#[test]
fn a_monitor_that_was_undone_says_nothing() {
    everywhere(|host| async move {
        let target = host.spawn(idle).expect("a process");
        let pid = target.pid();
        let process = host
            .spawn(move |mut ctx: Context<Message>| async move {
                let (one, other) = (ctx.monitor(pid), ctx.monitor(pid));
                ctx.demonitor(one);
                ctx.host().kill(pid);
                ctx.host().ended(pid).await;
                time::sleep(Duration::from_millis(2)).await;
                let ActorEvent::Exit(exited) = ctx.event().await else {
                    panic!("the end was expected");
                };
                assert_eq!(exited.by, Bond::Monitor(other));
                let more = time::timeout(Duration::from_millis(5), ctx.event()).await;
                assert!(more.is_err(), "{more:?}");
            })
            .expect("a process");
        assert_eq!(process.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn an_abnormal_end_takes_linked_processes_along_and_a_normal_one_does_not() {
    everywhere(|host| async move {
        // A chain: each is linked to the one before.
        let first = host.spawn(idle).expect("a process");
        let mut chain = vec![first];
        for _ in 0..4 {
            let before = chain.last().expect("not empty").pid();
            let next = host.process().linked_to(before).spawn(idle);
            chain.push(next.expect("a process"));
        }
        let bystander = host.spawn(idle).expect("a process");
        chain[4].cancel("the end of the chain ends normally");
        assert!(chain[4].join().await.reason.is_normal());
        time::sleep(Duration::from_millis(2)).await;
        assert!(chain[..4].iter().all(|process| process.is_alive()));
        chain[1].kill();
        for process in &chain[..4] {
            assert_eq!(process.join().await.reason, ExitReason::Killed);
        }
        assert!(bystander.is_alive());
    });
}

#[test]
fn who_traps_links_gets_a_message() {
    everywhere(|host| async move {
        let traps = host
            .spawn(|mut ctx: Context<Message>| async move {
                ctx.trap_links(true);
                let child = ctx
                    .linked()
                    .spawn(|_: Context<()>| async { Err::<(), _>(ActorError::new("broken")) });
                let normal = ctx.linked().spawn(|_: Context<()>| async {});
                let (child, normal) = (child.expect("a process"), normal.expect("a process"));
                for _ in 0..2 {
                    let ActorEvent::Exit(exited) = ctx.event().await else {
                        panic!("an end was expected");
                    };
                    assert_eq!(exited.by, Bond::Link);
                    let is_child = exited.pid == child.pid();
                    assert!(is_child || exited.pid == normal.pid());
                    assert_eq!(exited.reason.is_normal(), !is_child);
                }
                // One that is not there any more.
                ctx.link(child.pid());
                let ActorEvent::Exit(exited) = ctx.event().await else {
                    panic!("an end was expected");
                };
                assert_eq!(exited.reason, ExitReason::NoProcess);
            })
            .expect("a process");
        assert_eq!(traps.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn an_undone_link_does_not_count() {
    everywhere(|host| async move {
        let other = host.spawn(idle).expect("a process");
        let pid = other.pid();
        let process = host
            .spawn(move |mut ctx: Context<Message>| async move {
                ctx.link(pid);
                ctx.link(pid);
                ctx.unlink(pid);
                ctx.recv().await;
            })
            .expect("a process");
        waits(&host, process.pid()).await;
        other.kill();
        other.join().await;
        time::sleep(Duration::from_millis(2)).await;
        assert!(process.is_alive());
    });
}

/// The other end is over before the link is undone, and its letter is there already.
#[test]
fn an_undone_link_does_not_count_even_if_the_other_has_ended_meanwhile() {
    real(2, |host| async move {
        for _ in 0..50 {
            let other = host.spawn(idle).expect("a process");
            let pid = other.pid();
            let process = host
                .spawn(move |ctx: Context<Message>| async move {
                    ctx.link(pid);
                    let host = ctx.host();
                    host.kill(pid);
                    // Inside one step: nothing is heard before it ends.
                    while other.is_alive() {
                        std::thread::yield_now();
                    }
                    ctx.unlink(pid);
                    windlass_runtime::task::yield_now().await;
                    Payload::Int(1)
                })
                .expect("a process");
            let exit = process.join().await;
            assert_eq!(exit.reason, ExitReason::Normal);
        }
    });
}

/// Out of routing, context cancelled, `close`, names and groups, monitors: a process that is
/// notified finds all free.
#[test]
fn the_order_of_an_end() {
    struct Owner(Log<String>, Option<ProcessContext>);
    impl Process for Owner {
        fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
            let log = self.0.clone();
            let token = ctx.token();
            let (host, pid) = (ctx.host(), ctx.pid());
            host.join("group", pid).expect("it lives");
            let told = ctx.host().runtime().spawn(async move {
                token.cancelled().await;
                log.add("context".to_owned());
            });
            drop(told);
            self.1 = Some(ctx.clone());
            Ok(())
        }

        fn step(&mut self, _: &mut Events<'_>, _: &mut Output) -> Result<Status, ActorError> {
            Ok(Status::Idle)
        }

        fn close(&mut self) {
            let ctx = self.1.as_ref().expect("init came first");
            let (host, pid) = (ctx.host(), ctx.pid());
            assert!(ctx.token().is_cancelled());
            let refused = host.send(pid, Message::new("late", ()));
            assert!(refused.is_err(), "it is out of routing");
            self.0.add(format!(
                "close, named {}, member {}",
                host.whereis("owner") == Some(pid),
                host.members("group") == [pid]
            ));
            assert!(host.register("another", pid).is_err(), "it is leaving");
        }
    }
    everywhere(|host| async move {
        let log = Log::default();
        let owner = host.process().name("owner").step(Owner(log.clone(), None));
        let owner = owner.expect("a process");
        let (pid, record) = (owner.pid(), log.clone());
        let watcher = host
            .spawn(move |mut ctx: Context<Message>| async move {
                ctx.monitor(pid);
                ctx.event().await;
                let host = ctx.host();
                record.add(format!(
                    "monitor, named {}, member {}",
                    host.whereis("owner").is_some(),
                    !host.members("group").is_empty()
                ));
                assert!(!host.is_alive(pid));
                host.register("owner", ctx.pid()).expect("the name is free");
            })
            .expect("a process");
        waits(&host, watcher.pid()).await;
        owner.kill();
        assert_eq!(watcher.join().await.reason, ExitReason::Normal);
        assert_eq!(
            owner.join().await.reason,
            ExitReason::Killed,
            "close is content"
        );
        let told = log.all();
        let place = |text: &str| told.iter().position(|entry| entry.starts_with(text));
        assert_eq!(
            told[place("close").expect("closed")],
            "close, named true, member true"
        );
        assert_eq!(
            told[place("monitor").expect("told")],
            "monitor, named false, member false"
        );
        assert!(place("close") < place("monitor"), "{told:?}");
    });
}

/// Links, ends and monitors at the same time: every process that is tied to an end is notified of
/// it.
#[test]
fn races_of_links_and_ends() {
    real(2, |host| async move {
        for round in 0..300_u64 {
            let one = host.spawn(idle).expect("a process");
            let (pid, kills) = (one.pid(), host.clone());
            let link = host
                .spawn(move |mut ctx: Context<Message>| async move {
                    ctx.trap_links(true);
                    ctx.link(pid);
                    let monitor = ctx.monitor(pid);
                    let mut told = Vec::new();
                    while told.len() < 2 {
                        if let ActorEvent::Exit(exited) = ctx.event().await {
                            told.push(exited.by);
                        }
                    }
                    assert!(told.contains(&Bond::Link) && told.contains(&Bond::Monitor(monitor)));
                    Payload::Nil
                })
                .expect("a process");
            let kill = host.runtime().spawn(async move {
                for _ in 0..round % 5 {
                    windlass_runtime::task::yield_now().await;
                }
                kills.kill(pid);
            });
            let exits = join_all(vec![one.ended(), link.ended()]).await;
            assert_eq!(exits[1].reason, ExitReason::Normal, "round {round}");
            kill.await.expect("no panic");
        }
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn nothing_is_started_for_a_parent_that_has_ended() {
    everywhere(|host| async move {
        let dead = host.spawn(|_: Context<()>| async {}).expect("a process");
        dead.join().await;
        for spawn in [
            host.process().linked_to(dead.pid()),
            host.process().monitored_by(dead.pid()),
        ] {
            let error = spawn.name("child").spawn(idle).expect_err("no parent");
            assert_eq!(error, windlass_actor::SpawnError::NoParent(dead.pid()));
        }
        assert_eq!((host.processes(), host.whereis("child")), (0, None));
    });
}
