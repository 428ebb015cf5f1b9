//! The methods of writers.

use std::io::IoSlice;

use bytes::Buf;

use super::AsyncWrite;
use super::futures::{
    Flush, Shutdown, Write, WriteAll, WriteAllBuf, WriteBuf, WriteNumber, WriteVectored,
};

/// Methods that write a number.
macro_rules! write_numbers {
    ($($name:ident, $type:ident, $encode:ident, $order:literal;)+) => { $(
        #[doc = concat!("Writes a number of type `", stringify!($type), "`, ", $order, ".")]
        ///
        /// Not cancel-safe: how many bytes were written before the drop is not known.
        ///
        /// # Errors
        /// `WriteZero` if the writer takes no byte any more.
        fn $name(&mut self, n: $type) -> WriteNumber<'_, Self>
        where
            Self: Unpin,
        {
            WriteNumber::new(self, &n.$encode())
        }
    )+ };
}

/// Methods of everything that is [`AsyncWrite`].
///
/// ```
/// use windlass_io::io::AsyncWriteExt;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let mut target = Vec::new();
/// target.write_u16(5).await?;
/// target.write_all(b"hello").await?;
/// target.shutdown().await?;
/// assert_eq!(target, b"\x00\x05hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AsyncWriteExt: AsyncWrite {
    /// Writes some of `src`; gives how many bytes that were. 0 means that the writer takes no byte
    /// any more, or that `src` is empty.
    ///
    /// Cancel-safe for sockets and pipes: a dropped write has written nothing. `fs::File` says what
    /// it does.
    fn write<'a>(&'a mut self, src: &'a [u8]) -> Write<'a, Self>
    where
        Self: Unpin,
    {
        Write::new(self, src)
    }

    /// Writes as [`write`](AsyncWriteExt::write) does, from several buffers, one after the other.
    /// A writer without vectored writes takes from the first that is not empty.
    ///
    /// Cancel-safe as `write` is.
    fn write_vectored<'a, 'b>(&'a mut self, bufs: &'a [IoSlice<'b>]) -> WriteVectored<'a, 'b, Self>
    where
        Self: Unpin,
    {
        WriteVectored::new(self, bufs)
    }

    /// Writes some of what `src` holds, and takes it out there; gives how many bytes that were.
    ///
    /// Cancel-safe as `write` is.
    fn write_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteBuf::new(self, src)
    }

    /// Writes all that `src` holds, and takes it out there.
    ///
    /// Cancel-safe in that `src` holds what is still to be written: call it again to go on.
    ///
    /// # Errors
    /// `WriteZero` if the writer takes no byte any more.
    fn write_all_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteAllBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteAllBuf::new(self, src)
    }

    /// Writes all of `src`.
    ///
    /// Not cancel-safe: how many bytes were written before the drop is not known.
    ///
    /// # Errors
    /// `WriteZero` if the writer takes no byte any more.
    fn write_all<'a>(&'a mut self, src: &'a [u8]) -> WriteAll<'a, Self>
    where
        Self: Unpin,
    {
        WriteAll::new(self, src)
    }

    write_numbers! {
        write_u8, u8, to_be_bytes, "which is one byte";
        write_i8, i8, to_be_bytes, "which is one byte";
        write_u16, u16, to_be_bytes, "its highest byte first";
        write_i16, i16, to_be_bytes, "its highest byte first";
        write_u32, u32, to_be_bytes, "its highest byte first";
        write_i32, i32, to_be_bytes, "its highest byte first";
        write_u64, u64, to_be_bytes, "its highest byte first";
        write_i64, i64, to_be_bytes, "its highest byte first";
        write_u128, u128, to_be_bytes, "its highest byte first";
        write_i128, i128, to_be_bytes, "its highest byte first";
        write_f32, f32, to_be_bytes, "its highest byte first";
        write_f64, f64, to_be_bytes, "its highest byte first";
        write_u16_le, u16, to_le_bytes, "its lowest byte first";
        write_i16_le, i16, to_le_bytes, "its lowest byte first";
        write_u32_le, u32, to_le_bytes, "its lowest byte first";
        write_i32_le, i32, to_le_bytes, "its lowest byte first";
        write_u64_le, u64, to_le_bytes, "its lowest byte first";
        write_i64_le, i64, to_le_bytes, "its lowest byte first";
        write_u128_le, u128, to_le_bytes, "its lowest byte first";
        write_i128_le, i128, to_le_bytes, "its lowest byte first";
        write_f32_le, f32, to_le_bytes, "its lowest byte first";
        write_f64_le, f64, to_le_bytes, "its lowest byte first";
    }

    /// Passes on what the writer keeps in a buffer.
    ///
    /// Cancel-safe: call it again to go on.
    fn flush(&mut self) -> Flush<'_, Self>
    where
        Self: Unpin,
    {
        Flush::new(self)
    }

    /// Passes on what the writer keeps in a buffer and ends the writing direction: the other side
    /// reads to the end.
    ///
    /// Cancel-safe: call it again to go on.
    fn shutdown(&mut self) -> Shutdown<'_, Self>
    where
        Self: Unpin,
    {
        Shutdown::new(self)
    }
}

impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}
