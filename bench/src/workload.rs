//! The list of workloads: what each is called, how large it is and how it is reported.

use crate::stats::Better;

/// One workload. Each is described once, in [`Workload::facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    SpawnExternal,
    SpawnInternal,
    SpawnDetached,
    YieldMany,
    PingPongPairs,
    PingPongOne,
    ChainedSpawn,
    ForkJoinTasks,
    ForkJoin,
    CpuTasks,
    CoroutineYield,
    CoroutineCreate,
    CoroutineMemory,
    RemoteWake,
    StealLatency,
    StealAwake,
    Idle,
    Memory,
    TimerCancel,
    TimerSleep,
    TimerSleepCpu,
    MpscBounded,
    MpscBounded8,
    MpscUnbounded,
    MpscUnbounded8,
    MutexContended,
    Oneshot,
    Watch,
    Broadcast,
    ActorTell,
    ActorAsk,
    ActorSpawn,
    ActorRing,
    ProcessYield,
    ProcessMemory,
    GraphChain,
    GraphWave,
    GraphTree,
    GraphMessage,
    GraphParallel,
    LaneJitter,
    GuestSpawnAwait,
    GuestPingPong,
    LuaLoop,
    LuaMessage,
    TcpEcho,
    HttpHello,
    FetchAdd,
    CompareExchange,
    CacheLine,
    FutexWake,
    Malloc,
    InstantNow,
}

/// What the size of a workload counts, and so how `--scale` changes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    /// Proportional to the work.
    Count(u64),
    /// The argument of fib: the work grows by the golden ratio with each step.
    Fib(u64),
}

/// What is known about a workload without running it.
pub struct Facts {
    pub name: &'static str,
    pub unit: &'static str,
    pub better: Better,
    pub about: &'static str,
    size: Size,
    /// Fewer workers than this make no sense.
    pub least_workers: usize,
    /// A workload that is long and hardly varies needs fewer rounds.
    pub most_rounds: usize,
}

/// The prefix of the physical limits, and the name that selects them all.
const LIMITS: &str = "limits";

impl Workload {
    pub const ALL: [Workload; 53] = [
        Workload::SpawnExternal,
        Workload::SpawnInternal,
        Workload::SpawnDetached,
        Workload::YieldMany,
        Workload::PingPongPairs,
        Workload::PingPongOne,
        Workload::ChainedSpawn,
        Workload::ForkJoinTasks,
        Workload::ForkJoin,
        Workload::CpuTasks,
        Workload::CoroutineYield,
        Workload::CoroutineCreate,
        Workload::CoroutineMemory,
        Workload::RemoteWake,
        Workload::StealLatency,
        Workload::StealAwake,
        Workload::Idle,
        Workload::Memory,
        Workload::TimerCancel,
        Workload::TimerSleep,
        Workload::TimerSleepCpu,
        Workload::MpscBounded,
        Workload::MpscBounded8,
        Workload::MpscUnbounded,
        Workload::MpscUnbounded8,
        Workload::MutexContended,
        Workload::Oneshot,
        Workload::Watch,
        Workload::Broadcast,
        Workload::ActorTell,
        Workload::ActorAsk,
        Workload::ActorSpawn,
        Workload::ActorRing,
        Workload::ProcessYield,
        Workload::ProcessMemory,
        Workload::GraphChain,
        Workload::GraphWave,
        Workload::GraphTree,
        Workload::GraphMessage,
        Workload::GraphParallel,
        Workload::LaneJitter,
        Workload::GuestSpawnAwait,
        Workload::GuestPingPong,
        Workload::LuaLoop,
        Workload::LuaMessage,
        Workload::TcpEcho,
        Workload::HttpHello,
        Workload::FetchAdd,
        Workload::CompareExchange,
        Workload::CacheLine,
        Workload::FutexWake,
        Workload::Malloc,
        Workload::InstantNow,
    ];

