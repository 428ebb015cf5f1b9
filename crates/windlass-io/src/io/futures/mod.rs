//! The futures that the methods of the extension traits return.
//!
//! They are not `Unpin`, as a future made by an `async fn` is not: a method can become one later
//! without breaking code that compiles today.

mod fill_buf;
mod number;
mod read;
mod read_to_end;
mod read_until;
mod seek;
mod write;

use std::io;

pub(super) use fill_buf::FillBuf;
pub(super) use number::{ReadNumber, WriteNumber};
pub(super) use read::{Read, ReadExact, ReadIntoBuf};
pub(super) use read_to_end::{ReadToEnd, ReadToString};
pub(super) use read_until::poll_read_until;
pub(super) use read_until::{ReadLine, ReadUntil};
pub(super) use seek::Seek;
pub(super) use write::{Flush, Shutdown, Write, WriteAll, WriteAllBuf, WriteBuf, WriteVectored};

/// True for the one error after which an operation is simply tried again.
pub(super) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// The error of bytes that are no text, in the words of std and tokio.
pub(super) fn not_utf8() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "stream did not contain valid UTF-8",
    )
}

/// Polls again as long as the answer is that the call was interrupted.
macro_rules! uninterrupted {
    ($poll:expr) => {
        loop {
            match $poll {
                ::std::task::Poll::Ready(Err(error))
                    if $crate::io::futures::is_interrupted(&error) => {}
                answer => break answer,
            }
        }
    };
}

pub(super) use uninterrupted;
