//! A Lua process, as a guest.

use std::fmt;
use std::sync::Arc;

use windlass_actor::ActorError;
use windlass_value::Payloads;
use windlass_vm::{Budget, Guest, Resume, Step};

use crate::interpreter::{InterpreterShared, group_of};
use crate::preempt;
use crate::script::Script;
use crate::task_set::{TaskSet, TaskSetOutcome};

/// A script that runs as a guest; made by [`Interpreter::guest`](crate::Interpreter::guest).
///
/// Its Lua state is made in its first step, on the worker that runs it.
pub struct LuaGuest {
    inner: Arc<InterpreterShared>,
    script: Arc<Script>,
    args: Payloads,
    tasks: Option<TaskSet>,
}

impl LuaGuest {
    pub(crate) fn new(
        inner: Arc<InterpreterShared>,
        script: Arc<Script>,
        args: Payloads,
    ) -> LuaGuest {
        LuaGuest {
            inner,
            script,
            args,
            tasks: None,
        }
    }

    /// The task set, which the first step makes.
    fn begin(&mut self, budget: &Budget<'_>) -> Result<&mut TaskSet, ActorError> {
        if self.tasks.is_none() {
            let group = group_of(&self.script).filter(|_| self.inner.watched);
            if let Some(group) = group {
                budget.ask(|process| {
                    let _ = process.host().join(group, process.pid());
                    windlass_value::Payload::Nil
                });
            }
            let tasks = TaskSet::new(&self.inner, &self.script, "main", &self.args, budget, 0)?;
            self.tasks = Some(tasks);
        }
        Ok(self.tasks.as_mut().expect("it was just made"))
    }
}

impl Guest for LuaGuest {
    fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> Step {
        budget.set_bell(preempt::bell(self.inner.signal));
        let tasks = match self.begin(budget) {
            Ok(tasks) => tasks,
            Err(error) => return Step::Failed(error),
        };
        match tasks.step(budget, resume) {
            TaskSetOutcome::Step(step) => step,
            TaskSetOutcome::Replaced(script, tasks) => {
                self.script = script;
                self.tasks = Some(*tasks);
                Step::Yield
            }
        }
    }

    fn name(&self) -> Option<Arc<str>> {
        Some(self.script.name.clone())
    }

    fn close(&mut self) {
        self.tasks = None;
    }
}

impl fmt::Debug for LuaGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaGuest")
            .field("script", &self.script.name)
            .finish_non_exhaustive()
    }
}
