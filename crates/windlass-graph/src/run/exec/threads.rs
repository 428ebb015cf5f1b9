//! The threads of lanes: which lanes have some, what the system gives them, and the line in which work waits for
//! them.
//!
//! A lane's threads are a dispatcher of the runtime. Lanes that run in the run's own task get one only if they name
//! attributes. A run that follows the real clock is itself on a thread of its own, that of its most urgent lane on
//! the clock; the components of that lane run there.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread::ThreadId;

use windlass_core::sync::Mutex;
use windlass_core::task::Class;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{
    Attributes, Builder, Dispatcher, DispatcherError, MemoryLock, OnRefusal, Scheduling,
    lock_memory,
};

use crate::run::exec::flight::Job;
use windlass_plan::compile::Plan;
use windlass_plan::model::{Graph, Lane, LaneKind, OsPolicy, Priority, RtPolicy};

/// The threads of a lane, or of one of its components.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    dispatcher: Dispatcher,
    pub(crate) width: usize,
    pub(crate) workers: Arc<Workers>,
    line: Arc<Line>,
}

impl Pool {
    fn new(
        plan: &Plan,
        lane: &Lane,
        name: String,
        runtime: &Handle,
    ) -> Result<Pool, DispatcherError> {
        let width = match lane.kind {
            LaneKind::ThreadPool => lane.width(),
            _ => 1,
        };
        let builder = with_attributes(Dispatcher::builder(width).name(name), &plan.graph, lane);
        let class = match lane.priority_class().unwrap_or_default() {
            Priority::High => Class::High,
            Priority::Normal => Class::Normal,
            Priority::Low => Class::Low,
            Priority::Background => Class::Background,
        };
        Ok(Pool {
            dispatcher: builder.build_in(runtime)?.with_class(class),
            width,
            workers: Arc::default(),
            line: Arc::default(),
        })
    }

    /// Puts a job in line; a thread takes the first when it is free.
    pub(crate) fn send(&self, priority: usize, job: Job) {
        self.line.0.lock().push(priority, job);
        let next = Next(Some(self.line.clone()));
        self.dispatcher.spawn(async move { next.run() }).detach();
    }

    /// Runs something else on these threads.
    pub(crate) fn spawn<F>(&self, future: F) -> windlass_core::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.dispatcher.spawn(future)
    }

    /// How often something that had been passed over too often went first.
    pub(crate) fn guarded(&self) -> u64 {
        self.line.0.lock().guarded
    }
}

/// The pools of a lane: none, one, or one for each component.
pub(crate) fn pools_of(
    plan: &Plan,
    place: usize,
    runtime: &Handle,
) -> Result<Vec<Pool>, DispatcherError> {
    let lane = &plan.graph.lanes[place];
    if driver_lane(&plan.graph) == Some(place) || !lane.has_threads() {
        return Ok(Vec::new());
    }
    if !has_threads_each(lane) {
        return Ok(vec![Pool::new(plan, lane, thread_name(lane), runtime)?]);
    }
    let components = plan.graph.components.iter();
    let here = components.filter(|component| component.execution.lane == lane.id);
    here.map(|component| {
        let name = format!("{}-{}", thread_name(lane), component.id);
        Pool::new(plan, lane, name, runtime)
    })
    .collect()
}

/// Which of its lane's pools a component runs on, if its lane has some.
pub(crate) fn pool_of(plan: &Plan, component: usize) -> Option<usize> {
    let place = plan.nodes[component].lane;
    let lane = &plan.graph.lanes[place];
    if driver_lane(&plan.graph) == Some(place) || !lane.has_threads() {
        return None;
    }
    let before = plan.nodes[..component].iter().filter(|n| n.lane == place);
    Some(if has_threads_each(lane) {
        before.count()
    } else {
        0
    })
}

fn has_threads_each(lane: &Lane) -> bool {
    lane.kind == LaneKind::IsolatedThread && lane.per_component
}

fn thread_name(lane: &Lane) -> String {
    let name = lane.thread_name.clone();
    name.unwrap_or_else(|| format!("lane-{}", lane.id))
}

/// The lane whose thread a run on the real clock is driven by: the most urgent.
pub(crate) fn driver_lane(graph: &Graph) -> Option<usize> {
    let on_clock = graph
        .lanes
        .iter()
        .enumerate()
        .filter(|(_, l)| l.follows_clock());
    let urgency = |lane: &Lane| {
        let real_time = match lane.real_time() {
            // Before every other policy.
            Some(RtPolicy::Deadline) => i32::MAX,
            Some(RtPolicy::Fifo | RtPolicy::RoundRobin) => lane.rt_priority,
            None => 0,
        };
        (real_time, -lane.nice_priority)
    };
    // The first of the most urgent.
    let most = on_clock.rev().max_by_key(|(_, lane)| urgency(lane));
    most.map(|(place, _)| place)
}

