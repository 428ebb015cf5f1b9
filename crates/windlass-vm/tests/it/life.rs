//! Beginning, waiting, ending.

use std::time::Duration;

use windlass_actor::command::{Blocking, Run, Whereis};
use windlass_actor::{ExitReason, Message, Pid};
use windlass_runtime::dispatch::Dispatcher;
use windlass_runtime::observe::{Entity, Query};
use windlass_value::Payload;
use windlass_vm::{Placement, Reason, ReasonKind, Vm};

use crate::support::{BOTH, everywhere, real, simulated, vm};
use crate::tiny::{Code, Machine, program};

const MS: Duration = Duration::from_millis(1);

everywhere! {
    async fn a_guest_computes_and_ends(vm: Vm) {
        let sum = program([
            Code::Push(0.into()), Code::Store(0),
            Code::Push(1000.into()), Code::Store(1),
            Code::Load(0), Code::Push(2.into()), Code::Add, Code::Store(0),
            Code::Loop(1, 4),
            Code::Load(0), Code::Return,
        ]);
        let task = vm.spawn(Machine::new(&sum)).expect("a task");
        assert_eq!(task.join().await.value, 2000.into());
        assert!(task.is_finished());
    }

    async fn a_guest_awaits_what_it_spawned(vm: Vm) {
        let child = program([Code::Sleep(MS), Code::Push("child".into()), Code::Return]);
        let parent = program([Code::Spawn(child, 0), Code::Await(0), Code::Await(0), Code::Return]);
        let task = vm.spawn(Machine::new(&parent)).expect("a task");
        assert_eq!(task.join().await.value, "child".into());
    }

    async fn a_failure_is_the_awaiters_exception(vm: Vm) {
        let child = program([Code::Throw("on purpose")]);
        let parent = program([
            Code::Spawn(child, 0), Code::Try(4), Code::Await(0), Code::Return,
            Code::Return,
        ]);
        let exit = vm.spawn(Machine::new(&parent)).expect("a task").join().await;
        let text = exit.value.as_str().expect("a text").to_owned();
        assert!(text.contains("ended: error: on purpose"), "{text}");
    }

    async fn a_panic_ends_its_own_guest_only(vm: Vm) {
        let child = program([Code::Panic]);
        let parent = program([
            Code::Spawn(child, 0), Code::Try(4), Code::Await(0), Code::Return,
            Code::Return,
        ]);
        let exit = vm.spawn(Machine::new(&parent)).expect("a task").join().await;
        let text = exit.value.as_str().expect("a text").to_owned();
        assert!(text.contains("panic: the guest panics on purpose"), "{text}");
    }

    async fn a_command_of_the_host_is_waited_for(vm: Vm) {
        let run = Code::Command(|| {
            Reason::command(Run::new(async {
                windlass_runtime::time::sleep(MS).await;
                Ok(41.into())
            }))
        });
        let code = program([run, Code::Push(1.into()), Code::Add, Code::Return]);
        let task = vm.spawn(Machine::new(&code)).expect("a task");
        assert_eq!(task.join().await.value, 42.into());
        let named = Code::Command(|| Reason::command(Whereis("nobody".into())));
        let task = vm.spawn(Machine::new(&program([named, Code::Return]))).expect("a task");
        assert_eq!(task.join().await.value, Payload::Nil);
    }

    async fn a_command_that_fails_is_an_exception(vm: Vm) {
        /// No other guest knows it.
        struct Unheard;
        let unheard = Code::Command(|| Reason::command(Unheard));
        let panics = Code::Command(|| Reason::command(Blocking::new(|| panic!("in a command, on purpose"))));
        for (command, says) in [(unheard, "Unheard"), (panics, "on purpose")] {
            let code = program([Code::Try(3), command, Code::Return, Code::Return]);
            let exit = vm.spawn(Machine::new(&code)).expect("a task").join().await;
            let text = exit.value.as_str().unwrap_or_default().to_owned();
            assert!(text.contains(says), "{text}: {}", exit.reason);
        }
    }

    async fn messages_are_received_by_topic(vm: Vm) {
        let guest = program([
            Code::Hear("b", None), Code::Store(0),
            Code::Hear("*", None), Code::Store(1),
            Code::Load(0), Code::Load(1), Code::Add, Code::Return,
        ]);
        let task = vm.spawn(Machine::new(&guest)).expect("a task");
        let host = windlass_actor::Host::current().expect("a host");
        host.send(task.pid(), Message::new("a", 1)).expect("sent");
        host.send(task.pid(), Message::new("b", 20)).expect("sent");
        assert_eq!(task.join().await.value, 21.into());
    }

    async fn a_receive_that_nothing_comes_for_times_out(vm: Vm) {
        let guest = program([
            Code::Try(3), Code::Hear("never", Some(5 * MS)), Code::Return,
            Code::Store(0),
            // What comes later is not lost.
            Code::Hear("later", None), Code::Return,
        ]);
        let task = vm.spawn(Machine::new(&guest)).expect("a task");
        windlass_runtime::time::sleep(20 * MS).await;
        let host = windlass_actor::Host::current().expect("a host");
        host.send(task.pid(), Message::new("later", "here")).expect("sent");
        assert_eq!(task.join().await.value, "here".into());
    }

    async fn values_go_through_a_rendezvous(vm: Vm) {
        let channel = vm.channel(0);
        let sender = program([
            Code::Push(100.into()), Code::Store(0),
            Code::Load(0), Code::Send(channel.clone()), Code::Loop(0, 2),
            Code::Close(channel.clone()),
        ]);
        let receiver = program([
            Code::Try(6),
            Code::Receive(channel.clone()), Code::Load(1), Code::Add, Code::Store(1),
            Code::Jump(1),
            Code::Load(1), Code::Return,
        ]);
        let sender = vm.spawn(Machine::new(&sender)).expect("a task");
        let receiver = vm.spawn(Machine::new(&receiver)).expect("a task");
        assert_eq!(receiver.join().await.value, 5050.into());
        sender.join().await;
    }

    async fn blocking_work_gives_a_value_or_an_exception(vm: Vm) {
        let guest = program([
            Code::Block(|| Ok(5.into())), Code::Store(0),
            Code::Try(5), Code::Block(|| panic!("blocking work panics on purpose")), Code::Return,
            Code::Pop, Code::Load(0), Code::Return,
        ]);
        let task = vm.spawn(Machine::new(&guest)).expect("a task");
        assert_eq!(task.join().await.value, 5.into());
    }

    async fn a_mutex_has_one_owner_and_is_given_back_at_the_end(vm: Vm) {
        let mutex = vm.mutex();
        let dies = program([Code::Lock(mutex.clone()), Code::Sleep(MS), Code::Throw("on purpose")]);
        let relocks = program([
            Code::Lock(mutex.clone()), Code::Try(4), Code::Lock(mutex.clone()), Code::Return,
            Code::Return,
        ]);
        let foreign = program([Code::Try(3), Code::Unlock(mutex.clone()), Code::Return, Code::Return]);
        let dies = vm.spawn(Machine::new(&dies)).expect("a task");
        let relocks = vm.spawn(Machine::new(&relocks)).expect("a task");
        assert!(!dies.join().await.reason.is_normal());
        let text = relocks.join().await.value;
        assert!(text.as_str().expect("a text").contains("by this very task"));
        let text = vm.spawn(Machine::new(&foreign)).expect("a task").join().await.value;
        assert!(text.as_str().expect("a text").contains("not locked by this task"));
        assert!(!mutex.is_locked());
    }

    async fn a_killed_guest_is_over_at_once(vm: Vm) {
        let waits = program([Code::Hear("never", None)]);
        let task = vm.spawn(Machine::new(&waits)).expect("a task");
        windlass_runtime::time::sleep(MS).await;
        task.kill();
        assert_eq!(task.join().await.reason, ExitReason::Killed);
    }

    async fn guests_send_messages_to_each_other(vm: Vm) {
        let echo = program([Code::Hear("ping", None), Code::Return]);
        let parent = program([
            Code::Spawn(echo, 0), Code::Push(9.into()), Code::Tell(0, "ping"), Code::Await(0), Code::Return,
        ]);
        let task = vm.spawn(Machine::new(&parent)).expect("a task");
        let pid = task.pid();
        assert_eq!(task.join().await.value, 9.into());
        // It is gone.
        let late = program([Code::Push(1.into()), Code::Tell(0, "ping")]);
        let late = vm.spawn(Machine::with(&late, pid)).expect("a task").join().await;
        let text = late.reason.to_string();
        assert!(text.contains("there is no such process"), "{text}");
    }

    async fn permits_are_given_in_turn(vm: Vm) {
        let permits = vm.semaphore(2);
        let works = program([
            Code::Acquire(permits.clone(), 1), Code::Sleep(MS), Code::Release(permits.clone(), 1),
            Code::Try(5), Code::Release(permits.clone(), 1), Code::Return,
        ]);
        let greedy = program([Code::Try(2), Code::Acquire(permits.clone(), 3), Code::Return]);
        let both = program([Code::Acquire(permits.clone(), 2), Code::Sleep(MS)]);
        let mut tasks: Vec<_> = (0..5).map(|_| vm.spawn(Machine::new(&works)).expect("a task")).collect();
        tasks.push(vm.spawn(Machine::new(&both)).expect("a task"));
        for task in &tasks {
            assert!(task.join().await.reason.is_normal());
        }
        let text = vm.spawn(Machine::new(&greedy)).expect("a task").join().await.value;
        assert!(text.as_str().unwrap_or_default().contains("3 permits were wanted"), "{text:?}");
        assert_eq!(permits.free(), 2);
    }

    async fn the_ends_of_linked_guests_are_told(vm: Vm) {
        let _ = &vm;
        let child = program([Code::Throw("on purpose")]);
        let parent = program([Code::Exit, Code::Return]);
        let task = vm.spawn(Machine::new(&parent)).expect("a task");
        let host = windlass_actor::Host::current().expect("a host");
        let spawn = host.process().monitored_by(task.pid());
        vm.spawn_in(spawn, Machine::new(&child)).expect("a task").join().await;
        assert_eq!(task.join().await.value, "error: on purpose".into());
    }

    async fn quiescence_is_when_all_wait(vm: Vm) {
        let waits = program([Code::Hear("go", None), Code::Return]);
        let tasks: Vec<_> = (0..10).map(|_| vm.spawn(Machine::new(&waits)).expect("a task")).collect();
        vm.quiescent().await;
        assert_eq!(vm.snapshot().parked_on(ReasonKind::Receive), 10);
        assert_eq!(tasks[0].waits_for(), [ReasonKind::Receive]);
        let host = windlass_actor::Host::current().expect("a host");
        for task in &tasks {
            host.send(task.pid(), Message::new("go", Payload::Nil)).expect("sent");
        }
        for task in &tasks {
            task.join().await;
        }
        vm.quiescent().await;
        assert_eq!(vm.snapshot().ready_or_running, 0);
    }
}

