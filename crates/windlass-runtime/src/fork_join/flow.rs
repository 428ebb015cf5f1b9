//! Steps that wait for each other, made once and run often.
//!
//! A worker that ends a step looks at those that waited for it. The last one that may begin now it
//! begins itself; the others it leaves in its deque, where other workers can take them. So a chain
//! never leaves its worker and costs a call per step. Steps without predecessors are taken from a
//! shared line, a few at a time.
//!
//! Rules, which the `unsafe` blocks cite:
//!
//! 1. **Counted.** `left` counts the steps that have not ended. A thread that runs steps counts
//!    them for itself, and subtracts them when it finds no more. The frame of `run` and the flow
//!    are there until it is zero.
//! 2. **Who brings it to zero sets the latch**, and the frame believes only the latch, unless it is
//!    the one. No thread touches frame or flow after its own subtraction (the rule of the frame,
//!    `windlass_core::sched::latch`). An invitation is counted as a step, so that it is gone, too.
//! 3. **One run at a time.** `run` has the flow for itself, and `frame` says which run that is.
//! 4. **In place.** Jobs point to nodes while `run` borrows the flow, which is not moved then.
//!    Nodes point to the head at all times: it is shared, and not in a box, which may be pointed to
//!    by no other code when it is moved.
//!
//! A panic anywhere else than in a step ends the process (`NoUnwind`).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_core::queue::{JobRef, Taker};
use windlass_core::sched::Arrivals;
use windlass_core::sched::fork::{self, Here, Latch, Mark};
use windlass_core::sync::Padded;
use windlass_core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use windlass_core::unwind::NoUnwind;

use crate::fork_join::first_panic::FirstPanic;
use crate::fork_join::injected_call;
use crate::fork_join::thieves::Thieves;
use windlass_core::unwind::PanicPayload;

/// Steps that wait for each other, made once and run often.
///
/// ```
/// use windlass_runtime::fork_join::Flow;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// // 0 comes before 1 and 2, and both before 3.
/// let mut flow = Flow::new(&[vec![1, 2], vec![3], vec![3], vec![]])?;
/// let ended = AtomicU32::new(0);
/// flow.run(|step| {
///     let before = ended.fetch_add(1, Ordering::Relaxed);
///     assert!(step != 0 || before == 0);
///     assert!(step != 3 || before == 3);
/// });
/// assert_eq!(ended.into_inner(), 4);
/// # Ok::<(), windlass_runtime::fork_join::FlowError>(())
/// ```
pub struct Flow {
    nodes: Box<[Node]>,
    /// The targets of all steps, one step's after another's.
    targets: Box<[u32]>,
    /// Steps that wait for nothing.
    roots: Box<[u32]>,
    head: Arc<Head>,
}

struct Node {
    arrivals: Arrivals,
    /// Where its targets are: from `first` to `end`; or `ONLY`, and `end` is the one.
    first: u32,
    end: u32,
    head: *const Head,
}

/// Instead of where targets begin: there is one, and it waits for no other step.
const ONLY: u32 = u32::MAX;

/// Who waits for a step.
enum Targets {
    /// One step, which waits for no other: a link of a chain.
    Only(u32),
    /// Those from here to there.
    Range(usize, usize),
}

impl Node {
    #[inline]
    fn targets(&self) -> Targets {
        match self.first {
            ONLY => Targets::Only(self.end),
            first => Targets::Range(first as usize, self.end as usize),
        }
    }
}

/// What a job finds from its node.
struct Head {
    /// The run that is under way.
    frame: AtomicPtr<()>,
}

// SAFETY: `head` is shared and only read; see rules 3 and 4.
unsafe impl Send for Flow {}
// SAFETY: as above: `&Flow` gives nothing but numbers.
unsafe impl Sync for Flow {}

/// Why there is no such flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowError {
    /// A step names one that is not there.
    NoSuchStep {
        /// Who names it.
        step: usize,
        /// What it names.
        target: usize,
    },
    /// A step waits for itself, directly or not.
    Cycle {
        /// The number of a step in the cycle.
        step: usize,
    },
    /// There are more steps, or more targets, than 2^32 - 2.
    TooLarge,
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowError::NoSuchStep { step, target } => {
                write!(
                    f,
                    "step {step} comes before step {target}, which is not there"
                )
            }
            FlowError::Cycle { step } => write!(f, "step {step} waits for itself"),
            FlowError::TooLarge => f.write_str("a flow has 2^32 - 2 steps and targets at most"),
        }
    }
}

