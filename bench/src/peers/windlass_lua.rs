//! Windlass's Lua processes.

use windlass::lua::Interpreter;
use windlass::vm::{Placement, Vm};

use super::AsyncPeer;
use super::mlua::LOOP;
use super::windlass::Windlass;
use crate::sample::{Sample, time};

/// How many processes are started beside spinners.
const STARTS: usize = 21;

fn interpreter(placement: Placement) -> Interpreter {
    let vm = Windlass::block_on(async move {
        Vm::builder()
            .placement(placement)
            .build()
            .expect("it starts")
    });
    Interpreter::builder(&vm).build().expect("it starts")
}

/// A tight loop, as a process on the pool; beside it two of them at once on each worker, which are
/// preempted.
pub fn run_loop(iterations: u64) -> Sample {
    let lua = interpreter(Placement::Pool);
    let pass = |processes: u64| {
        time(|| {
            let size = (iterations / processes) as i64;
            let start = |_| {
                lua.spawn_text("loop", LOOP, [size.into()])
                    .expect("it starts")
            };
            let tasks: Vec<_> = (0..processes).map(start).collect();
            Windlass::block_on(async move {
                for task in tasks {
                    assert!(task.join().await.reason.is_normal());
                }
            });
        })
    };
    let crowded = Sample::per_operation(iterations, || pass(4));
    let (usual, worst) = late_start(&lua);
    Sample::per_operation(iterations, || pass(1))
        .with("4 at once", crowded.value)
        .with("start beside spinners ms", usual)
        .with("at most", worst)
}

/// How long a new process takes from its start to its end while every worker spins in another, in
/// milliseconds: the median and the longest of some.
fn late_start(lua: &Interpreter) -> (f64, f64) {
    const SPIN: &str = "function main() while true do end end";
    let workers =
        Windlass::block_on(async { windlass::runtime::Handle::current().snapshot().pool });
    let workers = workers.workers.len();
    let spinners: Vec<_> = (0..workers)
        .map(|_| lua.spawn_text("spin", SPIN, []).expect("it starts"))
        .collect();
    let mut took: Vec<f64> = (0..STARTS)
        .map(|_| {
            let one = time(|| {
                let late = lua.spawn_text("late", "", []).expect("it starts");
                Windlass::block_on(async move { late.join().await });
            });
            one.as_secs_f64() * 1e3
        })
        .collect();
    for spinner in &spinners {
        spinner.kill();
    }
    took.sort_by(f64::total_cmp);
    (took[took.len() / 2], took[took.len() - 1])
}

const PING: &str = "
function main(to, n)
    for i = 1, n do
        send(to, 'ping', i)
        receive('pong')
    end
    send(to, 'stop')
end";

const PONG: &str = "
function main()
    while true do
        local m = receive()
        if m.topic == 'stop' then return end
        send(m.from, 'pong', m.payload)
    end
end";

/// A message there and another back between two Lua processes, on the pool; beside it on the
/// reactor.
pub fn messages(rounds: u64) -> Sample {
    let on = |placement| {
        let lua = interpreter(placement);
        Sample::per_operation(rounds, || {
            time(|| {
                let pong = lua.spawn_text("pong", PONG, []).expect("it starts");
                let args = [pong.pid().into(), (rounds as i64).into()];
                let ping = lua.spawn_text("ping", PING, args).expect("it starts");
                Windlass::block_on(async move {
                    assert!(ping.join().await.reason.is_normal());
                    assert!(pong.join().await.reason.is_normal());
                });
            })
        })
    };
    let reactor = on(Placement::Reactor);
    on(Placement::Pool).with("reactor", reactor.value)
}
