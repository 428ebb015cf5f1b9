//! The methods of what has a position.

use std::io::SeekFrom;

use super::AsyncSeek;
use super::futures::Seek;

/// Methods of everything that is [`AsyncSeek`].
///
/// ```
/// use std::io::{Cursor, SeekFrom};
/// use windlass_io::io::{AsyncReadExt, AsyncSeekExt};
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let mut source = Cursor::new(b"abcdef");
/// assert_eq!(source.seek(SeekFrom::End(-2)).await?, 4);
/// assert_eq!(source.read_u8().await?, b'e');
/// assert_eq!(source.stream_position().await?, 5);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AsyncSeekExt: AsyncSeek {
    /// Moves the position; gives the new one from the beginning.
    ///
    /// Not cancel-safe: a dropped move happens or not.
    fn seek(&mut self, pos: SeekFrom) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        Seek::new(self, pos)
    }

    /// Moves the position to the beginning.
    ///
    /// Not cancel-safe: a dropped move happens or not.
    fn rewind(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Start(0))
    }

    /// Returns the position from the beginning. Cancel-safe.
    fn stream_position(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Current(0))
    }
}

impl<S: AsyncSeek + ?Sized> AsyncSeekExt for S {}
