//! The locks and permits of a guest.

use super::GuestShared;
use crate::object::{Mutex as VmMutex, Semaphore};

/// The locks and permits that a guest has. It gives them back at its end.
#[derive(Default)]
pub(crate) struct Resources {
    pub(crate) mutexes: Vec<VmMutex>,
    pub(super) permits: Vec<(Semaphore, usize)>,
}

impl Resources {
    /// True if it was there.
    pub(crate) fn let_go_of(&mut self, mutex: &VmMutex) -> bool {
        let place = self.mutexes.iter().position(|held| held.is(mutex));
        place.map(|place| self.mutexes.remove(place)).is_some()
    }

    pub(crate) fn add_permits(&mut self, semaphore: &Semaphore, permits: usize) {
        match self.permits.iter_mut().find(|(s, _)| s.is(semaphore)) {
            Some((_, held)) => *held += permits,
            None => self.permits.push((semaphore.clone(), permits)),
        }
    }

    /// True if it had so many.
    pub(crate) fn remove_permits(&mut self, semaphore: &Semaphore, permits: usize) -> bool {
        let Some(place) = self.permits.iter().position(|(s, _)| s.is(semaphore)) else {
            return false;
        };
        if self.permits[place].1 < permits {
            return false;
        }
        self.permits[place].1 -= permits;
        if self.permits[place].1 == 0 {
            self.permits.remove(place);
        }
        true
    }
}

impl GuestShared {
    pub(crate) fn with_resources<T>(&self, change: impl FnOnce(&mut Resources) -> T) -> T {
        change(&mut self.resources.lock())
    }
}