    pub fn facts(self) -> Facts {
        use Workload::*;
        let facts = |name, unit, size, about| Facts {
            name,
            unit,
            better: Better::Lower,
            about,
            size,
            least_workers: 1,
            most_rounds: usize::MAX,
        };
        let count = Size::Count;
        match self {
            SpawnExternal => facts(
                "spawn_external",
                "ns/task",
                count(100_000),
                "spawns from block_on on the main thread, all joined",
            ),
            SpawnInternal => facts(
                "spawn_internal",
                "ns/task",
                count(100_000),
                "the same from a task on a worker",
            ),
            SpawnDetached => facts(
                "spawn_detached",
                "ns/task",
                count(100_000),
                "detached spawns from a worker; the last one wakes the spawner",
            ),
            YieldMany => facts(
                "yield_many",
                "ns/yield",
                count(1_000),
                "tasks that yield 1,000 times each",
            ),
            PingPongPairs => facts(
                "ping_pong_pairs",
                "ns/message",
                count(1_000),
                "pairs of tasks, 1,000 round trips each over tokio's mpsc",
            ),
            PingPongOne => facts(
                "ping_pong_one",
                "ns/message",
                count(200_000),
                "round trips of one pair over tokio's mpsc",
            ),
            ChainedSpawn => facts(
                "chained_spawn",
                "ns/task",
                count(100_000),
                "each task spawns the next one and ends",
            ),
            ForkJoinTasks => facts(
                "fork_join_tasks",
                "ns/task",
                Size::Fib(25),
                "fib(n), a spawned task per branch, no cutoff",
            ),
            ForkJoin => facts(
                "fork_join",
                "ns/join",
                Size::Fib(32),
                "fib(n), a binary join of closures per call, no cutoff",
            ),
            CpuTasks => facts(
                "cpu_tasks",
                "ns/task",
                count(100),
                "batches of 1,000 closures of about 50 ns each, spawned and waited for",
            ),
            CoroutineYield => facts(
                "coroutine_yield",
                "ns/yield",
                count(1_000),
                "stackful coroutines that yield 1,000 times each",
            ),
            CoroutineCreate => facts(
                "coroutine_create",
                "ns/coroutine",
                count(100_000),
                "made, run to the end and joined, 50 at once",
            ),
            CoroutineMemory => Facts {
                most_rounds: 3,
                ..facts(
                    "coroutine_memory",
                    "bytes/coroutine",
                    count(100_000),
                    "growth of the resident set per parked coroutine, guard pages on",
                )
            },
            RemoteWake => facts(
                "remote_wake",
                "us",
                count(300),
                "a plain thread wakes a task while all workers are idle",
            ),
            StealLatency => Facts {
                least_workers: 2,
                ..facts(
                    "steal_latency",
                    "us",
                    count(150),
                    "a busy worker spawns a task; until another one runs it",
                )
            },
            StealAwake => Facts {
                least_workers: 2,
                ..facts(
                    "steal_awake",
                    "us",
                    count(150),
                    "the same with the other worker awake (it is told to spin)",
                )
            },
            Idle => Facts {
                most_rounds: 3,
                ..facts(
                    "idle",
                    "switches",
                    count(3_000),
                    "context switches while nothing happens (size in ms)",
                )
            },
            Memory => Facts {
                most_rounds: 5,
                ..facts(
                    "memory",
                    "bytes/task",
                    count(1_000_000),
                    "growth of the resident set per pending task",
                )
            },
            TimerCancel => facts(
                "timer_cancel",
                "ns/timer",
                count(200_000),
                "timers set and dropped by each of two tasks",
            ),
            TimerSleep => facts(
                "timer_sleep",
                "us late",
                count(10_000),
                "sleeps of 1 to 100 ms at once: how late",
            ),
            TimerSleepCpu => facts(
                "timer_sleep_cpu",
                "us/timer",
                count(10_000),
                "the same: CPU time per sleep",
            ),
            MpscBounded => facts(
                "mpsc_bounded",
                "ns/message",
                count(400_000),
                "messages from 4 tasks to one, channel of 128",
            ),
            MpscBounded8 => facts(
                "mpsc_bounded_8",
                "ns/message",
                count(400_000),
                "the same from 8 tasks",
            ),
            MpscUnbounded => facts(
                "mpsc_unbounded",
                "ns/message",
                count(400_000),
                "messages from 4 tasks to one, no limit",
            ),
            MpscUnbounded8 => facts(
                "mpsc_unbounded_8",
                "ns/message",
                count(400_000),
                "the same from 8 tasks",
            ),
            MutexContended => facts(
                "mutex_contended",
                "ns/lock",
                count(400_000),
                "8 tasks lock, add one and unlock",
            ),
            Oneshot => facts(
                "oneshot",
                "ns/value",
                count(400_000),
                "made, waited for, sent, received",
            ),
            Watch => facts(
                "watch",
                "ns/set",
                count(50_000),
                "one task sets, 4 wait for changes",
            ),
            Broadcast => facts(
                "broadcast",
                "ns/delivery",
                count(50_000),
                "one task sends, 4 receive everything",
            ),
            ActorTell => facts(
                "actor_tell",
                "ns/message",
                count(1_000_000),
                "messages from one task to an actor that adds them up",
            ),
            ActorAsk => facts(
                "actor_ask",
                "ns/ask",
                count(100_000),
                "one task asks an actor, one answer after another",
            ),
            ActorSpawn => facts(
                "actor_spawn",
                "ns/actor",
                count(100_000),
                "started, sent one message and ended, 100 at once",
            ),
            ActorRing => facts(
                "actor_ring",
                "ns/hop",
                count(500_000),
                "a token goes round a ring of 100 actors",
            ),
            ProcessYield => facts(
                "process_yield",
                "ns/yield",
                count(1_000),
                "processes that yield 1,000 times each",
            ),
            ProcessMemory => Facts {
                most_rounds: 5,
                ..facts(
                    "process_memory",
                    "bytes/actor",
                    count(100_000),
                    "growth of the resident set per idle actor that has handled a message",
                )
            },
            GraphChain => facts(
                "graph_chain",
                "ns/node",
                count(500),
                "a compiled chain of 1,000 nodes with empty bodies, run again and again",
            ),
            GraphWave => facts(
                "graph_wave",
                "ns/node",
                count(500),
                "the same with a wavefront of 32 x 32",
            ),
            GraphTree => facts(
                "graph_tree",
                "ns/node",
                count(20),
                "the same with a binary tree of 2^15 nodes",
            ),
            GraphMessage => facts(
                "graph_message",
                "ns/message",
                count(5_000),
                "epochs of a graph of 100 components in a row: per delivered message",
            ),
            GraphParallel => Facts {
                better: Better::Higher,
                ..facts(
                    "graph_parallel",
                    "times faster",
                    count(10),
                    "epochs of 8 chains of 4 components of 1 ms each on 2 threads: with overlap to without",
                )
            },
            LaneJitter => facts(
                "lane_jitter",
                "us late",
                count(1_200),
                "a lane of 1 kHz with rt_policy fifo beside three hogs: how late its ticks begin (size in ms)",
            ),
            GuestSpawnAwait => facts(
                "guest_spawn_await",
                "ns/pair",
                count(10_000),
                "a guest spawns and awaits others that do nothing, one after another, on the reactor",
            ),
            GuestPingPong => facts(
                "guest_ping_pong",
                "ns/round trip",
                count(10_000),
                "two guests over two channels without room, on the reactor",
            ),
            LuaLoop => facts(
                "lua_loop",
                "ns/iteration",
                count(50_000_000),
                "a tight loop in Lua, preempted on demand; the peer is mlua without a hook",
            ),
            LuaMessage => facts(
                "lua_message",
                "ns/round trip",
                count(50_000),
                "a message to another Lua process and one back, on the pool",
            ),
            TcpEcho => facts(
                "tcp_echo",
                "us/round trip",
                count(400),
                "64 connections, each with this many messages of 64 bytes there and back",
            ),
            HttpHello => Facts {
                better: Better::Higher,
                ..facts(
                    "http_hello",
                    "requests/s",
                    count(2),
                    "hyper serves wrk: 64 connections for so many seconds",
                )
            },
            FetchAdd => facts(
                "limits/fetch_add",
                "ns",
                count(10_000_000),
                "uncontended fetch_add",
            ),
            CompareExchange => facts(
                "limits/cas",
                "ns",
                count(10_000_000),
                "uncontended compare_exchange",
            ),
            CacheLine => facts(
                "limits/cache_line",
                "ns",
                count(500_000),
                "a cache line to another thread and back",
            ),
            FutexWake => facts(
                "limits/futex_wake",
                "us",
                count(300),
                "futex wake until the thread runs, after 100 us of idleness",
            ),
            Malloc => facts(
                "limits/malloc",
                "ns",
                count(5_000_000),
                "malloc and free of 128 bytes, hot",
            ),
            InstantNow => facts("limits/instant", "ns", count(5_000_000), "Instant::now"),
        }
    }

