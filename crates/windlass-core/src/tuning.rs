//! The numbers that the scheduler is tuned by, each with its reason. How much a thief takes from a
//! ring is in `queue/ring.rs`, and how long the driver pauses in the runtime's `driver/`.
//!
//! Under the model checkers the sizes shrink, so that the edges are reached in a few steps.

/// Slots in a worker's ring. A power of two; large enough that a burst of wake-ups stays local,
/// small enough (2 KiB of pointers) that the ring lives in the first-level cache.
pub const RING_CAPACITY: usize = if cfg!(windlass_loom) {
    4
} else if cfg!(windlass_shuttle) {
    8
} else {
    256
};

/// Jobs a worker's deque holds before it grows: joins fork lazily and need few, a scope may need
/// many.
pub const FORK_CAPACITY: usize = if cfg!(any(windlass_loom, windlass_shuttle)) {
    2
} else {
    64
};

/// With so many jobs in its own deque a worker runs both halves of a join itself: thieves have
/// enough to take, and when they have taken it the next join forks again. That leaves about n^3 / 6
/// forks in a tree of depth n, 5,000 of 3.5 million in fib(32).
pub const FORK_ENOUGH: usize = 3;
/// One in so many joins forks all the same: in a recursion that is a list and not a tree, the
/// halves that wait are in frames that make no join any more, and no other frame could ever take
/// them.
pub const FORK_ONE_IN: u32 = 64;

/// Polls between two maintenance passes of a worker (the tick).
pub const POLLS_PER_TICK: u32 = if cfg!(windlass_shuttle) { 4 } else { 128 };

/// Operations that one single poll may make on always-ready leaves before they report pending.
pub const BUDGET_PER_POLL: u8 = 128;

/// Consecutive polls from the LIFO slot before the ring has its turn.
pub const SLOT_POLLS: u32 = 3;

/// Fewest tasks that are worth one lock of the injector's outbox.
pub const BATCH_MIN: usize = 4;
/// The usual largest batch out of the injector.
pub const BATCH_USUAL: usize = 32;
/// The largest batch, taken only when the fair share exceeds it.
pub const BATCH_MAX: usize = 64;

/// Tasks the injector holds before `try_spawn` is refused. `spawn` and wakes are never refused.
pub const INJECTOR_CAPACITY: usize = 65_536;

/// How long a task in the injector may wait while every worker has local work.
pub const TARGET_LATENCY_NS: u64 = 1_000_000;
/// Estimate of a poll's length before anything has been measured (interval 20).
pub const INITIAL_POLL_NS: u64 = 50_000;
/// Shortest injector interval. With 8, tasks of 1 ms would wait longer than the target of 1 ms.
pub const INTERVAL_MIN: u32 = 1;
/// Longest injector interval.
pub const INTERVAL_MAX: u32 = 255;
/// Weight of a new sample in the running mean of poll lengths: 1/10.
pub const EWMA_DIVISOR: u64 = 10;

/// Rounds of a search that only pause the core for a moment.
pub const SPIN_TIGHT: u32 = if cfg!(windlass_shuttle) { 1 } else { 4 };
/// Rounds after which a search ends; those past `SPIN_TIGHT` give the core away.
pub const SPIN_YIELD: u32 = if cfg!(windlass_shuttle) { 2 } else { 16 };
/// Pauses inside one tight round. Together the tight rounds last about a microsecond: the cost of
/// a steal that just missed, not of a wake-up.
pub const SPIN_PAUSES: u32 = 32;

/// Pauses before a taken lock is tried a second time; they double from try to try.
///
/// The long pause is the point: the holder of the lock goes on with its cache lines for hundreds of
/// operations instead of giving them away for each. Measured on two cores, against trying at once:
/// channels of four senders 42 -> 18 ns per message, a broadcast 137 -> 53.
pub const LOCK_PAUSES_FIRST: u32 = 32;
/// Pauses before the last try; after it (some 20 us in all) the thread sleeps until the lock is
/// free.
pub const LOCK_PAUSES_LAST: u32 = 512;

/// Victims that one search round probes by default; the look before sleeping visits all.
pub const VICTIMS_PER_SEARCH: usize = 4;

/// I/O events taken by one non-blocking look into the driver.
pub const MAX_IO_COMPLETIONS: usize = 256;

/// Picks of the high class in a row before one normal task runs.
pub const HIGH_PICKS_IN_A_ROW: u32 = 63;
/// Age past which the head of the low class is the next pick of any worker.
pub const LOW_AGE_NS: u64 = 100_000_000;
/// Age past which the head of the background class is the next pick of any worker.
pub const BACKGROUND_AGE_NS: u64 = 1_000_000_000;

/// A lone task in the slot is usually run by its own worker a moment later, so telling a sleeper
/// about it is worth 7 us only if the sleeper then takes it. After a wasted call the next one
/// waits this long, and twice as long each time ...
pub const LONE_NOTIFY_MIN_NS: u64 = 50_000;
/// ... up to this. A steal that leaves the worker something to do resets it; one that leaves it
/// without has only moved a chain from one worker to another. The watchdog covers what the gate
/// holds back.
pub const LONE_NOTIFY_MAX_NS: u64 = 12_800_000;
/// Lone spawns between two looks at the clock while the gate is closed.
pub const LONE_NOTIFY_STRIDE: u32 = 16;