/// A guest that never ends by itself, alone on its VM: no guest waits for its slot.
fn spinner() -> Machine {
    Machine::new(&program([Code::Jump(0)]))
}

#[test]
fn a_lonely_spinner_can_be_killed() {
    for placement in BOTH {
        real(2, || async move {
            let vm = vm(placement).build().expect("a VM");
            let task = vm.spawn(spinner()).expect("a task");
            while vm.snapshot().active_vm_tasks == 0 {
                windlass_runtime::task::yield_now().await;
            }
            task.kill();
            assert_eq!(task.join().await.reason, ExitReason::Killed);
            vm.quiescent().await;
            while vm.snapshot().active_vm_tasks != 0 {
                windlass_runtime::task::yield_now().await;
            }
        });
    }
}

#[test]
fn a_lonely_spinner_uses_up_its_time() {
    for placement in BOTH {
        real(2, || async move {
            let limits = windlass_vm::Limits::NONE.cpu(30 * MS);
            let vm = vm(placement).limits(limits).build().expect("a VM");
            let exit = vm.spawn(spinner()).expect("a task").join().await;
            let reason = exit.reason.to_string();
            assert!(reason.contains("of processor time"), "{reason}");
        });
    }
}

#[test]
fn a_guest_on_the_pool_runs_where_its_process_does() {
    real(2, || async {
        let vm = vm(Placement::Pool).build().expect("a VM");
        let apart = Dispatcher::builder(1)
            .name("apart")
            .build()
            .expect("a pool");
        let there = apart.clone();
        let looks = Code::Native(std::sync::Arc::new(move |stack: &mut Vec<Payload>| {
            stack.push(there.is_current().into());
        }));
        let code = program([Code::Sleep(MS), looks, Code::Return]);
        let spawn = vm.host().process().on(&apart);
        let task = vm.spawn_in(spawn, Machine::new(&code)).expect("a task");
        assert_eq!(task.join().await.value, true.into());
        // It is preempted there, too.
        let spins = program([Code::Jump(0)]);
        let spawn = || vm.host().process().on(&apart);
        let spins = vm.spawn_in(spawn(), Machine::new(&spins)).expect("a task");
        let late = vm.spawn_in(spawn(), Machine::new(&program([Code::Return])));
        assert!(late.expect("a task").join().await.reason.is_normal());
        spins.kill();
        spins.join().await;
    });
}

