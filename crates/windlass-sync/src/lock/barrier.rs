//! A point at which a number of tasks wait for each other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::sync::Mutex;
use windlass_core::task::spend;

use crate::wait_list::{Node, Notification, Status, WaitList, in_rounds};

/// Blocks its waiters until there are `n`; then all pass, and it can be used again.
///
/// ```
/// use windlass_sync::lock::Barrier;
///
/// # windlass_core::block_on(async {
/// let barrier = Barrier::new(1);
/// assert!(barrier.wait().await.is_leader());
/// # });
/// ```
pub struct Barrier {
    n: usize,
    state: Mutex<State>,
}

struct State {
    /// How many times it has opened.
    generation: u64,
    arrived: usize,
    /// The payload is the generation in which the waiter arrived; it grows along the list.
    waiters: WaitList<u64>,
}

impl Barrier {
    /// A barrier for `n` at a time; 0 means 1.
    pub fn new(n: usize) -> Barrier {
        Barrier {
            n: n.max(1),
            state: Mutex::new(State {
                generation: 0,
                arrived: 0,
                waiters: WaitList::new(),
            }),
        }
    }

    /// Waits until `n` are here; one of them learns that it is the leader.
    ///
    /// Cancel-safe: a wait that is dropped before the barrier opens does not count any more.
    pub fn wait(&self) -> BarrierWait<'_> {
        BarrierWait {
            barrier: self,
            node: Node::new(0),
        }
    }

    /// Blocks this thread until `n` are here.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_wait(&self) -> BarrierWaitResult {
        windlass_core::block_on(self.wait())
    }

    /// Notifies those who arrived before this generation.
    fn open(&self, generation: u64) {
        in_rounds(&self.state, |state, wakes| {
            let arrived_before = |arrived: &u64| *arrived < generation;
            state
                .waiters
                .notify_while(Notification::Served, wakes, arrived_before);
        });
    }
}

/// The future of [`Barrier::wait`].
#[must_use = "futures do nothing unless awaited"]
pub struct BarrierWait<'a> {
    barrier: &'a Barrier,
    node: Node<u64>,
}

impl BarrierWait<'_> {
    /// Counts itself; the last one opens the barrier and is the leader.
    fn arrive(&self, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let mut state = self.barrier.state.lock();
        if state.arrived + 1 < self.barrier.n {
            let waker = cx.waker().clone();
            let generation = state.generation;
            // SAFETY: rule 4: the node is ours and idle.
            unsafe { self.node.payload(|arrived| *arrived = generation) };
            // SAFETY: the node is pinned in this future, whose drop takes it out; it is idle.
            unsafe { state.waiters.push(&self.node, Some(waker)) };
            state.arrived += 1;
            return Poll::Pending;
        }
        state.arrived = 0;
        state.generation += 1;
        let generation = state.generation;
        drop(state);
        self.barrier.open(generation);
        Poll::Ready(BarrierWaitResult { leader: true })
    }
}

impl Future for BarrierWait<'_> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        let result = match this.node.status() {
            Status::Idle => ready!(this.arrive(cx)),
            _ => {
                let lock = &this.barrier.state;
                // SAFETY: the node is ours and was pushed into this list.
                ready!(unsafe {
                    this.node
                        .poll_notified(cx, lock, |state| &mut state.waiters)
                });
                BarrierWaitResult { leader: false }
            }
        };
        this.node.reset();
        spent.made_progress();
        Poll::Ready(result)
    }
}

impl Drop for BarrierWait<'_> {
    fn drop(&mut self) {
        if self.node.status() != Status::Waiting {
            return;
        }
        let mut state = self.barrier.state.lock();
        // SAFETY: the node is ours and was pushed into this list.
        let waker = unsafe { state.waiters.remove(&self.node) };
        if self.node.status() == Status::Idle {
            // SAFETY: rule 4: it is not linked any more.
            let arrived = unsafe { self.node.payload(|arrived| *arrived) };
            // If the barrier has opened meanwhile, it was counted and is only notified late.
            if arrived == state.generation {
                state.arrived -= 1;
            }
        }
        drop(state);
        drop(waker);
    }
}

/// What a wait at a [`Barrier`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarrierWaitResult {
    leader: bool,
}

impl BarrierWaitResult {
    /// True for exactly one of those who passed together.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Barrier");
        out.field("n", &self.n);
        if let Some(state) = self.state.try_lock() {
            out.field("arrived", &state.arrived);
            out.field("generation", &state.generation);
        }
        out.finish()
    }
}

impl fmt::Debug for BarrierWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWait")
            .field("status", &self.node.status())
            .field("barrier", &self.barrier)
            .finish()
    }
}
