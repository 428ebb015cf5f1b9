//! V1 to V8.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass_actor::{ExitReason, Host, command};
use windlass_runtime::time::sleep;
use windlass_value::Payload;
use windlass_vm::{Exception, Limits, Placement, Reason, ReasonKind, SpawnOptions, Task, Vm};

use crate::support::{BOTH, LONG, everywhere, real, simulated, vm};
use crate::tiny::{Code, Machine, Program, program};

const MS: Duration = Duration::from_millis(1);

/// Spawns and awaits so many, one after the other.
fn pairs(count: i64) -> Program {
    let nothing = program([Code::Return]);
    program([
        Code::Push(count.into()),
        Code::Store(1),
        Code::Spawn(nothing, 0),
        Code::Await(0),
        Code::Pop,
        Code::Loop(1, 2),
    ])
}

async fn time_of(vm: &Vm, program: &Program) -> Duration {
    let began = Instant::now();
    let task = vm.spawn(Machine::new(program)).expect("a task");
    assert!(task.join().await.reason.is_normal());
    began.elapsed()
}

// ---- V1 ----

fn parked_tasks_cost_nothing(placement: Placement) {
    real(2, || async {
        let vm = vm(placement).build().expect("a VM");
        let pairs = pairs(5_000);
        time_of(&vm, &pairs).await;
        let mut alone = Duration::MAX;
        for _ in 0..5 {
            alone = alone.min(time_of(&vm, &pairs).await);
        }
        let waits = program([Code::Hear("never", None)]);
        let parked: Vec<Task> = (0..100_000)
            .map(|_| vm.spawn(Machine::new(&waits)).expect("a task"))
            .collect();
        vm.quiescent().await;
        assert_eq!(vm.snapshot().parked_on(ReasonKind::Receive), parked.len());
        let mut beside = Duration::MAX;
        for _ in 0..5 {
            beside = beside.min(time_of(&vm, &pairs).await);
        }
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        // 1.5 is what the benchmark `guest_spawn_await` holds, alone on its machine. Whatever looks
        // at parked guests at all takes twenty times as long here.
        assert!(ratio < 5.0, "{alone:?} alone, {beside:?} beside 100,000");
    });
}

#[test]
fn v1_parked_tasks_cost_nothing_on_the_reactor_in_real_time() {
    parked_tasks_cost_nothing(Placement::Reactor);
}

#[test]
fn v1_parked_tasks_cost_nothing_on_the_pool_in_real_time() {
    parked_tasks_cost_nothing(Placement::Pool);
}

// ---- V2 ----

/// Turns for ever, and counts.
fn spinner(turns: &Arc<AtomicU64>) -> Program {
    let turns = turns.clone();
    let count = Code::Native(Arc::new(move |_| {
        turns.fetch_add(1, Ordering::Relaxed);
    }));
    program([count, Code::Jump(0)])
}

/// What each of the spinners gets meanwhile, as a part of what they get on average.
async fn shares_of(counts: &[Arc<AtomicU64>], time: Duration) -> Vec<f64> {
    let turns = || -> Vec<u64> { counts.iter().map(|c| c.load(Ordering::Relaxed)).collect() };
    let before = turns();
    sleep(time).await;
    let more = turns().into_iter().zip(before);
    let more: Vec<f64> = more
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let mean = more.iter().sum::<f64>() / more.len() as f64;
    more.iter().map(|turns| turns / mean).collect()
}

