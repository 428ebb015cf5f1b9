//! The promises P1 to P10. What can be exact is, in the simulator; the twin in real time allows ten
//! times as much.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use windlass_actor::command::{Completer, Sleep};
use windlass_actor::supervisor::{Backoff, ChildSpec, Strategy, Supervisor};
use windlass_actor::{
    ActorError, ActorEvent, Context, Event, ExitReason, Host, Message, ProcessHandle, SpawnError,
    Status, Upgrade,
};
use windlass_runtime::{Runtime, join_all, time};
use windlass_value::Payload;

use crate::support::{Log, Machine, deaf, idle, real, simulated};

/// P1: 100 processes sleep and are killed, 100 others start at once and must not get their
/// completions.
async fn completions_of_the_dead(host: Host) {
    let sleepers: Vec<_> = (0..100)
        .map(|_| {
            host.step(Machine::new(|_, events, out| {
                if events.next().is_none() {
                    out.request(1, Sleep(Duration::from_millis(50)));
                }
                Ok(Status::Blocked)
            }))
            .expect("a process")
        })
        .collect();
    time::sleep(Duration::from_millis(10)).await;
    sleepers.iter().for_each(|sleeper| sleeper.kill());
    for sleeper in &sleepers {
        assert_eq!(sleeper.join().await.reason, ExitReason::Killed);
    }
    let log = Log::default();
    let others: Vec<_> = (0..100)
        .map(|_| {
            host.step(crate::support::recorder(&log))
                .expect("a process")
        })
        .collect();
    time::sleep(Duration::from_millis(100)).await;
    assert!(log.all().is_empty(), "{:?}", log.all());
    assert!(others.iter().all(|other| other.is_alive()));
    others.iter().for_each(|other| other.kill());
}

#[test]
fn p1_a_completion_never_reaches_another_process() {
    simulated(completions_of_the_dead);
}

#[test]
fn p1_a_completion_never_reaches_another_process_in_real_time() {
    real(2, completions_of_the_dead);
}

/// P2: one process steps for long; peers that last ran on its worker are handled all the same.
#[test]
fn p2_peers_of_a_busy_worker_are_handled_in_real_time() {
    let runtime = Runtime::builder().workers(4).build().expect("a runtime");
    let host = Host::of(runtime.handle()).expect("a host");
    let wait = |what: &str, is_there: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_there() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    };
    let inside: Log<thread::ThreadId> = Log::default();
    let holds_its_worker = |until: &Arc<AtomicBool>| {
        let (inside, until) = (inside.clone(), until.clone());
        host.step(Machine::new(move |_, _, _| {
            inside.add(thread::current().id());
            while !until.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(100));
            }
            Ok(Status::Done(Payload::Nil))
        }))
        .expect("a process")
    };
    // Three workers are held, so everything else runs on the fourth.
    let (others, busy) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let held: Vec<_> = (0..3).map(|_| holds_its_worker(&others)).collect();
    wait("three are held", &|| inside.all().len() == 3);
    let ran_on: Log<thread::ThreadId> = Log::default();
    let peers: Vec<_> = (0..15)
        .map(|_| {
            let ran_on = ran_on.clone();
            host.spawn(move |mut ctx: Context<()>| async move {
                while ctx.recv().await.is_some() {
                    ran_on.add(thread::current().id());
                }
            })
            .expect("a process")
        })
        .collect();
    peers
        .iter()
        .for_each(|peer| peer.tell(()).expect("it lives"));
    wait("all have run", &|| ran_on.all().len() == 15);
    let long = holds_its_worker(&busy);
    wait("it is busy", &|| inside.all().len() == 4);
    assert!(
        ran_on.all().iter().all(|ran| *ran == inside.all()[3]),
        "on its worker"
    );
    others.store(true, Ordering::Relaxed);
    held.iter()
        .for_each(|held| drop(runtime.block_on(held.join())));
    let began = Instant::now();
    peers
        .iter()
        .for_each(|peer| peer.tell(()).expect("it lives"));
    wait("they are handled", &|| ran_on.all().len() == 30);
    let took = began.elapsed();
    busy.store(true, Ordering::Relaxed);
    runtime.block_on(long.join());
    assert!(took < Duration::from_millis(500), "{took:?}");
}

