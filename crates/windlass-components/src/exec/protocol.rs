//! The lines that a command reads and writes: JSON, one object in each.

use serde::Serialize;
use serde_json::Value;
use windlass_graph::component::{Failure, Invocation, Received};
use windlass_value::Payload;

use crate::format::refused;
use crate::log::{LEVELS, Level};

/// The last line that a command reads.
pub(super) const STOP: &[u8] = b"{\"type\":\"stop\"}\n";

/// A message that a command publishes.
#[derive(Debug)]
pub(crate) struct Publication {
    /// The number of the output.
    pub(super) port: usize,
    pub(super) payload: Payload,
    pub(super) event_time: Option<i64>,
}

/// A line that a command wrote.
#[derive(Debug)]
pub(super) enum CommandMessage {
    Publish(Publication),
    Log(Level, String),
    Done(u64),
}

/// The line of a message. Its fields are in the order of the alphabet, as commands have always got
/// them.
#[derive(Serialize)]
struct MessageLine<'a> {
    epoch: u64,
    event_ns: Option<i64>,
    port: &'a str,
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    value: Value,
}

/// Returns a message as the line that the command reads, with its newline.
pub(super) fn message(
    invocation: &Invocation<'_>,
    message: &Received,
    seq: u64,
) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(&MessageLine {
        epoch: invocation.epoch(),
        event_ns: message.event_time(),
        port: invocation.port_of(message),
        seq,
        kind: "message",
        value: message.payload().to_json()?,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a line that a command wrote.
pub(super) fn read(line: &[u8], outputs: &[String]) -> Result<CommandMessage, Failure> {
    let wrong = |what: &str| refused(line, what);
    let object: Value = serde_json::from_slice(line)
        .map_err(|error| wrong(&format!("came from the command, and is not JSON: {error}")))?;
    match object["type"].as_str() {
        Some("publish") => publication(object, outputs)
            .map_err(|what| wrong(&what))
            .map(CommandMessage::Publish),
        Some("log") => {
            let level = object["level"].as_str().unwrap_or("info");
            let level = LEVELS.iter().find(|(name, _)| *name == level);
            let level = level.ok_or_else(|| wrong("has no level that is known"))?.1;
            let text = match &object["text"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Ok(CommandMessage::Log(level, text))
        }
        Some("done") => match object["seq"].as_u64() {
            Some(seq) => Ok(CommandMessage::Done(seq)),
            None => Err(wrong("has no seq, the number of the message that is done")),
        },
        _ => Err(wrong(
            "came from the command, and its type is neither publish, log nor done",
        )),
    }
}

fn publication(mut object: Value, outputs: &[String]) -> Result<Publication, String> {
    let name = object.get("port").map_or(Some("out"), Value::as_str);
    let port = outputs
        .iter()
        .position(|output| Some(output.as_str()) == name);
    let Some(port) = port else {
        return Err(format!(
            "names a port that is not there; there are: {}",
            outputs.join(", ")
        ));
    };
    let event_time = match &object["event_ns"] {
        Value::Null => None,
        other => Some(
            other
                .as_i64()
                .ok_or("has an event_ns that is no whole number")?,
        ),
    };
    let Some(value) = object.get_mut("value").map(Value::take) else {
        return Err("has no value to publish".to_owned());
    };
    Ok(Publication {
        port,
        payload: Payload::from_json(value),
        event_time,
    })
}
