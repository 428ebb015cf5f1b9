//! Which threads of a pool work: their numbers for the trace, and how many at once.

use std::thread::ThreadId;

use windlass_core::sync::Mutex;

/// The threads of a pool that have run something, and how many do now.
#[derive(Debug, Default)]
pub(crate) struct ActiveWorkers(Mutex<WorkerTally>);

#[derive(Debug, Default)]
struct WorkerTally {
    /// In the order in which they first did something.
    threads: Vec<ThreadId>,
    active: u64,
    most_active: u64,
}

impl ActiveWorkers {
    /// An invocation begins on this thread; gives the thread's number.
    pub(crate) fn begin(&self) -> u32 {
        let me = std::thread::current().id();
        let mut busy = self.0.lock();
        busy.active += 1;
        busy.most_active = busy.most_active.max(busy.active);
        let place = busy.threads.iter().position(|&thread| thread == me);
        let place = place.unwrap_or_else(|| {
            busy.threads.push(me);
            busy.threads.len() - 1
        });
        place as u32
    }

    /// An invocation has ended.
    pub(crate) fn end(&self) {
        self.0.lock().active -= 1;
    }

    /// How many there were at once.
    pub(crate) fn most_active(&self) -> u64 {
        self.0.lock().most_active
    }
}
