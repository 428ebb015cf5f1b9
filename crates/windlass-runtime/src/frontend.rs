//! Front ends: what they need of a runtime, and what it asks of them.
//!
//! A front end (processes, graphs) has tasks of its own kind of body, something that all its users
//! of a runtime share, and a turn in the runtime's shutdown: before the tasks are cancelled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use windlass_core::sync::{Mutex, clock};
use windlass_core::task::{BeforeFirstPoll, Body, JoinHandle, SpawnRequest};

use crate::driver::Reality;
use crate::handle::Handle;
use crate::observe::Observe;
use crate::runtime::Shared;

/// What a runtime asks of a front end.
pub trait FrontEnd: Any + Observe {
    /// Ends everything of this front end within `timeout`, which it sees to itself; gives what did
    /// not stop, a line each. The runtime still works meanwhile.
    fn stop(self: Arc<Self>, timeout: Duration) -> Stopping;

    /// Returns true if it is [closed](FrontEnd::close) after the last task has ended. Until then it
    /// stays attached.
    fn closes_last(&self) -> bool {
        false
    }

    /// Ends what tasks may have needed until their own end, within `timeout`; returns what did not
    /// stop, a line each. Called for front ends that close last.
    fn close(&self, _timeout: Duration) -> Vec<String> {
        Vec::new()
    }

    /// Whether it ends before the others: what runs in it may use them, and not the other way
    /// round.
    fn stops_early(&self) -> bool {
        false
    }
}

/// The end of a front end under way.
pub type Stopping = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// The runtime is shutting down and takes no front end any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeStopping;

impl fmt::Display for RuntimeStopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the runtime is shutting down")
    }
}

impl std::error::Error for RuntimeStopping {}

/// The front ends of a runtime, in the order of their coming; none once it stops.
#[derive(Default)]
pub(crate) struct FrontEnds(Mutex<State>);

#[derive(Default)]
struct State {
    stopping: bool,
    there: Vec<Arc<dyn FrontEnd>>,
}

impl Handle {
    /// Starts a task with a body of any kind.
    #[inline]
    pub fn spawn_request<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        self.pool().spawn(request)
    }

    /// Adds a front end; it is notified when the runtime does.
    pub fn attach(&self, front_end: Arc<dyn FrontEnd>) -> Result<(), RuntimeStopping> {
        let mut state = self.shared().front_ends.0.lock();
        if state.stopping {
            return Err(RuntimeStopping);
        }
        state.there.push(front_end);
        Ok(())
    }

    /// The first front end of this type that is `wanted`.
    pub fn attached<T: FrontEnd>(&self, wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.shared().front_ends.0.lock().find(wanted)
    }

    /// As `attached`, or else this one, which is added: callers at the same time get the same.
    pub fn attached_or<T: FrontEnd>(
        &self,
        wanted: impl Fn(&T) -> bool,
        made: Arc<T>,
    ) -> Result<Arc<T>, RuntimeStopping> {
        let mut state = self.shared().front_ends.0.lock();
        if let Some(found) = state.find(wanted) {
            return Ok(found);
        }
        if state.stopping {
            return Err(RuntimeStopping);
        }
        state.there.push(made.clone());
        Ok(made)
    }

    /// Whether clock, randomness and network are those of a simulation.
    pub fn is_simulated(&self) -> bool {
        self.shared().simulator().is_some()
    }

    /// A random number; in a simulation one of its dice, also when it is not running.
    pub fn random(&self) -> u64 {
        match self.shared().simulator() {
            Some(simulator) => simulator.random(),
            None => windlass_core::sync::random(),
        }
    }
}

impl State {
    fn find<T: FrontEnd>(&self, wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.there.iter().find_map(|front_end| {
            let any: Arc<dyn Any + Send + Sync> = front_end.clone();
            any.downcast::<T>().ok().filter(|found| wanted(found))
        })
    }
}

impl FrontEnds {
    /// Stops all of them on this thread, because workers may be stuck: those that stop early first,
    /// and of each kind the last that came first. Gives what did not stop.
    pub(crate) fn stop(shared: &Arc<Shared>, timeout: Duration) -> Vec<String> {
        let mut state = shared.front_ends.0.lock();
        state.stopping = true;
        // Taken out: they hold the runtime, and it would hold them.
        let there = std::mem::take(&mut state.there);
        let (last, mut there): (Vec<_>, Vec<_>) = there
            .into_iter()
            .partition(|front_end| front_end.closes_last());
        state.there = last;
        drop(state);
        there.sort_by_key(|front_end| front_end.stops_early());
        let began = clock::now();
        let mut left_over = Vec::new();
        for front_end in there.into_iter().rev() {
            let left = timeout.saturating_sub(Duration::from_nanos(clock::now() - began));
            let handle = Handle::new(shared.clone());
            let _entered = handle.enter();
            let stopping = front_end.stop(left);
            match &shared.world {
                Reality::Real(_) => left_over.extend(end(shared, stopping)),
                Reality::Simulated(simulator) => {
                    left_over.extend(simulator.try_block_on(stopping).into_iter().flatten());
                }
            }
        }
        left_over
    }

    /// Closes those that close last. Returns what did not stop.
    pub(crate) fn close(&self, timeout: Duration) -> Vec<String> {
        let last = std::mem::take(&mut self.0.lock().there);
        let began = clock::now();
        let left = || timeout.saturating_sub(Duration::from_nanos(clock::now() - began));
        last.iter()
            .flat_map(|front_end| front_end.close(left()))
            .collect()
    }

    /// Returns all of them, in the order of their coming.
    pub(crate) fn all(&self) -> Vec<Arc<dyn FrontEnd>> {
        self.0.lock().there.clone()
    }
}

/// Waits for the end of a front end. If it waits itself, it is for tasks: those of a current-thread
/// runtime need a thread then.
fn end(shared: &Shared, stopping: impl Future<Output = Vec<String>>) -> Vec<String> {
    let mut stopping = pin!(stopping);
    if let Poll::Ready(left_over) = stopping
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        return left_over;
    }
    if let Some(current_thread) = &shared.current_thread {
        current_thread.give_thread(shared);
    }
    windlass_core::block_anywhere(stopping)
}

impl fmt::Debug for FrontEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrontEnds({})", self.0.lock().there.len())
    }
}
