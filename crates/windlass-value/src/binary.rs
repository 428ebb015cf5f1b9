//! Payloads as bytes: the compact form, for sockets and files between programs of one kind.
//!
//! | byte | value | what follows |
//! |---|---|---|
//! | 0 | `Nil` | |
//! | 1, 2 | `Bool(false)`, `Bool(true)` | |
//! | 3 | `Int` | a number, folded so that small negative ones are short |
//! | 4 | `Float` | its eight bytes, the lowest first |
//! | 5, 6 | `Text`, `Bytes` | how many bytes, then the bytes |
//! | 7 | `List` | how many values, then the values |
//! | 8 | `Map` | how many entries, then for each the key (as `Text`, without its byte) and the value |
//! | 9 | `Pid` | its text (as `Text`, without its byte) |
//! | 10 | a part that comes again | the part |
//! | 11 | the same part as before | its number, counted from 0 in the order of the bytes 10 |
//!
//! The first byte of all is the version, 1. Numbers have seven bits per byte, the lowest first; the
//! eighth says that more follow.
//!
//! Sharing survives: a list, map, long text or long byte string that is in several places is written
//! once, so what takes little memory takes few bytes. Neither direction calls itself per level.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::json::Unwritable;
use crate::payload::Payload;

const VERSION: u8 = 1;
/// Texts and byte strings shorter than this are written again: the number of a part is not shorter.
const LONG: usize = 16;

const NIL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;
const BYTES: u8 = 6;
const LIST: u8 = 7;
const MAP: u8 = 8;
const PID: u8 = 9;
const SHARED: u8 = 10;
const SAME: u8 = 11;

/// The reason why bytes are no payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes were written by another version, the number of which this is.
    Version(u8),
    /// The bytes end in the middle of a value.
    Truncated,
    /// The bytes go on after the value, from this position.
    Trailing(usize),
    /// There is no value at this position.
    Malformed(usize),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Version(version) => write!(
                f,
                "the value was written in version {version} of the format, and this program reads \
                 version {VERSION}: use the same release on both sides"
            ),
            DecodeError::Truncated => f.write_str("the value breaks off: read more bytes"),
            DecodeError::Trailing(at) => write!(f, "the value ends at byte {at}, and more follows"),
            DecodeError::Malformed(at) => write!(f, "there is no value at byte {at}"),
        }
    }
}

impl Error for DecodeError {}

impl Payload {
    /// Returns the payload in the compact form.
    ///
    /// ```
    /// use windlass_value::Payload;
    ///
    /// let payload = Payload::map([("id", 7.into())]);
    /// let bytes = payload.to_bytes()?;
    /// assert_eq!(bytes.len(), 8);
    /// assert_eq!(Payload::from_bytes(&bytes), Ok(payload));
    /// # Ok::<(), windlass_value::Unwritable>(())
    /// ```
    ///
    /// # Errors
    /// If a Rust value is in it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Unwritable> {
        let mut encoder = Encoder {
            bytes: vec![VERSION],
            parts: HashMap::new(),
        };
        encoder.encode(self)?;
        Ok(encoder.bytes)
    }

    /// Returns the payload that these bytes say, in the compact form.
    ///
    /// # Errors
    /// If the bytes are not one payload.
    pub fn from_bytes(bytes: &[u8]) -> Result<Payload, DecodeError> {
        let mut decoder = Decoder { bytes, at: 0 };
        match decoder.byte()? {
            VERSION => {}
            other => return Err(DecodeError::Version(other)),
        }
        let payload = decoder.decode()?;
        match decoder.at == bytes.len() {
            true => Ok(payload),
            false => Err(DecodeError::Trailing(decoder.at)),
        }
    }
}

struct Encoder {
    bytes: Vec<u8>,
    /// The parts that were written already: their addresses and numbers.
    parts: HashMap<*const (), u64>,
}

