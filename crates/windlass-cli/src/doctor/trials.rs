//! What a thread is given when it asks.

use std::time::Duration;

use windlass::dispatch::{Builder, Dispatcher, OnRefusal, Scheduling, lock_memory};
use windlass::runtime::Handle;
use windlass::time::Instant;
use windlass::time::precise::block_until_or;

use super::{Finding, State};

const NICE_RIGHTS: &str = "run as root, or give the program the right to it: \
    setcap cap_sys_nice+ep on the binary, or AmbientCapabilities=CAP_SYS_NICE in its unit";

pub(super) fn findings(runtime: &Handle) -> Vec<Finding> {
    let cpu = allowed_cpu();
    let ms = Duration::from_millis;
    let deadline = Scheduling::Deadline {
        runtime: ms(1),
        deadline: ms(10),
        period: ms(10),
    };
    let fifo = |builder: Builder| builder.scheduling(Scheduling::Fifo { priority: 10 });
    let rr = |builder: Builder| builder.scheduling(Scheduling::RoundRobin { priority: 10 });
    vec![
        trial(runtime, "affinity", |b| b.affinity([cpu])).describe(
            "a thread can be bound to a core",
            "allow the CPUs in its cpuset",
        ),
        trial(runtime, "nice", |b| b.nice(-5)).describe("threads can have nice -5", NICE_RIGHTS),
        trial(runtime, "fifo", fifo).describe("rt_policy: fifo", NICE_RIGHTS),
        trial(runtime, "rr", rr).describe("rt_policy: rr", NICE_RIGHTS),
        trial(runtime, "deadline", |b| b.scheduling(deadline)).describe(
            "rt_policy: deadline",
            "as for fifo; and a thread that is bound to some of the cores cannot have it",
        ),
        memory(),
        timer(runtime, "timer", |builder| builder),
        timer(runtime, "timer, fifo", fifo),
    ]
}

/// A CPU that this process may use.
fn allowed_cpu() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.and_then(|list| list.trim().split(['-', ',']).next());
    first.and_then(|cpu| cpu.parse().ok()).unwrap_or(0)
}

/// What came of asking.
struct Trial {
    name: &'static str,
    refused: Option<String>,
}

impl Trial {
    fn describe(self, granted: &str, advice: &str) -> Finding {
        match self.refused {
            None => Finding::new(self.name, State::Granted, granted),
            Some(why) => Finding::new(self.name, State::Refused, why).advice(advice),
        }
    }
}

/// Asks for something on a thread of its own.
fn trial(runtime: &Handle, name: &'static str, ask: impl FnOnce(Builder) -> Builder) -> Trial {
    let builder = ask(Dispatcher::builder(1).name("doctor")).on_refusal(OnRefusal::Strict);
    let refused = match builder.run_in(runtime, async {}) {
        Ok(_thread) => None,
        Err(error) => {
            let source = std::error::Error::source(&error).and_then(|error| error.source());
            Some(source.map_or_else(|| error.to_string(), |error| error.to_string()))
        }
    };
    Trial { name, refused }
}

fn memory() -> Finding {
    match lock_memory() {
        Ok(_lock) => Finding::new("mlock", State::Granted, "memory can be locked"),
        Err(error) => Finding::new("mlock", State::Refused, error.to_string())
            .advice("run as root, setcap cap_ipc_lock+ep on the binary, or raise the memory limit"),
    }
}

/// How many ticks are measured.
const TICKS: u32 = 200;

/// How late a thread wakes up that sleeps for a millisecond, again and again.
fn timer(runtime: &Handle, name: &'static str, ask: impl FnOnce(Builder) -> Builder) -> Finding {
    let ticks = async {
        let mut due = Instant::now();
        let mut late: Vec<Duration> = Vec::with_capacity(TICKS as usize);
        for _ in 0..TICKS {
            due += Duration::from_millis(1);
            let _ = block_until_or(due, std::future::pending::<()>());
            late.push(Instant::now().saturating_duration_since(due));
        }
        late.sort_unstable();
        late
    };
    let builder = ask(Dispatcher::builder(1).name("doctor"));
    let late = builder
        .on_refusal(OnRefusal::Strict)
        .run_in(runtime, ticks)
        .map(windlass::block_on);
    match late {
        Ok(late) => {
            let at = |percent: usize| late[(late.len() * percent / 100).min(late.len() - 1)];
            let found = format!(
                "a tick of 1 kHz is late by {:?} (p50), {:?} (p99)",
                at(50),
                at(99)
            );
            Finding::new(name, State::Granted, found)
        }
        Err(_) => Finding::new(name, State::Refused, "see above"),
    }
}
