//! Messages as text and bytes: how they look in files, on the wire and to commands.

use windlass_graph::component::{Failure, Invocation};
use windlass_value::Payload;

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// Text, as it is.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// Bytes, as they are.
    Bytes,
}

/// How much of something wrong is shown.
const SHOWN: usize = 80;

impl Format {
    /// The formats of lines.
    pub(crate) const OF_LINES: [(&'static str, Format); 2] =
        [("lines", Format::Text), ("jsonl", Format::Json)];
    /// The formats of datagrams.
    pub(crate) const OF_DATAGRAMS: [(&'static str, Format); 3] = [
        ("text", Format::Text),
        ("json", Format::Json),
        ("bytes", Format::Bytes),
    ];

    /// The message that these bytes are.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Payload, Failure> {
        match self {
            Format::Bytes => Ok(Payload::Bytes(bytes.into())),
            Format::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Payload::from(text)),
                Err(_) => Err(refused(bytes, "is not UTF-8")),
            },
            Format::Json => match serde_json::from_slice(bytes) {
                Ok(payload) => Ok(payload),
                Err(error) => Err(refused(bytes, &format!("is not JSON: {error}"))),
            },
        }
    }

    /// Appends a message.
    pub(crate) fn encode(self, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        match (self, payload) {
            (Format::Json, _) => write_json(payload, to)?,
            (_, Payload::Bytes(bytes)) => to.extend_from_slice(bytes),
            (_, payload) => match payload.as_str() {
                Some(text) => to.extend_from_slice(text.as_bytes()),
                None => write_json(payload, to)?,
            },
        }
        Ok(())
    }

    /// Appends a message as a line.
    pub(crate) fn encode_line(self, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        let before = to.len();
        self.encode(payload, to)?;
        if to[before..].contains(&b'\n') {
            let failure = refused(
                &to[before..],
                "has several lines: use JSON lines, which may hold them",
            );
            to.truncate(before);
            return Err(failure);
        }
        to.push(b'\n');
        Ok(())
    }
}

/// Appends a message as JSON, or nothing if it has none.
fn write_json(payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
    let before = to.len();
    let written = serde_json::to_writer(&mut *to, payload);
    written.map_err(|error| {
        to.truncate(before);
        Failure::new(error.to_string())
    })
}

/// The messages of an invocation as bytes; and what is wrong with the first that cannot be written.
/// The others are not lost with it.
pub(crate) fn encode_all(
    invocation: &Invocation<'_>,
    mut encode: impl FnMut(&Payload, &mut Vec<u8>) -> Result<(), Failure>,
) -> (Vec<Vec<u8>>, Result<(), Failure>) {
    let mut written = Vec::with_capacity(invocation.inputs().len());
    let mut result = Ok(());
    for message in invocation.inputs() {
        let mut bytes = Vec::new();
        match encode(message.payload(), &mut bytes) {
            Ok(()) => written.push(bytes),
            Err(failure) => result = result.and(Err(failure)),
        }
    }
    (written, result)
}

/// What is wrong with something that came, and how it begins.
pub(crate) fn refused(bytes: &[u8], what: &str) -> Failure {
    Failure::new(format!("{} {what}", beginning(bytes)))
}

/// The beginning of something, for people.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < bytes.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}
