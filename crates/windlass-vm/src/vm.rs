//! The VM: where guests live, and how they are placed.

use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_actor::{ExitReason, Host};
use windlass_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use windlass_core::sync::{Mutex, Padded};
use windlass_core::task::contain;
use windlass_runtime::Handle;
use windlass_runtime::observe::Observe;
use windlass_sync::lock::Notify;

use crate::error::BuildError;
use crate::guest_table::GuestTable;
use crate::limits::Limits;
use crate::object::{Channel, Mutex as VmMutex, Semaphore};
use crate::pool::Pool;
use crate::reactor::Reactor;
use crate::reason::ReasonKind;
use crate::record::{Header, Reading, Writer};
use crate::slot::Slot;
use crate::stuck::{self, StuckGuests};
use crate::task::{GuestShared, Uncaught};
use windlass_record::RecordingError;

/// Who decides which guest runs when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// One control loop, on workers of its own: decisions can be recorded and replayed.
    #[default]
    Reactor,
    /// The workers of the runtime, each for itself, with work stealing: faster.
    Pool,
}

/// How long a guest may run while others are ready.
const SLICE: Duration = Duration::from_millis(10);

/// The same where instructions count.
const SLICE_COUNT: u64 = 100_000;

/// Makes a [`Vm`].
pub struct Builder {
    placement: Placement,
    workers: Option<usize>,
    slice: Duration,
    slice_count: u64,
    limits: Limits,
    host: Option<Host>,
    on_uncaught: Option<OnUncaught>,
    record: Option<PathBuf>,
    replay: Option<PathBuf>,
    max_stuck: usize,
    patience: Duration,
}

type OnUncaught = Arc<dyn Fn(Uncaught) + Send + Sync>;

impl Builder {
    /// Who decides which guest runs when; the reactor unless this says otherwise.
    pub fn placement(mut self, placement: Placement) -> Builder {
        self.placement = placement;
        self
    }

    /// How many guests run at once on the reactor; as many as the machine has cores unless this says otherwise.
    /// On the pool it is the runtime that has the workers.
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = Some(workers);
        self
    }

    /// How long a guest may run while others are ready: 10 ms unless this says otherwise.
    pub fn slice(mut self, slice: Duration) -> Builder {
        self.slice = slice;
        self
    }

    /// The same in instructions, where time does not count: 100,000 unless this says otherwise.
    pub fn slice_count(mut self, instructions: u64) -> Builder {
        self.slice_count = instructions;
        self
    }

    /// What each guest may use, unless its own limits say otherwise.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// Where the processes of the guests live; the runtime's own host unless this says otherwise.
    pub fn host(mut self, host: Host) -> Builder {
        self.host = Some(host);
        self
    }

    /// Told of each failure that nobody awaited, once. Otherwise it goes to `tracing`, as an error.
    pub fn on_uncaught(mut self, notify: impl Fn(Uncaught) + Send + Sync + 'static) -> Builder {
        self.on_uncaught = Some(Arc::new(notify));
        self
    }

    /// Writes every decision and everything that comes from outside to this file. Guests are then preempted after
    /// a number of instructions, which is slower.
    pub fn record(mut self, path: impl Into<PathBuf>) -> Builder {
        self.record = Some(path.into());
        self
    }

    /// Makes the decisions of this recording again. Nothing comes from outside but what it says: no message,
    /// no result of blocking work, no time.
    pub fn replay(mut self, path: impl Into<PathBuf>) -> Builder {
        self.replay = Some(path.into());
        self
    }

    /// How many guests may be stuck in functions of the host that do not return, before new guests
    /// are refused: 4 unless this says otherwise. Each keeps its thread, and another worker takes
    /// its place.
    pub fn max_stuck(mut self, guests: usize) -> Builder {
        self.max_stuck = guests;
        self
    }

    /// How long after its slice a guest that does not make room is taken for stuck: a second unless
    /// this says otherwise.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.patience = patience;
        self
    }

    /// Makes the VM, in the runtime that this thread is in unless a host was given.
    pub fn build(self) -> Result<Vm, BuildError> {
        let host = match self.host {
            Some(host) => host,
            None => Host::current().map_err(BuildError::Host)?,
        };
        if self.workers == Some(0) {
            return Err(BuildError::NoWorkers);
        }
        if self.slice.is_zero() || self.slice_count == 0 {
            return Err(BuildError::NoSlice);
        }
        let recorded = self.record.is_some() || self.replay.is_some();
        if recorded && self.placement == Placement::Pool {
            return Err(BuildError::NotOnThePool);
        }
        let runtime = host.runtime().clone();
        let reading = self.replay.as_deref().map(Reading::open).transpose()?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let (workers, slice_count) = match &reading {
            // As it was then.
            Some(reading) => (reading.header.workers, reading.header.slice_count),
            None => (self.workers.unwrap_or_else(cores), self.slice_count),
        };
        let header = Header {
            workers,
            slice_count,
        };
        let writer = self
            .record
            .map(|path| Writer::create(&path, &header, u64::MAX))
            .transpose()?;
        let scheduler = match self.placement {
            Placement::Pool => GuestScheduler::Pool(Pool::new(self.slice)),
            Placement::Reactor => {
                GuestScheduler::Reactor(Box::new(Reactor::new(self.slice, writer, reading)))
            }
        };
        let shared = Arc::new(Shared {
            counting: recorded || runtime.is_simulated(),
            slice_count,
            limits: self.limits,
            host,
            scheduler,
            on_uncaught: self.on_uncaught,
            stuck: StuckGuests::new(self.max_stuck, self.patience),
            guests: GuestTable::new(),
            counts: Padded::default(),
            ids: AtomicU64::new(0),
            held_back: Mutex::default(),
            quiet: Notify::new(),
            runtime,
        });
        let observed: Weak<dyn Observe> = Arc::<Shared>::downgrade(&shared);
        shared.runtime.add_observed(observed);
        match &shared.scheduler {
            GuestScheduler::Pool(pool) => pool.start(&shared)?,
            GuestScheduler::Reactor(reactor) => reactor.start(&shared, workers)?,
        }
        Ok(Vm(Arc::new(Owner(shared))))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("placement", &self.placement)
            .field("workers", &self.workers)
            .field("slice", &self.slice)
            .finish_non_exhaustive()
    }
}

