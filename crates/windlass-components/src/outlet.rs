//! The way out: a component that takes messages, and the task that sends them on.
//!
//! The component never waits. When as many messages as may are on their way it holds off, so that the others wait on
//! their edges; when one is done it goes on.

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
    /// The component's.
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
    pub(crate) desk: Desk,
}

/// Where it is told what has become of messages; clones are of the same.
#[derive(Debug, Clone)]
pub(crate) struct Desk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many are on their way.
    pending: AtomicUsize,
    faults: Mutex<Faults>,
    door: WeakOutside,
}

/// What has gone wrong and was not told yet.
#[derive(Debug, Default)]
struct Faults {
    waiting: VecDeque<Failure>,
    /// How many more there were.
    beyond: u64,
}

/// How many failures are kept for the component to tell.
const FAULTS: usize = 16;

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
            faults: Mutex::default(),
            door: door.clone(),
        });
        let stop = CancellationToken::new();
        let ending = CancellationToken::new();
        let orders = Orders {
            receiver,
            ending: ending.clone(),
            desk: Desk(shared.clone()),
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
                return Err(self.shared.fault().unwrap_or_else(ended));
            }
        }
        self.hold_if_full();
        self.shared.fault().map_or(Ok(()), Err)
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
            shared.fault().map_or(Ok(()), Err)
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
    fn fault(&self) -> Option<Failure> {
        let mut faults = self.faults.lock();
        let fault = faults.waiting.pop_front();
        if !faults.waiting.is_empty() {
            // The others are told in invocations of their own.
            self.door.wake();
            return fault;
        }
        match std::mem::take(&mut faults.beyond) {
            0 => fault,
            beyond => {
                fault.map(|last| Failure::new(format!("{last}; and {beyond} more went wrong")))
            }
        }
    }
}

impl<T> Orders<T> {
    /// The next message; none when the run ends.
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.receiver.recv().await.ok()
    }
}

impl Desk {
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

    /// Tells that something is wrong: the component fails with it once.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut faults = self.0.faults.lock();
        match faults.waiting.len() < FAULTS {
            true => faults.waiting.push_back(failure),
            false => faults.beyond += 1,
        }
        drop(faults);
        self.0.door.wake();
    }
}