impl std::error::Error for FlowError {}

/// One run of a flow.
struct Frame<'a> {
    flow: &'a Flow,
    body: &'a (dyn Fn(usize) + Sync),
    left: Padded<AtomicUsize>,
    /// The first root that was not taken.
    next_root: Padded<AtomicUsize>,
    thieves: Thieves,
    /// A step has panicked: the others are counted and not run.
    failed: AtomicBool,
    panic: FirstPanic,
    latch: Latch,
}

/// How many roots are taken from the line at once.
const ROOTS_AT_ONCE: usize = 32;

impl Flow {
    /// Steps by number: `targets[n]` are the steps that wait for step `n`.
    pub fn new(targets: &[Vec<usize>]) -> Result<Flow, FlowError> {
        let mut expected = vec![0_u32; targets.len()];
        let mut flat = Vec::new();
        let mut ranges = Vec::with_capacity(targets.len());
        for (step, list) in targets.iter().enumerate() {
            let first = flat.len();
            for &target in list {
                let Some(count) = expected.get_mut(target) else {
                    return Err(FlowError::NoSuchStep { step, target });
                };
                *count += 1;
                flat.push(u32::try_from(target).map_err(|_| FlowError::TooLarge)?);
            }
            let place = |place: usize| match u32::try_from(place) {
                Ok(place) if place != ONLY => Ok(place),
                _ => Err(FlowError::TooLarge),
            };
            ranges.push((place(first)?, place(flat.len())?));
        }
        check_acyclic(targets, &expected)?;
        let head = Arc::new(Head {
            frame: AtomicPtr::new(std::ptr::null_mut()),
        });
        let roots = (0..targets.len()).filter(|&step| expected[step] == 0);
        let place = |first: u32, end: u32| match flat[first as usize..end as usize] {
            [target] if expected[target as usize] == 1 => (ONLY, target),
            _ => (first, end),
        };
        Ok(Flow {
            roots: roots.map(|step| step as u32).collect(),
            nodes: ranges
                .into_iter()
                .zip(&expected)
                .map(|((first, end), expected)| {
                    let (first, end) = place(first, end);
                    Node {
                        arrivals: Arrivals::new(*expected),
                        first,
                        end,
                        head: Arc::as_ptr(&head),
                    }
                })
                .collect(),
            targets: flat.into(),
            head,
        })
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Calls `body` once for each step, with its number, after all those that it waits for. Returns
    /// when all have ended. What a step did is seen by those that waited for it.
    ///
    /// # Panics
    /// With the first panic of `body`; steps that have not begun by then are left out.
    pub fn run(&mut self, body: impl Fn(usize) + Sync) {
        if !self.nodes.is_empty() {
            self.run_dyn(&body);
        }
    }

    fn run_dyn(&mut self, body: &(dyn Fn(usize) + Sync)) {
        let flow = &*self;
        fork::here(|here| match here {
            Some(here) => flow.on_worker(here, body),
            None => match injected_call::destination() {
                Some(runtime) => injected_call::on_pool(&runtime, || {
                    fork::here(|here| match here {
                        Some(here) => flow.on_worker(here, body),
                        None => flow.in_order(body),
                    });
                }),
                None => flow.in_order(body),
            },
        });
    }

    fn on_worker(&self, here: Here<'_>, body: &(dyn Fn(usize) + Sync)) {
        let invitations = match self.roots.len() > ROOTS_AT_ONCE {
            true => here.workers().saturating_sub(1),
            false => 0,
        };
        let frame = Frame::new(self, body, invitations, here.latch());
        let there: *const Frame<'_> = &raw const frame;
        // Relaxed: the thread that takes a job of this run sees it by way of the deque.
        self.head
            .frame
            .store(there.cast_mut().cast(), Ordering::Relaxed);
        let mark = here.mark();
        let guard = NoUnwind::arm("fork_join::Flow::run");
        for _ in 0..invitations {
            // SAFETY: rules 1 and 2: the frame waits until it has run, too.
            unsafe { here.fork(JobRef::new(there.cast(), accept_invitation)) };
        }
        let mut walk = Walk {
            frame: &frame,
            mark,
            ended: 0,
            at: None,
        };
        walk.go();
        let ended = walk.ended;
        // Perhaps on another worker by now, if a step has suspended a coroutine.
        fork::here(|here| {
            let here = here.expect("it runs on workers only");
            // AcqRel: pairs with the subtractions of the others: what they did is seen here.
            if frame.left.0.fetch_sub(ended, Ordering::AcqRel) > ended {
                here.wait(&frame.latch, || frame.thieves.help(here));
            }
        });
        guard.disarm();
        frame.settle();
    }

    /// On a thread that is no worker and stays where it is.
    fn in_order(&self, body: &(dyn Fn(usize) + Sync)) {
        let frame = Frame::new(self, body, 0, Latch::new(0));
        let mut waiting: Vec<u32> = self.roots.to_vec();
        waiting.reverse();
        while let Some(step) = waiting.pop() {
            frame.step(step as usize);
            let (first, end) = match self.nodes[step as usize].targets() {
                Targets::Only(target) => {
                    waiting.push(target);
                    continue;
                }
                Targets::Range(first, end) => (first, end),
            };
            for &target in self.targets[first..end].iter().rev() {
                if self.nodes[target as usize].arrivals.arrive() {
                    waiting.push(target);
                }
            }
        }
        frame.settle();
    }
}

/// Steps that no order reaches wait for each other.
fn check_acyclic(targets: &[Vec<usize>], expected: &[u32]) -> Result<(), FlowError> {
    let mut missing = expected.to_vec();
    let mut ready: Vec<usize> = (0..targets.len()).filter(|&s| missing[s] == 0).collect();
    while let Some(step) = ready.pop() {
        for &target in &targets[step] {
            missing[target] -= 1;
            if missing[target] == 0 {
                ready.push(target);
            }
        }
    }
    match missing.iter().position(|&left| left > 0) {
        Some(step) => Err(FlowError::Cycle { step }),
        None => Ok(()),
    }
}

impl<'a> Frame<'a> {
    fn new(
        flow: &'a Flow,
        body: &'a (dyn Fn(usize) + Sync),
        invitations: usize,
        latch: Latch,
    ) -> Frame<'a> {
        Frame {
            flow,
            body,
            left: Padded(AtomicUsize::new(flow.nodes.len() + invitations)),
            next_root: Padded(AtomicUsize::new(0)),
            thieves: Thieves::default(),
            failed: AtomicBool::new(false),
            panic: FirstPanic::default(),
            latch,
        }
    }