    /// The workload of exactly this name.
    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|w| w.facts().name == name)
    }

    /// The workloads that a name on the command line selects: one, or all `limits`.
    pub fn selected(name: &str) -> Vec<Workload> {
        Workload::ALL
            .into_iter()
            .filter(|w| w.facts().name == name || (name == LIMITS && w.is_limit()))
            .collect()
    }

    /// Whether this measures the machine and no peer.
    pub fn is_limit(self) -> bool {
        self.facts().name.strip_prefix(LIMITS).is_some()
    }

    /// The size at `scale` (1 is the size that is reported).
    pub fn size(self, scale: f64) -> u64 {
        match self.facts().size {
            Size::Count(count) => (count as f64 * scale).round().max(1.0) as u64,
            Size::Fib(n) => (n as f64 + scale.ln() / GOLDEN_RATIO.ln()).round().max(2.0) as u64,
        }
    }
}

const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_unique_and_finds_its_workload() {
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.facts().name), Some(workload));
        }
    }

    #[test]
    fn limits_selects_all_of_them() {
        assert_eq!(Workload::selected("limits").len(), 6);
        assert_eq!(Workload::selected("idle"), [Workload::Idle]);
        assert!(Workload::selected("idl").is_empty());
    }

    #[test]
    fn a_tenth_of_the_size_is_a_tenth_of_the_work() {
        assert_eq!(Workload::SpawnExternal.size(0.1), 10_000);
        assert_eq!(Workload::ForkJoinTasks.size(1.0), 25);
        assert_eq!(Workload::ForkJoinTasks.size(0.1), 20);
        assert_eq!(Workload::RemoteWake.size(1e-9), 1);
    }
}
