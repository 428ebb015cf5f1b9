//! What is said to a command and by it: JSON, one object in each line.

use serde_json::{Value, json};
use windlass_graph::Payload;
use windlass_graph::component::{Failure, Invocation, Received};

use crate::format::refused;
use crate::log::{LEVELS, Level};

/// The last thing that a command is told.
pub(super) const STOP: &[u8] = b"{\"type\":\"stop\"}\n";

/// What a command wants to be published.
#[derive(Debug)]
pub(crate) struct Said {
    /// The number of the output.
    pub(super) port: usize,
    pub(super) payload: Payload,
    pub(super) event_time: Option<i64>,
}

/// What a command says.
#[derive(Debug)]
pub(super) enum Word {
    Publish(Said),
    Log(Level, String),
    Done(u64),
}

/// A message as the command gets it, with its newline.
pub(super) fn message(
    invocation: &Invocation<'_>,
    message: &Received,
    seq: u64,
) -> Result<Vec<u8>, Failure> {
    let value = message.payload().to_json()?;
    let object = json!({
        "type": "message",
        "port": invocation.port_of(message),
        "seq": seq,
        "epoch": invocation.epoch(),
        "event_ns": message.event_time(),
        "value": value,
    });
    let mut line = serde_json::to_vec(&object)?;
    line.push(b'\n');
    Ok(line)
}

/// What a line says.
pub(super) fn read(line: &[u8], outputs: &[String]) -> Result<Word, Failure> {
    let wrong = |what: &str| refused(line, what);
    let object: Value = serde_json::from_slice(line)
        .map_err(|error| wrong(&format!("came from the command, and is not JSON: {error}")))?;
    match object["type"].as_str() {
        Some("publish") => publication(object, outputs)
            .map_err(|what| wrong(&what))
            .map(Word::Publish),
        Some("log") => {
            let level = object["level"].as_str().unwrap_or("info");
            let level = LEVELS.iter().find(|(name, _)| *name == level);
            let level = level.ok_or_else(|| wrong("has no level that is known"))?.1;
            let text = match &object["text"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Ok(Word::Log(level, text))
        }
        Some("done") => match object["seq"].as_u64() {
            Some(seq) => Ok(Word::Done(seq)),
            None => Err(wrong("has no seq, the number of the message that is done")),
        },
        _ => Err(wrong(
            "came from the command, and its type is neither publish, log nor done",
        )),
    }
}

fn publication(mut object: Value, outputs: &[String]) -> Result<Said, String> {
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
    Ok(Said {
        port,
        payload: Payload::from_json(value),
        event_time,
    })
}
