//! The reason why a payload has no serialised form.

use std::error::Error;
use std::fmt;

/// The reason why a payload has no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwritable {
    /// A Rust value of this type is in it.
    Opaque(&'static str),
    /// More lists and maps are inside of each other than this.
    TooDeep(usize),
    /// More values are in it than this.
    TooLarge(usize),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Opaque(name) => write!(
                f,
                "a {name} cannot be written as JSON: turn it into plain values first"
            ),
            Unwritable::TooDeep(most) => write!(
                f,
                "the value has more than {most} levels of lists and maps: send a flatter one"
            ),
            Unwritable::TooLarge(most) => write!(
                f,
                "the value has more than {most} values (what is in several places counts in each): \
                 send it in parts"
            ),
        }
    }
}

impl Error for Unwritable {}
