//! The methods of writers.

use std::io::{Cursor, ErrorKind, IoSlice};

use bytes::{Buf, Bytes};
use windlass_io::io::{self, AsyncWrite, AsyncWriteExt};

use super::{Act, Outcome, Scripted, on_both, poll_once};

#[test]
fn write_all_goes_on_until_everything_is_written() -> Outcome {
    on_both(async || {
        let acts = [
            Act::Take(2),
            Act::Wait,
            Act::Fail(ErrorKind::Interrupted),
            Act::Take(1),
        ];
        let mut writer = Scripted::new(&acts);
        writer.write_all(b"abcdef").await?;
        assert_eq!(writer.written, b"abcdef");
        assert_eq!(writer.write(b"g").await?, 1);
        writer.flush().await?;
        writer.shutdown().await?;
        assert_eq!((writer.flushed, writer.is_shut), (1, true));
        Ok(())
    })
}

#[test]
fn a_writer_that_takes_nothing_is_an_error() -> Outcome {
    on_both(async || {
        let mut full = Scripted::new(&[Act::Take(0)]);
        let error = full.write_all(b"x").await.expect_err("no byte is taken");
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        let mut full = Scripted::new(&[Act::Take(0)]);
        let error = full.write_u32(1).await.expect_err("no byte is taken");
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        let mut full = Scripted::new(&[Act::Take(1), Act::Take(0)]);
        let mut source = &b"xy"[..];
        let error = full.write_all_buf(&mut source).await;
        assert_eq!(error.expect_err("one byte").kind(), ErrorKind::WriteZero);
        assert_eq!(source, b"y");
        Ok(())
    })
}

#[test]
fn numbers_are_written_in_both_byte_orders() -> Outcome {
    on_both(async || {
        let mut to = Vec::new();
        to.write_u8(1).await?;
        to.write_i8(-1).await?;
        to.write_u16(0x0102).await?;
        to.write_u16_le(0x0102).await?;
        to.write_i16(-2).await?;
        to.write_i16_le(-2).await?;
        assert_eq!(to, [1, 255, 1, 2, 2, 1, 255, 254, 254, 255]);
        to.clear();
        to.write_u32(1).await?;
        to.write_u32_le(1).await?;
        to.write_i32(-1).await?;
        to.write_i32_le(1).await?;
        assert_eq!(to, [0, 0, 0, 1, 1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0]);
        to.clear();
        to.write_u64(1).await?;
        to.write_u64_le(1).await?;
        to.write_i64(1).await?;
        to.write_i64_le(1).await?;
        assert_eq!(to.len(), 32);
        assert_eq!((to[7], to[8], to[23], to[24]), (1, 1, 1, 1));
        to.clear();
        to.write_u128(1).await?;
        to.write_u128_le(1).await?;
        to.write_i128(1).await?;
        to.write_i128_le(1).await?;
        assert_eq!(to.len(), 64);
        assert_eq!((to[15], to[16], to[47], to[48]), (1, 1, 1, 1));
        to.clear();
        to.write_f32(1.5).await?;
        to.write_f32_le(1.5).await?;
        to.write_f64(1.5).await?;
        to.write_f64_le(1.5).await?;
        assert_eq!(to[..4], 1.5_f32.to_be_bytes());
        assert_eq!(to[4..8], 1.5_f32.to_le_bytes());
        assert_eq!(to[8..16], 1.5_f64.to_be_bytes());
        assert_eq!(to[16..], 1.5_f64.to_le_bytes());
        Ok(())
    })
}

#[test]
fn a_number_is_written_in_pieces() -> Outcome {
    on_both(async || {
        let mut writer = Scripted::new(&[Act::Take(1), Act::Wait, Act::Take(2)]);
        writer.write_u32(0x0102_0304).await?;
        assert_eq!(writer.written, [1, 2, 3, 4]);
        Ok(())
    })
}

#[test]
fn a_buf_is_written_from_all_its_parts_and_advanced() -> Outcome {
    on_both(async || {
        let mut source = Bytes::from_static(b"ab").chain(&b"cd"[..]);
        let mut vectored = Vec::new();
        assert_eq!(vectored.write_buf(&mut source).await?, 4);
        assert_eq!(vectored, b"abcd");
        assert!(!source.has_remaining());
        assert_eq!(vectored.write_buf(&mut source).await?, 0);

        let mut source = Bytes::from_static(b"ab").chain(&b"cd"[..]);
        let mut plain = Scripted::default();
        assert_eq!(plain.write_buf(&mut source).await?, 2, "one part at a time");
        plain.write_all_buf(&mut source).await?;
        assert_eq!(plain.written, b"abcd");
        Ok(())
    })
}

#[test]
fn a_vectored_write_takes_the_first_buffer_that_is_not_empty() -> Outcome {
    on_both(async || {
        let buffers = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cd")];
        let mut plain = Scripted::default();
        assert!(!plain.is_write_vectored());
        assert_eq!(plain.write_vectored(&buffers).await?, 2);
        let mut all = Vec::new();
        assert_eq!(all.write_vectored(&buffers).await?, 4);
        let mut memory = [0; 3];
        let mut short = Cursor::new(&mut memory[..]);
        assert_eq!(short.write_vectored(&buffers).await?, 3);
        assert_eq!(short.write(b"x").await?, 0, "it is full");
        assert_eq!(io::sink().write_vectored(&buffers).await?, 4);
        Ok(())
    })
}

#[test]
fn a_dropped_write_of_a_buf_keeps_the_rest() {
    let mut writer = Scripted::new(&[Act::Take(1), Act::Wait]);
    let mut source = &b"abc"[..];
    assert!(poll_once(writer.write_all_buf(&mut source)).is_pending());
    assert_eq!(source, b"bc");
    assert!(poll_once(writer.write_all_buf(&mut source)).is_ready());
    assert_eq!(writer.written, b"abc");
}
