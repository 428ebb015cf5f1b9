//! What a blocking pool keeps under its lock.

use std::collections::{HashMap, VecDeque};

use windlass_core::task::{Entry, Job, TaskRef};

use super::thread::Start;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<QueuedJob>,
    /// Tasks that are ready while as many as may are having their turn.
    pub(super) held_back: VecDeque<QueuedJob>,
    /// Turns that are queued or under way, those of `held_back` and of pinned tasks not counted.
    pub(super) turns: usize,
    pub(super) turns_had: u64,
    /// Tasks that have begun on one thread, by the slot of the thread.
    pub(super) inboxes: HashMap<u16, VecDeque<Entry>>,
    /// Posts that were given up.
    pub(super) free_slots: Vec<u16>,
    pub(super) next_slot: u16,
    /// Tasks of the io dispatcher that have not ended.
    pub(super) tasks: HashMap<u64, TaskRef>,
    /// Threads that look at the queue, or will.
    pub(super) threads: usize,
    /// Threads that no longer do, and have not ended: their hook may take long.
    pub(super) ending: usize,
    /// Threads that have not looked at the queue for the first time; one at most. It starts the
    /// next one if there is more to do: a submitter does not wait for the system to make
    /// threads.
    pub(super) starting: usize,
    pub(super) idle: usize,
    /// Idle threads that were notified and are not awake yet: each has work that waits for it.
    pub(super) notified: usize,
    pub(super) started: u64,
    pub(super) submitted: u64,
    pub(super) expired: u64,
    pub(super) closed: bool,
    pub(super) running: HashMap<u64, TaskRef>,
}

#[derive(Debug)]
pub(super) struct QueuedJob {
    pub(super) work: Work,
    pub(super) start_by: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Work {
    Job(Job),
    Turn(Entry),
}

impl State {
    /// The thread was not started.
    pub(super) fn take_back(&mut self, start: Start) {
        self.free_slots.push(start.thread_slot);
        self.threads -= 1;
        self.starting -= 1;
    }

    /// A thread looks at the queue no more. Under the same lock as its last look, so that the next
    /// job starts another thread.
    pub(super) fn retire(&mut self) {
        self.threads -= 1;
        self.ending += 1;
    }

    /// Queues a task that only one thread may run.
    pub(super) fn leave_for(&mut self, thread_slot: usize, entry: Entry) {
        // It was made from one.
        let thread_slot = thread_slot as u16;
        self.inboxes
            .entry(thread_slot)
            .or_default()
            .push_back(entry);
    }

    pub(super) fn take_pinned(&mut self, thread_slot: u16) -> Option<QueuedJob> {
        // Nearly always there are none.
        if self.inboxes.is_empty() {
            return None;
        }
        let inbox = self.inboxes.get_mut(&thread_slot)?;
        let entry = inbox.pop_front();
        if inbox.is_empty() {
            self.inboxes.remove(&thread_slot);
        }
        Some(QueuedJob {
            work: Work::Turn(entry?),
            start_by: None,
        })
    }
}

impl Work {
    pub(super) fn task(&self) -> Option<TaskRef> {
        match self {
            Work::Job(job) => job.task(),
            Work::Turn(entry) => Some(entry.task()),
        }
    }
}
