//! A worker: an OS thread that runs the tasks of one pool.
//!
//! Designs that were rejected, and why:
//!
//! - *A private buffer for batches from the injector* (the base text): nobody can steal from it, so
//!   a long task at its head strands the rest. Batches go straight into the ring.
//! - *Popping several tasks from the own ring per exchange*: the same objection.
//! - *A `transitioning_to_park` flag*: only the owner fills its slot and ring, and it parks only
//!   when both are empty, so there is nothing to guard.
//! - *A park timeout*: it hides lost wake-ups. See SLEEP.md for why there are none.
//! - *Waking a sleeper for every spawn*: 7 us each. A searcher is enough, and it wakes the next one
//!   itself when it finds that there is more.
//! - *Measuring every poll*: two clock reads cost more than the poll. Time is read once per check.

mod pinned;
mod search;

use std::cell::{Cell, RefCell};

use self::pinned::Pinned;
use self::search::Spinning;
use crate::observe::EventKind;
use crate::queue::{Batch, JobRef};
use crate::sched::fork::CurrentResume;
use crate::sched::pool::{EventHook, Pool};
use crate::sched::remote::Remote;
use crate::sched::stop::Phase;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, XorShift, clock};
use crate::task::state::Home;
use crate::task::{Class, Entry, Header, Ran, Scheduler, Shard, TaskId, contain};
use crate::tuning::{
    BATCH_MAX, BATCH_MIN, BATCH_USUAL, EWMA_DIVISOR, HIGH_PICKS_IN_A_ROW, INITIAL_POLL_NS,
    INTERVAL_MAX, INTERVAL_MIN, LONE_NOTIFY_STRIDE, POLLS_PER_STAMP, POLLS_PER_TICK, Policy,
    RING_CAPACITY, TIME_ONE_IN,
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
    /// Woken by somebody and not searched since.
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
    narration: Option<Narration>,
    pinned: Pinned,
}

/// Telling somebody what is recorded.
struct Narration {
    hook: EventHook,
    /// Events told so far.
    told: Cell<u64>,
}

/// When to look at the clock, the injector and the driver.
struct Pace {
    /// Polls until the next check.
    countdown: Cell<u32>,
    /// Polls in the batch that is being measured, when `countdown` reaches 0.
    batch: Cell<u32>,
    batch_began: Cell<u64>,
    since_injector: Cell<u32>,
    /// The last look at the injector found something.
    injected: Cell<bool>,
    poll_ns: Cell<u64>,
    interval: Cell<u32>,
}

/// Holds back calls for help, after calls that were wasted.
#[derive(Default)]
pub(super) struct Gate {
    step: Cell<u64>,
    until: Cell<u64>,
}

impl Gate {
    /// Whether to call now; that counts as wasted until somebody has come and taken something.
    pub(super) fn opens(&self, policy: &Policy, robbed: &AtomicBool) -> bool {
        if robbed.swap(false, Ordering::Relaxed) {
            self.step.set(0);
        }
        let now = clock::now();
        if self.step.get() > 0 && now < self.until.get() {
            return false;
        }
        let step =
            (self.step.get() * 2).clamp(policy.lone_notify_min_ns, policy.lone_notify_max_ns);
        self.step.set(step);
        self.until.set(now + step);
        true
    }
}

