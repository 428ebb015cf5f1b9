//! Values as JSON, so that they come back as they were.

use serde_json::{Value, json};
use windlass_process::command::YieldError;
use windlass_process::{Bond, ExitReason, Exited, Message, MonitorRef, Payload, Pid};

use crate::exception::Exception;
use crate::guest::{Answer, Ending};

/// A value that cannot be written down.
pub(super) struct Opaque;

/// Something in a line that is not what was written.
pub(super) type Bad = String;

pub(super) fn of_payload(payload: &Payload) -> Result<Value, Opaque> {
    payload.to_recorded().map_err(|_| Opaque)
}

pub(super) fn to_payload(value: &Value) -> Result<Payload, Bad> {
    Payload::from_recorded(value.clone()).map_err(|error| format!("{value} is no value: {error}"))
}

pub(super) fn to_pid(value: &Value) -> Result<Pid, Bad> {
    let text = value.as_str().ok_or("a PID is no text")?;
    text.parse().map_err(|_| format!("{text} is no PID"))
}

pub(super) fn of_ending(ending: &Ending) -> Result<Value, Opaque> {
    Ok(match ending {
        Ok(Answer::Value(value)) => json!({"value": of_payload(value)?}),
        Ok(Answer::Message(message)) => json!({"message": {
            "from": message.from.map(|pid| pid.to_string()),
            "topic": message.topic.as_str(),
            "payload": of_payload(&message.payload)?,
        }}),
        Ok(Answer::Exited(exited)) => json!({"exited": {
            "pid": exited.pid.to_string(),
            "reason": of_reason(&exited.reason)?,
            "monitor": match exited.by {
                Bond::Monitor(monitor) => Some(monitor.number()),
                Bond::Link => None,
            },
        }}),
        Err(exception) => json!({"error": of_exception(exception)?}),
    })
}

pub(super) fn to_ending(value: &Value) -> Result<Ending, Bad> {
    if let Some(value) = value.get("value") {
        return Ok(Ok(Answer::Value(to_payload(value)?)));
    }
    if let Some(message) = value.get("message") {
        let topic = message["topic"].as_str().ok_or("a message has no topic")?;
        let mut made = Message::new(topic.to_owned(), to_payload(&message["payload"])?);
        if !message["from"].is_null() {
            made = made.from(to_pid(&message["from"])?);
        }
        return Ok(Ok(Answer::Message(made)));
    }
    if let Some(exited) = value.get("exited") {
        let by = match exited["monitor"].as_u64() {
            Some(number) => Bond::Monitor(MonitorRef::from_number(number)),
            None => Bond::Link,
        };
        let (pid, reason) = (to_pid(&exited["pid"])?, to_reason(&exited["reason"])?);
        return Ok(Ok(Answer::Exited(Exited::new(pid, reason, by))));
    }
    match value.get("error") {
        Some(error) => Ok(Err(to_exception(error)?)),
        None => Err(format!("{value} is no end of a wait")),
    }
}

fn of_reason(reason: &ExitReason) -> Result<Value, Opaque> {
    Ok(match reason {
        ExitReason::Normal => json!(["normal"]),
        ExitReason::Error(value) => json!(["error", of_payload(value)?]),
        ExitReason::Panic(text) => json!(["panic", &**text]),
        ExitReason::Cancelled(text) => json!(["cancelled", &**text]),
        ExitReason::Killed => json!(["killed"]),
        ExitReason::NoConnection => json!(["no_connection"]),
        _ => json!(["no_process"]),
    })
}

fn to_reason(value: &Value) -> Result<ExitReason, Bad> {
    let text = || value[1].as_str().unwrap_or_default().into();
    Ok(match value[0].as_str() {
        Some("normal") => ExitReason::Normal,
        Some("error") => ExitReason::Error(to_payload(&value[1])?),
        Some("panic") => ExitReason::Panic(text()),
        Some("cancelled") => ExitReason::Cancelled(text()),
        Some("killed") => ExitReason::Killed,
        Some("no_connection") => ExitReason::NoConnection,
        Some("no_process") => ExitReason::NoProcess,
        _ => return Err(format!("{value} is no reason of an end")),
    })
}

fn of_exception(exception: &Exception) -> Result<Value, Opaque> {
    Ok(match exception {
        Exception::Cancelled(reason) => json!(["cancelled", &**reason]),
        Exception::TimedOut => json!(["timed_out"]),
        Exception::Panicked(message) => json!(["panicked", &**message]),
        Exception::NoThread => json!(["no_thread"]),
        Exception::Command(YieldError::Failed(value)) => json!(["command", of_payload(value)?]),
        Exception::Command(YieldError::Panicked(message)) => {
            json!(["command_panicked", &**message])
        }
        Exception::Command(error) => json!(["command", error.to_string()]),
        Exception::Failed(value) => json!(["failed", of_payload(value)?]),
        other => json!(["failed", other.to_string()]),
    })
}

fn to_exception(value: &Value) -> Result<Exception, Bad> {
    let text = || value[1].as_str().unwrap_or_default().into();
    Ok(match value[0].as_str() {
        Some("cancelled") => Exception::Cancelled(text()),
        Some("timed_out") => Exception::TimedOut,
        Some("panicked") => Exception::Panicked(text()),
        Some("no_thread") => Exception::NoThread,
        Some("command") => Exception::Command(YieldError::Failed(to_payload(&value[1])?)),
        Some("command_panicked") => Exception::Command(YieldError::Panicked(text())),
        Some("failed") => Exception::Failed(to_payload(&value[1])?),
        _ => return Err(format!("{value} is no exception")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_come_back_as_they_were() {
        let endings: Vec<Ending> = vec![
            Ok(Answer::Value(Payload::Int(1))),
            Ok(Answer::Message(Message::new("topic", "text"))),
            Err(Exception::TimedOut),
            Err(Exception::Failed("why".into())),
            Err(Exception::Panicked("on purpose".into())),
        ];
        for ending in endings {
            let json = of_ending(&ending).unwrap_or_default();
            assert_eq!(to_ending(&json), Ok(ending));
        }
        assert!(to_ending(&json!({"what": 1})).is_err());
        assert!(to_payload(&json!({"$bytes": "0"})).is_err());
    }
}
