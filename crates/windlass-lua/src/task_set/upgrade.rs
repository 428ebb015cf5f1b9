//! New code for a process that runs.

use std::sync::Arc;

use mlua::Value;
use windlass_value::Payload;
use windlass_vm::{Answer, Budget, Exception, Reason};

use super::wait::WaitKind;
use super::{NewCode, TaskInput, TaskSet};
use crate::op::{self};
use crate::preempt::Guard;
use crate::value::to_payload;

impl TaskSet {
    /// The file has changed: asks the script for its state, or begins anew.
    pub(super) fn changed(&mut self, budget: &Budget<'_>) {
        let guard = Guard::of_budget(budget);
        let asked = self.state.upgrade.call::<bool>(());
        drop(guard);
        self.read_notes(budget);
        if !matches!(asked, Ok(true)) {
            let _ = self.begin_upgrade(budget, 0, &Value::Nil);
        }
    }

    pub(super) fn begin_upgrade(
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
        self.begin(budget, id, WaitKind::Upgrade(state), Reason::blocking(read));
        Ok(())
    }

    /// Goes over to new code; why not, if it is none.
    pub(super) fn upgraded(
        &mut self,
        budget: &Budget<'_>,
        state: &Payload,
        text: &Payload,
    ) -> Result<NewCode, String> {
        let script = Arc::new(self.script.changed(text.as_str().unwrap_or_default()));
        let args = vec![state.clone()];
        let made = TaskSet::new(
            &self.inner,
            &script,
            "upgraded",
            &args,
            budget,
            self.last_tag,
        );
        let mut task_set = made.map_err(|error| error.reason().to_string())?;
        let tags: Vec<u64> = self.waits.keys().copied().collect();
        for tag in tags {
            self.withdraw(budget, Some(tag));
        }
        // What a task would have got in its next turn is unread, too.
        for (_, input) in self.ready.drain(..) {
            if let TaskInput::Answer(Answer::Message(message)) = input {
                task_set.returned.push_back(message);
            }
        }
        task_set.returned.append(&mut self.returned);
        task_set.kept.append(&mut self.kept);
        if self.hears_exits && !task_set.hears_exits {
            task_set.hears_exits = true;
            task_set.begin_exits(budget);
        }
        Ok((script, Box::new(task_set)))
    }
}
