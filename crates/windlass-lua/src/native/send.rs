//! Sending messages.

use std::sync::Arc;

use mlua::{Lua, Value};
use windlass_actor::{Message, Pid, SendErrorKind, Topic};
use windlass_value::Payload;

use crate::op::{Refusal, pid_of};
use crate::preempt::with_budget;
use crate::value::to_payload;

/// The process that a value names: by a PID, a handle, or a name.
pub(super) enum Recipient {
    Pid(Pid),
    Name(String),
}

pub(super) fn recipient(value: &Value) -> Result<Recipient, Refusal> {
    match value {
        Value::String(name) => Ok(Recipient::Name(name.to_string_lossy())),
        other => pid_of(other).map(Recipient::Pid),
    }
}

fn why_not(why: &SendErrorKind) -> &'static str {
    match why {
        SendErrorKind::Full => "full",
        SendErrorKind::TooLarge => "too_large",
        SendErrorKind::NoConnection => "no_connection",
        SendErrorKind::NotUnderstood => "not_understood",
        _ => "no_process",
    }
}

/// Sends a message: true, or false and why it did not arrive; nil, a kind and a message if it
/// cannot be sent at all.
pub(super) fn send(
    lua: &Lua,
    to: &Value,
    topic: Value,
    payload: &Value,
) -> (Option<bool>, Option<&'static str>, Option<String>) {
    let topic = match topic {
        Value::String(topic) => match topic.to_str() {
            Ok(text) => Topic::from(Arc::<str>::from(&*text)),
            Err(_) => Topic::from(topic.to_string_lossy()),
        },
        other => {
            let problem = format!("a topic must be a text, not a {}", other.type_name());
            return (None, Some("argument"), Some(problem));
        }
    };
    let (recipient, payload) = match (recipient(to), to_payload(lua, payload)) {
        (Ok(recipient), Ok(payload)) => (recipient, payload),
        (Err((kind, problem)), _) => return (None, Some(kind), Some(problem)),
        (_, Err(problem)) => return (None, Some("argument"), Some(problem.to_string())),
    };
    let message = Message::new(topic, payload);
    let sent = with_budget(|budget| {
        let budget = budget.ok_or(SendErrorKind::NoProcess)?;
        let to = match recipient {
            Recipient::Pid(pid) => pid,
            Recipient::Name(name) => {
                let found = budget.ask(|process| {
                    process
                        .host()
                        .whereis(&name)
                        .map_or(Payload::Nil, Payload::Pid)
                });
                found.as_pid().ok_or(SendErrorKind::NoProcess)?
            }
        };
        budget.send(to, message)
    });
    match sent {
        Ok(()) => (Some(true), None, None),
        Err(why) => (Some(false), Some(why_not(&why)), None),
    }
}