fn spinners_make_room(placement: Placement) {
    real(2, || async {
        let vm = vm(placement).build().expect("a VM");
        let counts: Vec<Arc<AtomicU64>> = (0..4).map(|_| Arc::default()).collect();
        let spinners: Vec<Task> = counts
            .iter()
            .map(|count| vm.spawn(Machine::new(&spinner(count))).expect("a task"))
            .collect();
        sleep(100 * MS).await;
        // Four spinners on two workers: a new guest waits for two slices at most.
        let mut worst = Duration::ZERO;
        for _ in 0..5 {
            worst = worst.max(time_of(&vm, &program([Code::Return])).await);
        }
        // Ten times (slice + 5 ms), for those before it, too.
        assert!(worst < 150 * MS, "{worst:?}");
        let long = program([Code::Push(300_000.into()), Code::Store(0), Code::Loop(0, 2)]);
        time_of(&vm, &long).await;
        // A core that the machine takes away for a while takes a share with it: the middle of three
        // times counts.
        let mut shares: Vec<Vec<f64>> = Vec::new();
        for _ in 0..3 {
            shares.push(shares_of(&counts, 700 * MS).await);
        }
        for spinner in 0..counts.len() {
            let mut of_mean: Vec<f64> = shares.iter().map(|shares| shares[spinner]).collect();
            of_mean.sort_by(f64::total_cmp);
            // A fifth; and as much again for who else uses the machine.
            assert!((0.6..1.4).contains(&of_mean[1]), "{shares:?}");
        }
        assert!(vm.snapshot().preemptions_taken > 0, "{vm:?}");
        for spinner in &spinners {
            spinner.kill();
            assert_eq!(spinner.join().await.reason, ExitReason::Killed);
        }
    });
}

#[test]
fn v2_spinners_make_room_on_the_reactor_in_real_time() {
    spinners_make_room(Placement::Reactor);
}

#[test]
fn v2_spinners_make_room_on_the_pool_in_real_time() {
    spinners_make_room(Placement::Pool);
}

everywhere! {
    async fn v2_a_guest_that_is_preempted_very_often_lives(vm: Vm) {
        // In the original the thousandth preemption kills.
        let code = program([Code::Push(3_000.into()), Code::Store(0), Code::Yield, Code::Loop(0, 2), Code::Push(1.into()), Code::Return]);
        let task = vm.spawn(Machine::new(&code)).expect("a task");
        assert_eq!(task.join().await.value, 1.into());
    }
}

// ---- V3 ----

everywhere! {
    async fn v3_parked_receivers_get_values_in_their_order(vm: Vm) {
        let channel = vm.channel(0);
        let got: Arc<Mutex<Vec<(i64, i64)>>> = Arc::default();
        let mut receivers = Vec::new();
        for number in 0..20_i64 {
            let got = got.clone();
            let note = Code::Native(Arc::new(move |stack: &mut Vec<Payload>| {
                let value = stack.pop().and_then(|value| value.as_i64()).unwrap_or(-1);
                got.lock().unwrap().push((number, value));
            }));
            let receive = program([Code::Receive(channel.clone()), note]);
            receivers.push(vm.spawn(Machine::new(&receive)).expect("a task"));
            vm.quiescent().await;
        }
        let mut send = Vec::new();
        for value in 0..20 {
            send.extend([Code::Push(value.into()), Code::Send(channel.clone())]);
        }
        time_of(&vm, &program(send)).await;
        for receiver in &receivers {
            receiver.join().await;
        }
        let mut got = got.lock().unwrap().clone();
        got.sort();
        assert_eq!(got, (0..20).map(|n| (n, n)).collect::<Vec<_>>());
    }

    async fn v3_close_wakes_all_who_wait(vm: Vm) {
        let (empty, full) = (vm.channel(0), vm.channel(0));
        let receive = program([Code::Receive(empty.clone())]);
        let send = program([Code::Push(1.into()), Code::Send(full.clone())]);
        let mut tasks = Vec::new();
        for _ in 0..10 {
            tasks.push(vm.spawn(Machine::new(&receive)).expect("a task"));
            tasks.push(vm.spawn(Machine::new(&send)).expect("a task"));
        }
        vm.quiescent().await;
        // No guest receives from the one or sends to the other.
        time_of(&vm, &program([Code::Close(empty), Code::Close(full)])).await;
        for task in &tasks {
            let reason = task.join().await.reason;
            assert_eq!(reason, ExitReason::Error("the channel is closed".into()));
        }
    }
}

