//! How many processes a host has, and the number of the latest one.

use windlass_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::SpawnError;

const CLOSED: usize = 1;

const ONE: usize = 2;

/// The counts that every spawn changes, on one line.
#[derive(Default)]
pub(super) struct Population {
    /// The number of processes, times two, and CLOSED.
    live: AtomicUsize,
    /// The number of the latest PID.
    latest: AtomicU64,
}

impl Population {
    /// Counts one process more, unless the host is closed or has `limit` processes.
    pub(super) fn reserve(&self, limit: usize) -> Result<(), SpawnError> {
        let mut live = self.live.load(Ordering::Relaxed);
        loop {
            if live & CLOSED != 0 {
                return Err(SpawnError::Stopping);
            }
            if live / ONE >= limit {
                return Err(SpawnError::LimitExceeded { limit });
            }
            // Relaxed: a count; processes are found through the locks of the shards.
            match self.live.compare_exchange_weak(
                live,
                live + ONE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(changed) => live = changed,
            }
        }
    }

    /// Counts one process less. Returns true if it was the last one of a closed host.
    pub(super) fn release(&self) -> bool {
        // AcqRel: a shutdown that sees the last process go sees what it has done.
        self.live.fetch_sub(ONE, Ordering::AcqRel) == ONE | CLOSED
    }

    /// Refuses new processes from now on.
    pub(super) fn close(&self) {
        // AcqRel: pairs with `release`. A spawn that reserved before and is in no shard yet sees it
        // in `is_closed`.
        self.live.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Returns whether new processes are refused.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: the lock of the shard orders it (see `HostShared::is_closed`).
        self.live.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns the number of processes.
    pub(super) fn live(&self) -> usize {
        // Acquire: pairs with the AcqRel in `release`.
        self.live.load(Ordering::Acquire) / ONE
    }

    /// Returns the number of the next PID.
    pub(super) fn next_number(&self) -> u64 {
        // Relaxed: only that no two are equal counts.
        self.latest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns how many processes were ever spawned.
    pub(super) fn spawned(&self) -> u64 {
        self.latest.load(Ordering::Relaxed)
    }
}
