//! The methods of readers that have a buffer.

use std::pin::Pin;

use super::futures::{FillBuf, ReadLine, ReadUntil};
use super::{AsyncBufRead, Lines, Split};

/// Methods of everything that is [`AsyncBufRead`].
///
/// ```
/// use windlass_io::io::{AsyncBufReadExt, BufReader};
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let source: &[u8] = b"one\r\ntwo\nthree";
/// let mut lines = BufReader::new(source).lines();
/// assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
/// assert_eq!(lines.next_line().await?.as_deref(), Some("two"));
/// assert_eq!(lines.next_line().await?.as_deref(), Some("three"));
/// assert_eq!(lines.next_line().await?, None);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AsyncBufReadExt: AsyncBufRead {
    /// Appends everything up to and with `byte`, or up to the end, to `buf`; gives how many bytes
    /// that were.
    ///
    /// Not cancel-safe as a whole, but nothing is lost: what was read before the drop is in `buf`.
    fn read_until<'a>(&'a mut self, byte: u8, buf: &'a mut Vec<u8>) -> ReadUntil<'a, Self>
    where
        Self: Unpin,
    {
        ReadUntil::new(self, byte, buf)
    }

    /// Appends a line, with its line feed, to `buf`; gives how many bytes that were. 0 is the end.
    ///
    /// Not cancel-safe: a dropped call leaves `buf` empty, and what was read is lost. Use
    /// [`lines`](AsyncBufReadExt::lines) in a `select!`.
    ///
    /// # Errors
    /// `InvalidData` if the line is not UTF-8: then `buf` is as it was, and the line is consumed.
    /// After another error `buf` has what was read before it.
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> ReadLine<'a, Self>
    where
        Self: Unpin,
    {
        ReadLine::new(self, buf)
    }

    /// Makes a source of segments that end with `byte`.
    fn split(self, byte: u8) -> Split<Self>
    where
        Self: Sized + Unpin,
    {
        Split::new(self, byte)
    }

    /// Returns what the buffer holds; reads first if it is empty. An empty answer is the end.
    ///
    /// The bytes stay there: follow it with [`consume`](AsyncBufReadExt::consume). Cancel-safe.
    fn fill_buf(&mut self) -> FillBuf<'_, Self>
    where
        Self: Unpin,
    {
        FillBuf::new(self)
    }

    /// Takes `amt` bytes out of the buffer: no read gives them again.
    fn consume(&mut self, amt: usize)
    where
        Self: Unpin,
    {
        Pin::new(self).consume(amt);
    }

    /// Makes a source of lines, without their line ends.
    fn lines(self) -> Lines<Self>
    where
        Self: Sized,
    {
        Lines::new(self)
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}
