//! The reason why bytes are no payload.

use std::error::Error;
use std::fmt;

use super::VERSION;

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
