//! A worker: an OS thread that runs the tasks of one pool.
//!
//! Designs that were rejected, and why:
//!
//! - *A private buffer for batches from the injector*: no worker can steal from it,
//!   so a long task at its head strands the rest. Batches go straight into the ring.
//! - *Popping several tasks from the own ring per exchange*: the same objection.
//! - *A `transitioning_to_park` flag*: only the owner fills its slot and ring, and it parks only
//!   when both are empty, so there is nothing to guard.
//! - *A park timeout*: it hides lost wake-ups. See SLEEP.md for why there are none.
//! - *Waking a sleeper for every spawn*: 7 us each. A searcher is enough, and it wakes the next one
//!   itself when it finds that there is more.
//! - *Measuring every poll*: two clock reads cost more than the poll. Time is read once per check.

mod announce;
mod leave;
mod pace;
mod park;
mod pinned;
mod push;
mod search;

use std::cell::{Cell, RefCell};

use self::announce::Gate;
use self::pace::{Pace, Yields, interval_for};
use self::pinned::Pinned;
use self::search::Spinning;
use crate::observe::EventKind;
use crate::queue::JobRef;
use crate::sched::fork::CurrentResume;
use crate::sched::pool::{EventHook, Pool};
use crate::sched::remote::Remote;
use crate::sched::stop::Phase;
use crate::sync::{Arc, XorShift, clock};
use crate::task::state::Home;
use crate::task::{Class, Entry, Header, RunOutcome, Scheduler, Shard, contain};
use crate::tuning::{
    BATCH_MAX, BATCH_MIN, BATCH_USUAL, HIGH_PICKS_IN_A_ROW, INITIAL_POLL_NS, Policy, RING_CAPACITY,
    TIME_ONE_IN,
};

/// The thread's own half of a worker. The half others may touch is its [`Remote`].
pub(crate) struct Worker {
    pub(crate) pool: Arc<Pool>,
    /// The other half, at hand without a look into the pool's array.
    remote: Arc<Remote>,
    pub(crate) index: usize,
    pub(super) policy: Policy,
    /// Everything goes through the injector.
    in_order: bool,
    shard: Shard,
    rng: RefCell<XorShift>,
    searching: Cell<bool>,
    /// True if it was woken and has not searched since.
    called: Cell<bool>,
    phase: Cell<Phase>,
    slot_run: Cell<u32>,
    /// Tasks taken from the slot in a row before others have a turn; 0 while there are pinned ones.
    slot_limit: Cell<u32>,
    high_run: Cell<u32>,
    /// The last turn in which a task used a full time slice, by the number of polls. If that task
    /// wants another turn, it goes behind those of all workers.
    long_turn: Cell<u64>,
    numbered: Cell<u64>,
    spawned: Cell<u64>,
    woken: Cell<u64>,
    sample_mask: Cell<u64>,
    pace: Pace,
    lone: Gate,
    lone_skip: Cell<u32>,
    /// What the search found when there was no task.
    job: Cell<Option<JobRef>>,
    /// Joins that might have forked.
    pub(super) joins: Cell<u32>,
    pub(super) resume: CurrentResume,
    pub(super) fork_gate: Gate,
    spinning: Spinning,
    event_sink: Option<EventSink>,
    pinned: Pinned,
}

/// The listener that a worker reports its recorded events to.
struct EventSink {
    hook: EventHook,
    /// Events reported so far.
    reported: Cell<u64>,
}

impl Worker {
    pub(crate) fn new(pool: Arc<Pool>, index: usize, on_events: Option<EventHook>) -> Worker {
        let seed = pool.config.seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let remote = pool.crew.remote(index).clone();
        let shard = remote.registry.owner();
        let policy = pool.config.policy;
        let interval = interval_for(&policy, INITIAL_POLL_NS);
        Worker {
            remote,
            policy,
            in_order: pool.config.in_order,
            shard,
            rng: RefCell::new(XorShift::new(seed)),
            searching: Cell::new(false),
            called: Cell::new(false),
            phase: Cell::new(Phase::Running),
            slot_run: Cell::new(0),
            slot_limit: Cell::new(policy.slot_polls),
            high_run: Cell::new(0),
            long_turn: Cell::new(0),
            numbered: Cell::new(0),
            spawned: Cell::new(0),
            woken: Cell::new(0),
            sample_mask: Cell::new(pool.recording().mask()),
            pace: Pace {
                countdown: Cell::new(interval),
                batch: Cell::new(interval),
                batch_began: Cell::new(clock::now()),
                since_injector: Cell::new(0),
                injected: Cell::new(false),
                poll_ns: Cell::new(INITIAL_POLL_NS),
                interval: Cell::new(interval),
                yields: Yields::default(),
            },
            lone: Gate::default(),
            lone_skip: Cell::new(0),
            job: Cell::new(None),
            joins: Cell::new(0),
            resume: CurrentResume::default(),
            fork_gate: Gate::default(),
            spinning: Spinning::default(),
            event_sink: on_events.map(|hook| EventSink {
                hook,
                reported: Cell::new(0),
            }),
            pinned: Pinned::default(),
            index,
            pool,
        }
    }

