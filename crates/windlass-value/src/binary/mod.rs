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
//! Sharing survives: a list, map, long text or long byte string that is in several places is
//! written once, so what takes little memory takes few bytes. Neither direction calls itself per
//! level.

mod decode_error;
mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

pub use self::decode_error::DecodeError;
use self::decoder::Decoder;
use self::encoder::Encoder;
use crate::payload::Payload;
use crate::unwritable::Unwritable;

const VERSION: u8 = 1;
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
        Encoder::new().encode(self)
    }

    /// Returns the payload that these bytes say, in the compact form.
    ///
    /// # Errors
    /// If the bytes are not one payload.
    pub fn from_bytes(bytes: &[u8]) -> Result<Payload, DecodeError> {
        Decoder::new(bytes).decode()
    }
}
