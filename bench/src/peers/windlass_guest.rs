//! Windlass's guest VMs: what a guest costs that does nothing, on both placements.

use std::time::Duration;

use windlass::actor::Pattern;
use windlass::value::Payload;
use windlass::vm::{Budget, Channel, Guest, Placement, Reason, Resume, Step, Task, Vm};

use super::AsyncPeer;
use super::windlass::Windlass;
use crate::sample::{Sample, time};

/// Guests that wait for something that never comes, for the second half of the spawns.
const PARKED: usize = 100_000;

/// Ends at once.
struct Nothing;

impl Guest for Nothing {
    fn step(&mut self, _: &Budget<'_>, _: Resume) -> Step {
        Step::Done(Payload::Nil)
    }
}

/// Spawns and awaits, one pair after another.
struct Pairs(u64);

impl Guest for Pairs {
    fn step(&mut self, budget: &Budget<'_>, _: Resume) -> Step {
        if self.0 == 0 {
            return Step::Done(Payload::Nil);
        }
        self.0 -= 1;
        let task = budget.spawn(Nothing).expect("there is room");
        Step::Suspend(Reason::AwaitTask(task))
    }
}

/// Waits for a message that nobody sends.
struct Waits;

impl Guest for Waits {
    fn step(&mut self, _: &Budget<'_>, resume: Resume) -> Step {
        match resume {
            Resume::Ended(_) => Step::Done(Payload::Nil),
            _ => Step::Suspend(Reason::Receive {
                pattern: Pattern::exact("never"),
                timeout: None,
            }),
        }
    }
}

/// Sends and receives in turn, over two channels without room.
struct Player {
    rounds: u64,
    sends: bool,
    to: Channel,
    from: Channel,
}

impl Guest for Player {
    fn step(&mut self, _: &Budget<'_>, _: Resume) -> Step {
        if self.rounds == 0 {
            return Step::Done(Payload::Nil);
        }
        let sends = self.sends;
        self.sends = !sends;
        if sends {
            return Step::Suspend(Reason::ChannelSend(self.to.clone(), Payload::Int(1)));
        }
        self.rounds -= 1;
        Step::Suspend(Reason::ChannelReceive(self.from.clone()))
    }
}

fn vm(placement: Placement, workers: usize) -> Vm {
    let builder = Vm::builder().placement(placement).workers(workers);
    Windlass::block_on(async { builder.build().expect("it starts") })
}

fn spawn(vm: &Vm, guest: impl Guest) -> Task {
    vm.spawn(guest).expect("there is room")
}

/// Spawn and await of a guest that does nothing, on the reactor; beside it the pool, and both among
/// parked guests.
pub fn spawn_await(pairs: u64, workers: usize) -> Sample {
    let mut samples = Vec::new();
    for placement in [Placement::Reactor, Placement::Pool] {
        let vm = vm(placement, workers);
        let run = || pass(&vm, pairs);
        let alone = Sample::per_operation(pairs, run);
        let parked: Vec<Task> = (0..PARKED).map(|_| spawn(&vm, Waits)).collect();
        Windlass::block_on(async { vm.quiescent().await });
        let beside = Sample::per_operation(pairs, run);
        for task in &parked {
            task.kill();
        }
        samples.push((alone, beside));
    }
    let [(reactor, reactor_beside), (pool, pool_beside)] = &samples[..] else {
        unreachable!("there are two placements");
    };
    (reactor.clone())
        .with("pool", pool.value)
        .with("reactor among 100k", reactor_beside.min / reactor.min)
        .with("pool among 100k", pool_beside.min / pool.min)
}

fn pass(vm: &Vm, pairs: u64) -> Duration {
    time(|| {
        let task = spawn(vm, Pairs(pairs));
        Windlass::block_on(async move { task.join().await });
    })
}

/// A value there and another back between two guests, on the reactor; beside it the pool.
pub fn ping_pong(rounds: u64, workers: usize) -> Sample {
    let on = |placement| {
        let vm = vm(placement, workers);
        Sample::per_operation(rounds, || {
            let (there, back) = (vm.channel(0), vm.channel(0));
            // The second waits for one more, and is ended there.
            let player = |sends: bool, to: &Channel, from: &Channel| Player {
                rounds: rounds + u64::from(!sends),
                sends,
                to: to.clone(),
                from: from.clone(),
            };
            let (first, second) = (player(true, &there, &back), player(false, &back, &there));
            time(|| {
                let tasks = [spawn(&vm, first), spawn(&vm, second)];
                let [first, second] = tasks;
                Windlass::block_on(async move { first.join().await });
                second.kill();
            })
        })
    };
    let pool = on(Placement::Pool);
    on(Placement::Reactor).with("pool", pool.value)
}