    #[inline(always)]
    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Runs tasks until the pool exits, or a root has ended (`Pool::run_until`).
    pub(crate) fn run(&self) {
        self.remote().pulse.set_busy(true);
        self.pool.watchdog.worker_awake();
        loop {
            if self.pool.stop.has_notice() && !self.heed() {
                self.report_events();
                return;
            }
            match self.find() {
                Some(entry) => {
                    if self.searching.get() {
                        self.end_search();
                    }
                    self.turn(entry);
                }
                // A job, because there was no task: look again from the start.
                None if self.found_job() => {}
                // A listener may have made work.
                None if self.report_events() => {}
                None => self.park(),
            }
        }
    }

    /// Reports the events that were recorded since the last call; returns true if there were any.
    /// Never called inside a poll or a wake, because the listener may wake and spawn.
    fn report_events(&self) -> bool {
        let Some(event_sink) = &self.event_sink else {
            return false;
        };
        let recorder = &self.remote().recorder;
        let (before, now) = (event_sink.reported.get(), recorder.recorded());
        if before == now {
            return false;
        }
        event_sink.reported.set(now);
        let new = recorder.read_since(before, self.index);
        let lost = now - before - new.len() as u64;
        contain(|| (event_sink.hook)(&new, lost));
        true
    }

    /// The next task, in order of preference.
    #[inline]
    fn find(&self) -> Option<Entry> {
        self.take_due()
            .or_else(|| self.take_local())
            .or_else(|| self.take_left_for_us())
            .or_else(|| self.take_injected())
            .or_else(|| self.search())
    }

    /// Gives one task its turn.
    #[inline]
    pub(crate) fn turn(&self, entry: Entry) {
        let remote = self.remote();
        if self.phase.get() != Phase::Running && !self.begin_last_turn(&entry) {
            return entry.refuse();
        }
        let polls = remote.pulse.begin(entry.header());
        let ran = if polls & self.sample_mask.get() == 0 {
            self.run_observed(entry, polls)
        } else {
            entry.run(self)
        };
        match ran {
            RunOutcome::Idle => {}
            RunOutcome::Complete => remote.counters.completed.one(),
            RunOutcome::Again(entry) if self.long_turn.get() == polls => self.pool.inject(entry),
            RunOutcome::Again(entry) => {
                self.note_yield(polls);
                self.push_tail(entry);
            }
        }
    }

    /// Marks the running task as having used a full time slice: if it yields, it goes to the
    /// injector instead of this worker's ring. The mark is gone when the turn ends otherwise.
    pub(crate) fn note_long_turn(&self) {
        self.long_turn.set(self.remote().pulse.polls());
    }

    /// As `run`, but recorded, and sometimes timed.
    #[cold]
    fn run_observed(&self, entry: Entry, polls: u64) -> RunOutcome {
        self.record_frequent(EventKind::Poll, entry.header().id().get());
        if !polls.is_multiple_of(TIME_ONE_IN) {
            return entry.run(self);
        }
        let began = clock::now();
        let ran = entry.run(self);
        self.remote()
            .counters
            .longest_ns
            .raise_to(clock::now() - began);
        ran
    }

    /// Records an event that is too frequent for a look at the clock: it has the time of its batch.
    fn record_frequent(&self, kind: EventKind, argument: u64) {
        self.remote()
            .recorder
            .record_at(kind, argument, self.pace.batch_began.get());
    }

    // ---- where tasks come from ------------------------------------------------------------

    /// What comes before local work: the high class, and at its interval the injector.
    #[inline]
    fn take_due(&self) -> Option<Entry> {
        if self.pool.classes.any()
            && let Some(entry) = self.take_high()
        {
            return Some(entry);
        }
        let left = self.pace.countdown.get() - 1;
        self.pace.countdown.set(left);
        if left == 0 { self.check() } else { None }
    }

    #[cold]
    fn take_high(&self) -> Option<Entry> {
        if self.high_run.get() >= HIGH_PICKS_IN_A_ROW {
            self.high_run.set(0);
            return None;
        }
        let entry = self.pool.classes.pop(Class::High);
        self.high_run.set(if entry.is_some() {
            self.high_run.get() + 1
        } else {
            0
        });
        entry
    }

