//! What a worker is in the middle of, readable while it hangs.
//!
//! The worker stores these at the start of each poll and never waits. A reader that sees the same
//! sequence number twice, some time apart, knows what the worker has been in since.

use std::panic::Location;

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::task::Header;

const NAME_WORDS: usize = 6;
/// What a worker is in that runs a stolen job.
const JOB: &str = "(fork-join job)";

#[derive(Debug)]
pub(crate) struct Pulse {
    /// Number of polls that this worker has begun.
    polls: AtomicU64,
    /// In a poll or just between two; false while searching and parked.
    busy: AtomicBool,
    parked: AtomicBool,
    id: AtomicU64,
    location: AtomicPtr<Location<'static>>,
    name_len: AtomicUsize,
    name: [AtomicU64; NAME_WORDS],
}

/// A copy of the pulse.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) polls: u64,
    pub(crate) busy: bool,
    pub(crate) parked: bool,
    pub(crate) id: u64,
    pub(crate) location: Option<&'static Location<'static>>,
    pub(crate) name: Option<String>,
}

impl Default for Pulse {
    fn default() -> Self {
        Pulse {
            polls: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            id: AtomicU64::new(0),
            location: AtomicPtr::new(std::ptr::null_mut()),
            name_len: AtomicUsize::new(0),
            name: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Pulse {
    /// A poll of `task` begins; gives its number, from 1.
    #[inline(always)]
    pub(crate) fn begin(&self, task: &Header) -> u64 {
        let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        match task.meta().plain_location() {
            Some(location) => {
                let address = std::ptr::from_ref(task).addr() as u64;
                self.id.store(address, Ordering::Relaxed);
                self.location.store(location.cast_mut(), Ordering::Relaxed);
                if self.name_len.load(Ordering::Relaxed) != 0 {
                    self.set_name("");
                }
            }
            None => self.begin_with_extra(task),
        }
        polls
    }

    /// A job of a fork-join begins with no task below it.
    pub(crate) fn begin_job(&self) {
        self.count();
        self.id.store(0, Ordering::Relaxed);
        self.location.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.set_name(JOB);
    }

    /// Counts as a poll, in the same task.
    pub(crate) fn count(&self) {
        let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
    }

    #[cold]
    fn begin_with_extra(&self, task: &Header) {
        self.id.store(task.id().get(), Ordering::Relaxed);
        let location = std::ptr::from_ref(task.meta().location()).cast_mut();
        self.location.store(location, Ordering::Relaxed);
        self.set_name(task.meta().name().map_or("", |name| name));
    }

    #[cold]
    fn set_name(&self, name: &str) {
        let bytes = name.as_bytes();
        let len = bytes.len().min(NAME_WORDS * 8);
        self.name_len.store(len, Ordering::Relaxed);
        for (word, chunk) in self.name.iter().zip(bytes[..len].chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    pub(crate) fn set_parked(&self, parked: bool) {
        self.parked.store(parked, Ordering::Relaxed);
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self) -> Beat {
        // SAFETY: only references to statics are stored, or null.
        let location = unsafe { self.location.load(Ordering::Relaxed).as_ref() };
        let len = self.name_len.load(Ordering::Relaxed).min(NAME_WORDS * 8);
        let bytes: Vec<u8> = self
            .name
            .iter()
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        // A name cut in the middle of a character, or read while it changes, is shown as such.
        let name = (len > 0).then(|| String::from_utf8_lossy(&bytes[..len]).into_owned());
        Beat {
            polls: self.polls(),
            busy: self.is_busy(),
            parked: self.parked.load(Ordering::Relaxed),
            id: self.id.load(Ordering::Relaxed),
            location,
            name,
        }
    }
}