/// Many senders, many receivers: what was sent is received, each once.
fn exactly_once(placement: Placement, messages: i64) {
    real(2, || async {
        let vm = vm(placement).build().expect("a VM");
        let sum = Arc::new(AtomicU64::new(0));
        let count = Arc::new(AtomicUsize::new(0));
        let channel = vm.channel(16);
        let (sums, counts) = (sum.clone(), count.clone());
        let note = Code::Native(Arc::new(move |stack: &mut Vec<Payload>| {
            let value = stack.pop().and_then(|value| value.as_i64()).unwrap_or(0);
            sums.fetch_add(value as u64, Ordering::Relaxed);
            counts.fetch_add(1, Ordering::Relaxed);
        }));
        let receive = program([
            Code::Try(4),
            Code::Receive(channel.clone()),
            note,
            Code::Jump(1),
        ]);
        let each = messages / 8;
        let send = program([
            Code::Push(each.into()),
            Code::Store(0),
            Code::Load(0),
            Code::Send(channel.clone()),
            Code::Loop(0, 2),
        ]);
        let spawn = |program| vm.spawn(Machine::new(program)).expect("a task");
        let receivers: Vec<Task> = (0..8).map(|_| spawn(&receive)).collect();
        let senders: Vec<Task> = (0..8).map(|_| spawn(&send)).collect();
        for sender in &senders {
            assert!(sender.join().await.reason.is_normal());
        }
        time_of(&vm, &program([Code::Close(channel)])).await;
        for receiver in &receivers {
            receiver.join().await;
        }
        assert_eq!(count.load(Ordering::Relaxed) as i64, each * 8);
        assert_eq!(
            sum.load(Ordering::Relaxed) as i64,
            8 * each * (each + 1) / 2
        );
    });
}

/// What a stress test does at least; a release build does it all.
const STRESS: i64 = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};

#[test]
fn v3_a_million_messages_arrive_once_on_the_reactor() {
    exactly_once(Placement::Reactor, STRESS);
}

#[test]
fn v3_a_million_messages_arrive_once_on_the_pool() {
    exactly_once(Placement::Pool, STRESS);
}

// ---- V4 ----

/// A child that ends somehow, sometime, and an await that comes sometime; and sometimes a cancel.
fn races(placement: Placement, races: i64) {
    real(2, || async {
        let vm = vm(placement).on_uncaught(drop).build().expect("a VM");
        let told = Arc::new(AtomicUsize::new(0));
        let yields = |count: usize| std::iter::repeat_n(Code::Yield, count);
        let mut parents = Vec::new();
        for kind in 0..16_usize {
            let (before, late, ends, cancels) = (kind % 2, kind / 2 % 2, kind / 4 % 2, kind / 8);
            let end = match ends {
                0 => Code::Push(1.into()),
                _ => Code::Throw("on purpose"),
            };
            let child = program(yields(before).chain([end, Code::Return]));
            let told = told.clone();
            let tell = Code::Native(Arc::new(move |stack: &mut Vec<Payload>| {
                stack.clear();
                told.fetch_add(1, Ordering::Relaxed);
            }));
            let mut code = vec![Code::Push((races / 16).into()), Code::Store(1)];
            let top = code.len();
            code.push(Code::Spawn(child, 0));
            code.extend(yields(late));
            if cancels == 1 {
                code.push(Code::Cancel(0));
            }
            let handler = code.len() + 3;
            code.extend([Code::Try(handler), Code::Await(0), Code::EndTry]);
            code.extend([tell, Code::Loop(1, top)]);
            parents.push(vm.spawn(Machine::new(&program(code))).expect("a task"));
        }
        for parent in &parents {
            assert!(parent.join().await.reason.is_normal());
        }
        assert_eq!(told.load(Ordering::Relaxed) as i64, races / 16 * 16);
        assert_eq!(vm.snapshot().ready_or_running, 0);
    });
}

