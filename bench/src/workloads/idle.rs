//! What a runtime does while there is nothing to do.

use std::thread;
use std::time::Duration;

use crate::peers::AsyncPeer;
use crate::process;
use crate::sample::Sample;
use crate::workloads::spawn;

/// Tasks that run first, so that the workers have been awake.
pub const WARM_UP: u64 = 10_000;

/// How long the workers have to settle down.
const SETTLE: Duration = Duration::from_millis(100);

pub fn tasks<P: AsyncPeer>(millis: u64) -> Sample {
    after(millis, || {
        P::run_on_worker(spawn::spawn_detached::<P>(WARM_UP));
    })
}

/// Context switches of all threads but this one, and as the extra `cpu_ms` the CPU time, while
/// nothing happens.
pub fn after(millis: u64, warm_up: impl FnOnce()) -> Sample {
    warm_up();
    thread::sleep(SETTLE);
    let (switches, cpu) = (process::context_switches_of_others(), process::cpu_time());
    thread::sleep(Duration::from_millis(millis));
    // The clock first: counting the switches takes time itself.
    let cpu = process::cpu_time() - cpu;
    let switches = process::context_switches_of_others().saturating_sub(switches);
    Sample::of(switches as f64).with("cpu_ms", cpu.as_secs_f64() * 1e3)
}
