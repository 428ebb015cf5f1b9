//! The watchdog: one thread that feels every worker's pulse, so that no poll has to read a clock.
//!
//! It sees three things: a worker that stays in one poll for over a millisecond with work queued
//! behind it (it then wakes a worker to steal that, or moves it to the injector), or with no worker
//! in the driver (it then wakes a worker that goes there, or looks there itself if all are stuck),
//! and a worker that stays in one poll past the stall threshold (it then reports the task).
//!
//! It is the one thread with a timer, and only while something runs. When no worker has run
//! anything for a while its period doubles, and then it sleeps until a worker wakes: the flag
//! `asleep` and the workers' pulses are ordered by a fence on each side, as in SLEEP.md.

use std::collections::VecDeque;
use std::time::Duration;

use crate::observe::{Event, EventKind, Stall};
use crate::queue::{Batch, Ring};
use crate::sched::pool::{Pool, StallHook};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Arc, Condvar, Mutex, clock, thread};
use crate::task::contain;
use crate::tuning::{RECORDER_EVENTS, STRANDED_NS, WATCHDOG_WIND_DOWN_NS};

#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    asleep: AtomicBool,
    state: Mutex<State>,
    notified: Condvar,
    /// Tasks moved away from workers that did not come back to them.
    rescued: AtomicU64,
    /// Times that it found every worker asleep and none in the driver.
    driver_rescues: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    awake: bool,
    slow: VecDeque<Event>,
    slow_polls: u64,
}

/// What the watchdog remembers of one worker.
#[derive(Clone, Default)]
struct LastLook {
    polls: u64,
    since: u64,
    reported: bool,
}

impl Watchdog {
    /// A worker woke up.
    pub(crate) fn worker_awake(&self) {
        // Pairs with the fence in `doze`: it sees this worker awake, or we see it asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.notify(|state| state.awake = true);
        }
    }

    pub(crate) fn stop(&self) {
        self.notify(|state| state.stop = true);
    }

    fn notify(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.notified.notify_one();
    }

    /// Tasks that it moved to the injector.
    pub(crate) fn rescued(&self) -> u64 {
        self.rescued.load(Ordering::Relaxed)
    }

    /// Times that it had to send a worker to the driver.
    pub(crate) fn driver_rescues(&self) -> u64 {
        self.driver_rescues.load(Ordering::Relaxed)
    }

    /// Slow polls seen, newest last, bounded.
    pub(crate) fn slow_polls(&self) -> (u64, Vec<Event>) {
        let state = self.state.lock();
        (state.slow_polls, state.slow.iter().copied().collect())
    }

    fn note_slow(&self, event: Event) {
        let mut state = self.state.lock();
        state.slow_polls += 1;
        if state.slow.len() == RECORDER_EVENTS {
            state.slow.pop_front();
        }
        state.slow.push_back(event);
    }

    /// Waits for `period`. True: stop.
    fn wait(&self, period: u64) -> bool {
        let state = self.state.lock();
        if state.stop {
            return true;
        }
        // A timed wait: this is the clock that all other threads do without.
        self.notified
            .wait_for(state, Duration::from_nanos(period))
            .0
            .stop
    }

    /// Sleeps without a timer until a worker wakes. True: stop.
    fn doze(&self, pool: &Pool) -> bool {
        self.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `worker_awake`.
        fence(Ordering::SeqCst);
        let mut state = self.state.lock();
        if pool.idle.counts().unparked == 0 {
            while !state.stop && !state.awake {
                state = self.notified.wait(state);
            }
        }
        state.awake = false;
        self.asleep.store(false, Ordering::Relaxed);
        state.stop
    }
}

/// Starts the watchdog's thread.
pub(crate) fn start(
    pool: Arc<Pool>,
    threshold: Option<Duration>,
    hook: Option<StallHook>,
) -> std::io::Result<thread::JoinHandle<()>> {
    let name = format!("{}-watchdog", pool.config.name);
    thread::spawn(name, 0, move || watch(&pool, threshold, hook))
}

fn watch(pool: &Pool, threshold: Option<Duration>, hook: Option<StallHook>) {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let threshold = threshold.map(nanos);
    let mut seen = vec![LastLook::default(); pool.crew.capacity()];
    let mut quiet = STRANDED_NS;
    let mut lost_before = None;
    loop {
        let sleepers = pool.idle.counts().unparked < pool.workers();
        // With all workers awake there is none to notify, and only stalls are looked for.
        let busy_period = if sleepers {
            STRANDED_NS
        } else {
            threshold.map_or(10 * STRANDED_NS, |t| {
                (t / 4).clamp(STRANDED_NS, 10 * STRANDED_NS)
            })
        };
        if pool.watchdog.wait(busy_period.max(quiet)) {
            return;
        }
        let now = clock::now();
        let mut active = false;
        let mut stuck = 0;
        for (index, seen) in seen.iter_mut().enumerate().take(pool.crew.used_ids()) {
            active |= look(pool, index, now, seen, threshold, hook.as_ref());
            let is_busy = pool.crew.remote(index).pulse.is_busy();
            stuck += usize::from(is_busy && now.saturating_sub(seen.since) >= STRANDED_NS);
        }
        if stuck >= pool.workers() {
            tend_driver(pool, now);
        }
        // The looks at the workers are one after the other, and one of them may have moved
        // meanwhile. So it counts if two looks in a row say so, and no worker has run anything in
        // between.
        let lost_at = pool.driver_is_lost().then(|| pool.polls());
        active |= lost_at.is_some();
        if std::mem::replace(&mut lost_before, lost_at) == lost_at && lost_at.is_some() {
            rescue_driver(pool);
        }
        quiet = if active {
            0
        } else {
            (quiet * 2).max(STRANDED_NS)
        };
        if quiet > WATCHDOG_WIND_DOWN_NS {
            if pool.watchdog.doze(pool) {
                return;
            }
            quiet = 0;
        }
    }
}