#[test]
fn v4_await_races_never_hang_on_the_reactor() {
    races(Placement::Reactor, STRESS);
}

#[test]
fn v4_await_races_never_hang_on_the_pool() {
    races(Placement::Pool, STRESS);
}

// ---- V5 ----

/// Waits on every kind of reason, each by a guest that holds a mutex and a permit.
fn waits_on_everything(vm: &Vm) -> Vec<(ReasonKind, Code)> {
    let never = program([Code::Hear("never", None)]);
    let taken = vm.mutex();
    let none = vm.semaphore(1);
    let holder = program([
        Code::Lock(taken.clone()),
        Code::Acquire(none.clone(), 1),
        Code::Hear("never", None),
    ]);
    let holder = vm.spawn(Machine::new(&holder)).expect("a task");
    // It stays until its process is cancelled.
    drop(holder);
    vec![
        (ReasonKind::AwaitTask, Code::Spawn(never, 0)),
        (ReasonKind::Sleep, Code::Sleep(1000 * LONG)),
        (ReasonKind::MutexLock, Code::Lock(taken)),
        (ReasonKind::SemaphoreAcquire, Code::Acquire(none, 1)),
        (ReasonKind::ChannelSend, Code::Send(vm.channel(0))),
        (ReasonKind::ChannelReceive, Code::Receive(vm.channel(0))),
        (ReasonKind::Receive, Code::Hear("never", None)),
        (ReasonKind::Exit, Code::Exit),
        (
            ReasonKind::Custom,
            Code::Command(|| Reason::command(command::Sleep(1000 * LONG))),
        ),
        (
            ReasonKind::IoWait,
            Code::Block(|| {
                std::thread::sleep(50 * MS);
                Ok(Payload::Nil)
            }),
        ),
    ]
}

everywhere! {
    async fn v5_cancel_reaches_a_guest_that_waits_for_anything(vm: Vm) {
        let mutex = vm.mutex();
        let semaphore = vm.semaphore(3);
        let simulated = windlass_runtime::Handle::current().is_simulated();
        for (kind, wait) in waits_on_everything(&vm) {
            if kind == ReasonKind::IoWait && simulated {
                // There it takes no time.
                continue;
            }
            vm.quiescent().await;
            let mut code = vec![Code::Lock(mutex.clone()), Code::Acquire(semaphore.clone(), 2), wait];
            if kind == ReasonKind::AwaitTask {
                code.push(Code::Await(0));
            }
            let waits = vm.spawn(Machine::new(&program(code))).expect("a task");
            vm.quiescent().await;
            assert_eq!(waits.waits_for(), [kind]);
            assert!(mutex.is_locked());
            assert_eq!(semaphore.free(), 1);
            let began = Instant::now();
            let now = windlass_runtime::time::Instant::now();
            waits.cancel("enough");
            assert_eq!(waits.join().await.reason, ExitReason::Cancelled("enough".into()), "{kind:?}");
            // In the simulator not at all; in real time ten times 5 ms.
            assert!(now.elapsed() < 5 * MS || began.elapsed() < 50 * MS, "{kind:?}");
            assert!(!mutex.is_locked(), "{kind:?}");
            assert_eq!(semaphore.free(), 3, "{kind:?}");
        }
    }

    async fn v5_who_awaits_a_cancelled_task_is_told(vm: Vm) {
        let child = program([Code::Hear("never", None)]);
        let parent = program([
            Code::Spawn(child, 0), Code::Cancel(0), Code::Try(5), Code::Await(0), Code::Return,
            Code::Return,
        ]);
        let exit = vm.spawn(Machine::new(&parent)).expect("a task").join().await;
        let text = exit.value.as_str().unwrap_or_default().to_owned();
        assert!(text.contains("cancelled: the program says so"), "{text}");
    }

    async fn v5_a_value_for_a_cancelled_receiver_goes_to_the_next(vm: Vm) {
        let channel = vm.channel(0);
        let receive = program([Code::Receive(channel.clone()), Code::Return]);
        let first = vm.spawn(Machine::new(&receive)).expect("a task");
        vm.quiescent().await;
        let second = vm.spawn(Machine::new(&receive)).expect("a task");
        vm.quiescent().await;
        first.cancel("enough");
        first.join().await;
        time_of(&vm, &program([Code::Push(7.into()), Code::Send(channel)])).await;
        assert_eq!(second.join().await.value, 7.into());
    }
}