/// What is left to write.
enum Left<'a> {
    Value(&'a Payload),
    Key(&'a str),
}

impl Encoder {
    fn encode(&mut self, root: &Payload) -> Result<(), Unwritable> {
        // The next is the last.
        let mut left = vec![Left::Value(root)];
        while let Some(next) = left.pop() {
            match next {
                Left::Key(key) => self.text(key.as_bytes()),
                Left::Value(payload) => self.value(payload, &mut left)?,
            }
        }
        Ok(())
    }

    fn value<'a>(
        &mut self,
        payload: &'a Payload,
        left: &mut Vec<Left<'a>>,
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
                left.extend(values.iter().rev().map(Left::Value));
            }
            Payload::Map(entries) => {
                self.bytes.push(MAP);
                self.number(entries.len() as u64);
                let entries = entries.iter().rev();
                left.extend(entries.flat_map(|(key, value)| [Left::Value(value), Left::Key(key)]));
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

/// Returns the address of a part that may be in several places; none if writing it again is shorter.
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

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A list or map that is being read.
struct Level {
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
    Begun(Level),
}

impl Decoder<'_> {
    fn decode(&mut self) -> Result<Payload, DecodeError> {
        let mut levels: Vec<Level> = Vec::new();
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
                    // The bytes that are there bound what is set aside.
                    let values = Values::List(Vec::with_capacity(left.min(1024)));
                    return Ok(Read::Begun(Level { values, left, part }));
                }
                Payload::from(Vec::<Payload>::new())
            }
            MAP => {
                let left = self.length()?;
                if left > 0 {
                    let values = Values::Map(BTreeMap::new(), self.key()?);
                    return Ok(Read::Begun(Level { values, left, part }));
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

#[cfg(test)]
mod tests {
    use windlass_core::hash::SplitMix;

    use super::*;

    fn values() -> Vec<Payload> {
        let long = Payload::from("a text that is long enough to be shared");
        vec![
            Payload::Nil,
            Payload::Bool(false),
            Payload::Bool(true),
            Payload::Int(0),
            Payload::Int(-1),
            Payload::Int(63),
            Payload::Int(64),
            Payload::Int(i64::MIN),
            Payload::Int(i64::MAX),
            Payload::Float(-0.0),
            Payload::Float(f64::INFINITY),
            Payload::from(""),
            Payload::from("é"),
            Payload::from(vec![0; 300]),
            Payload::from(Vec::<Payload>::new()),
            Payload::map::<&str>([]),
            Payload::map([("a", 1.into()), ("", vec![Payload::Nil, 2.into()].into())]),
            Payload::Pid("{berlin@orders|1.2}".parse().expect("a PID")),
            vec![long.clone(), Payload::map([("k", long.clone())]), long].into(),
        ]
    }

    #[test]
    fn values_come_back_as_they_were() {
        for value in values() {
            let bytes = value.to_bytes().expect("no Rust value");
            assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&value));
            for end in 0..bytes.len() {
                let error = Payload::from_bytes(&bytes[..end]);
                assert_eq!(error, Err(DecodeError::Truncated), "{value:?}");
            }
            let more = [&*bytes, &[0]].concat();
            let trailing = Err(DecodeError::Trailing(bytes.len()));
            assert_eq!(Payload::from_bytes(&more), trailing);
        }
        let opaque = Payload::from(vec![Payload::opaque(1_u8)]);
        assert_eq!(opaque.to_bytes(), Err(Unwritable::Opaque("u8")));
        assert_eq!(Payload::from_bytes(&[2, 0]), Err(DecodeError::Version(2)));
    }

    #[test]
    fn small_values_take_few_bytes() {
        assert_eq!(Payload::Int(-3).to_bytes(), Ok(vec![1, 3, 5]));
        assert_eq!(
            Payload::from("hi").to_bytes(),
            Ok(vec![1, 5, 2, b'h', b'i'])
        );
    }

    #[test]
    fn what_is_shared_stays_shared() {
        // 2^40 values.
        let shared = (0..40).fold(Payload::Nil, |part, _| vec![part.clone(), part].into());
        let bytes = shared.to_bytes().expect("no Rust value");
        assert!(bytes.len() < 300, "{} bytes", bytes.len());
        assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&shared));
        let text = Payload::from("x".repeat(1000));
        let list = Payload::from(vec![text; 1000]);
        assert!(list.to_bytes().is_ok_and(|bytes| bytes.len() < 5000));
    }

    #[test]
    fn any_number_of_levels_comes_back() {
        let deep = (0..200_000).fold(Payload::Nil, |inner, _| vec![inner].into());
        let bytes = deep.to_bytes().expect("no Rust value");
        assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&deep));
    }

    #[test]
    fn a_part_cannot_contain_itself() {
        let bytes = [VERSION, SHARED, LIST, 1, SAME, 0];
        assert_eq!(Payload::from_bytes(&bytes), Err(DecodeError::Malformed(4)));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = SplitMix::new(19);
        let whole: Vec<Vec<u8>> = values().iter().filter_map(|v| v.to_bytes().ok()).collect();
        for round in 0..20_000 {
            let mut bytes = whole[round % whole.len()].clone();
            let at = random.next_u64() as usize % bytes.len();
            bytes[at] = random.next_u64() as u8;
            if let Ok(payload) = Payload::from_bytes(&bytes) {
                let again = payload.to_bytes().expect("no Rust value");
                // Not `==`: a NaN is not equal to itself.
                let back = Payload::from_bytes(&again).map(|back| format!("{back:?}"));
                assert_eq!(back, Ok(format!("{payload:?}")));
            }
        }
    }
}