    /// Runs a step by itself, with its panic kept.
    fn step(&self, step: usize) {
        // Relaxed: a hint; what is left out is counted all the same.
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.body)(step))) {
            self.keep(payload);
        }
    }

    /// Keeps the first panic; what has not begun is left out.
    fn keep(&self, payload: PanicPayload) {
        // Relaxed: a hint; what is left out is counted all the same.
        self.failed.store(true, Ordering::Relaxed);
        self.panic.keep(payload);
    }

    fn settle(self) {
        self.panic.resume(|| {});
    }

    /// The next roots of the line.
    fn take_roots(&self) -> &[u32] {
        let roots = &self.flow.roots;
        // Relaxed: the number is all there is to it. The load keeps a line that is used up from
        // growing.
        if self.next_root.0.load(Ordering::Relaxed) >= roots.len() {
            return &[];
        }
        let first = self.next_root.0.fetch_add(ROOTS_AT_ONCE, Ordering::Relaxed);
        let end = roots.len().min(first.saturating_add(ROOTS_AT_ONCE));
        roots.get(first..end).unwrap_or(&[])
    }
}

/// One worker's way through a flow.
struct Walk<'a> {
    frame: &'a Frame<'a>,
    mark: Mark,
    /// Steps that have ended here and are not subtracted yet.
    ended: usize,
    /// The step to begin with, and the one that runs.
    at: Option<u32>,
}