/// Local sets that tasks of this worker have forgotten, or keep in its thread-locals: their coroutines
/// unwind while the thread is still a worker of the pool on which they began.
fn finish_local_sets() {
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    crate::thread_end::finish();
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
            },
            lone: Gate::default(),
            lone_skip: Cell::new(0),
            job: Cell::new(None),
            joins: Cell::new(0),
            resume: CurrentResume::default(),
            fork_gate: Gate::default(),
            spinning: Spinning::default(),
            narration: on_events.map(|hook| Narration {
                hook,
                told: Cell::new(0),
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

    /// Runs tasks until the pool exits.
    pub(crate) fn run(&self) {
        self.remote().pulse.set_busy(true);
        self.pool.watchdog.worker_awake();
        loop {
            if self.pool.stop.has_notice() && !self.heed() {
                self.narrate();
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
                // Whoever listens may have made work.
                None if self.narrate() => {}
                None => self.park(),
            }
        }
    }

    /// The pool stops, or has too many workers. False: this one leaves.
    #[cold]
    fn heed(&self) -> bool {
        if self.pool.stop.is_stopping() {
            let stays = self.stopping();
            if !stays {
                finish_local_sets();
                self.leave();
            }
            return stays;
        }
        let leaves = self.pinned.alive.get() == 0 && self.pool.crew.may_leave(&self.pool);
        if leaves {
            finish_local_sets();
            self.retire();
        }
        !leaves
    }

    /// Leaves a pool that goes on. What is queued here goes where everybody looks.
    fn retire(&self) {
        let mut batch = Batch::default();
        while let Some(entry) = self.take_shared() {
            // SAFETY: rule 1: we own the entry and give it to the batch.
            unsafe { batch.push(entry.into_raw()) };
        }
        if !batch.is_empty() {
            self.pool.inject_batch(batch);
        }
        self.remote().pulse.set_busy(false);
        let is_deserted = self.pool.leave_idle_set(self.searching.replace(false));
        self.pool.stop.drained(self.index);
        // After the fence in `leave`, too.
        if is_deserted || self.pool.has_work(self.index) {
            self.pool.announce();
        }
    }

    /// Tells what was recorded since the last time; true if there was something. Never inside a poll
    /// or a wake: the listener may wake and spawn.
    fn narrate(&self) -> bool {
        let Some(narration) = &self.narration else {
            return false;
        };
        let recorder = &self.remote().recorder;
        let (before, now) = (narration.told.get(), recorder.recorded());
        if before == now {
            return false;
        }
        narration.told.set(now);
        let new = recorder.read_since(before, self.index);
        let lost = now - before - new.len() as u64;
        contain(|| (narration.hook)(&new, lost));
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
            Ran::Idle => {}
            Ran::Complete => remote.counters.completed.one(),
            Ran::Again(entry) if self.long_turn.get() == polls => self.pool.inject(entry),
            Ran::Again(entry) => self.push_tail(entry),
        }
    }

    /// Marks the running task as having used a full time slice: if it yields, it goes to the
    /// injector instead of this worker's ring. The mark is gone when the turn ends otherwise.
    pub(crate) fn note_long_turn(&self) {
        self.long_turn.set(self.remote().pulse.polls());
    }

    /// As `run`, but recorded, and sometimes timed.
    #[cold]
    fn run_observed(&self, entry: Entry, polls: u64) -> Ran {
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
        self.narrate();
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
        // Where polls are long this is before every one of them. What is local has every second turn then: an injector
        // that is never empty would starve it.
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

    /// Takes a batch's time into the running mean and starts the next batch.
    fn measure(&self, now: u64, polls: u32) {
        let elapsed = now.saturating_sub(self.pace.batch_began.get());
        let counters = &self.remote().counters;
        counters.run_ns.add(elapsed);
        counters.run_polls.add(polls as u64);
        if polls == 1 {
            counters.longest_ns.raise_to(elapsed);
        }
        let sample = elapsed / polls.max(1) as u64;
        let mean = (self.pace.poll_ns.get() * (EWMA_DIVISOR - 1) + sample) / EWMA_DIVISOR;
        self.pace.poll_ns.set(mean);
        self.pace.interval.set(interval_for(&self.policy, mean));
        self.remote()
            .interval
            .store(self.pace.interval.get(), Ordering::Relaxed);
        self.begin_batch(now);
    }

    /// Takes a batch into the mean that ends early, because there is nothing left to poll.
    fn measure_rest(&self) {
        // The look that found nothing was counted, too.
        let looks = self.pace.batch.get() - self.pace.countdown.get();
        let polls = looks.saturating_sub(1);
        if polls > 0 {
            self.measure(clock::now(), polls);
        }
    }

    pub(super) fn begin_batch(&self, now: u64) {
        let most = if self.sample_mask.get() == 0 {
            POLLS_PER_STAMP
        } else {
            POLLS_PER_TICK
        };
        let batch = self.pace.interval.get().min(most);
        self.pace.batch.set(batch);
        self.pace.countdown.set(batch);
        self.pace.batch_began.set(now);
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

    /// The slot has had its turns, or there are tasks that only this worker may run: these and the others
    /// take turns.
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

    // ---- where tasks go -------------------------------------------------------------------

    /// The id of the next task with a name or class that this worker spawns.
    pub(crate) fn next_id(&self) -> TaskId {
        let number = self.numbered.get() + 1;
        self.numbered.set(number);
        TaskId::numbered(self.index as u16 + 1, number)
    }

    /// Queues a new task.
    #[inline]
    pub(crate) fn spawn(&self, entry: Entry) {
        let remote = self.remote();
        let spawned = self.spawned.get() + 1;
        self.spawned.set(spawned);
        remote.counters.submitted.one();
        if spawned & self.sample_mask.get() == 0 {
            self.record_frequent(EventKind::Spawn, entry.header().id().get());
        }
        if !entry.header().state().is_ordinary() {
            return self.pool.inject(entry);
        }
        match remote.slot.put(entry.into_raw()) {
            None if remote.ring.is_empty() => self.announce_lone(),
            None => self.announce(),
            Some(displaced) => {
                // SAFETY: rule 1: the slot owned the entry and has handed it over.
                self.push_tail(unsafe { Entry::from_raw(displaced) });
                self.announce();
            }
        }
    }

    /// Queues a task that was woken on this worker: next, and without telling anybody unless that
    /// displaces another and there is enough to do for two.
    #[inline]
    pub(crate) fn wake(&self, entry: Entry) {
        let remote = self.remote();
        let woken = self.woken.get().wrapping_add(1);
        self.woken.set(woken);
        if woken & self.sample_mask.get() == 0 {
            self.record_frequent(EventKind::Wake, entry.header().id().get());
        }
        if !entry.header().state().is_ordinary() {
            return self.push_unusual(entry);
        }
        if let Some(displaced) = remote.slot.put(entry.into_raw()) {
            // SAFETY: rule 1: the slot owned the entry and has handed it over.
            self.push_tail(unsafe { Entry::from_raw(displaced) });
            if self.pool.idle.worth_announcing() && self.is_worth_a_wake() {
                self.pool.announce();
            }
        }
    }

    /// Queues a task at the ring's tail.
    #[inline]
    fn push_tail(&self, entry: Entry) {
        if !entry.header().state().is_ordinary() {
            return self.push_unusual(entry);
        }
        if let Err(item) = self.remote().ring.push(entry.into_raw()) {
            // SAFETY: rule 1: the ring did not take the entry.
            self.overflow(unsafe { Entry::from_raw(item) });
        }
    }

    /// Queues a task that is of another class than normal, or pinned.
    #[inline(never)]
    fn push_unusual(&self, entry: Entry) {
        if entry.header().state().pinned_to() == Some(self.index) {
            self.push_pinned(entry);
        } else {
            self.pool.inject(entry);
        }
    }

    /// Half the ring and the newcomer move to the injector, as one batch.
    #[cold]
    fn overflow(&self, entry: Entry) {
        let remote = self.remote();
        let mut batch = remote.ring.take_half().unwrap_or_default();
        // SAFETY: rule 1: we own the entry and give it to the batch.
        unsafe { batch.push(entry.into_raw()) };
        remote.counters.overflows.one();
        remote
            .recorder
            .record(EventKind::Overflow, batch.len() as u64);
        self.pool.inject_batch(batch);
    }

    /// Tells a sleeper about a task in our own ring or slot.
    ///
    /// The counts are read without a fence: a sleeper that goes to sleep at this very moment may be
    /// missed. That loses no task, because this worker is awake and looks before it sleeps; what
    /// was pushed earlier the other saw in its own last look; and the watchdog announces if the
    /// current poll takes long (SLEEP.md).
    #[inline]
    fn announce(&self) {
        if self.pool.idle.worth_announcing() {
            self.pool.announce();
        }
    }

    /// Tells a sleeper about a single task that this worker will probably run itself: at once if its
    /// polls are long, and through a gate if they are short and it will soon come to it.
    #[inline]
    fn announce_lone(&self) {
        if !self.pool.idle.worth_announcing() {
            return;
        }
        if self.pace.poll_ns.get() >= self.policy.worth_a_wake_ns {
            return self.pool.announce();
        }
        let skip = self.lone_skip.get();
        if skip > 0 {
            self.lone_skip.set(skip - 1);
            return;
        }
        self.announce_lone_gated();
    }

    #[cold]
    fn announce_lone_gated(&self) {
        if self.lone.opens(&self.policy, &self.remote().robbed) {
            self.announce();
        } else {
            self.lone_skip.set(LONE_NOTIFY_STRIDE);
        }
    }

    // ---- sleeping and ending --------------------------------------------------------------

    /// Sleeps until there is something to do. SLEEP.md has the protocol.
    #[cold]
    fn park(&self) {
        let remote = self.remote();
        remote.pulse.set_busy(false);
        self.pool
            .idle
            .publish(self.index, self.searching.replace(false));
        let phase = self.pool.stop.phase();
        let has_work = !remote.inbox.is_empty() || self.pool.has_work(self.index);
        if has_work || phase != self.phase.get() {
            if !self.pool.idle.withdraw(self.index) {
                // Claimed meanwhile: the token is on its way.
                remote.parker.park();
            }
        } else {
            if phase != Phase::Running {
                self.pool.stop.drained(self.index);
            }
            self.sleep();
            self.called.set(true);
        }
        self.searching.set(true);
        self.pool.watchdog.worker_awake();
    }

    fn sleep(&self) {
        let remote = self.remote();
        remote.counters.parks.one();
        remote.recorder.record(EventKind::Park, 0);
        remote.pulse.set_parked(true);
        if !self.pool.sleep_in_driver(self.index) {
            remote.parker.park();
        }
        remote.pulse.set_parked(false);
        remote.counters.unparks.one();
        remote.recorder.record(EventKind::Unpark, 0);
    }

    /// The pool is ending. False: this worker leaves.
    #[cold]
    pub(crate) fn stopping(&self) -> bool {
        let phase = self.pool.stop.phase();
        if phase == Phase::Exiting || !self.pool.stop.may_look(self.index) {
            if self.searching.replace(false) {
                let _ = self.pool.idle.end_search();
            }
            return false;
        }
        if phase != self.phase.replace(phase) {
            self.shard.registry().walk(|task| {
                match phase {
                    Phase::Forced => task.cancel_by_force(),
                    _ => task.cancel(),
                }
                true
            });
        }
        true
    }

    /// The end of the thread. Queues are empty then, unless this worker was stuck in a poll past
    /// the deadline: what piled up meanwhile is dropped, so that its handles resolve after all.
    fn leave(&self) {
        while let Some(entry) = self.take_any() {
            entry.refuse();
        }
    }

    /// Whatever is in a queue of this worker or of the pool.
    pub(crate) fn take_any(&self) -> Option<Entry> {
        self.take_local()
            .or_else(|| self.take_left_for_us())
            .or_else(|| self.take_injected())
            .or_else(|| self.take_leftovers())
    }

    /// A task that comes out of a queue while the pool stops is cancelled; a shielded one still
    /// gets its turn. False: it is too late even for that.
    #[cold]
    fn begin_last_turn(&self, entry: &Entry) -> bool {
        let state = &entry.header().state;
        // HELD by us: both only mark the task.
        let _ = match self.phase.get() {
            Phase::Forced => state.cancel_by_force(),
            _ => state.cancel(),
        };
        self.pool.stop.may_begin(self.index)
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

fn interval_for(policy: &Policy, poll_ns: u64) -> u32 {
    let interval = policy.target_latency_ns / poll_ns.max(1);
    interval.clamp(INTERVAL_MIN as u64, INTERVAL_MAX as u64) as u32
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::{Policy, interval_for};

    #[test]
    fn the_injector_interval_follows_the_poll_time() {
        let cases = [
            (1_000, 255),
            (10_000, 100),
            (50_000, 20),
            (100_000, 10),
            (1_000_000, 1),
            (0, 255),
        ];
        for (poll_ns, interval) in cases {
            assert_eq!(
                interval_for(&Policy::THROUGHPUT, poll_ns),
                interval,
                "{poll_ns} ns a poll"
            );
        }
    }
}