    /// Between batches of polls: measure, keep the house, and look at what would starve.
    #[cold]
    fn check(&self) -> Option<Entry> {
        let now = clock::now();
        let polls = self.pace.batch.get();
        self.sample_mask.set(self.pool.recording().mask());
        self.report_events();
        self.measure(now, polls);
        let since = self.pace.since_injector.get() + polls;
        self.pace.since_injector.set(since);
        if let Some(entry) = self.pool.classes.pop_aged(now) {
            self.remote().counters.aged.one();
            return Some(entry);
        }
        if since < self.pace.interval.get() {
            return None;
        }
        self.pace.since_injector.set(0);
        self.empty_inbox();
        self.pool.poll_driver(now);
        if self.in_order {
            // What is in the ring came before.
            return None;
        }
        // Where polls are long this is before every one of them. What is local has every second
        // turn then: an injector that is never empty would starve it.
        if self.pace.injected.replace(false) && since == 1 && self.has_local() {
            return None;
        }
        // One, not a batch: local work is there too, and a batch would only push that out, to the
        // other workers and their caches.
        let entry = self.take_from_injector(1);
        self.pace.injected.set(entry.is_some());
        entry
    }

    /// Whether something is queued here that `take_local` gives.
    fn has_local(&self) -> bool {
        let remote = self.remote();
        !remote.ring.is_empty() || !remote.slot.is_empty() || self.has_pinned()
    }

    /// What is queued here: the slot, a few times in a row at most, then the ring.
    #[inline]
    fn take_local(&self) -> Option<Entry> {
        if self.slot_run.get() < self.slot_limit.get() {
            if let Some(item) = self.remote().slot.take() {
                return Some(self.picked_from_slot(item));
            }
            return self.take_ring();
        }
        self.take_in_turn()
    }

    /// The slot has had its turns, or there are tasks that only this worker may run: these and the
    /// others take turns.
    #[inline(never)]
    fn take_in_turn(&self) -> Option<Entry> {
        if !self.has_pinned() {
            self.slot_run.set(0);
            return self.take_ring().or_else(|| self.take_slot());
        }
        let turn = self.pinned.turn.get();
        self.pinned.turn.set(!turn);
        if turn {
            self.take_pinned().or_else(|| self.take_shared())
        } else {
            self.take_shared().or_else(|| self.take_pinned())
        }
    }

    fn take_slot(&self) -> Option<Entry> {
        let item = self.remote().slot.take()?;
        Some(self.picked_from_slot(item))
    }

    /// As `take_local`, whatever else is here.
    fn take_shared(&self) -> Option<Entry> {
        if self.slot_run.get() < self.policy.slot_polls {
            return self.take_slot().or_else(|| self.take_ring());
        }
        self.slot_run.set(0);
        self.take_ring().or_else(|| self.take_slot())
    }

    #[inline]
    fn picked_from_slot(&self, item: std::ptr::NonNull<Header>) -> Entry {
        self.slot_run.set(self.slot_run.get() + 1);
        self.remote().counters.slot_polls.one();
        // SAFETY: rule 1: the queue owned the entry and has handed it over.
        unsafe { Entry::from_raw(item) }
    }

    #[inline]
    fn take_ring(&self) -> Option<Entry> {
        let item = self.remote().ring.pop()?;
        self.slot_run.set(0);
        // SAFETY: rule 1: the queue owned the entry and has handed it over.
        Some(unsafe { Entry::from_raw(item) })
    }

    /// A batch from the injector: this worker's fair share.
    #[inline]
    fn take_injected(&self) -> Option<Entry> {
        if self.pool.injector.is_empty() {
            return None;
        }
        let share = self.pool.injector.len() / self.pool.workers().max(1);
        let usual = share.clamp(BATCH_MIN, BATCH_USUAL);
        self.take_from_injector(if share > BATCH_MAX { BATCH_MAX } else { usual })
    }

    /// Up to `wanted` tasks from the injector: the first is run, the others go into the ring.
    fn take_from_injector(&self, wanted: usize) -> Option<Entry> {
        if self.pool.injector.is_empty() {
            return None;
        }
        let ring = &self.remote().ring;
        let most = wanted.min(RING_CAPACITY / 2).min(ring.room() + 1);
        let mut first = None;
        let home = self.pool.as_home();
        self.pool.injector.take(most, |item| {
            // SAFETY: rule 4: the entry has left the queue and is ours.
            unsafe { item.as_ref() }.set_home(home);
            if first.is_none() {
                first = Some(item);
            } else if ring.push(item).is_err() {
                unreachable!("room was checked, and only the owner fills the ring");
            }
        });
        // SAFETY: rule 1: the queue owned the entry and has handed it over.
        first.map(|item| unsafe { Entry::from_raw(item) })
    }

    pub(crate) fn budget_exhausted(&self) {
        self.remote().counters.budget_exhaustions.one();
    }
}

impl Scheduler for Worker {
    fn register(&self, header: &Header) {
        // An unconfined task may outlive this pool; its maker knows it.
        if header.state.load().home() == Home::Pool {
            self.shard.register(header);
        }
    }

    #[inline]
    fn is_stopping(&self) -> bool {
        self.pool.stop.is_stopping()
    }

    fn ended_early(&self, header: &Header, panicked: bool) {
        let remote = self.remote();
        let (counter, kind) = if panicked {
            (&remote.counters.panics, EventKind::Panic)
        } else {
            (&remote.counters.cancels, EventKind::Cancel)
        };
        counter.one();
        remote.recorder.record(kind, header.id().get());
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