#[test]
fn guests_are_observed_with_what_they_wait_for() {
    for placement in BOTH {
        real(2, || async move {
            let vm = vm(placement).build().expect("a VM");
            let hears = program([Code::Hear("*", None), Code::Return]);
            let child = hears.clone();
            let parent = program([Code::Spawn(child, 0), Code::Await(0), Code::Return]);
            let task = vm.spawn(Machine::new(&parent)).expect("a task");
            let runtime = windlass_runtime::Handle::current();
            let guests = || {
                let mut guests = Vec::new();
                let next = runtime.entities("guests", &Query::first(10), |it| guests.push(it));
                assert_eq!(next, None);
                guests
            };
            let parked = |guests: &[Entity]| guests.iter().all(|it| it.state == "parked");
            while guests().len() < 2 || !parked(&guests()) {
                windlass_runtime::task::yield_now().await;
            }
            let found = guests();
            let waits: Vec<_> = found.iter().map(|it| it.waits_for.as_deref()).collect();
            assert_eq!(waits, [Some("await_task"), Some("receive")]);
            let listed = found.iter().map(|it| it.to_string());
            assert!(
                listed.clone().all(|line| line.starts_with("guest {")),
                "{found:?}"
            );
            assert_eq!(found[0].id, task.pid().to_string());
            assert_eq!(found[1].parent.as_ref(), Some(&found[0].id));
            task.cancel("enough");
            task.join().await;
            while !guests().is_empty() {
                let host = vm.host();
                let child: Pid = found[1].id.parse().expect("a PID");
                host.cancel(child, "enough");
                windlass_runtime::task::yield_now().await;
            }
            let snapshot = runtime.snapshot();
            let vm_source = snapshot.sources("guests").next().expect("a VM");
            assert!(vm_source.sample("steps").is_some_and(|steps| steps >= 2.0));
            drop(vm);
        });
    }
}
