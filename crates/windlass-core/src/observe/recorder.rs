//! The flight recorder: each worker's last events, always there when something went wrong.
//!
//! One bounded ring per worker. The worker writes an entry and then advances `head` (Release); a
//! reader copies entries and then discards those that may have been overwritten meanwhile. No
//! thread waits. Rare events are always recorded; spawns, polls and wakes one in 64, or all of them
//! after [`Recording::Full`] has been switched on.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::clock;
use crate::task::TaskId;
use crate::tuning::{RECORDER_EVENTS, SAMPLE_ONE_IN};

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Recording {
    /// Rare events only.
    Rare = 0,
    /// Rare events, and one in 64 spawns, polls and wakes.
    #[default]
    Sampled = 1,
    /// Every event is recorded.
    Full = 2,
}

impl Recording {
    pub(crate) fn from_u8(value: u8) -> Recording {
        match value {
            0 => Recording::Rare,
            1 => Recording::Sampled,
            _ => Recording::Full,
        }
    }

    /// A frequent event is recorded when its sequence number has none of these bits.
    pub(crate) fn mask(self) -> u64 {
        match self {
            Recording::Rare => u64::MAX,
            Recording::Sampled => SAMPLE_ONE_IN - 1,
            Recording::Full => 0,
        }
    }
}

/// The kind of an event of the flight recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum EventKind {
    /// A task was spawned; the argument is its id.
    Spawn = 0,
    /// A task's poll began; the argument is its id.
    Poll = 1,
    /// A task was woken on this worker; the argument is its id.
    Wake = 2,
    /// Tasks were stolen; the argument is how many.
    Steal = 3,
    /// The worker goes to sleep.
    Park = 4,
    /// The worker woke up.
    Unpark = 5,
    /// Half the ring moved to the injector; the argument is how many.
    Overflow = 6,
    /// A task's body was dropped because it was cancelled; the argument is its id.
    Cancel = 7,
    /// A poll took longer than the threshold; the argument is the task's id.
    SlowPoll = 8,
    /// A task panicked; the argument is its id.
    Panic = 9,
    /// A job of a fork-join was stolen; the argument is the worker it was taken from.
    StealJob = 10,
}

impl EventKind {
    fn from_u8(value: u8) -> Option<EventKind> {
        use EventKind::*;
        [
            Spawn, Poll, Wake, Steal, Park, Unpark, Overflow, Cancel, SlowPoll, Panic, StealJob,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == value)
    }
}

/// One recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kind of the event.
    pub kind: EventKind,
    /// Nanoseconds since the process first looked at the clock. Spawns, polls and wakes have the
    /// time of the worker's last look at it, at most a batch of polls earlier; the events of one
    /// worker are in order.
    pub at: u64,
    /// On which worker.
    pub worker: usize,
    /// A task's id, or a number; see [`EventKind`].
    pub argument: u64,
}

impl Event {
    /// The task that the event is about, for the kinds whose argument is a task.
    pub fn task(&self) -> Option<TaskId> {
        use EventKind::*;
        match self.kind {
            Spawn | Poll | Wake | Cancel | SlowPoll | Panic => TaskId::from_number(self.argument),
            Steal | Park | Unpark | Overflow | StealJob => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    /// Events ever written. Only the worker writes.
    head: AtomicU64,
    entries: Box<[Entry]>,
}

#[derive(Debug, Default)]
struct Entry {
    /// Time in the upper 56 bits (two years of nanoseconds), kind in the lower 8.
    stamp: AtomicU64,
    argument: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Self {
        let entries = (0..RECORDER_EVENTS).map(|_| Entry::default()).collect();
        Recorder {
            head: AtomicU64::new(0),
            entries,
        }
    }
}

impl Recorder {
    /// Writes an event. Only the worker that owns the recorder may call this.
    pub(crate) fn record(&self, kind: EventKind, argument: u64) {
        self.record_at(kind, argument, clock::now());
    }

    /// As `record`, with a time the caller has read already.
    #[inline]
    pub(crate) fn record_at(&self, kind: EventKind, argument: u64, now: u64) {
        let head = self.head.load(Ordering::Relaxed);
        let entry = &self.entries[head as usize % RECORDER_EVENTS];
        entry.stamp.store(now << 8 | kind as u64, Ordering::Relaxed);
        entry.argument.store(argument, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `read`.
        self.head.store(head + 1, Ordering::Release);
    }

    /// Events ever recorded.
    pub(crate) fn recorded(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// The events that are still there, oldest first.
    pub(crate) fn read(&self, worker: usize) -> Vec<Event> {
        self.read_since(0, worker)
    }

    /// The events from the one with this number on that are still there, oldest first.
    pub(crate) fn read_since(&self, number: u64, worker: usize) -> Vec<Event> {
        let capacity = RECORDER_EVENTS as u64;
        // Acquire: pairs with the Release store in `record_at`.
        let head = self.head.load(Ordering::Acquire);
        let first = head.saturating_sub(capacity).max(number);
        let copied: Vec<_> = (first..head)
            .map(|number| {
                let entry = &self.entries[(number % capacity) as usize];
                let stamp = entry.stamp.load(Ordering::Relaxed);
                (number, stamp, entry.argument.load(Ordering::Relaxed))
            })
            .collect();
        // The copies above come before the look at how far the writer got.
        fence(Ordering::Acquire);
        let now = self.head.load(Ordering::Relaxed);
        // While entry `now` is being written, entry `now - capacity` is half gone.
        let valid = (now + 1).saturating_sub(capacity);
        copied
            .into_iter()
            .filter(|(number, ..)| *number >= valid)
            .filter_map(|(_, stamp, argument)| {
                let kind = EventKind::from_u8(stamp as u8)?;
                Some(Event {
                    kind,
                    at: stamp >> 8,
                    worker,
                    argument,
                })
            })
            .collect()
    }
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_events_in_order() {
        let recorder = Recorder::default();
        let many = RECORDER_EVENTS as u64 + 10;
        for number in 0..many {
            recorder.record_at(EventKind::Steal, number, number);
        }
        let events = recorder.read(3);
        assert!(events.len() >= RECORDER_EVENTS - 1);
        assert_eq!(events.last().map(|event| event.argument), Some(many - 1));
        assert!(
            events
                .windows(2)
                .all(|pair| pair[0].argument + 1 == pair[1].argument)
        );
        assert!(
            events
                .iter()
                .all(|event| event.worker == 3 && event.kind == EventKind::Steal)
        );
    }

    #[test]
    fn a_reader_never_sees_a_torn_event_while_the_worker_writes() {
        use crate::sync::{Arc, atomic::AtomicBool, thread};
        let recorder = Arc::new(Recorder::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (writer, done) = (recorder.clone(), stop.clone());
        let thread = thread::spawn("writer".into(), 0, move || {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                writer.record_at(EventKind::Poll, number, number);
                number += 1;
            }
        })
        .expect("thread");
        for _ in 0..200 {
            for event in recorder.read(0) {
                assert_eq!(event.at, event.argument);
            }
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().expect("no panic");
    }
}
