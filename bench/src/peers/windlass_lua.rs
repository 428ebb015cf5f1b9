//! Windlass's Lua processes.

use windlass::lua::Interpreter;
use windlass::vm::{Placement, Vm};

use super::AsyncPeer;
use super::mlua::LOOP;
use super::windlass::Windlass;
use crate::sample::{Sample, time};

fn interpreter(placement: Placement) -> Interpreter {
    let vm = Windlass::block_on(async move {
        Vm::builder()
            .placement(placement)
            .build()
            .expect("it starts")
    });
    Interpreter::builder(&vm).build().expect("it starts")
}

/// A tight loop, as a process on the pool; beside it two of them at once on each worker, which are preempted.
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
    Sample::per_operation(iterations, || pass(1)).with("4 at once", crowded.value)
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

/// A message there and another back between two Lua processes, on the pool; beside it on the reactor.
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
