//! Every front end on one runtime for as long as told, with kills, cancels, panics, resizes and
//! slow clients. What it holds at the end of each round must stay flat.
//!
//! `cargo run --release --example soak_mix --features lua -- 60`, or `cargo xtask soak --mix`. A
//! second argument names the kinds of work: `-- 60 guests,resizes`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the load comes from plain threads, by the real clock"
)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windlass::actor::supervisor::{ChildSpec, Strategy, Supervisor};
use windlass::actor::{ActorError, Context, Host};
use windlass::graph::component::Registry;
use windlass::graph::{LoadOptions, Prepared, RunOptions, load};
use windlass::io::{AsyncReadExt, AsyncWriteExt};
use windlass::lua::Interpreter;
use windlass::net::TcpListener;
use windlass::sync::{broadcast, mpsc};
use windlass::vm::Vm;
use windlass::{Runtime, TaskGroup, coroutine, fork_join, task, time};

/// Rounds of load in the whole time; what is held is looked at after each.
const ROUNDS: u32 = 10;
/// What memory may grow by from the third look to the last: allocators keep some of it.
const GROWTH: f64 = 1.25;
const WORKERS: usize = 4;
/// How much longer than it should a round may take.
const PATIENCE: Duration = Duration::from_secs(15);

const GRAPH: &str = "
schema_version: 1
graph: {name: soak}
lanes: {main: {type: event_loop}, pool: {type: thread_pool, max_threads: 2, queue_capacity: 16}}
components:
  - {id: sensor, type: windlass.example.Sensor, execution: {lane: main}}
  - {id: same, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: pool}}
  - {id: out, type: windlass.boundary.Output, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: raw, from: sensor.out, to: same.in, kind: immediate}
  - {id: clean, from: same.out, to: out.in, kind: delay}
";

const SCRIPT: &str = "
function main(n)
    local done = channel.new()
    for i = 1, n do
        spawn(function()
            sleep(0.001 * (i % 5))
            done:send(i)
        end)
    end
    local sum = 0
    for _ = 1, n do sum = sum + done:receive() end
    if n % 7 == 0 then error('on purpose') end
    return sum
end";

/// What the program holds at a moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    tasks: u64,
    timers: u64,
    sockets: u64,
    descriptors: u64,
    threads: u64,
    kilobytes: u64,
    rescues: u64,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(60), |text| text.parse())?;
    std::panic::set_hook(Box::new(|_| {})); // they are on purpose
    let runtime = Runtime::builder().workers(WORKERS).build()?;
    let echo = runtime.block_on(start_echo())?;
    let done = Counts::default();
    let round = Duration::from_secs(seconds) / ROUNDS;
    println!("round  tasks timers sockets descriptors threads     KiB rescues  units of work");
    let mut looks = Vec::new();
    for number in 1..=ROUNDS {
        load_all(&runtime, echo, round, &done);
        runtime.resize(WORKERS)?;
        let look = settled(&runtime);
        println!(
            "{number:5} {:6} {:6} {:7} {:11} {:7} {:7} {:7}  {done}",
            look.tasks,
            look.timers,
            look.sockets,
            look.descriptors,
            look.threads,
            look.kilobytes,
            look.rescues
        );
        looks.push(look);
    }
    let problems = problems(&looks);
    for problem in &problems {
        println!("not flat: {problem}");
    }
    let report = runtime.shutdown(Duration::from_secs(10));
    println!("{report}");
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Units of work that have ended, by front end.
#[derive(Debug, Default)]
struct Counts {
    tasks: AtomicU64,
    coroutines: AtomicU64,
    processes: AtomicU64,
    guests: AtomicU64,
    graphs: AtomicU64,
    clients: AtomicU64,
    resizes: AtomicU64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        write!(
            f,
            "tasks {} coroutines {} processes {} guests {} graphs {} clients {} resizes {}",
            count(&self.tasks),
            count(&self.coroutines),
            count(&self.processes),
            count(&self.guests),
            count(&self.graphs),
            count(&self.clients),
            count(&self.resizes),
        )
    }
}