/// Where guests live. Cheap to clone; when the last clone is dropped, the guests that are there go on, and the VM
/// ends with them.
#[derive(Clone)]
pub struct Vm(Arc<Owner>);

/// Ends the VM's threads when there is nobody left.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        match &self.0.scheduler {
            GuestScheduler::Pool(pool) => pool.stop(),
            GuestScheduler::Reactor(reactor) => reactor.post_stop(),
        }
    }
}

/// What decides which guest runs when, as its [`Placement`] says.
pub(crate) enum GuestScheduler {
    Pool(Pool),
    Reactor(Box<Reactor>),
}

/// What all guests of a VM share.
pub(crate) struct Shared {
    pub(crate) runtime: Handle,
    pub(crate) host: Host,
    pub(crate) scheduler: GuestScheduler,
    /// Slices are counted in instructions.
    pub(crate) counting: bool,
    pub(crate) slice_count: u64,
    pub(crate) limits: Limits,
    /// On lines of their own: every step writes here, and reads the rest.
    pub(crate) counts: Padded<Counts>,
    on_uncaught: Option<OnUncaught>,
    /// Guests that do not come back.
    pub(crate) stuck: StuckGuests,
    pub(crate) guests: GuestTable,
    ids: AtomicU64,
    /// Guests that came to run meanwhile; on the pool.
    held_back: Mutex<Vec<Arc<GuestShared>>>,
    /// `active` or `running` has come to 0.
    quiet: Notify,
}

impl Shared {
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Lets a guest run that was parked.
    pub(crate) fn wake(&self, guest: &Arc<GuestShared>) {
        match &self.scheduler {
            GuestScheduler::Pool(_) => guest.request_step(),
            GuestScheduler::Reactor(reactor) => reactor.make_ready(guest),
        }
    }

