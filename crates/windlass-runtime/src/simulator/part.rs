//! The parts of a simulated world that the simulator knows nothing of: a network, files.

use std::any::Any;
use std::fmt;

use windlass_core::sync::{Arc, Mutex, World};

/// A part of a simulated world: what happens in it, happens in virtual time.
///
/// The world has at most one part of each type. [`Simulator::part`](super::Simulator::part) makes
/// it when it is first asked for.
pub trait Part: Any + Send + Sync {
    /// Returns the time of the next event of this part, in nanoseconds of the world's clock.
    fn next(&self) -> Option<u64>;

    /// Lets everything happen that is due at `now`.
    fn happen(&self, now: u64);
}

/// The parts of one world, in the order in which they were asked for. That order is the program's,
/// so it is the same in every run of a seed.
#[derive(Default)]
pub(super) struct Parts(Mutex<Vec<Arc<dyn Part>>>);

impl Parts {
    /// Returns the part of type `T`; `make` makes it if there is none.
    pub(super) fn get<T: Part>(
        &self,
        world: &Arc<World>,
        make: impl FnOnce(Arc<World>) -> T,
    ) -> Arc<T> {
        let mut parts = self.0.lock();
        let found = parts.iter().find_map(|part| {
            let part: Arc<dyn Any + Send + Sync> = part.clone();
            part.downcast::<T>().ok()
        });
        found.unwrap_or_else(|| {
            let part = Arc::new(make(world.clone()));
            parts.push(part.clone());
            part
        })
    }

    /// Returns the time of the next event of any part.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.lock().iter().filter_map(|part| part.next()).min()
    }

    /// Lets everything happen that is due at `now`, one part after the other.
    pub(super) fn happen(&self, now: u64) {
        for index in 0.. {
            // Outside of the lock: what happens may ask for another part.
            let Some(part) = self.0.lock().get(index).cloned() else {
                return;
            };
            part.happen(now);
        }
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parts({})", self.0.lock().len())
    }
}
