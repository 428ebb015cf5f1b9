//! Which workers sleep, which search, and which are notified. The protocol and its proof are in
//! SLEEP.md.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

const SEARCHING_ONE: u64 = 1;
const UNPARKED_ONE: u64 = 1 << 32;

/// The idle set of a pool.
#[derive(Debug)]
pub struct Idle {
    /// `{ unparked: u32, searching: u32 }`
    counts: Padded<AtomicU64>,
    /// One bit per worker: set while it is parked and unclaimed.
    parked: Box<[Padded<AtomicU64>]>,
    /// The worker that sleeps in the driver, plus one.
    in_driver: AtomicUsize,
    /// Workers there are. Changes rarely, under the crew's lock.
    workers: AtomicUsize,
}

/// A moment's copy of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Workers that look for work.
    pub searching: usize,
    /// Workers that are awake.
    pub unparked: usize,
}

fn unpack(counts: u64) -> Counts {
    Counts {
        searching: counts as u32 as usize,
        unparked: (counts >> 32) as usize,
    }
}

impl Idle {
    /// Makes the idle set of a pool whose `workers` are all awake and do not search.
    pub fn new(workers: usize) -> Idle {
        let idle = Idle::with_capacity(workers);
        (0..workers).for_each(|_| idle.join());
        idle
    }

    /// Makes the idle set of a pool without workers; worker ids are below `capacity`.
    pub fn with_capacity(capacity: usize) -> Idle {
        Idle {
            counts: Padded(AtomicU64::new(0)),
            parked: (0..capacity.div_ceil(64))
                .map(|_| Padded(AtomicU64::new(0)))
                .collect(),
            in_driver: AtomicUsize::new(0),
            workers: AtomicUsize::new(0),
        }
    }

    /// A worker comes, awake.
    pub fn join(&self) {
        // Relaxed: too high for a moment, and a look for a sleeper finds none.
        self.workers.fetch_add(1, Ordering::Relaxed);
        self.counts.fetch_add(UNPARKED_ONE, Ordering::AcqRel);
    }

    /// A worker leaves that is awake. What it had queued is where others look; if it was searching,
    /// a pusher may have counted on it, so afterwards it looks whether there is work and announces
    /// it.
    pub fn leave(&self, was_searching: bool) {
        let leaving = UNPARKED_ONE + if was_searching { SEARCHING_ONE } else { 0 };
        self.counts.fetch_sub(leaving, Ordering::AcqRel);
        // Relaxed: as in `join`.
        self.workers.fetch_sub(1, Ordering::Relaxed);
        // Pairs with the fence in `announce`, as in `end_search`.
        fence(Ordering::SeqCst);
    }

    /// Workers there are.
    pub fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// The counts now.
    pub fn counts(&self) -> Counts {
        unpack(self.counts.load(Ordering::Relaxed))
    }

    /// After a push: claims a sleeper, unless a worker searches already or all are awake. The
    /// caller posts the claimed worker's token.
    #[inline]
    pub fn announce(&self) -> Option<usize> {
        // Pairs with the fence in `publish`: either we see the sleeper's bit and counts, or it
        // sees what was pushed.
        fence(Ordering::SeqCst);
        if self.worth_announcing() {
            self.claim()
        } else {
            None
        }
    }

    /// After a push that only `worker` can take: claims it if it sleeps, even if others search.
    /// True: the caller posts its token.
    pub fn call(&self, worker: usize) -> bool {
        // Pairs with the fence in `publish`, as in `announce`.
        fence(Ordering::SeqCst);
        let bit = 1 << (worker % 64);
        self.parked[worker / 64].load(Ordering::Relaxed) & bit != 0 && self.claim_worker(worker)
    }

    /// Returns true if a worker sleeps and none searches, without a fence.
    #[inline]
    pub fn worth_announcing(&self) -> bool {
        let now = self.counts();
        now.searching == 0 && now.unparked < self.workers()
    }

    /// Claims the lowest sleeper, the driver's last.
    #[cold]
    pub fn claim(&self) -> Option<usize> {
        let in_driver = self.in_driver.load(Ordering::Relaxed);
        for (index, word) in self.parked.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                let bit = bits & bits.wrapping_neg();
                let worker = index * 64 + bit.trailing_zeros() as usize;
                bits &= !bit;
                if worker + 1 != in_driver && self.claim_worker(worker) {
                    return Some(worker);
                }
            }
        }
        let worker = in_driver.checked_sub(1)?;
        self.claim_worker(worker).then_some(worker)
    }

    /// Claims one particular sleeper. True: the caller posts its token.
    pub fn claim_worker(&self, worker: usize) -> bool {
        if !self.clear(worker) {
            return false;
        }
        // Before the token, so that the woken worker finds itself counted.
        self.counts
            .fetch_add(UNPARKED_ONE + SEARCHING_ONE, Ordering::AcqRel);
        true
    }

    fn clear(&self, worker: usize) -> bool {
        let bit = 1 << (worker % 64);
        // AcqRel, and the result is checked: exactly one party gets the bit.
        self.parked[worker / 64].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// The worker is about to sleep: after this it looks at every source once more.
    pub fn publish(&self, worker: usize, was_searching: bool) {
        let bit = 1 << (worker % 64);
        self.parked[worker / 64].fetch_or(bit, Ordering::AcqRel);
        let leaving = UNPARKED_ONE + if was_searching { SEARCHING_ONE } else { 0 };
        self.counts.fetch_sub(leaving, Ordering::AcqRel);
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
    }

    /// The worker found something after `publish`, or woke by itself. True: it is awake and counts
    /// as searching. Returns false if another thread has claimed it: its token is on its way, so
    /// wait for it.
    #[must_use]
    pub fn withdraw(&self, worker: usize) -> bool {
        // What the claimer added is what we add here, so both ways end in the same counts.
        self.claim_worker(worker)
    }

    /// Notes which worker sleeps in the driver, so that it is claimed last.
    pub fn set_in_driver(&self, worker: Option<usize>) {
        self.in_driver
            .store(worker.map_or(0, |worker| worker + 1), Ordering::Relaxed);
    }

    /// Lets an awake worker search, if fewer than half do.
    pub fn try_search(&self) -> bool {
        if 2 * self.counts().searching >= self.workers() {
            return false;
        }
        self.counts.fetch_add(SEARCHING_ONE, Ordering::AcqRel);
        true
    }

    /// A searcher found work. True: it was the last one; if it sees more work after this, it claims
    /// another worker.
    #[must_use]
    pub fn end_search(&self) -> bool {
        let last = unpack(self.counts.fetch_sub(SEARCHING_ONE, Ordering::AcqRel)).searching == 1;
        if last {
            // Pairs with the fence in `announce`: a pusher that saw us searching and said nothing
            // has pushed before the look that follows.
            fence(Ordering::SeqCst);
        }
        last
    }
}
