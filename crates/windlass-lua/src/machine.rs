//! The tasks of one Lua process: who is ready, who waits for what.
//!
//! A task is a coroutine. It comes back from a turn because it has ended, its slice is over, or it waits:
//! for another task (it is *parked*, and the prelude has it served by [`Pending`]), or for something outside (a wait of the
//! guest, begun with a tag of its own). Two waits are the machine's: for the message that its script has changed, by which
//! it also hears of a cancel when all tasks are parked; and for ends of other processes, once somebody asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mlua::{IntoLua, Lua, MultiValue, Table, Thread, Value};
use windlass_actor::command::YieldError;
use windlass_actor::{
    ActorError, Bond, ExitReason, Exited, Message, Pattern, Payload, Payloads, Pid, Topic,
};
use windlass_vm::{Answer, Budget, Ending, Exception, Reason, Resume, Step};

use crate::interpreter::{CHANGED, Inner, Level, Printed};
use crate::native::without_prelude;
use crate::op::{self, Args, Op};
use crate::preempt::{self, Guard, ResumeOutcome};
use crate::script::Script;
use crate::state::{Pending, State, Traits};
use crate::value::{LuaPid, to_lua, to_payload};

/// What a turn of a task costs where instructions count, however short it is.
const TURN: u64 = 10;

/// The message that an end of another process is for scripts.
const EXIT: &str = "exit";

/// The tasks of one Lua process.
pub(crate) struct Machine {
    inner: Arc<Inner>,
    script: Arc<Script>,
    pending: Arc<Pending>,
    tasks: BTreeMap<u64, LuaTask>,
    ready: VecDeque<(u64, TaskInput)>,
    /// What has begun and not ended, by tag.
    waits: BTreeMap<u64, Wait>,
    last_tag: u64,
    main: u64,
    /// Messages that were taken from the mailbox for somebody who did not get them: they come before what is there.
    returned: VecDeque<Message>,
    /// Ends of others that nobody has waited for: they come after what is in the mailbox.
    kept: VecDeque<Message>,
    hears_exits: bool,
    /// The bytes that its code may have.
    memory: usize,
    recent: Recent,
    state: State,
}

/// How a step of the machine ended.
pub(crate) enum MachineOutcome {
    /// The guest ends its step so.
    Step(Step),
    /// New code takes over: its script, and its machine.
    Replaced(Arc<Script>, Box<Machine>),
}

/// New code: its script, and its machine.
type NewCode = (Arc<Script>, Box<Machine>);

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

struct Wait {
    /// 0: the machine's own.
    task: u64,
    kind: Kind,
}

enum Kind {
    Plain,
    /// Until a task that waits to be served has waited long enough.
    Parked,
    Receive(Pattern),
    /// For a message that is before those that are kept; they are next.
    Look(Pattern),
    /// For the new code.
    Upgrade(Payload),
    Changed,
    Exits,
}

fn cancelled(reason: &Arc<str>) -> TaskInput {
    TaskInput::Error("cancelled", format!("cancelled: {reason}"))
}

/// The message of an error of Lua itself.
fn actor_error_of(error: &mlua::Error) -> ActorError {
    ActorError::new(without_prelude(&text_of_error(error)))
}

pub(crate) fn text_of_error(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::RuntimeError(message) | mlua::Error::MemoryError(message) => message.clone(),
        mlua::Error::CallbackError { cause, .. } => text_of_error(cause),
        other => other.to_string(),
    }
}

