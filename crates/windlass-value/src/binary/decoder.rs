//! Bytes to payloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    BYTES, DecodeError, FALSE, FLOAT, INT, LIST, MAP, NIL, PID, SAME, SHARED, TEXT, TRUE, VERSION,
};
use crate::payload::Payload;

pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A list or map that is being read.
struct OpenContainer {
    values: Values,
    /// How many values are still to come.
    left: usize,
    /// The number of the part, if it comes again.
    part: Option<usize>,
}

enum Values {
    List(Vec<Payload>),
    Map(BTreeMap<Arc<str>, Payload>, Arc<str>),
}

/// What was read: a whole value, or the beginning of a list or map.
enum Read {
    Whole(Payload),
    Begun(OpenContainer),
}

impl Decoder<'_> {
    pub(super) fn new(bytes: &[u8]) -> Decoder<'_> {
        Decoder { bytes, at: 0 }
    }

    /// Reads the version and then one payload, which has to be all there is.
    pub(super) fn decode(mut self) -> Result<Payload, DecodeError> {
        match self.byte()? {
            VERSION => {}
            other => return Err(DecodeError::Version(other)),
        }
        let payload = self.payload()?;
        match self.at == self.bytes.len() {
            true => Ok(payload),
            false => Err(DecodeError::Trailing(self.at)),
        }
    }

    fn payload(&mut self) -> Result<Payload, DecodeError> {
        let mut levels: Vec<OpenContainer> = Vec::new();
        // Parts that come again. A part that is not whole yet is `None`: it cannot contain itself.
        let mut parts: Vec<Option<Payload>> = Vec::new();
        loop {
            let mut whole = match self.value(&mut parts)? {
                Read::Whole(payload) => payload,
                Read::Begun(level) => {
                    levels.push(level);
                    continue;
                }
            };
            // Ends the levels of which this was the last value.
            loop {
                let Some(level) = levels.last_mut() else {
                    return Ok(whole);
                };
                match &mut level.values {
                    Values::List(values) => values.push(whole),
                    Values::Map(entries, key) => {
                        entries.insert(std::mem::take(key), whole);
                    }
                }
                level.left -= 1;
                if level.left > 0 {
                    if let Values::Map(_, key) = &mut level.values {
                        *key = self.key()?;
                    }
                    break;
                }
                let Some(level) = levels.pop() else {
                    return Err(DecodeError::Malformed(self.at));
                };
                whole = match level.values {
                    Values::List(values) => Payload::from(values),
                    Values::Map(entries, _) => Payload::Map(entries.into()),
                };
                if let Some(part) = level.part {
                    parts[part] = Some(whole.clone());
                }
            }
        }
    }

    fn value(&mut self, parts: &mut Vec<Option<Payload>>) -> Result<Read, DecodeError> {
        let at = self.at;
        let malformed = DecodeError::Malformed(at);
        let mut kind = self.byte()?;
        let mut part = None;
        if kind == SHARED {
            part = Some(parts.len());
            parts.push(None);
            kind = self.byte()?;
        }
        let payload = match kind {
            NIL => Payload::Nil,
            FALSE => Payload::Bool(false),
            TRUE => Payload::Bool(true),
            INT => {
                let number = self.number()?;
                Payload::Int((number >> 1) as i64 ^ -((number & 1) as i64))
            }
            FLOAT => {
                let bytes = self.take(8)?.try_into().map_err(|_| malformed)?;
                Payload::Float(f64::from_le_bytes(bytes))
            }
            TEXT => Payload::Text(self.key()?),
            BYTES => {
                let length = self.length()?;
                Payload::from(self.take(length)?)
            }
            LIST => {
                let left = self.length()?;
                if left > 0 {
                    // It grows with what is read: a list may be inside of a list, and so on, and
                    // what each of them set aside would add up.
                    let values = Values::List(Vec::new());
                    return Ok(Read::Begun(OpenContainer { values, left, part }));
                }
                Payload::from(Vec::<Payload>::new())
            }
            MAP => {
                let left = self.length()?;
                if left > 0 {
                    let values = Values::Map(BTreeMap::new(), self.key()?);
                    return Ok(Read::Begun(OpenContainer { values, left, part }));
                }
                Payload::Map(BTreeMap::new().into())
            }
            PID => {
                let text = self.key()?;
                Payload::Pid(text.parse().map_err(|_| malformed)?)
            }
            SAME => {
                let number = usize::try_from(self.number()?).map_err(|_| malformed)?;
                let part = parts.get(number).cloned().flatten();
                part.ok_or(malformed)?
            }
            _ => return Err(malformed),
        };
        if let Some(part) = part {
            parts[part] = Some(payload.clone());
        }
        Ok(Read::Whole(payload))
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = *self.bytes.get(self.at).ok_or(DecodeError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        let malformed = DecodeError::Malformed(self.at);
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if bits << shift >> shift != bits {
                return Err(malformed);
            }
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(malformed)
    }

    /// Reads how many bytes or values follow. Each value has a byte at least.
    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = self.number()?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(length),
            _ => Err(DecodeError::Truncated),
        }
    }

    fn take(&mut self, length: usize) -> Result<&[u8], DecodeError> {
        let end = self.at.checked_add(length).ok_or(DecodeError::Truncated)?;
        let bytes = self.bytes.get(self.at..end).ok_or(DecodeError::Truncated)?;
        self.at = end;
        Ok(bytes)
    }

    fn key(&mut self) -> Result<Arc<str>, DecodeError> {
        let at = self.at;
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?);
        text.map(Arc::from).map_err(|_| DecodeError::Malformed(at))
    }
}
