//! What the tasks of a process wait for.

use std::collections::VecDeque;
use std::time::Duration;

use mlua::Value;
use windlass_actor::{Message, Pattern};
use windlass_value::Payload;
use windlass_vm::{Answer, Budget, Reason};

use super::{TaskInput, TaskSet, cancelled};
use crate::interpreter::CHANGED;
use crate::op::{self, Args, Op};

pub(super) struct Wait {
    /// 0: the task set's own.
    pub(super) task: u64,
    pub(super) kind: WaitKind,
}

pub(super) enum WaitKind {
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

impl TaskSet {
    fn new_wait(&mut self, task: u64, kind: WaitKind) -> u64 {
        self.last_tag += 1;
        self.waits.insert(self.last_tag, Wait { task, kind });
        self.last_tag
    }

    /// A task waits, for what it says.
    pub(super) fn suspend(&mut self, budget: &Budget<'_>, id: u64, mut args: Args) {
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
                .map(|reason| self.begin(budget, id, WaitKind::Plain, reason)),
            None => Err((
                "argument",
                "there is nothing like that to wait for".to_owned(),
            )),
        };
        if let Err((kind, message)) = refused {
            self.ready.push_back((id, TaskInput::Error(kind, message)));
        }
    }

    pub(super) fn begin(&mut self, budget: &Budget<'_>, id: u64, kind: WaitKind, reason: Reason) {
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
            self.begin(budget, id, WaitKind::Parked, Reason::Sleep(timeout));
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
            true => (WaitKind::Look(pattern.clone()), Some(Duration::ZERO)),
            false => (WaitKind::Receive(pattern.clone()), timeout),
        };
        self.begin(budget, id, kind, Reason::Receive { pattern, timeout });
        Ok(())
    }

    pub(super) fn begin_changed(&mut self, budget: &Budget<'_>) {
        let tag = self.new_wait(0, WaitKind::Changed);
        let pattern = Pattern::exact(CHANGED);
        let timeout = None;
        budget.begin(tag, Reason::Receive { pattern, timeout });
    }

    pub(super) fn begin_exits(&mut self, budget: &Budget<'_>) {
        let tag = self.new_wait(0, WaitKind::Exits);
        budget.begin(tag, Reason::Exit);
    }
}

/// Takes the first message that fits.
pub(super) fn take(messages: &mut VecDeque<Message>, pattern: &Pattern) -> Option<Message> {
    let mut all = messages.iter();
    let place = all.position(|message| pattern.matches(message.topic.as_str()))?;
    messages.remove(place)
}