/// P3: one that always goes on does not keep others from their turn.
async fn beside_one_that_never_rests(host: Host) {
    let busy = host
        .step(Machine::new(|_, _, _| Ok(Status::Continue)))
        .expect("a process");
    time::sleep(Duration::from_millis(1)).await;
    let began = time::Instant::now();
    let other = host.step(Machine::new(|_, _, _| Ok(Status::Done(Payload::Nil))));
    other.expect("a process").join().await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    busy.kill();
    assert_eq!(busy.join().await.reason, ExitReason::Killed);
}

#[test]
fn p3_one_that_always_continues_does_not_starve_others_in_real_time() {
    real(1, beside_one_that_never_rests);
}

/// P4: every process cleans up for 50 ms.
async fn clean_up(host: Host, most: Duration) {
    let processes: Vec<_> = (0..100_i64)
        .map(|number| {
            host.spawn(move |mut ctx: Context<Message>| async move {
                ctx.recv().await;
                time::sleep(Duration::from_millis(50)).await;
                Payload::Int(number)
            })
            .expect("a process")
        })
        .collect();
    let step = |number: i64| {
        Machine::new(move |_, events, out| {
            Ok(match events.next() {
                Some(Event::Cancel(_)) => {
                    out.request(1, Sleep(Duration::from_millis(50)));
                    Status::Blocked
                }
                Some(Event::YieldComplete { .. }) => Status::Done(number.into()),
                _ => Status::Idle,
            })
        })
    };
    let steps = (100..200).map(|number| host.step(step(number)).expect("a process"));
    let steps: Vec<_> = steps.collect();
    time::sleep(Duration::from_millis(5)).await;
    let began = time::Instant::now();
    let report = host.shutdown(Duration::from_secs(3)).await;
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(50) && took <= most,
        "{took:?}"
    );
    assert!(report.stuck.is_empty());
    for (number, process) in processes.iter().chain(&steps).enumerate() {
        let exit = process.join().await;
        assert_eq!(
            (exit.reason, exit.value),
            (ExitReason::Normal, Payload::Int(number as i64))
        );
    }
}

#[test]
fn p4_a_shutdown_waits_for_clean_up_and_no_longer() {
    simulated(|host| clean_up(host, Duration::from_millis(50)));
}

#[test]
fn p4_a_shutdown_waits_for_clean_up_and_no_longer_in_real_time() {
    real(2, |host| clean_up(host, Duration::from_millis(500)));
}

/// P5: one that ignores the cancel is killed at the deadline, and its monitors are notified.
async fn ignores_cancel(host: Host, most: Duration) {
    let deaf_one = host.step(deaf()).expect("a process");
    let busy = host.step(Machine::new(|_, _, out| {
        out.request(1, Sleep(Duration::from_millis(1)));
        Ok(Status::Idle)
    }));
    let (pid, busy) = (deaf_one.pid(), busy.expect("a process"));
    // Observed from outside: a process that watched would be killed in the same moment.
    let told = host.runtime().spawn(host.ended(pid));
    time::sleep(Duration::from_millis(5)).await;
    let began = time::Instant::now();
    let report = host.shutdown(Duration::from_millis(200)).await;
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(200) && took <= most,
        "{took:?}"
    );
    assert!(report.stuck.is_empty(), "{report:?}");
    for process in [&deaf_one, &busy] {
        assert_eq!(process.join().await.reason, ExitReason::Killed);
    }
    assert_eq!(told.await.expect("no panic").reason, ExitReason::Killed);
    assert_eq!(host.processes(), 0);
}

#[test]
fn p5_one_that_ignores_cancel_is_killed_at_the_deadline() {
    simulated(|host| ignores_cancel(host, Duration::from_millis(200)));
}

