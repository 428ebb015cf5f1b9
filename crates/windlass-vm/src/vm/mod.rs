//! The VM: where guests live, and how they are placed.

mod builder;
mod counts;
mod paused;
mod shared;
mod snapshot;

use std::fmt;
use std::sync::Arc;

use windlass_actor::Host;
use windlass_core::sync::atomic::Ordering;
use windlass_record::RecordingError;

pub use self::builder::Builder;
pub use self::paused::Paused;
pub(crate) use self::shared::{GuestScheduler, VmShared};
pub use self::snapshot::{ReplayPosition, VmSnapshot};
use crate::object::{Channel, Mutex as VmMutex, Semaphore};
use crate::placement::Placement;

/// Where guests live. Cheap to clone; when the last clone is dropped, the guests that are there go
/// on, and the VM ends with them.
#[derive(Clone)]
pub struct Vm(Arc<Owner>);

/// Ends the VM's threads when the last handle is dropped.
struct Owner(Arc<VmShared>);

impl Drop for Owner {
    fn drop(&mut self) {
        match &self.0.scheduler {
            GuestScheduler::Pool(pool) => pool.stop(),
            GuestScheduler::Reactor(reactor) => reactor.post_stop(),
        }
    }
}

impl Vm {
    pub(crate) fn shared(&self) -> &Arc<VmShared> {
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

    /// Whether slices are counted in instructions, because decisions are recorded, replayed or
    /// simulated.
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

    /// Stops the world: resolves when no guest is inside a step, and none begins one until the
    /// guard is dropped. Guests that wait, also for blocking work, do not have to be waited for.
    pub async fn pause_all(&self) -> Paused {
        let shared = self.shared();
        let paused = Paused::new(shared);
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

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.snapshot(), f)
    }
}