// ---- V6 ----

fn reports(placement: Placement) -> (Vm, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let telling = told.clone();
    let vm = vm(placement)
        .on_uncaught(move |uncaught| telling.lock().unwrap().push(uncaught.reason.to_string()))
        .build()
        .expect("a VM");
    (vm, told)
}

#[test]
fn v6_a_failure_that_nobody_awaits_is_reported_once() {
    for placement in BOTH {
        let test = || async {
            let (vm, told) = reports(placement);
            let throws = program([Code::Throw("on purpose")]);
            // No guest ever has it.
            drop(vm.spawn(Machine::new(&throws)).expect("a task"));
            vm.quiescent().await;
            // A guest has it, and does not want it.
            let kept = vm.spawn(Machine::new(&throws)).expect("a task");
            vm.quiescent().await;
            let other = kept.clone();
            drop(kept);
            assert_eq!(told.lock().unwrap().len(), 1);
            drop(other);
            assert_eq!(*told.lock().unwrap(), ["error: on purpose"; 2]);
            // A task that ends well, or was cancelled, is not reported.
            let waits = vm
                .spawn(Machine::new(&program([Code::Hear("never", None)])))
                .expect("a task");
            waits.cancel("enough");
            drop(waits);
            drop(vm.spawn(Machine::new(&program([Code::Return]))));
            vm.quiescent().await;
            assert_eq!(told.lock().unwrap().len(), 2);
        };
        real(2, test);
        simulated(10, test);
    }
}

#[test]
fn v6_a_failure_that_is_awaited_later_is_never_reported() {
    for placement in BOTH {
        let test = || async {
            let (vm, told) = reports(placement);
            let throws = program([Code::Throw("on purpose")]);
            let parent = program([
                Code::Spawn(throws.clone(), 0),
                Code::Sleep(20 * MS),
                Code::Try(4),
                Code::Await(0),
                Code::Return,
            ]);
            time_of(&vm, &parent).await;
            let joined = vm.spawn(Machine::new(&throws)).expect("a task");
            vm.quiescent().await;
            joined.join().await;
            drop(joined);
            assert_eq!(told.lock().unwrap().len(), 0);
        };
        real(2, test);
        simulated(10, test);
    }
}

// ---- V7 ----

fn blocking_calls_delay_nobody(placement: Placement) {
    real(2, || async {
        let vm = vm(placement).build().expect("a VM");
        let blocks = program([Code::Block(|| {
            std::thread::sleep(100 * MS);
            Ok(Payload::Nil)
        })]);
        let blocked: Vec<Task> = (0..1000)
            .map(|_| vm.spawn(Machine::new(&blocks)).expect("a task"))
            .collect();
        let naps = program([Code::Sleep(MS)]);
        let mut worst = Duration::ZERO;
        let began = Instant::now();
        // What the machine itself takes to wake a thread at that time, whatever else uses it.
        let machine = std::thread::spawn(move || {
            let mut worst = Duration::ZERO;
            while began.elapsed() < 150 * MS {
                let asleep = Instant::now();
                std::thread::sleep(MS);
                worst = worst.max(asleep.elapsed());
            }
            worst
        });
        while began.elapsed() < 150 * MS {
            worst = worst.max(time_of(&vm, &naps).await);
        }
        let machine = machine.join().expect("no panic");
        // Ten times 5 ms; a nap takes several wake-ups, one after the other.
        let bound = 50 * MS + 4 * machine;
        assert!(worst < bound, "{worst:?}, the machine {machine:?}");
        for task in &blocked {
            assert!(task.join().await.reason.is_normal());
        }
    });
}