impl Machine {
    /// A new one, with a task that runs the script and then its function `entry`. Its tags come after `last_tag`:
    /// what still arrives for a machine before it is not taken for its own.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        script: &Arc<Script>,
        entry: &str,
        args: &Payloads,
        budget: &Budget<'_>,
        last_tag: u64,
    ) -> Result<Machine, ActorError> {
        let guard = Guard::of_budget(budget);
        let pending = Arc::new(Pending::default());
        let limits = budget.limits();
        let traits = Traits {
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
        let mut machine = Machine {
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
        machine.begin_changed(budget);
        machine.read_notes(budget);
        Ok(machine)
    }

    /// Goes on, until nobody is ready or the slice is over.
    pub(crate) fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> MachineOutcome {
        let arrived = match resume {
            Resume::Several(several) => several,
            Resume::Go | Resume::Ended(_) => Vec::new(),
        };
        let mut stop = None;
        let mut arrived = arrived.into_iter();
        while let Some((tag, ending)) = arrived.next() {
            if let Err(Exception::Cancelled(reason)) = ending {
                // However many waits have ended with it: the process is told once.
                self.forget_wait(tag);
                stop = Some(reason);
                continue;
            }
            if let Some((script, mut machine)) = self.arrive(budget, tag, ending) {
                // Nothing of this is its own, but neither messages nor a cancel are lost.
                for (tag, ending) in arrived {
                    match ending {
                        Err(Exception::Cancelled(reason)) => stop = Some(reason),
                        ending => drop(machine.arrive(budget, tag, ending)),
                    }
                }
                if let Some(reason) = stop {
                    machine.cancel_all(budget, &reason);
                }
                return MachineOutcome::Replaced(script, machine);
            }
        }
        if let Some(reason) = stop {
            self.cancel_all(budget, &reason);
        }
        loop {
            let Some((id, input)) = self.ready.pop_front() else {
                return MachineOutcome::Step(Step::Suspend(Reason::Begun));
            };
            let over = budget.spend(TURN);
            if !self.ready.is_empty() {
                budget.share();
            }
            if let Some(step) = self.turn(budget, id, input) {
                return MachineOutcome::Step(step);
            }
            if (over || budget.is_over()) && !self.ready.is_empty() {
                return MachineOutcome::Step(Step::Yield);
            }
        }
    }

    // ---- a turn of a task ----

    /// Gives how the process ends, if it does.
    fn turn(&mut self, budget: &Budget<'_>, id: u64, input: TaskInput) -> Option<Step> {
        let thread = self.tasks.get(&id)?.thread.clone();
        let guard = Guard::of_budget(budget);
        guard.set_task(id);
        guard.set_memory(self.memory);
        let lua = &self.state.lua;
        let args = self.recent.given(lua, input);
        let driven = preempt::drive(lua, &thread, args, &guard);
        drop(guard);
        // Those that it has started or served come before it.
        self.read_notes(budget);
        let (outcome, values) = match driven {
            Ok(driven) => driven,
            // Not an error of the script: the state itself has no memory left, say.
            Err(error) => return Some(Step::Failed(actor_error_of(&error))),
        };
        match outcome {
            ResumeOutcome::Preempted => self.ready.push_back((id, TaskInput::Go)),
            // What the tasks share is not whole: it goes on before any other.
            ResumeOutcome::PreemptedInside => self.ready.push_front((id, TaskInput::Go)),
            ResumeOutcome::Suspended => {
                let lua = self.state.lua.clone();
                self.suspend(budget, id, Args { lua, values })
            }
            ResumeOutcome::Ended => return self.end(budget, id, values),
            ResumeOutcome::Failed => return Some(Step::Failed(self.error_from(&values, None))),
        }
        None
    }

    /// A task has ended; the process ends with its main one.
    fn end(&mut self, budget: &Budget<'_>, id: u64, mut values: MultiValue) -> Option<Step> {
        self.tasks.remove(&id);
        self.pending.with(|state| state.alive -= 1);
        if id != self.main {
            return None;
        }
        let ok = values.pop_front().and_then(|ok| ok.as_boolean()) == Some(true);
        // What is told of failures that nobody awaited has the process's PID.
        let guard = Guard::of_budget(budget);
        let _ = self.state.report.call::<()>(());
        drop(guard);
        Some(match (ok, values.front()) {
            (true, None) => Step::Done(Payload::Nil),
            (true, Some(value)) => match to_payload(&self.state.lua, value) {
                Ok(payload) => Step::Done(payload),
                Err(problem) => Step::Failed(ActorError::new(format!(
                    "main returned what it cannot: {problem}"
                ))),
            },
            (false, Some(Value::Table(trace))) => {
                let value = trace.get("value").unwrap_or(Value::Nil);
                let traceback = trace.get::<String>("traceback").ok();
                let values = MultiValue::from_iter([value]);
                Step::Failed(self.error_from(&values, traceback))
            }
            (false, _) => Step::Failed(self.error_from(&values, None)),
        })
    }

    /// The end that an error is: its message and a traceback, or its value.
    fn error_from(&self, values: &MultiValue, traceback: Option<String>) -> ActorError {
        let traceback = traceback.or_else(|| match values.get(1) {
            Some(Value::String(text)) => Some(text.to_string_lossy()),
            _ => None,
        });
        let traceback = traceback
            .map(|text| without_prelude(&text))
            .unwrap_or_default();
        let with = |message: &str| ActorError::new(format!("{message}\n{traceback}"));
        match values.front() {
            Some(Value::String(message)) => with(&message.to_string_lossy()),
            Some(Value::Error(error)) => with(&text_of_error(error)),
            Some(Value::Table(table)) => error_of_table(&self.state.lua, table, &traceback),
            None | Some(Value::Nil) => with("nil"),
            Some(other) => match to_payload(&self.state.lua, other) {
                Ok(payload) => with(&format!("{payload:?}")),
                Err(_) => with(&format!("a {}", other.type_name())),
            },
        }
    }

    // ---- waits ----

    fn new_wait(&mut self, task: u64, kind: Kind) -> u64 {
        self.last_tag += 1;
        self.waits.insert(self.last_tag, Wait { task, kind });
        self.last_tag
    }

    /// A task waits, for what it says.
    fn suspend(&mut self, budget: &Budget<'_>, id: u64, mut args: Args) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let op = args.next().as_integer().and_then(Op::of_number);
        // In this order: a yield does not count as a wait, and must not take the reason away.
        if op != Some(Op::Yield)
            && let Some(reason) = task.cancelled.take()
        {
            return self.ready.push_back((id, cancelled(&reason)));
        }
        let refused = match op {
            Some(Op::Yield) => {
                self.ready.push_back((id, TaskInput::Served));
                Ok(())
            }
            Some(Op::Park) => self.park(budget, id, args),
            Some(Op::Receive) => self.receive(budget, id, args),
            Some(Op::Upgrade) => self.begin_upgrade(budget, id, &args.next()),
            Some(op) => op::reason(&self.inner, &self.script, op, args)
                .map(|reason| self.begin(budget, id, Kind::Plain, reason)),
            None => Err((
                "argument",
                "there is nothing like that to wait for".to_owned(),
            )),
        };
        if let Err((kind, message)) = refused {
            self.ready.push_back((id, TaskInput::Error(kind, message)));
        }
    }

    fn begin(&mut self, budget: &Budget<'_>, id: u64, kind: Kind, reason: Reason) {
        let tag = self.new_wait(id, kind);
        if let Some(task) = self.tasks.get_mut(&id) {
            task.tag = Some(tag);
        }
        budget.begin(tag, reason);
    }

    fn park(&mut self, budget: &Budget<'_>, id: u64, mut args: Args) -> Result<(), op::Refusal> {
        let timeout = args.time("a timeout")?;
        if let Some(task) = self.tasks.get_mut(&id) {
            task.parked = true;
        }
        if let Some(timeout) = timeout {
            self.begin(budget, id, Kind::Parked, Reason::Sleep(timeout));
        }
        Ok(())
    }

    fn receive(&mut self, budget: &Budget<'_>, id: u64, mut args: Args) -> Result<(), op::Refusal> {
        let pattern = match args.next() {
            Value::Nil => Pattern::glob("*"),
            Value::String(topic) => {
                let topic = topic.to_string_lossy();
                match topic.contains(['*', '?']) {
                    true => Pattern::glob(topic),
                    false => Pattern::exact(topic),
                }
            }
            other => {
                let problem = format!("a topic must be a text, not a {}", other.type_name());
                return Err(("argument", problem));
            }
        };
        let timeout = args.time("a timeout")?;
        if let Some(message) = take(&mut self.returned, &pattern) {
            let answer = TaskInput::Answer(Answer::Message(message));
            self.ready.push_back((id, answer));
            return Ok(());
        }
        let is_kept = self
            .kept
            .iter()
            .any(|message| pattern.matches(message.topic.as_str()));
        let (kind, timeout) = match is_kept {
            // What is still in the mailbox came before.
            true => (Kind::Look(pattern.clone()), Some(Duration::ZERO)),
            false => (Kind::Receive(pattern.clone()), timeout),
        };
        self.begin(budget, id, kind, Reason::Receive { pattern, timeout });
        Ok(())
    }

    fn begin_changed(&mut self, budget: &Budget<'_>) {
        let tag = self.new_wait(0, Kind::Changed);
        let pattern = Pattern::exact(CHANGED);
        let timeout = None;
        budget.begin(tag, Reason::Receive { pattern, timeout });
    }

    fn begin_exits(&mut self, budget: &Budget<'_>) {
        let tag = self.new_wait(0, Kind::Exits);
        budget.begin(tag, Reason::Exit);
    }

    // ---- what tasks do to each other ----

    fn read_notes(&mut self, budget: &Budget<'_>) {
        let pending = self.pending.clone();
        let (born, woken, stopped, exits) = pending.with(|state| {
            (
                std::mem::take(&mut state.born),
                std::mem::take(&mut state.woken),
                std::mem::take(&mut state.cancelled),
                state.wants_exits,
            )
        });
        for (id, thread) in born {
            let task = LuaTask {
                thread,
                tag: None,
                parked: false,
                cancelled: None,
            };
            self.tasks.insert(id, task);
            self.ready.push_back((id, TaskInput::Go));
        }
        for id in woken {
            self.serve(budget, id);
        }
        for (id, reason) in stopped {
            self.cancel(budget, id, &reason);
        }
        if exits && !self.hears_exits {
            self.hears_exits = true;
            self.begin_exits(budget);
        }
    }

    fn serve(&mut self, budget: &Budget<'_>, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        // It may have been told something else a moment ago; it looks itself whether it was served.
        if std::mem::take(&mut task.parked) {
            let tag = task.tag.take();
            self.withdraw(budget, tag);
            self.ready.push_back((id, TaskInput::Served));
        }
    }

    fn withdraw(&mut self, budget: &Budget<'_>, tag: Option<u64>) {
        if let Some(tag) = tag {
            self.waits.remove(&tag);
            budget.withdraw(tag);
        }
    }

    fn cancel(&mut self, budget: &Budget<'_>, id: u64, reason: &Arc<str>) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let waits = std::mem::take(&mut task.parked) | task.tag.is_some();
        let tag = task.tag.take();
        if !waits {
            task.cancelled = Some(reason.clone());
            return;
        }
        self.withdraw(budget, tag);
        self.ready.push_back((id, cancelled(reason)));
    }

    /// A wait has ended because the process shall stop; its task waits until it is told.
    fn forget_wait(&mut self, tag: u64) {
        let Some(wait) = self.waits.remove(&tag) else {
            return;
        };
        if let Some(task) = self.tasks.get_mut(&wait.task) {
            task.tag = None;
            task.parked = true;
        }
    }

    /// The process shall stop: so shall each task.
    fn cancel_all(&mut self, budget: &Budget<'_>, reason: &Arc<str>) {
        let own = |kind: fn(&Kind) -> bool| move |wait: &Wait| kind(&wait.kind);
        let changed = own(|kind| matches!(kind, Kind::Changed));
        if !self.waits.values().any(changed) {
            self.begin_changed(budget);
        }
        let exits = own(|kind| matches!(kind, Kind::Exits));
        if self.hears_exits && !self.waits.values().any(exits) {
            self.begin_exits(budget);
        }
        // In the same order each time.
        let ids: Vec<u64> = self.tasks.keys().copied().collect();
        for id in ids {
            self.cancel(budget, id, reason);
        }
    }

    // ---- what arrives ----

    /// A wait of the guest has ended. Gives what the process goes on with, if that is other code.
    fn arrive(&mut self, budget: &Budget<'_>, tag: u64, ending: Ending) -> Option<NewCode> {
        let Some(wait) = self.waits.remove(&tag) else {
            // It was over already: a message is kept for the next who wants it.
            match ending {
                Ok(Answer::Message(message)) => self.give_back(budget, message),
                Ok(Answer::Exited(exited)) => self.keep(budget, exit_message(&exited)),
                _ => {}
            }
            return None;
        };
        if let Some(task) = self.tasks.get_mut(&wait.task) {
            task.tag = None;
            task.parked = false;
        }
        let input = match (wait.kind, ending) {
            (Kind::Changed, ending) => {
                self.begin_changed(budget);
                if ending.is_ok() {
                    self.changed(budget);
                }
                return None;
            }
            (Kind::Exits, ending) => {
                self.begin_exits(budget);
                if let Ok(Answer::Exited(exited)) = ending {
                    self.keep(budget, exit_message(&exited));
                }
                return None;
            }
            (Kind::Upgrade(state), Ok(answer)) => {
                match self.upgraded(budget, &state, &answer.into_value()) {
                    Ok(new) => return Some(new),
                    // Nobody has asked who could be told.
                    Err(problem) if wait.task == 0 => {
                        let text = &format!("the new code is not used: {problem}");
                        let (pid, level) = (Some(budget.pid()), Some(Level::Error));
                        self.inner.print(Printed { pid, level, text });
                        return None;
                    }
                    Err(problem) => TaskInput::Error("upgrade", problem),
                }
            }
            (Kind::Look(pattern), Err(Exception::TimedOut)) => match take(&mut self.kept, &pattern)
            {
                Some(message) => TaskInput::Answer(Answer::Message(message)),
                None => TaskInput::Error("timeout", "timed out".to_owned()),
            },
            (Kind::Parked, Ok(_)) => TaskInput::Error("timeout", "timed out".to_owned()),
            (_, Ok(answer)) => TaskInput::Answer(answer),
            (_, Err(exception)) => error_of(&exception),
        };
        self.ready.push_back((wait.task, input));
        None
    }

    /// The end of another process, for who waits longest, or for later.
    fn keep(&mut self, budget: &Budget<'_>, message: Message) {
        self.hand_out(budget, message, |machine, message| {
            machine.kept.push_back(message);
        });
    }

    /// Gives a message to who has waited longest for one like it, or keeps it.
    fn hand_out(
        &mut self,
        budget: &Budget<'_>,
        message: Message,
        keep: impl FnOnce(&mut Machine, Message),
    ) {
        let topic = message.topic.clone();
        let fits = |wait: &Wait| match &wait.kind {
            Kind::Receive(pattern) => pattern.matches(topic.as_str()),
            _ => false,
        };
        let waits = self.waits.iter().filter(|(_, wait)| fits(wait));
        let oldest = waits.map(|(tag, wait)| (*tag, wait.task)).next();
        let Some((tag, id)) = oldest else {
            return keep(self, message);
        };
        self.withdraw(budget, Some(tag));
        if let Some(task) = self.tasks.get_mut(&id) {
            task.tag = None;
        }
        let answer = TaskInput::Answer(Answer::Message(message));
        self.ready.push_back((id, answer));
    }

    /// A message that was taken for somebody who does not want it any more.
    fn give_back(&mut self, budget: &Budget<'_>, message: Message) {
        self.hand_out(budget, message, |machine, message| {
            machine.returned.push_back(message);
        });
    }

    // ---- other code ----

    /// The file has changed: asks the script for its state, or begins anew.
    fn changed(&mut self, budget: &Budget<'_>) {
        let guard = Guard::of_budget(budget);
        let asked = self.state.upgrade.call::<bool>(());
        drop(guard);
        self.read_notes(budget);
        if !matches!(asked, Ok(true)) {
            let _ = self.begin_upgrade(budget, 0, &Value::Nil);
        }
    }

    fn begin_upgrade(
        &mut self,
        budget: &Budget<'_>,
        id: u64,
        state: &Value,
    ) -> Result<(), op::Refusal> {
        let state = to_payload(&self.state.lua, state)
            .map_err(|problem| ("upgrade", problem.to_string()))?;
        let path = self.script.path.clone().ok_or_else(|| {
            (
                "upgrade",
                "this script is no file that could have changed".to_owned(),
            )
        })?;
        // Its text is an answer from outside: a replay has the code that came then.
        let read = move || {
            let bytes = std::fs::read(&path);
            let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            text.map(Payload::from)
                .map_err(|error| Exception::Failed(format!("{}: {error}", path.display()).into()))
        };
        self.begin(budget, id, Kind::Upgrade(state), Reason::blocking(read));
        Ok(())
    }

    /// Goes over to new code; why not, if it is none.
    fn upgraded(
        &mut self,
        budget: &Budget<'_>,
        state: &Payload,
        text: &Payload,
    ) -> Result<NewCode, String> {
        let script = Arc::new(self.script.changed(text.as_str().unwrap_or_default()));
        let args = vec![state.clone()];
        let made = Machine::new(
            &self.inner,
            &script,
            "upgraded",
            &args,
            budget,
            self.last_tag,
        );
        let mut machine = made.map_err(|error| error.reason().to_string())?;
        let tags: Vec<u64> = self.waits.keys().copied().collect();
        for tag in tags {
            self.withdraw(budget, Some(tag));
        }
        // What a task would have got in its next turn is unread, too.
        for (_, input) in self.ready.drain(..) {
            if let TaskInput::Answer(Answer::Message(message)) = input {
                machine.returned.push_back(message);
            }
        }
        machine.returned.append(&mut self.returned);
        machine.kept.append(&mut self.kept);
        if self.hears_exits && !machine.hears_exits {
            machine.hears_exits = true;
            machine.begin_exits(budget);
        }
        Ok((script, Box::new(machine)))
    }
}

/// Takes the first message that fits.
fn take(messages: &mut VecDeque<Message>, pattern: &Pattern) -> Option<Message> {
    let mut all = messages.iter();
    let place = all.position(|message| pattern.matches(message.topic.as_str()))?;
    messages.remove(place)
}

/// What tasks were given last, as values of Lua: messages of one kind often follow each other, and to make a string or a PID
/// in a state is a protected call each.
#[derive(Default)]
struct Recent {
    topic: Option<(Topic, Value)>,
    from: Option<(Pid, Value)>,
}

/// The kind of the error that a task gets instead of an answer that cannot be made in its state.
const UNRECEIVABLE: &str = "payload";

/// So much of a topic or of another error is in the message of that error.
const QUOTED: usize = 200;

impl Recent {
    /// What a task is resumed with. A message is its topic, its payload and who it is from: the
    /// prelude makes a table of that.
    ///
    /// What arrives may come from anyone, and must not end the process: if it is too deep, or its
    /// memory is not there, the task gets an error instead, and the answer is dropped.
    fn given(&mut self, lua: &Lua, input: TaskInput) -> MultiValue {
        let problem = match self.answered(lua, &input) {
            Ok(given) => return given,
            Err(error) => text_of_error(&error),
        };
        // What was made of it so far is garbage now.
        let _ = lua.gc_collect();
        let problem = unreceivable(&input, &problem);
        let error = TaskInput::Error(UNRECEIVABLE, problem);
        // Not even that fits: the prelude knows what to say if there is no kind.
        let nothing = |_| MultiValue::from_iter([Value::Boolean(false)]);
        self.answered(lua, &error).unwrap_or_else(nothing)
    }

    fn answered(&mut self, lua: &Lua, input: &TaskInput) -> mlua::Result<MultiValue> {
        let mut given = MultiValue::with_capacity(4);
        given.push_back(Value::Boolean(!matches!(input, TaskInput::Error(..))));
        match input {
            TaskInput::Go => given.clear(),
            TaskInput::Served => {}
            TaskInput::Answer(Answer::Value(value)) => given.push_back(to_lua(lua, value)?),
            TaskInput::Answer(Answer::Exited(exited)) => {
                given.push_back(self.pid(lua, exited.pid)?)
            }
            TaskInput::Answer(Answer::Message(message)) => {
                given.push_back(self.topic(lua, &message.topic)?);
                given.push_back(to_lua(lua, &message.payload)?);
                if let Some(from) = message.from {
                    given.push_back(self.pid(lua, from)?);
                }
            }
            TaskInput::Error(kind, message) => {
                given.push_back(Value::String(lua.create_string(kind)?));
                given.push_back(Value::String(lua.create_string(message)?));
            }
        }
        Ok(given)
    }

    fn topic(&mut self, lua: &Lua, topic: &Topic) -> mlua::Result<Value> {
        if let Some((last, value)) = &self.topic
            && last == topic
        {
            return Ok(value.clone());
        }
        let value = Value::String(lua.create_string(topic.as_str())?);
        self.topic = Some((topic.clone(), value.clone()));
        Ok(value)
    }

    fn pid(&mut self, lua: &Lua, pid: Pid) -> mlua::Result<Value> {
        if let Some((last, value)) = &self.from
            && *last == pid
        {
            return Ok(value.clone());
        }
        let value = LuaPid(pid).into_lua(lua)?;
        self.from = Some((pid, value.clone()));
        Ok(value)
    }
}

/// What is said of an answer that cannot be made in the state of its receiver.
fn unreceivable(input: &TaskInput, problem: &str) -> String {
    let beginning = |text: &str| text[..text.floor_char_boundary(QUOTED)].to_owned();
    let problem = beginning(problem);
    match input {
        TaskInput::Answer(Answer::Message(message)) => {
            let topic = beginning(message.topic.as_str());
            let from = message.from.map(|from| format!(" from {from}"));
            let from = from.unwrap_or_default();
            format!("the message {topic:?}{from} cannot be received, and is dropped: {problem}")
        }
        TaskInput::Error(kind, message) => {
            let message = beginning(message);
            format!("the error {kind:?} cannot be received whole: {problem}: {message}")
        }
        _ => format!("the answer cannot be received, and is dropped: {problem}"),
    }
}

/// How a wait went wrong, as scripts are told.
fn error_of(exception: &Exception) -> TaskInput {
    let kind = match exception {
        Exception::Cancelled(reason) => return cancelled(reason),
        Exception::TimedOut => "timeout",
        Exception::TaskFailed { .. } => "exit",
        Exception::Panicked(_) | Exception::Command(YieldError::Panicked(_)) => "panic",
        Exception::Failed(value) if value.get(op::SANDBOX).is_some() => {
            let problem = value.get(op::SANDBOX).and_then(Payload::as_str);
            return TaskInput::Error("sandbox", problem.unwrap_or_default().to_owned());
        }
        _ => "failed",
    };
    TaskInput::Error(kind, exception.to_string())
}

/// The end of another process, as a message.
fn exit_message(exited: &Exited) -> Message {
    let kind = match &exited.reason {
        ExitReason::Normal => "normal",
        ExitReason::Error(_) => "error",
        ExitReason::Panic(_) => "panic",
        ExitReason::Cancelled(_) => "cancelled",
        ExitReason::Killed => "killed",
        ExitReason::NoConnection => "no_connection",
        _ => "no_process",
    };
    let monitor = match exited.by {
        Bond::Monitor(monitor) => Payload::Int(monitor.number() as i64),
        Bond::Link => Payload::Nil,
    };
    let payload = Payload::map([
        ("pid", Payload::Pid(exited.pid)),
        ("kind", kind.into()),
        ("reason", exited.reason.to_string().into()),
        ("monitor", monitor),
    ]);
    Message::new(Topic::from(EXIT), payload).from(exited.pid)
}

/// The end that a table is the error of: one of ours, or one of the script's own.
fn error_of_table(lua: &Lua, table: &Table, traceback: &str) -> ActorError {
    let field = |name: &str| table.raw_get::<Option<String>>(name).ok().flatten();
    match (field("kind").as_deref(), field("message")) {
        (Some("cancelled"), Some(message)) => {
            let reason = message
                .split_once("cancelled: ")
                .map_or(&*message, |(_, reason)| reason);
            ActorError::cancelled(reason)
        }
        (_, Some(message)) => ActorError::new(format!("{message}\n{traceback}")),
        _ => match to_payload(lua, &Value::Table(table.clone())) {
            Ok(value) => ActorError::new(Payload::map([
                ("value", value),
                ("traceback", traceback.into()),
            ])),
            Err(_) => ActorError::new(format!("a table\n{traceback}")),
        },
    }
}