#[test]
fn p5_one_that_ignores_cancel_is_killed_at_the_deadline_in_real_time() {
    real(2, |host| ignores_cancel(host, Duration::from_secs(2)));
}

/// What the processes of P6 ask for: an answer now, from another task, or from another thread.
struct Answer(u64);

/// P6: yields, completions and messages race; every tag completes once, and each sender keeps its
/// order.
fn races(host: Host, rounds: u64) -> Vec<ProcessHandle<Message>> {
    const SENDERS: u64 = 3;
    let processes: Vec<_> = (0..8)
        .map(|_| {
            let (mut next_tag, mut outstanding) = (0, BTreeSet::new());
            let mut heard = [0_i64; SENDERS as usize];
            let step = Machine::new(move |_, events, out| {
                while let Some(event) = events.next() {
                    match event {
                        Event::YieldComplete { tag, result } => {
                            assert!(
                                outstanding.remove(&tag),
                                "{tag} completed twice, or never asked"
                            );
                            assert_eq!(result, Ok(Payload::Int(tag as i64)));
                        }
                        Event::Message(message) => {
                            let sender: usize = message.topic.as_str().parse().expect("a number");
                            assert_eq!(
                                message.payload,
                                heard[sender].into(),
                                "the order of {sender}"
                            );
                            heard[sender] += 1;
                        }
                        other => panic!("{other:?} was not expected"),
                    }
                }
                // Up to three outstanding at a time.
                while next_tag < rounds && outstanding.len() < 1 + next_tag as usize % 3 {
                    outstanding.insert(next_tag);
                    out.request(next_tag, Answer(next_tag));
                    next_tag += 1;
                }
                let all_heard = heard.iter().all(|heard| *heard == rounds as i64);
                Ok(
                    match (outstanding.is_empty(), next_tag == rounds && all_heard) {
                        (true, true) => Status::Done(Payload::Nil),
                        (true, false) => Status::Idle,
                        // Idle with something outstanding is Blocked.
                        _ if next_tag % 2 == 0 => Status::Idle,
                        _ => Status::Blocked,
                    },
                )
            });
            host.step(step).expect("a process")
        })
        .collect();
    for sender in 0..SENDERS {
        let to: Vec<_> = processes.iter().map(|process| process.address()).collect();
        drop(host.runtime().spawn(async move {
            for number in 0..rounds as i64 {
                for address in &to {
                    let message = Message::new(sender.to_string(), number);
                    if address.send(message).await.is_err() {
                        return;
                    }
                }
            }
        }));
    }
    processes
}

fn host_of_races(runtime: &Runtime) -> Host {
    let (sender, receiver) = std::sync::mpsc::channel::<(Completer, u64)>();
    let simulated = runtime.trace().is_some();
    if !simulated {
        thread::spawn(move || {
            while let Ok((completer, tag)) = receiver.recv() {
                completer.complete(tag as i64);
            }
        });
    }
    Host::builder()
        .command(
            move |Answer(tag): Answer, completer: Completer| match tag % 3 {
                0 => completer.complete(tag as i64),
                1 if !simulated => sender.send((completer, tag)).expect("the thread lives"),
                _ => completer.spawn(async move {
                    if tag % 2 == 0 {
                        windlass_runtime::task::yield_now().await;
                    }
                    Ok(Payload::Int(tag as i64))
                }),
            },
        )
        .build(runtime.handle())
        .expect("a host")
}

#[test]
fn p6_yields_completions_and_messages_race() {
    for seed in 0..100 {
        let runtime = Runtime::simulated(seed);
        let host = host_of_races(&runtime);
        runtime.block_on(async {
            for process in races(host, 50) {
                assert_eq!(
                    process.join().await.reason,
                    ExitReason::Normal,
                    "seed {seed}"
                );
            }
        });
    }
}

