//! The way in: a task that brings things, and the component that publishes them.
//!
//! Between them is a channel of a bounded length: if the graph is slow, the task waits, and so does
//! the peer that sends to it.

use std::future::Future;

use windlass_core::sync::Arc;
use windlass_graph::component::{Failure, Invocation, Output, Outside, WeakOutside};
use windlass_runtime::spawn;
use windlass_sync::channel::mpsc;
use windlass_sync::{CancellationToken, DropGuard};
use windlass_value::Payload;

use crate::records::{NextRecord, Records};

/// The component's end.
#[derive(Debug)]
pub(crate) struct Inlet<T> {
    receiver: mpsc::Receiver<Result<T, Failure>>,
    records: Records<T>,
    door: WeakOutside,
    /// Ends the task when the component is dropped.
    _stop: Option<DropGuard>,
}

/// The task's end; clones are of the same. When the last one is dropped, the source has come to its
/// end.
#[derive(Debug)]
pub(crate) struct Feed<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    sender: mpsc::Sender<Result<T, Failure>>,
    door: WeakOutside,
    /// Tells the run that more may come; none if another part of the component does.
    _open: Option<Outside>,
}

/// The component has ended, and takes nothing more.
#[derive(Debug)]
pub(crate) struct InletClosed;

impl<T> Clone for Feed<T> {
    fn clone(&self) -> Self {
        Feed(self.0.clone())
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // In this order: a run that this wakes finds that nothing more will come.
        self.sender.close();
        self.door.wake();
    }
}

impl<T> Feed<T> {
    /// Hands something over, when there is room.
    pub(crate) async fn give(&self, item: T) -> Result<(), InletClosed> {
        self.send(Ok(item)).await
    }

    /// Reports a failure: the component fails with it once.
    pub(crate) async fn report(&self, failure: Failure) -> Result<(), InletClosed> {
        self.send(Err(failure)).await
    }

    async fn send(&self, item: Result<T, Failure>) -> Result<(), InletClosed> {
        self.0.sender.send(item).await.map_err(|_| InletClosed)?;
        self.0.door.wake();
        Ok(())
    }

    /// Hands something over, if there is room now.
    pub(crate) fn try_give(&self, item: T) -> Result<(), InletClosed> {
        self.0.sender.try_send(Ok(item)).map_err(|_| InletClosed)?;
        self.0.door.wake();
        Ok(())
    }
}

impl<T: Send + 'static> Inlet<T> {
    /// Starts the task that `work` makes.
    pub(crate) fn start<F>(
        outside: Outside,
        queue: usize,
        records: usize,
        work: impl FnOnce(Feed<T>, CancellationToken) -> F,
    ) -> Inlet<T>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let door = outside.downgrade();
        let (mut inlet, feed) = Inlet::channel(door, Some(outside), queue, records);
        let stop = CancellationToken::new();
        let work = work(feed, stop.clone());
        let token = stop.clone();
        drop(spawn(async move {
            token.run_until_cancelled(work).await;
        }));
        inlet._stop = Some(stop.drop_guard());
        inlet
    }

    /// Returns both ends, for a task that the caller starts.
    pub(crate) fn channel(
        door: WeakOutside,
        open: Option<Outside>,
        queue: usize,
        records: usize,
    ) -> (Inlet<T>, Feed<T>) {
        let (sender, receiver) = mpsc::buffered(queue);
        let feed = Feed(Arc::new(Shared {
            sender,
            door: door.clone(),
            _open: open,
        }));
        let inlet = Inlet {
            receiver,
            records: Records::new(records),
            door,
            _stop: None,
        };
        (inlet, feed)
    }

    /// Publishes what has come.
    pub(crate) fn run(
        &mut self,
        invocation: &mut Invocation<'_>,
        publish: impl Fn(&mut Invocation<'_>, &T) -> bool,
    ) -> Result<(), Failure> {
        let receiver = &mut self.receiver;
        let next = || match receiver.try_recv() {
            Ok(item) => item.map(NextRecord::One),
            Err(mpsc::error::TryRecvError::Empty) => Ok(NextRecord::Nothing),
            Err(_) => Ok(NextRecord::End),
        };
        let result = self.records.run(invocation, next, publish);
        let more = !self.records.is_settled()
            || !self.receiver.is_empty()
            || self.receiver.is_closed() && !matches!(result, Ok(false));
        if more {
            self.door.wake();
        } else if self.receiver.is_closed() {
            // The source is finished, so the run must not wait for it to have room.
            self.door.resume();
        }
        result.map(drop)
    }
}

impl Inlet<Payload> {
    /// As `run`, to an output.
    pub(crate) fn publish(
        &mut self,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
    ) -> Result<(), Failure> {
        self.run(invocation, |invocation, payload| {
            invocation.publish(output, payload.clone())
        })
    }
}
