//! The way out: a component that takes messages, and the task that sends them on.
//!
//! The component never waits. When as many messages as may are on their way it holds off, so that
//! the others wait on their edges; when one is done it goes on.

use std::collections::VecDeque;
use std::future::Future;

use windlass_core::sync::atomic::{AtomicUsize, Ordering};
use windlass_core::sync::{Arc, Mutex};
use windlass_core::task::JoinHandle;
use windlass_graph::component::{Drain, Failure, WeakOutside};
use windlass_runtime::spawn;
use windlass_sync::channel::mpsc;
use windlass_sync::{CancellationToken, DropGuard};

/// The component's end.
#[derive(Debug)]
pub(crate) struct Outlet<T> {
    /// The id of the component.
    id: String,
    /// None once it is drained.
    sender: Option<mpsc::Sender<T>>,
    shared: Arc<Shared>,
    queue: usize,
    task: Option<JoinHandle<()>>,
    ending: CancellationToken,
    /// Ends the task when the component is dropped.
    _stop: DropGuard,
}

/// The task's end.
#[derive(Debug)]
pub(crate) struct Orders<T> {
    receiver: mpsc::Receiver<T>,
    /// Cancelled when the run ends: what is on its way is still to be done.
    pub(crate) ending: CancellationToken,
    pub(crate) completions: Completions,
}

/// Where the task reports what became of messages. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Completions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many are on their way.
    pending: AtomicUsize,
    failures: Mutex<FailureQueue>,
    door: WeakOutside,
}

/// The failures that the component has not reported yet.
#[derive(Debug, Default)]
struct FailureQueue {
    waiting: VecDeque<Failure>,
    /// How many more there were.
    beyond: u64,
}

/// How many failures are kept for the component to report.
const MOST_FAILURES: usize = 16;

impl<T: Send + 'static> Outlet<T> {
    /// Starts the task that `work` makes.
    pub(crate) fn start<F>(
        id: &str,
        door: &WeakOutside,
        queue: usize,
        work: impl FnOnce(Orders<T>, CancellationToken) -> F,
    ) -> Outlet<T>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = mpsc::unlimited();
        let shared = Arc::new(Shared {
            pending: AtomicUsize::new(0),
            failures: Mutex::default(),
            door: door.clone(),
        });
        let stop = CancellationToken::new();
        let ending = CancellationToken::new();
        let orders = Orders {
            receiver,
            ending: ending.clone(),
            completions: Completions(shared.clone()),
        };
        let work = work(orders, stop.clone());
        let token = stop.clone();
        let task = spawn(async move {
            token.run_until_cancelled(work).await;
        });
        Outlet {
            id: id.to_owned(),
            sender: Some(sender),
            shared,
            queue,
            task: Some(task),
            ending,
            _stop: stop.drop_guard(),
        }
    }

    /// Sends messages on, and fails with what has gone wrong since.
    pub(crate) fn put(&self, items: impl IntoIterator<Item = T>) -> Result<(), Failure> {
        for item in items {
            // Relaxed: the channel hands the item over.
            self.shared.pending.fetch_add(1, Ordering::Relaxed);
            let sent = self.sender.as_ref().map(|sender| sender.try_send(item));
            if !matches!(sent, Some(Ok(()))) {
                let ended = || Failure::new("nothing is sent any more: see the failures before");
                return Err(self.shared.next_failure().unwrap_or_else(ended));
            }
        }
        self.hold_if_full();
        self.shared.next_failure().map_or(Ok(()), Err)
    }

    fn hold_if_full(&self) {
        let is_full = || self.shared.pending.load(Ordering::Acquire) >= self.queue;
        if is_full() {
            self.shared.door.hold_off();
            // One may have been done before it was held.
            if !is_full() {
                self.shared.door.resume();
            }
        }
    }

    /// What has to end before the run does.
    pub(crate) fn drain(&mut self) -> Option<Drain> {
        drop(self.sender.take());
        self.ending.cancel();
        let task = self.task.take()?;
        let shared = self.shared.clone();
        Some(Box::pin(async move {
            task.await?;
            shared.next_failure().map_or(Ok(()), Err)
        }))
    }
}

impl<T> Drop for Outlet<T> {
    fn drop(&mut self) {
        let pending = self.shared.pending.load(Ordering::Acquire);
        if pending > 0 {
            let id = &self.id;
            tracing::warn!(target: "windlass::graph", component = id, "{pending} messages were not sent when the run ended");
        }
    }
}

impl Shared {
    fn next_failure(&self) -> Option<Failure> {
        let mut failures = self.failures.lock();
        let failure = failures.waiting.pop_front();
        if !failures.waiting.is_empty() {
            // The others are reported in invocations of their own.
            self.door.wake();
            return failure;
        }
        match std::mem::take(&mut failures.beyond) {
            0 => failure,
            beyond => {
                failure.map(|last| Failure::new(format!("{last}; and {beyond} more went wrong")))
            }
        }
    }
}

impl<T> Orders<T> {
    /// The next message; none when the run ends.
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.receiver.recv().await
    }
}

impl Completions {
    /// A message is done, for better or worse.
    pub(crate) fn done(&self) {
        // Release: pairs with the load in `hold_if_full`.
        self.0.pending.fetch_sub(1, Ordering::Release);
        self.0.door.resume();
    }

    /// How many messages are on their way.
    pub(crate) fn pending(&self) -> usize {
        self.0.pending.load(Ordering::Acquire)
    }

    /// Reports a failure: the component fails with it once.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut failures = self.0.failures.lock();
        match failures.waiting.len() < MOST_FAILURES {
            true => failures.waiting.push_back(failure),
            false => failures.beyond += 1,
        }
        drop(failures);
        self.0.door.wake();
    }
}