    /// A guest wants its slice to end. On the pool it does in any case.
    pub(crate) fn look_again(&self) {
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.wake_loop();
        }
    }

    pub(crate) fn remove_deadline(&self, key: (u64, u64)) {
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.remove_deadline(key);
        }
    }

    pub(crate) fn report(&self, uncaught: Uncaught) {
        match &self.on_uncaught {
            Some(notify) => {
                contain(|| notify(uncaught));
            }
            None => tracing::error!(target: "windlass::vm", "{uncaught}"),
        }
    }

    // ---- who runs ----

    pub(crate) fn woke_up(&self) {
        self.counts.active.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn went_idle(&self) {
        if self.counts.active.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.quiet.notify_waiters();
        }
    }

    /// Before a step: false if nothing is to run now. SeqCst: one word says who runs, the other that nobody shall,
    /// and one of the two sides sees the other.
    pub(crate) fn enter(&self, guest: &Arc<GuestShared>) -> bool {
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        if self.counts.paused.load(Ordering::SeqCst) == 0 {
            return true;
        }
        self.leave();
        self.held_back.lock().push(guest.clone());
        if self.counts.paused.load(Ordering::SeqCst) == 0 {
            self.let_go();
        }
        false
    }

    /// As `enter`, on the reactor, which keeps who came meanwhile itself. To be left in any case.
    pub(crate) fn enter_job(&self) -> bool {
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        self.counts.paused.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn leave(&self) {
        if self.counts.running.fetch_sub(1, Ordering::SeqCst) == 1
            && self.counts.paused.load(Ordering::SeqCst) > 0
        {
            self.quiet.notify_waiters();
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.counts.paused.load(Ordering::SeqCst) > 0
    }

    fn let_go(&self) {
        for guest in std::mem::take(&mut *self.held_back.lock()) {
            guest.request_step();
        }
        if let GuestScheduler::Reactor(reactor) = &self.scheduler {
            reactor.wake_loop();
        }
    }

    /// The reason to end a guest that has used up its time.
    pub(crate) fn over_limit(&self, guest: &GuestShared) -> Option<ExitReason> {
        let most = guest.limits.cpu?;
        let used = Duration::from_nanos(guest.cpu.load(Ordering::Relaxed));
        (used > most).then(|| {
            let text = format!("it has used {used:?} of processor time, and may use {most:?}");
            ExitReason::Error(text.into())
        })
    }

    async fn until(&self, quiet: impl Fn(&Shared) -> bool) {
        loop {
            let mut notified = pin!(self.quiet.notified());
            notified.as_mut().enable();
            if quiet(self) {
                return;
            }
            notified.await;
        }
    }
}

/// What is counted.
#[derive(Default)]
pub(crate) struct Counts {
    /// Guests that run or are ready to.
    active: AtomicUsize,
    /// Guests inside a step.
    running: AtomicUsize,
    /// How many want nothing to run.
    paused: AtomicUsize,
    parked: [AtomicU64; ReasonKind::ALL.len()],
    steps: AtomicU64,
    asked: AtomicU64,
    taken: AtomicU64,
}

impl Counts {
    pub(crate) fn parked(&self, kind: ReasonKind, by: i64) {
        // Wraps: minus one is a number, too.
        self.parked[kind as usize].fetch_add(by as u64, Ordering::Relaxed);
    }

    pub(crate) fn stepped(&self, slot: &Slot, yielded: bool) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        if yielded && slot.is_asked() {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Vm {
    /// How to make one.
    pub fn builder() -> Builder {
        Builder {
            placement: Placement::default(),
            workers: None,
            slice: SLICE,
            slice_count: SLICE_COUNT,
            limits: Limits::NONE,
            host: None,
            on_uncaught: None,
            record: None,
            replay: None,
            max_stuck: stuck::MOST,
            patience: stuck::PATIENCE,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// Who decides here.
    pub fn placement(&self) -> Placement {
        self.shared().placement()
    }

    /// Where the processes of its guests live.
    pub fn host(&self) -> &Host {
        &self.shared().host
    }

    /// Whether slices are counted in instructions, because decisions are recorded, replayed or simulated.
    pub fn is_counting(&self) -> bool {
        self.shared().counting
    }

    /// A new channel for guests; with a capacity of 0 a sender waits for its receiver.
    pub fn channel(&self, capacity: usize) -> Channel {
        Channel::new(self.shared().next_id(), capacity)
    }

    /// A new mutex for guests.
    pub fn mutex(&self) -> VmMutex {
        VmMutex::new(self.shared().next_id())
    }

    /// A new semaphore for guests.
    pub fn semaphore(&self, permits: usize) -> Semaphore {
        Semaphore::new(self.shared().next_id(), permits)
    }

    /// Stops the world: resolves when no guest is inside a step, and none begins one until the guard is dropped.
    /// Guests that wait, also for blocking work, do not have to be waited for.
    pub async fn pause_all(&self) -> Paused {
        let shared = self.shared();
        shared.counts.paused.fetch_add(1, Ordering::SeqCst);
        let paused = Paused(shared.clone());
        match &shared.scheduler {
            GuestScheduler::Pool(pool) => pool.ask_all(shared),
            GuestScheduler::Reactor(reactor) => reactor.wake_loop(),
        }
        shared
            .until(|shared| shared.counts.running.load(Ordering::SeqCst) == 0)
            .await;
        paused
    }

    /// Resolves when no guest runs or is ready to: all wait, or have ended.
    pub async fn quiescent(&self) {
        let shared = self.shared();
        shared
            .until(|shared| shared.counts.active.load(Ordering::SeqCst) == 0)
            .await;
    }

    /// Waits for the end of the replay: Ok if every decision was made again, down to the last line.
    pub async fn replayed(&self) -> Result<(), RecordingError> {
        match &self.shared().scheduler {
            GuestScheduler::Reactor(reactor) => reactor.replayed().await,
            GuestScheduler::Pool(_) => Ok(()),
        }
    }

    /// Ends the recording here: it is complete when this resolves. The guests go on.
    pub async fn end_recording(&self) -> Result<(), RecordingError> {
        match &self.shared().scheduler {
            GuestScheduler::Reactor(reactor) => reactor.end_recording().await,
            GuestScheduler::Pool(_) => Ok(()),
        }
    }

    /// What went wrong with the recording, if something did; it ends there, and the guests go on.
    pub fn recording_error(&self) -> Option<RecordingError> {
        match &self.shared().scheduler {
            GuestScheduler::Reactor(reactor) => reactor.recording_error(),
            GuestScheduler::Pool(_) => None,
        }
    }

    /// How things are.
    pub fn snapshot(&self) -> VmSnapshot {
        self.shared().snapshot()
    }
}

impl Shared {
    fn placement(&self) -> Placement {
        match self.scheduler {
            GuestScheduler::Pool(_) => Placement::Pool,
            GuestScheduler::Reactor(_) => Placement::Reactor,
        }
    }

    pub(crate) fn snapshot(&self) -> VmSnapshot {
        let counts = &self.counts;
        let parked = ReasonKind::ALL
            .iter()
            .map(|kind| {
                let parked = counts.parked[*kind as usize].load(Ordering::Relaxed);
                (*kind, (parked as i64).max(0) as usize)
            })
            .collect();
        VmSnapshot {
            placement: self.placement(),
            active_vm_tasks: self.counts.running.load(Ordering::Relaxed),
            ready_or_running: self.counts.active.load(Ordering::Relaxed),
            parked,
            steps: counts.steps.load(Ordering::Relaxed),
            preemptions_requested: counts.asked.load(Ordering::Relaxed),
            preemptions_taken: counts.taken.load(Ordering::Relaxed),
            stuck: self.stuck.current_names(),
            replay: match &self.scheduler {
                GuestScheduler::Reactor(reactor) => reactor.replay_position(),
                GuestScheduler::Pool(_) => None,
            },
        }
    }
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.snapshot(), f)
    }
}

/// No guest of the VM runs as long as this is there.
#[must_use = "guests go on when this is dropped"]
pub struct Paused(Arc<Shared>);

impl Drop for Paused {
    fn drop(&mut self) {
        if self.0.counts.paused.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.let_go();
        }
    }
}

impl fmt::Debug for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paused")
    }
}

/// A VM at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VmSnapshot {
    /// Who decides.
    pub placement: Placement,
    /// Guests inside a step.
    pub active_vm_tasks: usize,
    /// Guests that run or are ready to.
    pub ready_or_running: usize,
    /// How many waits there are of each kind.
    pub parked: Vec<(ReasonKind, usize)>,
    /// Steps so far.
    pub steps: u64,
    /// How often a guest was asked to make room.
    pub preemptions_requested: u64,
    /// How often one did.
    pub preemptions_taken: u64,
    /// Guests that do not come back from a function of the host, by name.
    pub stuck: Vec<String>,
    /// How far a replay is.
    pub replay: Option<ReplayPosition>,
}

impl VmSnapshot {
    /// How many waits there are of this kind.
    pub fn parked_on(&self, kind: ReasonKind) -> usize {
        let found = self.parked.iter().find(|(of, _)| *of == kind);
        found.map_or(0, |(_, parked)| *parked)
    }
}

/// How far a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayPosition {
    /// The line of the recording that comes next, from 1.
    pub line: usize,
    /// How many there are.
    pub lines: usize,
}