#[test]
fn v7_blocking_calls_delay_nobody_on_the_reactor_in_real_time() {
    blocking_calls_delay_nobody(Placement::Reactor);
}

#[test]
fn v7_blocking_calls_delay_nobody_on_the_pool_in_real_time() {
    blocking_calls_delay_nobody(Placement::Pool);
}

// ---- limits ----

everywhere! {
    async fn a_guest_has_no_more_tasks_than_it_may(vm: Vm) {
        let child = program([Code::Hear("never", None)]);
        let parent = program([
            Code::Spawn(child.clone(), 0), Code::Spawn(child.clone(), 1),
            Code::Try(5), Code::Spawn(child, 2), Code::Return,
            Code::Store(7), Code::Cancel(0), Code::Cancel(1), Code::Load(7), Code::Return,
        ]);
        let options = SpawnOptions::new().limits(Limits::NONE.tasks(2));
        let task = vm.spawn_with(Machine::new(&parent), options).expect("a task");
        let text = task.join().await.value;
        assert!(text.as_str().unwrap_or_default().contains("has 2 tasks already"), "{text:?}");
    }
}

#[test]
fn a_guest_that_has_used_up_its_time_ends() {
    for placement in BOTH {
        real(2, || async {
            let vm = vm(placement).build().expect("a VM");
            let turns = Arc::default();
            let options = SpawnOptions::new().limits(Limits::NONE.cpu(30 * MS));
            let spins = vm
                .spawn_with(Machine::new(&spinner(&turns)), options)
                .expect("a task");
            // A guest that wants its slot, on the reactor.
            let others: Vec<Task> = (0..2)
                .map(|_| vm.spawn(Machine::new(&spinner(&turns))).expect("a task"))
                .collect();
            let reason = spins.join().await.reason.to_string();
            assert!(reason.contains("of processor time"), "{reason}");
            assert!(spins.cpu_time() > 30 * MS);
            for other in &others {
                other.kill();
            }
        });
    }
}

// ---- pause ----

#[test]
fn pausing_stops_spinners_and_does_not_wait_for_the_blocked() {
    for placement in BOTH {
        real(2, || async {
            let vm = vm(placement).build().expect("a VM");
            let turns: Arc<AtomicU64> = Arc::default();
            let spins = vm.spawn(Machine::new(&spinner(&turns))).expect("a task");
            let parked = program([Code::Hear("never", None)]);
            let parked = vm.spawn(Machine::new(&parked)).expect("a task");
            let blocks = program([Code::Block(|| {
                std::thread::sleep(300 * MS);
                Ok(1.into())
            })]);
            let blocked = vm.spawn(Machine::new(&blocks)).expect("a task");
            sleep(20 * MS).await;
            let began = Instant::now();
            let paused = vm.pause_all().await;
            assert!(began.elapsed() < 200 * MS, "{:?}", began.elapsed());
            let before = turns.load(Ordering::Relaxed);
            assert_eq!(vm.snapshot().active_vm_tasks, 0);
            sleep(50 * MS).await;
            assert_eq!(turns.load(Ordering::Relaxed), before);
            drop(paused);
            assert!(blocked.join().await.reason.is_normal());
            sleep(50 * MS).await;
            assert!(turns.load(Ordering::Relaxed) > before);
            for task in [spins, parked] {
                task.kill();
                task.join().await;
            }
        });
    }
}

#[test]
fn reasons_are_values_of_the_host_too() {
    // What a function of the host gives to guest code.
    let result = windlass_vm::NativeResult::Suspend(Reason::Sleep(MS));
    assert!(format!("{result:?}").contains("sleep"));
    let error = windlass_vm::NativeResult::Error(Exception::Relock);
    assert!(format!("{error:?}").contains("Relock"));
    assert!(Host::current().is_err());
}
