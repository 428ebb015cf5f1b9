//! The turn of a task, and how tasks end.

use mlua::{Lua, MultiValue, Table, Value};
use windlass_actor::ActorError;
use windlass_value::Payload;
use windlass_vm::{Budget, Step};

use super::{TaskInput, TaskSet};
use crate::error_text::actor_error_of;
use crate::error_text::text_of_error;
use crate::native::without_prelude;
use crate::op::Args;
use crate::preempt::{self, Guard, ResumeOutcome};
use crate::value::to_payload;

impl TaskSet {
    /// Gives how the process ends, if it does.
    pub(super) fn turn(&mut self, budget: &Budget<'_>, id: u64, input: TaskInput) -> Option<Step> {
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
        // The report of failures that were never awaited has the process's PID.
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
