//! A closure for a thread that may block: the same block and join handle, no scheduler.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::context;
use crate::task::cell::{Body, Closure};
use crate::task::entry::{Entry, Scheduler};
use crate::task::header::Header;
use crate::task::join::JoinHandle;
use crate::task::meta::TaskId;
use crate::task::state::Home;
use crate::task::{Options, Residence, SpawnRequest, TaskRef};

/// A closure that waits for a blocking thread. Dropping it cancels it.
#[derive(Debug)]
pub struct Job(Option<Entry>);

/// The closure may block and call `block_on`, so it does not count as being inside a task.
struct Blocking<F>(Closure<F>);

impl<F> Unpin for Blocking<F> {}

impl<T, F: FnOnce() -> T> Body for Blocking<F> {
    type Output = T;

    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        context::outside_task(|| Pin::new(&mut self.0).resume(cx))
    }
}

/// A blocking thread resumes a body once, to its end.
struct OneGo;

impl Scheduler for OneGo {
    fn register(&self, _header: &Header) {
        unreachable!("a blocking closure does not suspend");
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

impl Job {
    /// Makes a job. `number` identifies it within its runtime, as for tasks from outside.
    pub fn new<T, F>(f: F, number: u64, options: Options) -> (Job, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let id = || TaskId::numbered(u16::MAX - 1, number);
        let body = Blocking(Closure(Some(f)));
        let request = SpawnRequest::new(body, options);
        let (entry, handle) =
            request.allocate(Residence::new(Home::Blocking, std::ptr::null()), id);
        (Job(Some(entry)), handle)
    }

    /// Runs the closure; one that was aborted before is dropped instead.
    pub fn run(mut self) {
        if let Some(entry) = self.0.take() {
            let _ = entry.run(&OneGo);
        }
    }

    /// Drops the closure because its time to start has passed.
    pub fn expire(mut self) {
        if let Some(entry) = self.0.take() {
            entry.expire(&OneGo);
        }
    }

    /// A reference to the job's task, for naming it while it runs.
    pub fn task(&self) -> Option<TaskRef> {
        // SAFETY: rule 1: the entry keeps the task alive.
        self.0
            .as_ref()
            .map(|entry| unsafe { TaskRef::retain(entry.as_ptr()) })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.refuse();
        }
    }
}