#[test]
fn p6_yields_completions_and_messages_race_in_real_time() {
    // Each round of a process is a yield and three messages: 8 x 4 races.
    let races_wanted = 1_000_000;
    let runtime = Runtime::builder().workers(4).build().expect("a runtime");
    let host = host_of_races(&runtime);
    let began = Instant::now();
    runtime.block_on(async {
        for process in races(host, races_wanted / 32) {
            let ended = time::timeout(Duration::from_secs(120), process.join()).await;
            let exit = ended.expect("something is stuck");
            assert_eq!(exit.reason, ExitReason::Normal);
        }
    });
    println!("{races_wanted} races in {:?}", began.elapsed());
}

/// P7: an upgrade in the middle of a thousand messages, with a sleep pending.
async fn upgrade_in_flight(host: Host) {
    let new_code = || {
        let mut seen = Vec::new();
        Machine::new(move |_, events, _| {
            while let Some(event) = events.next() {
                match event {
                    Event::Message(message) => {
                        seen.push(message.payload.as_i64().expect("a number"))
                    }
                    other => {
                        return Err(ActorError::new(format!("{other:?} was for the old code")));
                    }
                }
            }
            // Long enough for the old sleep to have come.
            Ok(match seen.last() {
                Some(1_000) => {
                    let (first, last) = (seen[0], seen[seen.len() - 2]);
                    let in_order = seen.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                    assert!(in_order, "{seen:?}");
                    Status::Done(vec![Payload::Int(first), Payload::Int(last)].into())
                }
                _ => Status::Idle,
            })
        })
    };
    let mut begun = false;
    let process = host
        .process()
        .name("upgraded")
        .step(Machine::new(move |_, events, out| {
            if !std::mem::replace(&mut begun, true) {
                out.request(1, Sleep(Duration::from_millis(20)));
                return Ok(Status::Blocked);
            }
            // Reads half, one at a time, and leaves the rest to the new code.
            while let Some(Event::Message(message)) = events.next() {
                if message.payload == 499_i64.into() {
                    return Ok(Status::Upgrade(Upgrade::to(new_code())));
                }
            }
            Ok(Status::Idle)
        }))
        .expect("a process");
    let pid = process.pid();
    for number in 0..1_000_i64 {
        process.tell(Message::new("n", number)).expect("room");
        if number % 100 == 99 {
            time::sleep(Duration::from_millis(1)).await;
        }
    }
    time::sleep(Duration::from_millis(40)).await;
    assert_eq!(
        host.whereis("upgraded"),
        Some(pid),
        "it is the same process"
    );
    process.tell(Message::new("n", 1_000_i64)).expect("room");
    let exit = process.join().await;
    assert_eq!(exit.reason, ExitReason::Normal);
    assert_eq!(
        exit.value.as_list(),
        Some(&[500_i64.into(), 999_i64.into()][..])
    );
}

#[test]
fn p7_an_upgrade_keeps_every_unread_message() {
    simulated(upgrade_in_flight);
}

#[test]
fn p7_an_upgrade_keeps_every_unread_message_in_real_time() {
    real(2, upgrade_in_flight);
}

#[test]
fn p8_a_limit_holds_exactly_under_concurrent_spawns() {
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let host = Host::builder()
        .max_processes(10)
        .build(runtime.handle())
        .expect("a host");
    for _ in 0..20 {
        let (begin, spawned) = (Arc::new(Barrier::new(64)), AtomicUsize::new(0));
        let handles = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    begin.wait();
                    match host.spawn(idle) {
                        Ok(process) => {
                            spawned.fetch_add(1, Ordering::SeqCst);
                            handles.lock().expect("no panic").push(process);
                        }
                        Err(error) => assert_eq!(error, SpawnError::LimitExceeded { limit: 10 }),
                    }
                });
            }
        });
        assert_eq!(spawned.load(Ordering::SeqCst), 10);
        runtime.block_on(async {
            let handles = handles.into_inner().expect("no panic");
            handles.iter().for_each(|process| process.kill());
            join_all(
                handles
                    .iter()
                    .map(|process| process.ended())
                    .collect::<Vec<_>>(),
            )
            .await;
        });
        assert_eq!(host.processes(), 0);
    }
}

