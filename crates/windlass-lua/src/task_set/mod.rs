//! The tasks of one Lua process: which are ready, and what the others wait for.
//!
//! A task is a coroutine. It comes back from a turn because it has ended, its slice is over, or it
//! waits: for another task (it is *parked*, and the prelude has it served by [`Pending`]), or for
//! something outside (a wait of the guest, begun with a tag of its own). Two waits are the task
//! set's: for the message that its script has changed, by which it also notices a cancel when all
//! tasks are parked; and for ends of other processes, once a task has asked for them.

mod arrival;
mod recent;
mod requests;
mod turn;
mod upgrade;
mod wait;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mlua::{MultiValue, Thread};
use windlass_actor::{ActorError, Message};
use windlass_value::Payloads;
use windlass_vm::{Answer, Budget, Exception, Reason, Resume, Step};

use self::recent::Recent;
use self::wait::Wait;
use crate::error_text::actor_error_of;
use crate::interpreter::InterpreterShared;
use crate::preempt::Guard;
use crate::script::Script;
use crate::state::{Pending, State, StateOptions};
use crate::value::to_lua;

/// What a turn of a task costs where instructions count, however short it is.
const TURN: u64 = 10;

/// The tasks of one Lua process.
pub(crate) struct TaskSet {
    inner: Arc<InterpreterShared>,
    script: Arc<Script>,
    pending: Arc<Pending>,
    tasks: BTreeMap<u64, LuaTask>,
    ready: VecDeque<(u64, TaskInput)>,
    /// What has begun and not ended, by tag.
    waits: BTreeMap<u64, Wait>,
    last_tag: u64,
    main: u64,
    /// Messages that were taken from the mailbox for a task that did not get them: they come before
    /// those in the mailbox.
    returned: VecDeque<Message>,
    /// Ends of others that no task has waited for: they come after the messages in the mailbox.
    kept: VecDeque<Message>,
    hears_exits: bool,
    /// The bytes that its code may have.
    memory: usize,
    recent: Recent,
    state: State,
}

/// How a step of the task set ended.
pub(crate) enum TaskSetOutcome {
    /// The guest ends its step so.
    Step(Step),
    /// New code takes over: its script, and its task set.
    Replaced(Arc<Script>, Box<TaskSet>),
}

/// New code: its script, and its task set.
type NewCode = (Arc<Script>, Box<TaskSet>);

struct LuaTask {
    thread: Thread,
    /// What it waits for outside.
    tag: Option<u64>,
    /// It waits to be served by another task.
    parked: bool,
    /// It shall stop: its next wait says so.
    cancelled: Option<Arc<str>>,
}

/// The value that a task is resumed with.
enum TaskInput {
    /// Nothing: it begins, or its slice was over.
    Go,
    /// It was served, or has yielded.
    Served,
    Answer(Answer),
    /// A kind and a message.
    Error(&'static str, String),
}

fn cancelled(reason: &Arc<str>) -> TaskInput {
    TaskInput::Error("cancelled", format!("cancelled: {reason}"))
}

impl TaskSet {
    /// A new one, with a task that runs the script and then its function `entry`. Its tags come
    /// after `last_tag`: what still arrives for a task set before it is not taken for its own.
    pub(crate) fn new(
        inner: &Arc<InterpreterShared>,
        script: &Arc<Script>,
        entry: &str,
        args: &Payloads,
        budget: &Budget<'_>,
        last_tag: u64,
    ) -> Result<TaskSet, ActorError> {
        let guard = Guard::of_budget(budget);
        let pending = Arc::new(Pending::default());
        let limits = budget.limits();
        let traits = StateOptions {
            memory: limits.memory.unwrap_or(inner.memory),
            tasks: limits.tasks,
            fixed: budget.instructions().is_some(),
            seed: None,
        };
        let made = || -> mlua::Result<(State, u64)> {
            let state = State::new(inner, script, &pending, &traits)?;
            let chunk = state.load(script)?;
            let mut given = MultiValue::new();
            for arg in args {
                given.push_back(to_lua(&state.lua, arg)?);
            }
            let main: u64 = state.main.call((chunk, entry, given))?;
            Ok((state, main))
        };
        let (state, main) = made().map_err(|error| actor_error_of(&error))?;
        drop(guard);
        let mut task_set = TaskSet {
            inner: inner.clone(),
            script: script.clone(),
            pending,
            tasks: BTreeMap::new(),
            ready: VecDeque::new(),
            waits: BTreeMap::new(),
            last_tag,
            main,
            returned: VecDeque::new(),
            kept: VecDeque::new(),
            hears_exits: false,
            memory: traits.memory,
            recent: Recent::default(),
            state,
        };
        task_set.begin_changed(budget);
        task_set.read_notes(budget);
        Ok(task_set)
    }

    /// Runs tasks until none is ready or the slice is over.
    pub(crate) fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> TaskSetOutcome {
        let arrived = match resume {
            Resume::Several(several) => several,
            Resume::Go | Resume::Ended(_) => Vec::new(),
        };
        let mut stop = None;
        let mut arrived = arrived.into_iter();
        while let Some((tag, ending)) = arrived.next() {
            if let Err(Exception::Cancelled(reason)) = ending {
                // However many waits have ended with it: the process is cancelled once.
                self.forget_wait(tag);
                stop = Some(reason);
                continue;
            }
            if let Some((script, mut task_set)) = self.arrive(budget, tag, ending) {
                // Nothing of this is its own, but neither messages nor a cancel are lost.
                for (tag, ending) in arrived {
                    match ending {
                        Err(Exception::Cancelled(reason)) => stop = Some(reason),
                        ending => drop(task_set.arrive(budget, tag, ending)),
                    }
                }
                if let Some(reason) = stop {
                    task_set.cancel_all(budget, &reason);
                }
                return TaskSetOutcome::Replaced(script, task_set);
            }
        }
        if let Some(reason) = stop {
            self.cancel_all(budget, &reason);
        }
        loop {
            let Some((id, input)) = self.ready.pop_front() else {
                return TaskSetOutcome::Step(Step::Suspend(Reason::Begun));
            };
            let over = budget.spend(TURN);
            if !self.ready.is_empty() {
                budget.share();
            }
            if let Some(step) = self.turn(budget, id, input) {
                return TaskSetOutcome::Step(step);
            }
            if (over || budget.is_over()) && !self.ready.is_empty() {
                return TaskSetOutcome::Step(Step::Yield);
            }
        }
    }

    // ---- a turn of a task ----

    // ---- waits ----

    // ---- what tasks do to each other ----

    // ---- what arrives ----

    // ---- other code ----
}
