//! Options of a VM.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_actor::Host;
use windlass_core::sync::atomic::AtomicU64;
use windlass_core::sync::{Mutex, Padded};
use windlass_runtime::observe::Observe;
use windlass_sync::lock::Notify;

use super::shared::{GuestScheduler, OnUncaught, VmShared};
use super::{Owner, Vm};
use crate::error::BuildError;
use crate::guest_table::GuestTable;
use crate::limits::Limits;
use crate::placement::Placement;
use crate::pool::Pool;
use crate::reactor::Reactor;
use crate::record::{Header, RecordingReader, Writer};
use crate::stuck::{self, StuckGuests};
use crate::uncaught::Uncaught;

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

impl Builder {
    /// Who decides which guest runs when; the reactor unless this says otherwise.
    pub fn placement(mut self, placement: Placement) -> Builder {
        self.placement = placement;
        self
    }

    /// How many guests run at once on the reactor; as many as the machine has cores unless this
    /// says otherwise. On the pool it is the runtime that has the workers.
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

    /// Calls this with each failure that was never awaited, once. By default a failure goes to
    /// `tracing`, as an error.
    pub fn on_uncaught(mut self, notify: impl Fn(Uncaught) + Send + Sync + 'static) -> Builder {
        self.on_uncaught = Some(Arc::new(notify));
        self
    }

    /// Writes every decision and everything that comes from outside to this file. Guests are then
    /// preempted after a number of instructions, which is slower.
    pub fn record(mut self, path: impl Into<PathBuf>) -> Builder {
        self.record = Some(path.into());
        self
    }

    /// Makes the decisions of this recording again. Nothing comes from outside but what it says: no
    /// message, no result of blocking work, no time.
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
        let reading = self
            .replay
            .as_deref()
            .map(RecordingReader::open)
            .transpose()?;
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
        let shared = Arc::new(VmShared {
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
        let observed: Weak<dyn Observe> = Arc::<VmShared>::downgrade(&shared);
        shared.runtime.add_observed(observed);
        match &shared.scheduler {
            GuestScheduler::Pool(pool) => pool.start(&shared)?,
            GuestScheduler::Reactor(reactor) => reactor.start(&shared, workers)?,
        }
        Ok(Vm(Arc::new(Owner(shared))))
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