impl Walk<'_> {
    /// Runs steps until there is none here; then roots, until there are none at all.
    fn go(&mut self) {
        loop {
            let walked = catch_unwind(AssertUnwindSafe(|| self.until_nothing_is_here()));
            match walked {
                Ok(()) => return,
                Err(payload) => {
                    self.frame.keep(payload);
                    // The step that panicked counts as ended.
                    self.finish();
                }
            }
        }
    }

    fn until_nothing_is_here(&mut self) {
        loop {
            while let Some(step) = self.at {
                // Relaxed: a hint; what is left out is counted all the same.
                if !self.frame.failed.load(Ordering::Relaxed) {
                    (self.frame.body)(step as usize);
                }
                self.finish();
            }
            if self.take_back() {
                continue;
            }
            let mut roots = self.frame.take_roots().iter().copied();
            let Some(first) = roots.next() else { return };
            for root in roots {
                self.fork(root);
            }
            self.at = Some(first);
        }
    }

    /// The step that we are at has ended: one of those that waited for it is next.
    fn finish(&mut self) {
        let Some(step) = self.at.take() else { return };
        self.ended += 1;
        let flow = self.frame.flow;
        let (first, end) = match flow.nodes[step as usize].targets() {
            Targets::Only(target) => {
                self.at = Some(target);
                return;
            }
            Targets::Range(first, end) => (first, end),
        };
        for &target in &flow.targets[first..end] {
            if flow.nodes[target as usize].arrivals.arrive()
                && let Some(ready) = self.at.replace(target)
            {
                self.fork(ready);
            }
        }
    }

    /// Leaves a step where others can take it.
    fn fork(&self, step: u32) {
        // Asked for each time: a step may have suspended a coroutine, and we go on elsewhere.
        let node: *const Node = &raw const self.frame.flow.nodes[step as usize];
        fork::here(|here| {
            let here = here.expect("a walk is on a worker");
            // SAFETY: rules 1, 2 and 4; `go` takes back what is above the mark before it returns.
            unsafe { here.fork(JobRef::new(node.cast(), run_stolen)) };
        });
    }

    /// Takes back what was forked last and is still here.
    fn take_back(&mut self) -> bool {
        fork::here(|here| {
            let here = here.expect("a walk is on a worker");
            let Some(job) = here.take_above(self.mark) else {
                return false;
            };
            let nodes = self.frame.flow.nodes.as_ptr_range();
            let data = job.data().cast::<Node>();
            if nodes.contains(&data) {
                // SAFETY: it points into the nodes.
                let place = unsafe { data.offset_from_unsigned(nodes.start) };
                self.at = Some(place as u32);
            } else {
                // SAFETY: we have taken it out of our deque.
                unsafe { job.run(Taker::Owner) };
            }
            true
        })
    }
}

/// # Safety
/// `node` is a [`Node`] of a flow that is being run, and the caller, a worker of that pool, has
/// taken the job.
unsafe fn run_stolen(node: *const (), taken: Taker) {
    let node = node.cast::<Node>();
    // SAFETY: rules 1 and 4: this step has not ended.
    let frame = unsafe { (*(*node).head).frame.load(Ordering::Relaxed) };
    // SAFETY: rules 1 and 3.
    let frame: *const Frame<'_> = frame.cast_const().cast();
    // SAFETY: as above, until we have subtracted our steps.
    let nodes = unsafe { (*frame).flow.nodes.as_ptr() };
    // SAFETY: it points into the nodes.
    let place = unsafe { node.offset_from_unsigned(nodes) };
    // SAFETY: says the caller.
    unsafe { walk_from(frame, Some(place as u32), 0, taken) };
}

/// # Safety
/// `frame` is a [`Frame`] that waits, and the caller, a worker of that pool, has taken the job.
unsafe fn accept_invitation(frame: *const (), taken: Taker) {
    // SAFETY: says the caller. The invitation counts as a step.
    unsafe { walk_from(frame.cast(), None, 1, taken) };
}

/// # Safety
/// `frame` is there until `ended` and what is walked here have been subtracted.
unsafe fn walk_from(frame: *const Frame<'_>, at: Option<u32>, ended: usize, taken: Taker) {
    let guard = NoUnwind::arm("a step of fork_join::Flow::run");
    fork::here(|here| {
        let here = here.expect("jobs run on workers");
        // SAFETY: rule 1.
        let run = unsafe { &*frame };
        let entered = (taken == Taker::Thief).then(|| run.thieves.enter(here));
        let mut walk = Walk {
            frame: run,
            mark: here.mark(),
            ended,
            at,
        };
        walk.go();
        let ended = walk.ended;
        if let Some(entered) = entered {
            run.thieves.leave(entered);
        }
        // AcqRel: pairs with itself: who sees zero has seen what all others did.
        if run.left.0.fetch_sub(ended, Ordering::AcqRel) == ended {
            fork::here(|here| {
                let here = here.expect("jobs run on workers");
                // SAFETY: rule 2: we brought it to zero, and touch it no more.
                unsafe { here.set(&raw const (*frame).latch) };
            });
        }
    });
    guard.disarm();
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("steps", &self.nodes.len())
            .field("roots", &self.roots.len())
            .finish_non_exhaustive()
    }
}