/// A worker that stays in one poll for longer has its queue announced to a sleeper.
pub const STRANDED_NS: u64 = 1_000_000;
/// Default threshold of the slow-task detector.
pub const STALL_NS: u64 = 50_000_000;
/// The watchdog's period grows to this while nothing runs, and then it sleeps without a timer.
/// Short, because idle means idle; waking it again costs 7 us per quiet spell.
pub const WATCHDOG_WIND_DOWN_NS: u64 = 8_000_000;

/// Past a shutdown's deadline: a worker that stays in one poll for this long is stuck ...
pub const GRACE_NS: u64 = 100_000_000;
/// ... and this is how long dropping what is left may take in all.
pub const FORCE_LIMIT_NS: u64 = 10_000_000_000;
/// Leaked tasks that a shutdown names; the others are counted. A report is for people.
pub const NAMED_LEAKS: usize = 16;

/// Task blocks in one magazine of the block cache.
pub const MAGAZINE: usize = 64;
/// Full magazines the depot keeps per size class; what exceeds them goes back to malloc.
pub const DEPOT_MAGAZINES: usize = 2048;

/// Ids for workers that replace others while these block: as many as there are workers, and at
/// least this. An id that no worker ever had is a few words.
pub const SPARE_WORKERS: usize = if cfg!(any(windlass_loom, windlass_shuttle)) {
    1
} else {
    64
};

/// Events a worker's flight recorder keeps.
pub const RECORDER_EVENTS: usize = if cfg!(any(windlass_loom, windlass_shuttle)) {
    16
} else {
    1024
};
/// One in so many spawns, polls and wakes is recorded while recording is sampled.
pub const SAMPLE_ONE_IN: u64 = 64;

/// Turns in a row, all of tasks that yield, before a worker without other tasks looks into the
/// driver for the first time. A task that spins until a socket is ready waits so long at most, if
/// the socket is ready when it begins.
pub const YIELDS_PER_LOOK: u32 = 8;
/// The most turns between two such looks, whose distance doubles: by then the regular looks are
/// more frequent.
pub const YIELDS_PER_LOOK_MAX: u32 = 1024;

/// While everything is recorded, polls that share one time stamp: a clock read costs as much as
/// four events.
pub const POLLS_PER_STAMP: u32 = 16;
/// One in so many polls is timed, if it is recorded at all.
pub const TIME_ONE_IN: u64 = 1024;

/// Cache-line distance that keeps two cores apart (two lines: adjacent-line prefetch).
pub const CACHE_LINE: usize = 128;

/// Queued work that takes less than this is not worth waking a sleeper for: the wake costs the
/// waker 7 us, and 30 us pass until the other one runs.
pub const WORTH_A_WAKE_NS: u64 = 20_000;

/// A search that goes on for the full time pays only if something comes meanwhile. After one that
/// did, so many more do; otherwise one in so many, to notice when it begins to pay.
pub const SPIN_PROBE_ONE_IN: u32 = 8;
/// A yield that takes longer than this has given the core to another thread: the machine is busy,
/// and going on would pay for two switches each time. Alone, it takes 0.7 us here.
pub const YIELD_NS: u64 = 5_000;
/// Searches after such a yield that do not yield at all.
pub const SPIN_GREEDY_SEARCHES: u32 = 64;

/// The numbers that weigh how soon something runs against how much runs in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long what is in the injector may wait for a busy worker.
    pub target_latency_ns: u64,
    /// Tasks taken from the slot in a row.
    pub slot_polls: u32,
    /// Queued work that takes less than this, by the mean of the last polls, is left to the worker
    /// that has it; more of it wakes a sleeper.
    pub worth_a_wake_ns: u64,
    /// The first pause between two calls for help with a single task.
    pub lone_notify_min_ns: u64,
    /// The longest such pause.
    pub lone_notify_max_ns: u64,
}

impl Policy {
    /// The most work in the least time.
    pub const THROUGHPUT: Policy = Policy {
        target_latency_ns: TARGET_LATENCY_NS,
        slot_polls: SLOT_POLLS,
        worth_a_wake_ns: WORTH_A_WAKE_NS,
        lone_notify_min_ns: LONE_NOTIFY_MIN_NS,
        lone_notify_max_ns: LONE_NOTIFY_MAX_NS,
    };

    /// Everything soon: a sleeper is woken (7 us for the one who wakes) as soon as there is
    /// anything that it could run.
    pub const LATENCY: Policy = Policy {
        target_latency_ns: TARGET_LATENCY_NS / 10,
        slot_polls: 1,
        worth_a_wake_ns: 0,
        lone_notify_min_ns: 0,
        lone_notify_max_ns: 0,
    };
}

/// Times that a cancelled coroutine is notified of that before it is given up: one that catches its
/// cancellation and waits again has shown by then that it will go on doing so.
pub const CANCEL_RESUMES: usize = 1_000;

/// Nested destructors of outputs and messages before the first fresh stack: each takes up to 3 KiB
/// in a build without optimisation, and a coroutine has 64 KiB of which it has used some.
pub const NESTED_DROPS_AT_FIRST: u32 = 8;
/// The same on a fresh stack of a megabyte.
pub const NESTED_DROPS_PER_STACK: u32 = 200;