/// No worker hears of timers and sockets: sends one there. The protocol of SLEEP.md says that this
/// does not happen; the count shows it if it does.
#[cold]
fn rescue_driver(pool: &Pool) {
    pool.watchdog.driver_rescues.fetch_add(1, Ordering::Relaxed);
    if std::env::var_os(ABORT_ON_RESCUE).is_some() {
        eprintln!("windlass: no worker was left to listen to timers and sockets");
        std::process::abort();
    }
    pool.announce();
}

/// With this in the environment a rescue of the driver ends the process. The tests of this project
/// run with it: a rescue is a bug of ours, and must not hide one.
const ABORT_ON_RESCUE: &str = "WINDLASS_ABORT_ON_RESCUE";

/// Every worker is inside a poll that does not end: timers and events of threads that are no
/// workers would wait for ever, a shutdown's deadline among them.
fn tend_driver(pool: &Pool, now: u64) {
    pool.poll_driver(now);
    // Pairs with the fence in `Idle::publish`: a worker that found the driver taken just now, and
    // parked elsewhere, is seen here and called, and sits down there.
    fence(Ordering::SeqCst);
    if pool.idle.counts().unparked < pool.workers() {
        pool.announce();
    }
}

/// Feels one worker's pulse. True: it has done something since the last look.
fn look(
    pool: &Pool,
    index: usize,
    now: u64,
    seen: &mut LastLook,
    threshold: Option<u64>,
    hook: Option<&StallHook>,
) -> bool {
    let remote = pool.crew.remote(index);
    let polls = remote.pulse.polls();
    if polls != seen.polls || !remote.pulse.is_busy() {
        let moved = polls != seen.polls;
        *seen = LastLook {
            polls,
            since: now,
            reported: false,
        };
        return moved;
    }
    let stuck = now.saturating_sub(seen.since);
    let queued_behind = remote.ring.len() + usize::from(!remote.slot.is_empty());
    if stuck >= STRANDED_NS {
        if queued_behind > 0 {
            rescue(pool, index);
        } else if !pool.injector.is_empty()
            || pool.classes.any()
            || pool.driver_is_deserted()
            || (pool.config.stealing && !remote.forks.is_empty())
        {
            // Work for any worker, which it thought it would soon come to; or it left the driver to
            // run this, and another worker has to wait for timers and I/O: the notified worker
            // finds no work and sits down there; or half of a join that turns out to be long.
            pool.announce();
        }
    }
    if let Some(threshold) = threshold
        && stuck >= threshold
    {
        remote.stalled_ns.fetch_max(stuck, Ordering::Relaxed);
        if !seen.reported {
            seen.reported = true;
            report(pool, index, stuck, queued_behind, hook);
        }
    }
    true
}

/// Work is queued behind a worker that does not come back: wake a worker that steals it. If all are
/// awake, they may be busy for ever with their own; then it moves to the injector, where every
/// worker looks at an interval.
fn rescue(pool: &Pool, index: usize) {
    let workers = pool.workers();
    if workers == 1 || !pool.config.stealing {
        return;
    }
    if pool.idle.counts().unparked < workers {
        return pool.announce();
    }
    let victim = pool.crew.remote(index);
    let own = Ring::new();
    let mut batch = Batch::default();
    if let Some((last, _)) = victim.ring.steal_into(&own) {
        for item in std::iter::from_fn(|| own.pop()).chain([last]) {
            // SAFETY: rule 1: the steal made the entry ours, and we give it to the batch.
            unsafe { batch.push(item) };
        }
    }
    if let Some(item) = victim.slot.steal() {
        // SAFETY: as above.
        unsafe { batch.push(item) };
    }
    if !batch.is_empty() {
        let count = batch.len() as u64;
        // Relaxed: a count for people.
        pool.watchdog.rescued.fetch_add(count, Ordering::Relaxed);
        pool.inject_batch(batch);
        pool.announce();
    }
}

fn report(pool: &Pool, worker: usize, stuck: u64, queued_behind: usize, hook: Option<&StallHook>) {
    let beat = pool.crew.remote(worker).pulse.read();
    let at = clock::now();
    pool.watchdog.note_slow(Event {
        kind: EventKind::SlowPoll,
        at,
        worker,
        argument: beat.id,
    });
    let stall = Stall {
        worker,
        duration: Duration::from_nanos(stuck),
        task: beat.id,
        name: beat.name,
        location: beat.location,
        queued_behind,
    };
    if let Some(hook) = hook {
        // A panicking hook must not end the watch.
        contain(|| hook(&stall));
    }
}
