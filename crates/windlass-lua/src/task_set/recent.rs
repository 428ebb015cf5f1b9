//! What tasks were given last, as values of Lua.

use mlua::{IntoLua, Lua, MultiValue, Value};
use windlass_actor::{Pid, Topic};
use windlass_vm::Answer;

use super::TaskInput;
use crate::error_text::text_of_error;
use crate::value::{LuaPid, to_lua};

/// What tasks were given last, as values of Lua: messages of one kind often follow each other, and
/// to make a string or a PID in a state is a protected call each.
#[derive(Default)]
pub(super) struct Recent {
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
    pub(super) fn given(&mut self, lua: &Lua, input: TaskInput) -> MultiValue {
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
