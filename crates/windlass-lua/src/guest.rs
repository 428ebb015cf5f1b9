//! A Lua process, as a guest.

use std::fmt;
use std::sync::Arc;

use windlass_actor::{ActorError, Payloads};
use windlass_vm::{Budget, Guest, Resume, Step};

use crate::interpreter::{Inner, group_of};
use crate::machine::{Machine, MachineOutcome};
use crate::preempt;
use crate::script::Script;

/// A script that runs as a guest; made by [`Interpreter::guest`](crate::Interpreter::guest).
///
/// Its Lua state is made in its first step, on the worker that runs it.
pub struct LuaGuest {
    inner: Arc<Inner>,
    script: Arc<Script>,
    args: Payloads,
    machine: Option<Machine>,
}

impl LuaGuest {
    pub(crate) fn new(inner: Arc<Inner>, script: Arc<Script>, args: Payloads) -> LuaGuest {
        LuaGuest {
            inner,
            script,
            args,
            machine: None,
        }
    }

    /// The machine, which the first step makes.
    fn begin(&mut self, budget: &Budget<'_>) -> Result<&mut Machine, ActorError> {
        if self.machine.is_none() {
            let group = group_of(&self.script).filter(|_| self.inner.watched);
            if let Some(group) = group {
                budget.ask(|process| {
                    let _ = process.host().join(group, process.pid());
                    windlass_actor::Payload::Nil
                });
            }
            let machine = Machine::new(&self.inner, &self.script, "main", &self.args, budget, 0)?;
            self.machine = Some(machine);
        }
        Ok(self.machine.as_mut().expect("it was just made"))
    }
}

impl Guest for LuaGuest {
    fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> Step {
        budget.set_bell(preempt::bell(self.inner.signal));
        let machine = match self.begin(budget) {
            Ok(machine) => machine,
            Err(error) => return Step::Failed(error),
        };
        match machine.step(budget, resume) {
            MachineOutcome::Step(step) => step,
            MachineOutcome::Replaced(script, machine) => {
                self.script = script;
                self.machine = Some(*machine);
                Step::Yield
            }
        }
    }

    fn name(&self) -> Option<Arc<str>> {
        Some(self.script.name.clone())
    }

    fn close(&mut self) {
        self.machine = None;
    }
}

impl fmt::Debug for LuaGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaGuest")
            .field("script", &self.script.name)
            .finish_non_exhaustive()
    }
}
