//! Lua by itself: mlua, without a hook and without a scheduler.

use mlua::{Function, Lua};

use super::{Job, Peer};
use crate::sample::{Sample, time};
use crate::workload::Workload;

pub const PEER: Peer = Peer {
    name: "mlua",
    workloads: &[&[Workload::LuaLoop]],
    run,
};

/// The loop that both run.
pub const LOOP: &str = "
function main(n)
    local sum = 0
    for i = 1, n do sum = sum + i % 7 end
    return sum
end";

fn run(job: Job) -> Sample {
    let lua = Lua::new();
    lua.load(LOOP).exec().expect("it is Lua");
    let main: Function = lua.globals().get("main").expect("it is there");
    Sample::per_operation(job.size, || {
        time(|| {
            let sum: i64 = main.call(job.size).expect("it ends");
            assert!(sum > 0);
        })
    })
}
