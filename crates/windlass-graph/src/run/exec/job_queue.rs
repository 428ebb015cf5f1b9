//! The queue in which jobs wait for a thread of a pool.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;

use crate::run::exec::flight::Job;
use windlass_plan::model::Priority;

/// Jobs that wait for a thread.
#[derive(Default)]
pub(crate) struct JobQueue(Mutex<PriorityQueue<Job>>);

impl JobQueue {
    pub(crate) fn push(&self, priority: usize, job: Job) {
        self.0.lock().push(priority, job);
    }

    fn pop(&self) -> Option<Job> {
        self.0.lock().pop()
    }

    /// Returns how often a job that had been passed over too often went first.
    pub(crate) fn guarded(&self) -> u64 {
        self.0.lock().guarded
    }
}

/// A queue by priority, first come first served within one; what has been passed over often goes
/// next.
struct PriorityQueue<T> {
    by_priority: [VecDeque<T>; Priority::ALL.len()],
    /// How often the first of each priority has been passed over.
    passed_over: [u32; Priority::ALL.len()],
    guarded: u64,
}

/// How often something is passed over before it goes next.
const PATIENCE: u32 = 8;

impl<T> Default for PriorityQueue<T> {
    fn default() -> Self {
        PriorityQueue {
            by_priority: Default::default(),
            passed_over: Default::default(),
            guarded: 0,
        }
    }
}

impl<T> PriorityQueue<T> {
    fn push(&mut self, priority: usize, job: T) {
        self.by_priority[priority].push_back(job);
    }

    fn pop(&mut self) -> Option<T> {
        let waits = |place: &usize| !self.by_priority[*place].is_empty();
        let first = (0..self.by_priority.len()).find(waits)?;
        let passed = (first + 1..self.by_priority.len()).filter(waits);
        let starved = passed.clone().find(|&p| self.passed_over[p] >= PATIENCE);
        let taken = starved.unwrap_or(first);
        self.guarded += u64::from(starved.is_some());
        for place in passed.collect::<Vec<_>>() {
            self.passed_over[place] += 1;
        }
        self.passed_over[taken] = 0;
        self.by_priority[taken].pop_front()
    }
}

/// A turn of a thread: it does the first job of the queue. If the turn never comes, that job is
/// dropped, and the run sees that its answer will not come.
pub(crate) struct QueueTurn(Option<Arc<JobQueue>>);

impl QueueTurn {
    pub(crate) fn new(queue: &Arc<JobQueue>) -> QueueTurn {
        QueueTurn(Some(queue.clone()))
    }

    pub(crate) fn run(mut self) {
        let job = self.0.take().and_then(|queue| queue.pop());
        if let Some(job) = job {
            job.run();
        }
    }
}

impl Drop for QueueTurn {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            let job = queue.pop();
            // Components are in it: their destructors are user code.
            windlass_core::task::contain(|| drop(job));
        }
    }
}

impl fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.0.lock();
        let lengths = waiting.by_priority.iter().map(VecDeque::len);
        f.debug_list().entries(lengths).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{PATIENCE, PriorityQueue};

    #[test]
    fn the_highest_priority_goes_first_and_nothing_is_passed_over_for_ever() {
        let mut waiting = PriorityQueue::default();
        for number in 0..40 {
            waiting.push(0, ("high", number));
        }
        waiting.push(3, ("background", 0));
        waiting.push(2, ("low", 0));
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let place = |name: &str| order.iter().position(|job| job.0 == name).unwrap();
        assert_eq!(order.len(), 42);
        assert_eq!(place("low"), PATIENCE as usize);
        assert_eq!(place("background"), PATIENCE as usize + 1);
        assert_eq!(waiting.guarded, 2);
        let high = order.iter().filter(|job| job.0 == "high").map(|job| job.1);
        assert!(high.eq(0..40), "first come, first served");
    }
}