/// The thread that a run on the real clock is driven by.
pub(crate) fn driver_thread(graph: &Graph, place: usize) -> Builder {
    let lane = &graph.lanes[place];
    let builder = Dispatcher::builder(1).name(thread_name(lane));
    // Whether that is enough is for the run to say, on that thread.
    with_attributes(builder, graph, lane).on_refusal(OnRefusal::Warn)
}

fn with_attributes(mut builder: Builder, graph: &Graph, lane: &Lane) -> Builder {
    let wanted = wanted(graph, lane);
    if let Some(cpus) = wanted.affinity {
        builder = builder.affinity(cpus);
    }
    if let Some(nice) = wanted.nice {
        builder = builder.nice(nice);
    }
    if let Some(scheduling) = wanted.scheduling {
        builder = builder.scheduling(scheduling);
    }
    builder.on_refusal(match lane.os_policy {
        OsPolicy::Warn => OnRefusal::Warn,
        OsPolicy::Strict => OnRefusal::Strict,
    })
}

/// What a lane's threads should have.
fn wanted(graph: &Graph, lane: &Lane) -> Attributes {
    Attributes {
        affinity: cpus(graph, lane),
        nice: (lane.nice_priority != 0).then_some(lane.nice_priority),
        scheduling: scheduling(lane),
    }
}

/// The CPUs that a lane's threads may use; none: all. Those that are kept for other lanes are not among them,
/// unless nothing else is left.
fn cpus(graph: &Graph, lane: &Lane) -> Option<Vec<usize>> {
    let others = graph
        .lanes
        .iter()
        .filter(|l| l.id != lane.id && l.is_exclusive());
    let kept: Vec<usize> = others
        .flat_map(|other| other.cpu_affinity.clone())
        .collect();
    let mut mine = lane.cpu_affinity.clone();
    if mine.is_empty() {
        if kept.is_empty() {
            return None;
        }
        mine = (0..windlass_plan::check::Machine::this().cpus).collect();
    }
    let left: Vec<usize> = mine
        .iter()
        .copied()
        .filter(|cpu| !kept.contains(cpu))
        .collect();
    let mut cpus = if left.is_empty() { mine } else { left };
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn scheduling(lane: &Lane) -> Option<Scheduling> {
    let priority = u32::try_from(lane.rt_priority).unwrap_or(0);
    match lane.real_time()? {
        RtPolicy::Fifo => Some(Scheduling::Fifo { priority }),
        RtPolicy::RoundRobin => Some(Scheduling::RoundRobin { priority }),
        RtPolicy::Deadline => {
            let period = lane.cadence();
            let deadline = match lane.deadline {
                none if none.is_zero() => period,
                deadline => deadline.min(period),
            };
            let runtime = match lane.tick_budget {
                none if none.is_zero() => period / 2,
                budget => budget.min(deadline),
            };
            (!period.is_zero()).then_some(Scheduling::Deadline {
                runtime,
                deadline,
                period,
            })
        }
    }
}

/// What the system gave to a lane's threads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneGrant {
    /// The lane.
    pub lane: String,
    /// What each thread has, as read back.
    pub threads: Vec<String>,
    /// What was refused.
    pub refused: Vec<String>,
}

/// What the threads of the lanes were found to have.
pub(crate) struct Grants<'a> {
    pub(crate) graph: &'a Graph,
    /// What the run's own thread has, if it has one.
    pub(crate) driver: Option<&'a Attributes>,
    pub(crate) memory: &'a Memory,
}

impl Grants<'_> {
    /// What a lane got; none if it asked for nothing.
    pub(crate) fn of(&self, place: usize, pools: &[Pool]) -> Option<LaneGrant> {
        let lane = &self.graph.lanes[place];
        let wanted = wanted(self.graph, lane);
        let mut found: Vec<Attributes> = pools
            .iter()
            .flat_map(|pool| pool.dispatcher.snapshot().attributes)
            .collect();
        if driver_lane(self.graph) == Some(place) {
            found.extend(self.driver.cloned());
        }
        let mut grant = LaneGrant {
            lane: lane.id.clone(),
            threads: found.iter().filter_map(in_words).collect(),
            refused: found.iter().flat_map(|got| refused(&wanted, got)).collect(),
        };
        grant.refused.sort_unstable();
        grant.refused.dedup();
        if lane.mlock {
            match &self.memory.refused {
                None => grant.threads.push("memory locked".to_owned()),
                Some(why) => grant.refused.push(format!("mlock: {why}")),
            }
        }
        (!grant.threads.is_empty() || !grant.refused.is_empty()).then_some(grant)
    }
}

