//! Guests that do not come back.
//!
//! A guest that is asked to make room comes to the end of its step: guest code is preempted, and
//! functions of the host must not block. One that is inside a function of the host which does not
//! return cannot be ended. Its thread is given up: the guest is named, and another worker takes the
//! place of its thread, so that the others go on. That costs a thread each, so there are at most
//! [`MOST`] of them; when there are as many, no new guest is started, and the error names those
//! that are stuck. If the guest comes back after all, its thread goes on, and the other worker
//! leaves.
//!
//! Who looks: on the pool the ticker, which asks every guest to make room when its slice is over.
//! On the reactor the control loop: it asks a guest when its slice is over and another guest waits
//! for the slot, and otherwise when half of the patience is over, too ([`StuckGuests::ask_at`]). A
//! timer wakes the control loop for that and for the end of the patience; there is none while no
//! guest is inside a step. No guest is taken for stuck where instructions count: time does not,
//! there.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::sched::Replacement;
use windlass_core::sync::Mutex;

use crate::error::SpawnError;
use crate::guest_shared::GuestShared;
use crate::slot::Slot;

/// How many guests may be stuck before new ones are refused.
pub(crate) const MOST: usize = 4;

/// How long after its slice a guest is taken for stuck. Functions of the host that take a while,
/// and collections of garbage, are shorter.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The guests of a VM that do not come back.
pub(crate) struct StuckGuests {
    most: usize,
    patience: u64,
    there: Mutex<Vec<StuckGuest>>,
}

struct StuckGuest {
    slot: Arc<Slot>,
    /// Since when it has been in its slot: another time is another step.
    since: u64,
    name: String,
    /// Who works in the place of its thread, until this is dropped.
    _replacement: Option<Replacement>,
}

impl StuckGuest {
    /// Whether it is the guest that has been in this slot since then.
    fn is(&self, slot: &Arc<Slot>, since: u64) -> bool {
        self.since == since && Arc::ptr_eq(&self.slot, slot)
    }
}

impl StuckGuests {
    pub(crate) fn new(most: usize, patience: Duration) -> StuckGuests {
        StuckGuests {
            most,
            patience: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            there: Mutex::default(),
        }
    }

    /// When a guest that has been in its slot since then, and may be there for a slice, is stuck.
    pub(crate) fn due_at(&self, since: u64, slice: u64) -> u64 {
        since.saturating_add(slice).saturating_add(self.patience)
    }

    /// When such a guest is asked to make room though no other guest waits for its slot. Guest code
    /// has the other half of the patience to come to the end of its step.
    pub(crate) fn ask_at(&self, since: u64, slice: u64) -> u64 {
        since
            .saturating_add(slice)
            .saturating_add(self.patience / 2)
    }

    /// Whether a guest that has been in its slot since then, and may be there for a slice, is
    /// stuck.
    pub(crate) fn is_due(&self, since: u64, slice: u64, now: u64) -> bool {
        since != 0 && now >= self.due_at(since, slice)
    }

    /// Whether the guest that has been in this slot since then was given up.
    pub(crate) fn is_given_up(&self, slot: &Arc<Slot>, since: u64) -> bool {
        let there = self.there.lock();
        there.iter().any(|stuck| stuck.is(slot, since))
    }

    /// Gives up the thread of a guest, unless that was done before. True: another worker takes its
    /// place.
    pub(crate) fn give_up(&self, slot: &Arc<Slot>, since: u64, guest: &GuestShared) -> bool {
        let mut there = self.there.lock();
        if there.iter().any(|stuck| stuck.is(slot, since)) {
            return false;
        }
        let replacement = match there.len() < self.most {
            true => slot.replace_worker(),
            false => None,
        };
        let (name, replaced) = (guest.shown(), replacement.is_some());
        tracing::error!(
            target: "windlass::vm",
            replaced,
            "guest {name} does not come back from a function of the host: its thread is given up"
        );
        there.push(StuckGuest {
            slot: slot.clone(),
            since,
            name,
            _replacement: replacement,
        });
        replaced
    }

    /// Forgets those that have come back; their threads go on.
    pub(crate) fn forget_returned(&self) {
        let mut there = self.there.lock();
        let (stuck, returned) = std::mem::take(&mut *there)
            .into_iter()
            .partition::<Vec<_>, _>(|stuck| stuck.slot.since() == stuck.since);
        *there = stuck;
        drop(there);
        // Their replacements leave: not under the lock.
        drop(returned);
    }

    /// Returns the names of the guests that are stuck, without those that have returned since the
    /// last look.
    pub(crate) fn current_names(&self) -> Vec<String> {
        self.forget_returned();
        self.names()
    }

    fn names(&self) -> Vec<String> {
        let there = self.there.lock();
        there.iter().map(|stuck| stuck.name.clone()).collect()
    }

    /// Whether a new guest may be started.
    pub(crate) fn check(&self) -> Result<(), SpawnError> {
        if self.there.lock().len() < self.most {
            return Ok(());
        }
        let stuck = self.current_names();
        match stuck.len() < self.most {
            true => Ok(()),
            false => Err(SpawnError::TooManyStuck { stuck }),
        }
    }
}
