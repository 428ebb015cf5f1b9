//! Values as JSON, so that they come back as they were.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_process::command::YieldError;
use windlass_process::{Bond, ExitReason, Exited, Message, MonitorRef, Payload, Pid};

use windlass_value::{hex, unhex};

use crate::exception::Exception;
use crate::guest::{Answer, Ending};

/// A value that cannot be written down.
pub(super) struct Opaque;

/// Something in a line that is not what was written.
pub(super) type Bad = String;

/// How many values one payload is written down with: parts that are in several places are written
/// in each of them.
const MOST_VALUES: usize = 1_000_000;

/// How many lists and maps may be inside of each other: the reader of JSON takes 127 levels, and a
/// map is two of them. A bound is needed anyway, because this calls itself for each level.
const MOST_LEVELS: usize = 50;

pub(super) fn of_payload(payload: &Payload) -> Result<Value, Opaque> {
    of_part(payload, MOST_LEVELS, &mut { MOST_VALUES })
}

fn of_part(payload: &Payload, levels: usize, left: &mut usize) -> Result<Value, Opaque> {
    *left = left.checked_sub(1).ok_or(Opaque)?;
    let inner = || levels.checked_sub(1).ok_or(Opaque);
    Ok(match payload {
        Payload::Nil => Value::Null,
        Payload::Bool(value) => json!(value),
        Payload::Int(value) => json!(value),
        // The bits: also what JSON has no number for.
        Payload::Float(value) => json!({"f": value.to_bits()}),
        Payload::Text(text) => json!(&**text),
        Payload::Bytes(bytes) => json!({"b": hex(bytes)}),
        Payload::List(values) => {
            let levels = inner()?;
            let values = values.iter().map(|value| of_part(value, levels, left));
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        Payload::Map(entries) => {
            let levels = inner()?;
            let mut map = Map::new();
            for (key, value) in entries.iter() {
                map.insert((**key).to_owned(), of_part(value, levels, left)?);
            }
            json!({"m": map})
        }
        Payload::Pid(pid) => json!({"p": pid.to_string()}),
        _ => return Err(Opaque),
    })
}

pub(super) fn to_payload(value: &Value) -> Result<Payload, Bad> {
    Ok(match value {
        Value::Null => Payload::Nil,
        Value::Bool(value) => Payload::Bool(*value),
        Value::Number(number) => Payload::Int(number.as_i64().ok_or("a number is too large")?),
        Value::String(text) => Payload::Text(text.as_str().into()),
        Value::Array(values) => {
            let values: Result<Vec<_>, Bad> = values.iter().map(to_payload).collect();
            Payload::List(values?.into())
        }
        Value::Object(object) => match object.iter().next() {
            Some((key, Value::Number(bits))) if key == "f" => {
                Payload::Float(f64::from_bits(bits.as_u64().ok_or("a number has no bits")?))
            }
            Some((key, Value::String(text))) if key == "b" => {
                let bytes = unhex(text).ok_or("bytes that are not hexadecimal")?;
                Payload::Bytes(bytes.into())
            }
            Some((key, Value::Object(entries))) if key == "m" => {
                let mut list = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    list.push((Arc::from(key.as_str()), to_payload(value)?));
                }
                Payload::map::<Arc<str>>(list)
            }
            Some((key, value)) if key == "p" => Payload::Pid(to_pid(value)?),
            _ => return Err(format!("{value} is no value")),
        },
    })
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
    fn values_come_back_as_they_were() {
        let values = [
            Payload::Nil,
            Payload::Bool(true),
            Payload::Int(i64::MIN),
            Payload::Float(1.0),
            Payload::Float(f64::INFINITY),
            Payload::Text("a \"b\"\n".into()),
            Payload::Bytes([0, 15, 255].as_slice().into()),
            Payload::List(vec![Payload::Int(1), Payload::Nil].into()),
            Payload::map([("f", Payload::Int(1)), ("m", Payload::Nil)]),
        ];
        for value in values {
            let json = of_payload(&value).unwrap_or_default().to_string();
            let read = serde_json::from_str(&json).expect("it is JSON");
            assert_eq!(to_payload(&read), Ok(value));
        }
        assert!(of_payload(&Payload::opaque(1_u8)).is_err());
    }

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
        assert!(to_payload(&json!({"b": "0"})).is_err());
    }
}