/// What a thread has that not all have.
fn in_words(got: &Attributes) -> Option<String> {
    let affinity = got.affinity.as_ref().map(|cpus| format!("cpus {cpus:?}"));
    let nice = got.nice.map(|nice| format!("nice {nice}"));
    let policy = got.scheduling.map(|policy| format!("{policy:?}"));
    let parts: Vec<String> = affinity.into_iter().chain(nice).chain(policy).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn refused(wanted: &Attributes, got: &Attributes) -> Vec<String> {
    let mut refused = Vec::new();
    let mut compare = |same: bool, what: String| {
        if !same {
            refused.push(what);
        }
    };
    if let Some(cpus) = &wanted.affinity {
        compare(
            got.affinity.as_ref() == Some(cpus),
            format!("cpus {cpus:?}"),
        );
    }
    if let Some(nice) = wanted.nice {
        compare(got.nice == Some(nice), format!("nice {nice}"));
    }
    if let Some(policy) = wanted.scheduling {
        compare(got.scheduling == Some(policy), format!("{policy:?}"));
    }
    refused
}

/// What the system refused to a lane that demands it.
pub(crate) fn refused_strictly(graph: &Graph, place: usize, got: &Attributes) -> Vec<String> {
    let lane = &graph.lanes[place];
    match lane.os_policy {
        OsPolicy::Warn => Vec::new(),
        OsPolicy::Strict => refused(&wanted(graph, lane), got),
    }
}

/// Whether the memory of the process is kept where it is, for a run that asks for it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    _lock: Option<MemoryLock>,
    refused: Option<String>,
}

impl Memory {
    /// Keeps it if a lane asks for that.
    ///
    /// # Errors
    /// If it is refused, and the lane is strict.
    pub(crate) fn for_run(graph: &Graph) -> Result<Memory, String> {
        let mut asking = graph.lanes.iter().filter(|lane| lane.mlock);
        if asking.clone().next().is_none() || windlass_core::sync::with_world(|w| w.is_some()) {
            return Ok(Memory::default());
        }
        match lock_memory() {
            Ok(lock) => Ok(Memory {
                _lock: Some(lock),
                refused: None,
            }),
            Err(error) => match asking.find(|lane| lane.os_policy == OsPolicy::Strict) {
                Some(lane) => Err(format!(
                    "lane {} demands that the memory is locked ({error}): give the process the right to it (CAP_IPC_LOCK, RLIMIT_MEMLOCK), or use `os_policy: warn`",
                    lane.id
                )),
                None => Ok(Memory {
                    _lock: None,
                    refused: Some(error.to_string()),
                }),
            },
        }
    }
}

/// Who works for a lane.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<Busy>);

#[derive(Debug, Default)]
struct Busy {
    /// In the order in which they first did something.
    threads: Vec<ThreadId>,
    active: u64,
    most_active: u64,
}

impl Workers {
    /// An invocation begins on this thread; gives the thread's number.
    pub(crate) fn begin(&self) -> u32 {
        let me = std::thread::current().id();
        let mut busy = self.0.lock();
        busy.active += 1;
        busy.most_active = busy.most_active.max(busy.active);
        let place = busy.threads.iter().position(|&thread| thread == me);
        let place = place.unwrap_or_else(|| {
            busy.threads.push(me);
            busy.threads.len() - 1
        });
        place as u32
    }

    /// An invocation has ended.
    pub(crate) fn end(&self) {
        self.0.lock().active -= 1;
    }

    /// How many there were at once.
    pub(crate) fn most_active(&self) -> u64 {
        self.0.lock().most_active
    }
}

/// Where jobs wait for a thread.
#[derive(Default)]
struct Line(Mutex<Waiting<Job>>);

/// By priority, and first come first served within one; what has been passed over often goes next.
struct Waiting<T> {
    by_priority: [VecDeque<T>; Priority::ALL.len()],
    /// How often the first of each priority has been passed over.
    passed_over: [u32; Priority::ALL.len()],
    guarded: u64,
}

/// How often something is passed over before it goes next.
const PATIENCE: u32 = 8;

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting {
            by_priority: Default::default(),
            passed_over: Default::default(),
            guarded: 0,
        }
    }
}

impl<T> Waiting<T> {
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

/// A turn of a thread: it does the first job in line. If it never comes, that job is dropped, and whoever waits for
/// it is told.
struct Next(Option<Arc<Line>>);

impl Next {
    fn run(mut self) {
        let job = self.0.take().and_then(|line| line.0.lock().pop());
        if let Some(job) = job {
            job.run();
        }
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if let Some(line) = self.0.take() {
            let job = line.0.lock().pop();
            // Components are in it: their destructors are user code.
            windlass_core::task::contain(|| drop(job));
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.0.lock();
        let lengths = waiting.by_priority.iter().map(VecDeque::len);
        f.debug_list().entries(lengths).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{PATIENCE, Waiting};

    #[test]
    fn the_highest_priority_goes_first_and_nothing_is_passed_over_for_ever() {
        let mut waiting = Waiting::default();
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
