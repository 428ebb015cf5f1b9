//! Guests that do not come back: they are named, and the others go on.

use std::sync::Arc;
use std::time::Duration;

use windlass_actor::Spawn;
use windlass_core::sync::{Condvar, Mutex};
use windlass_runtime::task::yield_now;
use windlass_vm::{Budget, Guest, Placement, Resume, SpawnError, Step, Task, Vm};

use crate::support::{BOTH, real};

/// Keeps threads, until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut open = self.open.lock();
        while !*open {
            open = self.opened.wait(open);
        }
    }

    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }
}

/// Is inside a function of the host that does not return before the gate is open.
struct Hangs(Arc<Gate>, Arc<str>);

impl Guest for Hangs {
    fn step(&mut self, _: &Budget<'_>, _: Resume) -> Step {
        self.0.pass();
        Step::Done("returned".into())
    }

    fn name(&self) -> Option<Arc<str>> {
        Some(self.1.clone())
    }
}

/// Answers at once.
struct Answers;

impl Guest for Answers {
    fn step(&mut self, _: &Budget<'_>, _: Resume) -> Step {
        Step::Done(42.into())
    }
}

fn vm(placement: Placement, most: usize) -> Vm {
    Vm::builder()
        .placement(placement)
        .workers(2)
        .max_stuck(most)
        .patience(Duration::from_millis(20))
        .build()
        .expect("a VM")
}

fn hang(vm: &Vm, gate: &Arc<Gate>, name: &str) -> Task {
    let hangs = Hangs(gate.clone(), name.into());
    vm.spawn(hangs).expect("a task")
}

async fn until_stuck(vm: &Vm, guests: usize) {
    while vm.snapshot().stuck.len() != guests {
        yield_now().await;
    }
}

#[test]
fn the_others_go_on_beside_guests_that_do_not_come_back() {
    for placement in BOTH {
        real(2, || async move {
            let (vm, gate) = (vm(placement, 4), Arc::<Gate>::default());
            let stuck: Vec<Task> = ["a", "b", "c"]
                .map(|name| hang(&vm, &gate, name))
                .into_iter()
                .collect();
            for _ in 0..100 {
                let task = vm.spawn(Answers).expect("a task");
                assert_eq!(task.join().await.value, 42.into());
            }
            until_stuck(&vm, 3).await;
            let mut names = vm.snapshot().stuck;
            names.sort();
            let shown = |task: &Task, name: &str| format!("{name} {}", task.pid());
            let expected = ["a", "b", "c"].iter().zip(&stuck);
            let expected: Vec<String> = expected.map(|(name, task)| shown(task, name)).collect();
            assert_eq!(names, expected);
            gate.open();
            for task in stuck {
                assert_eq!(task.join().await.value, "returned".into());
            }
            // Their threads work again, and no guest is named any more.
            for _ in 0..100 {
                let task = vm.spawn(Answers).expect("a task");
                assert_eq!(task.join().await.value, 42.into());
            }
            until_stuck(&vm, 0).await;
        });
    }
}

#[test]
fn new_guests_are_refused_by_name_while_too_many_are_stuck() {
    for placement in BOTH {
        real(2, || async move {
            let (vm, gate) = (vm(placement, 2), Arc::<Gate>::default());
            let (one, two) = (hang(&vm, &gate, "one"), hang(&vm, &gate, "two"));
            // A guest waits for a slot until both are given up.
            let waits = vm.spawn(Answers).expect("a task");
            assert_eq!(waits.join().await.value, 42.into());
            until_stuck(&vm, 2).await;
            let Err(refused) = vm.spawn(Answers) else {
                panic!("it was started");
            };
            let SpawnError::TooManyStuck { stuck } = &refused else {
                panic!("{refused}");
            };
            assert_eq!(stuck.len(), 2);
            let said = refused.to_string();
            assert!(said.contains("one") && said.contains("two"), "{said}");
            let host = vm.host();
            let spawn: Spawn = host.process();
            let refused = vm.spawn_in(spawn, Answers).expect_err("it is refused");
            assert!(refused.to_string().contains("one"), "{refused}");
            gate.open();
            one.join().await;
            two.join().await;
            let task = vm.spawn(Answers).expect("nobody is stuck any more");
            assert_eq!(task.join().await.value, 42.into());
        });
    }
}

#[test]
fn a_guest_that_does_not_come_back_is_named_though_no_other_waits() {
    for placement in BOTH {
        real(2, || async move {
            let (vm, gate) = (vm(placement, 4), Arc::<Gate>::default());
            let stuck = hang(&vm, &gate, "alone");
            until_stuck(&vm, 1).await;
            let expected = format!("alone {}", stuck.pid());
            assert_eq!(vm.snapshot().stuck, [expected]);
            // Its thread was replaced: as many others run at once as before.
            let (one, two) = (Arc::<Gate>::default(), Arc::<Gate>::default());
            let others = [hang(&vm, &one, "one"), hang(&vm, &two, "two")];
            until_stuck(&vm, 3).await;
            gate.open();
            one.open();
            two.open();
            assert_eq!(stuck.join().await.value, "returned".into());
            for task in others {
                assert_eq!(task.join().await.value, "returned".into());
            }
            until_stuck(&vm, 0).await;
        });
    }
}

/// Runs until it was asked to make room this often.
struct Computes(u32);

impl Guest for Computes {
    fn step(&mut self, budget: &Budget<'_>, _: Resume) -> Step {
        while !budget.is_over() {
            std::hint::spin_loop();
        }
        self.0 -= 1;
        match self.0 {
            0 => Step::Done("computed".into()),
            _ => Step::Yield,
        }
    }
}

#[test]
fn a_guest_that_makes_room_when_it_is_asked_is_not_named() {
    for placement in BOTH {
        real(2, || async move {
            let vm = Vm::builder()
                .placement(placement)
                .workers(2)
                // The guest has half of it to come to the end of its step.
                .patience(Duration::from_secs(2))
                .build()
                .expect("a VM");
            let task = vm.spawn(Computes(2)).expect("a task");
            assert_eq!(task.join().await.value, "computed".into());
            assert!(vm.snapshot().stuck.is_empty());
        });
    }
}
