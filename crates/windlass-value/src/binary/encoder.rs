//! Payloads to bytes.

use std::collections::HashMap;
use std::sync::Arc;

use super::{BYTES, FALSE, FLOAT, INT, LIST, MAP, NIL, PID, SAME, SHARED, TEXT, TRUE, VERSION};
use crate::payload::Payload;
use crate::unwritable::Unwritable;

/// Texts and byte strings shorter than this are written again: the number of a part is not shorter.
const LONG: usize = 16;

pub(super) struct Encoder {
    bytes: Vec<u8>,
    /// The parts that were written already: their addresses and numbers.
    parts: HashMap<*const (), u64>,
}

/// What is left to write.
enum Unwritten<'a> {
    Value(&'a Payload),
    Key(&'a str),
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder {
            bytes: vec![VERSION],
            parts: HashMap::new(),
        }
    }

    /// Returns the version and then the payload as bytes.
    pub(super) fn encode(mut self, root: &Payload) -> Result<Vec<u8>, Unwritable> {
        // The next is the last.
        let mut left = vec![Unwritten::Value(root)];
        while let Some(next) = left.pop() {
            match next {
                Unwritten::Key(key) => self.text(key.as_bytes()),
                Unwritten::Value(payload) => self.value(payload, &mut left)?,
            }
        }
        Ok(self.bytes)
    }

    fn value<'a>(
        &mut self,
        payload: &'a Payload,
        left: &mut Vec<Unwritten<'a>>,
    ) -> Result<(), Unwritable> {
        if let Some(address) = shared_part(payload) {
            let next = self.parts.len() as u64;
            match self.parts.get(&address) {
                Some(&number) => {
                    self.bytes.push(SAME);
                    self.number(number);
                    return Ok(());
                }
                None => self.parts.insert(address, next),
            };
            self.bytes.push(SHARED);
        }
        match payload {
            Payload::Nil => self.bytes.push(NIL),
            Payload::Bool(value) => self.bytes.push(if *value { TRUE } else { FALSE }),
            Payload::Int(value) => {
                self.bytes.push(INT);
                self.number((value << 1 ^ value >> 63) as u64);
            }
            Payload::Float(value) => {
                self.bytes.push(FLOAT);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Payload::Text(text) => {
                self.bytes.push(TEXT);
                self.text(text.as_bytes());
            }
            Payload::Bytes(bytes) => {
                self.bytes.push(BYTES);
                self.text(bytes);
            }
            Payload::List(values) => {
                self.bytes.push(LIST);
                self.number(values.len() as u64);
                left.extend(values.iter().rev().map(Unwritten::Value));
            }
            Payload::Map(entries) => {
                self.bytes.push(MAP);
                self.number(entries.len() as u64);
                let entries = entries.iter().rev();
                left.extend(
                    entries.flat_map(|(key, value)| [Unwritten::Value(value), Unwritten::Key(key)]),
                );
            }
            Payload::Pid(pid) => {
                self.bytes.push(PID);
                self.text(pid.to_string().as_bytes());
            }
            Payload::Opaque(value) => return Err(Unwritable::Opaque(value.type_name())),
        }
        Ok(())
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }
}

/// Returns the address of a part that may be in several places; none if writing it again is
/// shorter.
fn shared_part(payload: &Payload) -> Option<*const ()> {
    match payload {
        Payload::Text(text) => {
            (text.len() >= LONG && Arc::strong_count(text) > 1).then(|| text.as_ptr().cast())
        }
        Payload::Bytes(bytes) => {
            (bytes.len() >= LONG && Arc::strong_count(bytes) > 1).then(|| bytes.as_ptr().cast())
        }
        Payload::List(values) => {
            (!values.is_empty() && values.is_shared()).then(|| values.address())
        }
        Payload::Map(entries) => {
            (!entries.is_empty() && entries.is_shared()).then(|| entries.address())
        }
        _ => None,
    }
}
