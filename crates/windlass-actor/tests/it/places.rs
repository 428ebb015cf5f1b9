//! Processes on dispatchers.

use std::time::Duration;

use windlass_actor::supervisor::{ChildSpec, Strategy, Supervisor};
use windlass_actor::{Context, Event, ExitReason, Message, Status};
use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::{Handle, time};
use windlass_value::Payload;

use crate::support::{Machine, eventually, everywhere, expect_panics, idle, real, waits};

fn all_kinds() -> Vec<Dispatcher> {
    vec![
        Dispatcher::default_of(&Handle::current()),
        Dispatcher::io_of(&Handle::current()),
        Dispatcher::custom(2).expect("a pool"),
        Dispatcher::single().expect("a thread"),
        Dispatcher::unconfined(),
    ]
}

#[test]
fn a_process_lives_on_any_dispatcher() {
    everywhere(|host| async move {
        for there in all_kinds() {
            let process = host
                .process()
                .on(&there)
                .spawn(|mut ctx: Context<i64>| async move {
                    let mut sum = 0;
                    for _ in 0..100 {
                        sum += ctx.recv().await.unwrap_or(0);
                        time::sleep(Duration::from_micros(10)).await;
                    }
                    Payload::Int(sum)
                });
            let process = process.expect("a process");
            for number in 1..=100 {
                process.send(number).await.expect("it lives");
            }
            let exit = process.join().await;
            assert_eq!(exit.value, Payload::Int(5050), "{there:?}");

            let killed = host.process().on(&there).spawn(idle).expect("a process");
            waits(&host, killed.pid()).await;
            killed.kill();
            assert_eq!(killed.join().await.reason, ExitReason::Killed, "{there:?}");

            let machine = Machine::new(|_, events, _| match events.next() {
                Some(Event::Message(message)) => Ok(Status::Done(message.payload)),
                _ => Ok(Status::Idle),
            });
            let steps = host.process().on(&there).step(machine).expect("a process");
            let message = Message::new("topic", Payload::Int(7));
            host.send(steps.pid(), message).expect("it lives");
            assert_eq!(steps.join().await.value, Payload::Int(7), "{there:?}");
        }
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn a_process_is_on_the_threads_of_its_dispatcher_also_after_waits() {
    real(2, |host| async move {
        let pool = Dispatcher::builder(2)
            .name("apart")
            .build()
            .expect("a pool");
        let there = pool.clone();
        let process = host
            .process()
            .on(&pool)
            .spawn(|mut ctx: Context<()>| async move {
                for _ in 0..50 {
                    ctx.recv().await;
                    assert!(there.is_current());
                    time::sleep(Duration::from_micros(100)).await;
                    assert!(there.is_current());
                }
            });
        let process = process.expect("a process");
        for _ in 0..50 {
            process.send(()).await.expect("it lives");
        }
        assert!(process.join().await.reason.is_normal());
    });
}

#[test]
fn a_pool_that_ends_takes_its_processes_along() {
    real(2, |host| async move {
        let pool = Dispatcher::custom(1).expect("a pool");
        let process = host.process().on(&pool).spawn(idle).expect("a process");
        waits(&host, process.pid()).await;
        drop(pool);
        assert_eq!(process.join().await.reason, ExitReason::Killed);
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn a_supervisor_starts_children_again_where_they_were() {
    expect_panics();
    real(2, |host| async move {
        let pool = Dispatcher::builder(1)
            .name("apart")
            .build()
            .expect("a pool");
        let there = pool.clone();
        let child = ChildSpec::new("child", move |spawn| {
            let here = there.clone();
            let run = |mut ctx: Context<u32>| async move {
                assert!(here.is_current());
                // It fails at the first, and stays at the second.
                assert_ne!(ctx.recv().await, Some(1), "on purpose");
                ctx.recv().await;
            };
            Ok(spawn.on(&there).name("child").spawn(run)?.pid())
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(child)
            .start(&host)
            .expect("a supervisor");
        supervisor.started().await.expect("it starts");
        let first = host.whereis("child").expect("it is there");
        host.address::<u32>(first)
            .expect("it takes numbers")
            .tell(1)
            .expect("it lives");
        eventually("it is started again", || {
            host.whereis("child").is_some_and(|pid| pid != first)
        })
        .await;
        supervisor.cancel("enough");
        supervisor.join().await;
        drop(pool);
    });
}
