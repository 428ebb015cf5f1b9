//! The methods of readers.

use bytes::BufMut;

use super::futures::{Read, ReadExact, ReadIntoBuf, ReadNumber, ReadToEnd, ReadToString};
use super::{AsyncRead, Chain, Take};

/// Methods that read a number.
macro_rules! read_numbers {
    ($($name:ident, $type:ident, $decode:ident, $order:literal;)+) => { $(
        #[doc = concat!("Reads a number of type `", stringify!($type), "`, ", $order, ".")]
        ///
        /// Not cancel-safe: bytes that were read before the drop are lost.
        ///
        /// # Errors
        /// `UnexpectedEof` if the end comes before the last byte.
        fn $name(&mut self) -> ReadNumber<'_, Self, $type>
        where
            Self: Unpin,
        {
            ReadNumber::new(self, |bytes| match bytes.try_into() {
                Ok(bytes) => $type::$decode(bytes),
                Err(_) => unreachable!("the future reads as many bytes as the number has"),
            })
        }
    )+ };
}

/// Methods of everything that is [`AsyncRead`].
///
/// ```
/// use windlass_io::io::AsyncReadExt;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let mut source: &[u8] = &[0, 5, b'h', b'e', b'l', b'l', b'o'];
/// let length = source.read_u16().await?;
/// let mut word = vec![0; length.into()];
/// source.read_exact(&mut word).await?;
/// assert_eq!(word, b"hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AsyncReadExt: AsyncRead {
    /// Makes a reader that goes on with `next` after the end of this one.
    fn chain<R>(self, next: R) -> Chain<Self, R>
    where
        Self: Sized,
        R: AsyncRead,
    {
        Chain::new(self, next)
    }

    /// Reads what is there into `buf`, at least a byte; gives how many bytes that were. 0 is the
    /// end, or an empty `buf`.
    ///
    /// Cancel-safe: a dropped read has taken nothing.
    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> Read<'a, Self>
    where
        Self: Unpin,
    {
        Read::new(self, buf)
    }

    /// Reads as [`read`](AsyncReadExt::read) does, and appends to `buf` (a `BytesMut`, a `Vec<u8>`).
    /// 0 is the end, or a `buf` without room.
    ///
    /// Cancel-safe: a dropped read has taken nothing.
    fn read_buf<'a, B>(&'a mut self, buf: &'a mut B) -> ReadIntoBuf<'a, Self, B>
    where
        Self: Unpin,
        B: BufMut + ?Sized,
    {
        ReadIntoBuf::new(self, buf)
    }

    /// Fills all of `buf`; gives its length.
    ///
    /// Not cancel-safe: bytes that were read before the drop are lost.
    ///
    /// # Errors
    /// `UnexpectedEof` if the end comes before. What `buf` holds then is not specified.
    fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> ReadExact<'a, Self>
    where
        Self: Unpin,
    {
        ReadExact::new(self, buf)
    }

    read_numbers! {
        read_u8, u8, from_be_bytes, "which is one byte";
        read_i8, i8, from_be_bytes, "which is one byte";
        read_u16, u16, from_be_bytes, "its highest byte first";
        read_i16, i16, from_be_bytes, "its highest byte first";
        read_u32, u32, from_be_bytes, "its highest byte first";
        read_i32, i32, from_be_bytes, "its highest byte first";
        read_u64, u64, from_be_bytes, "its highest byte first";
        read_i64, i64, from_be_bytes, "its highest byte first";
        read_u128, u128, from_be_bytes, "its highest byte first";
        read_i128, i128, from_be_bytes, "its highest byte first";
        read_f32, f32, from_be_bytes, "its highest byte first";
        read_f64, f64, from_be_bytes, "its highest byte first";
        read_u16_le, u16, from_le_bytes, "its lowest byte first";
        read_i16_le, i16, from_le_bytes, "its lowest byte first";
        read_u32_le, u32, from_le_bytes, "its lowest byte first";
        read_i32_le, i32, from_le_bytes, "its lowest byte first";
        read_u64_le, u64, from_le_bytes, "its lowest byte first";
        read_i64_le, i64, from_le_bytes, "its lowest byte first";
        read_u128_le, u128, from_le_bytes, "its lowest byte first";
        read_i128_le, i128, from_le_bytes, "its lowest byte first";
        read_f32_le, f32, from_le_bytes, "its lowest byte first";
        read_f64_le, f64, from_le_bytes, "its lowest byte first";
    }

    /// Appends everything up to the end to `buf`; gives how many bytes that were.
    ///
    /// Not cancel-safe as a whole, but nothing is lost: what was read before the drop, or before an
    /// error, is in `buf`.
    fn read_to_end<'a>(&'a mut self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, Self>
    where
        Self: Unpin,
    {
        ReadToEnd::new(self, buf)
    }

    /// Appends everything up to the end to `dst`; gives how many bytes that were.
    ///
    /// Not cancel-safe: a dropped call leaves `dst` empty, and what was read is lost.
    ///
    /// # Errors
    /// `InvalidData` if it is not UTF-8. After any error `dst` is as it was before the call.
    fn read_to_string<'a>(&'a mut self, dst: &'a mut String) -> ReadToString<'a, Self>
    where
        Self: Unpin,
    {
        ReadToString::new(self, dst)
    }

    /// Makes a reader that ends after at most `limit` bytes of this one.
    fn take(self, limit: u64) -> Take<Self>
    where
        Self: Sized,
    {
        Take::new(self, limit)
    }
}

impl<R: AsyncRead + ?Sized> AsyncReadExt for R {}