/// P9: many exits in any order, and the time for each stays the same.
#[test]
fn p9_the_time_for_exits_grows_linearly() {
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let plain = Host::of(runtime.handle()).expect("a host");
    let node = Host::builder()
        .node("node")
        .build(runtime.handle())
        .expect("a host");
    let exits = |host: &Host, count: usize| {
        runtime.block_on(async {
            // All of them linked to one and watched by it, as a supervisor's children are.
            let parent = host
                .spawn(|mut ctx: Context<Message>| async move {
                    ctx.trap_links(true);
                    while let ActorEvent::Exit(_) = ctx.event().await {}
                })
                .expect("a process");
            let spawn = || {
                host.process()
                    .linked_to(parent.pid())
                    .monitored_by(parent.pid())
            };
            let mut children: Vec<_> = (0..count)
                .map(|_| spawn().spawn(idle).expect("room"))
                .collect();
            // Any order: every third first, then backwards.
            children.sort_by_key(|child| {
                (
                    child.pid().to_string().len() % 3,
                    std::cmp::Reverse(child.pid()),
                )
            });
            let began = Instant::now();
            children.iter().for_each(|child| child.kill());
            for child in &children {
                child.join().await;
            }
            let took = began.elapsed();
            parent.kill();
            parent.join().await;
            took
        })
    };
    for host in [&plain, &node] {
        exits(host, 1_000);
        // The best of three: other programs may have used the machine.
        let ratio = (0..3)
            .map(|_| {
                let (few, many) = (exits(host, 5_000), exits(host, 40_000));
                many.as_secs_f64() / few.as_secs_f64()
            })
            .fold(f64::MAX, f64::min);
        // Eight times as many: linear is 8, quadratic 64.
        assert!(
            ratio < 24.0,
            "eight times as many took {ratio:.1} times as long"
        );
        assert_eq!(host.processes(), 0);
    }
}

/// P10: pauses grow, and one restart too many is the parent's to deal with.
#[test]
fn p10_pauses_grow_and_the_limit_escalates() {
    simulated(|host| async move {
        let starts = Log::default();
        let record = starts.clone();
        let began = time::Instant::now();
        let child = ChildSpec::new("broken", move |spawn| {
            record.add(began.elapsed());
            let process =
                spawn.spawn(|_: Context<()>| async { Err::<(), _>(ActorError::new("broken")) })?;
            Ok(process.pid())
        });
        let backoff = Backoff {
            first: Duration::from_millis(100),
            ..Backoff::default()
        };
        let inner = Supervisor::new(Strategy::OneForOne)
            .intensity(4, Duration::from_secs(60))
            .backoff(backoff)
            .child(child);
        let outer = Supervisor::new(Strategy::OneForOne)
            .intensity(1, Duration::from_secs(600))
            .backoff(Backoff {
                first: Duration::from_secs(10),
                jitter: 0.0,
                ..Backoff::default()
            })
            .child(ChildSpec::supervisor("inner", inner))
            .start(&host)
            .expect("a supervisor");
        let reason = outer.join().await.reason;
        let ExitReason::Error(Payload::Text(text)) = &reason else {
            panic!("{reason} was not expected");
        };
        assert!(
            text.contains("more than 1 restarts") && text.contains("inner"),
            "{text}"
        );
        let times = starts.all();
        assert_eq!(
            times.len(),
            10,
            "five starts, an escalation, and five more: {times:?}"
        );
        for life in [&times[..5], &times[5..]] {
            let pauses: Vec<_> = life.windows(2).map(|pair| pair[1] - pair[0]).collect();
            for (number, pause) in pauses.iter().enumerate() {
                let least = Duration::from_millis(100 << number);
                assert!(
                    *pause >= least && *pause <= least.mul_f64(1.26),
                    "{pauses:?}"
                );
            }
        }
        assert!(times[5] - times[4] >= Duration::from_secs(10));
        assert_eq!(host.processes(), 0);
    });
}