/// Every kind of work at once, for a while.
fn load_all(runtime: &Runtime, echo: SocketAddr, time: Duration, done: &Counts) {
    let end = Instant::now() + time;
    let until_the_end = |step: &(dyn Fn(u64) + Sync)| {
        let numbers = (0..).take_while(|_| Instant::now() < end);
        numbers.for_each(step);
    };
    type Step<'a> = &'a (dyn Fn(u64) + Sync);
    let steps: [(&str, Step<'_>); 7] = [
        ("tasks", &|n| some_tasks(runtime, n, done)),
        ("coroutines", &|n| some_coroutines(runtime, n, done)),
        ("processes", &|n| some_processes(runtime, n, done)),
        ("guests", &|n| some_guests(runtime, n, done)),
        ("graphs", &|n| one_graph(runtime, n, done)),
        ("clients", &|n| some_clients(echo, n, done)),
        ("resizes", &|n| {
            let _ = runtime.resize(1 + n as usize % WORKERS);
            done.resizes.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }),
    ];
    let only = std::env::args().nth(2);
    let (ended, hears) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            // Every step takes a moment; one that does not end has lost a wake-up.
            let patience = time + PATIENCE;
            if hears.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                println!("a round has not ended within {patience:?}:");
                let _ = runtime.debug_dump(&mut std::io::stdout());
                std::process::exit(3);
            }
        });
        for (name, step) in steps {
            let ended = ended.clone();
            if only.as_ref().is_none_or(|only| only.contains(name)) {
                threads.spawn(move || {
                    until_the_end(step);
                    drop(ended);
                });
            }
        }
        drop(ended);
    });
}

/// Tasks that end, panic, are aborted, and time out; groups that fail; channels whose ends go.
fn some_tasks(runtime: &Runtime, number: u64, done: &Counts) {
    runtime.block_on(async {
        let mut handles = Vec::new();
        for n in 0..100_u64 {
            let handle = windlass::spawn(async move {
                match n % 5 {
                    0 => panic!("on purpose"),
                    1 => time::sleep(Duration::from_secs(3_600)).await,
                    2 => task::block_in_place(|| std::thread::sleep(Duration::from_micros(100))),
                    _ => time::sleep(Duration::from_micros(n * 20)).await,
                }
                n
            });
            handles.push(handle);
        }
        for (n, handle) in handles.into_iter().enumerate() {
            match n % 5 {
                1 => handle.abort(),
                3 => drop(time::timeout(Duration::from_micros(500), handle).await),
                _ => drop(handle.await),
            }
        }
        let mut group = TaskGroup::new();
        for n in 0..10_u64 {
            group.spawn(async move {
                time::sleep(Duration::from_micros(n * 50)).await;
                if n == number % 10 {
                    Err("on purpose")
                } else {
                    Ok(())
                }
            });
        }
        let _ = group.try_join().await;
        let (sender, mut receiver) = broadcast::channel(4);
        let (queue, mut queued) = mpsc::buffered(2);
        let sends = windlass::spawn(async move {
            for n in 0..20 {
                let _ = sender.send(n);
                if queue.send(n).await.is_err() {
                    break;
                }
            }
        });
        let _ = receiver.recv().await;
        let _ = queued.recv().await;
        drop((receiver, queued));
        let _ = sends.await;
        done.tasks.fetch_add(131, Ordering::Relaxed);
    });
}

/// Coroutines with scopes that borrow, fork-joins, and cancellations in the middle.
fn some_coroutines(runtime: &Runtime, number: u64, done: &Counts) {
    let handles: Vec<_> = (0..20_u64)
        .map(|n| {
            coroutine::Builder::new().spawn_on(runtime.handle(), move || {
                let numbers: Vec<u64> = (0..64).collect();
                let sum = coroutine::scope(|s| {
                    let halves: Vec<_> = numbers
                        .chunks(32)
                        .map(|half| {
                            s.spawn(move || {
                                coroutine::wait(time::sleep(Duration::from_micros(n * 30)));
                                half.iter().sum::<u64>()
                            })
                        })
                        .collect();
                    let sums = halves.into_iter().map(|half| half.join().unwrap_or(0));
                    sums.sum::<u64>()
                });
                let (a, b) = fork_join::join(
                    || {
                        coroutine::yield_now();
                        numbers.iter().max().copied()
                    },
                    || numbers.len(),
                );
                assert!(n % 6 != number % 6, "on purpose");
                (sum, a, b)
            })
        })
        .collect();
    for (n, handle) in handles.into_iter().enumerate() {
        if n % 4 == 3 {
            handle.abort();
        }
        let _ = windlass::block_on(handle);
        done.coroutines.fetch_add(3, Ordering::Relaxed);
    }
}

/// A supervised process that panics, is restarted, and is stopped with its supervisor.
fn some_processes(runtime: &Runtime, number: u64, done: &Counts) {
    async fn worker(mut ctx: Context<u64>) -> Result<(), ActorError> {
        while let Some(message) = ctx.recv().await {
            assert!(message != 3, "on purpose");
        }
        Ok(())
    }
    runtime.block_on(async {
        let host = Host::current().expect("inside of a runtime");
        let alone = host.process().spawn(worker).expect("a process");
        for message in 0..(number % 6) {
            let _ = alone.send(message).await;
        }
        alone.cancel("enough");
        let _ = alone.join().await;
        let spec = ChildSpec::new("worker", |spawn| Ok(spawn.spawn(worker)?.pid()));
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        if let Ok(supervisor) = supervisor.start(&host) {
            let _ = supervisor.started().await;
            supervisor.cancel("enough");
            let _ = supervisor.join().await;
        }
        done.processes.fetch_add(3, Ordering::Relaxed);
    });
}

/// Lua processes: some fail, some are killed while they wait.
fn some_guests(runtime: &Runtime, number: u64, done: &Counts) {
    runtime.block_on(async {
        let vm = Vm::builder().build().expect("a VM");
        let lua = Interpreter::builder(&vm).build().expect("an interpreter");
        let tasks: Vec<_> = (1..=4_i64)
            .map(|n| lua.spawn_text("soak", SCRIPT, [(n + number as i64 % 8).into()]))
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            let task = task.expect("a script that is right");
            if n == 3 {
                task.cancel("enough");
            }
            let _ = task.join().await;
            done.guests.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// A graph with a pool, for some epochs.
fn one_graph(runtime: &Runtime, _number: u64, done: &Counts) {
    let loaded = load(GRAPH, &LoadOptions::default()).expect("the graph is right");
    let prepared = Prepared::new(loaded.graph, Registry::built_in()).expect("so are its types");
    let result = runtime.block_on(prepared.run(RunOptions::steps(50)));
    assert!(result.errors.is_empty(), "it runs through");
    done.graphs.fetch_add(1, Ordering::Relaxed);
}

/// A server that answers whatever comes, one task per client.
async fn start_echo() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    windlass::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            windlass::spawn(async move {
                let mut bytes = [0; 64];
                while let Ok(Ok(read @ 1..)) =
                    time::timeout(Duration::from_secs(2), stream.read(&mut bytes)).await
                {
                    if stream.write_all(&bytes[..read]).await.is_err() {
                        break;
                    }
                }
            })
            .detach();
        }
    })
    .detach();
    Ok(address)
}

/// Clients on plain sockets: some are slow, some break off.
fn some_clients(echo: SocketAddr, number: u64, done: &Counts) {
    for n in 0..8 {
        let Ok(mut stream) = std::net::TcpStream::connect(echo) else {
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let _ = stream.write_all(b"half a");
        match (n + number) % 3 {
            0 => {} // breaks off
            1 => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let mut bytes = [0; 6];
                stream.read_exact(&mut bytes).expect("the server answers");
            }
        }
        done.clients.fetch_add(1, Ordering::Relaxed);
    }
}

/// What is held when the load has stopped: waits until it no longer becomes less.
fn settled(runtime: &Runtime) -> Look {
    let mut least = look(runtime);
    let mut unchanged = 0;
    while unchanged < 10 {
        std::thread::sleep(Duration::from_millis(100));
        let now = look(runtime);
        let held = |look: &Look| look.tasks + look.timers + look.sockets + look.threads;
        unchanged = if held(&now) < held(&least) {
            0
        } else {
            unchanged + 1
        };
        least = if held(&now) <= held(&least) {
            now
        } else {
            least
        };
    }
    least
}

fn look(runtime: &Runtime) -> Look {
    let snapshot = runtime.snapshot();
    let entries = |path: &str| std::fs::read_dir(path).map_or(0, |dir| dir.count() as u64);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Look {
        tasks: snapshot.pool.suspended_tasks as u64,
        timers: snapshot.timers as u64,
        sockets: snapshot.io_sources as u64,
        descriptors: entries("/proc/self/fd"),
        threads: entries("/proc/self/task"),
        kilobytes: resident.unwrap_or_default(),
        rescues: snapshot.pool.driver_rescues,
    }
}

/// What has grown from the third look to the last.
fn problems(looks: &[Look]) -> Vec<String> {
    let (Some(third), Some(last)) = (looks.get(2), looks.last()) else {
        return vec!["there were too few looks".to_owned()];
    };
    let mut problems = Vec::new();
    let mut flat = |what: &str, then: u64, now: u64, allowed: u64| {
        if now > then + allowed {
            problems.push(format!("{what}: {then} and then {now}"));
        }
    };
    flat("tasks", third.tasks, last.tasks, 2);
    flat("timers", third.timers, last.timers, 2);
    flat("sockets", third.sockets, last.sockets, 2);
    flat("descriptors", third.descriptors, last.descriptors, 4);
    flat("threads", third.threads, last.threads, 4);
    let allowed = (third.kilobytes as f64 * (GROWTH - 1.0)) as u64;
    flat("KiB", third.kilobytes, last.kilobytes, allowed);
    flat("times the driver was lost", 0, last.rescues, 0);
    problems
}
