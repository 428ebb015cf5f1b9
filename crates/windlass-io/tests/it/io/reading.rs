//! The methods of readers.

use std::io::{Cursor, ErrorKind, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use windlass_io::io::{
    self, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, BufReader, ReadBuf,
};

use super::{Act, Outcome, Scripted, on_both, poll_once};

#[test]
fn read_gives_what_is_there_and_nothing_at_the_end() -> Outcome {
    on_both(async || {
        let mut reader = Scripted::new(&[Act::Give(b"abc"), Act::Wait, Act::Give(b"d")]);
        let mut buffer = [0; 2];
        assert_eq!(reader.read(&mut buffer).await?, 2);
        assert_eq!(reader.read(&mut buffer).await?, 1);
        assert_eq!(buffer, *b"cb");
        assert_eq!(reader.read(&mut buffer).await?, 1);
        assert_eq!(reader.read(&mut buffer).await?, 0);
        Ok(())
    })
}

#[test]
fn a_dropped_read_has_taken_nothing() {
    let mut reader = Scripted::new(&[Act::Wait, Act::Give(b"abc")]);
    let mut buffer = [0; 4];
    assert!(poll_once(reader.read(&mut buffer)).is_pending());
    assert!(matches!(
        poll_once(reader.read(&mut buffer)),
        Poll::Ready(Ok(3))
    ));
}

#[test]
fn read_buf_appends_and_stops_at_a_full_buffer() -> Outcome {
    on_both(async || {
        let mut reader = Scripted::new(&[Act::Give(b"abc"), Act::Give(b"de")]);
        let mut bytes = BytesMut::from(&b"x"[..]);
        assert_eq!(reader.read_buf(&mut bytes).await?, 3);
        assert_eq!(reader.read_buf(&mut bytes).await?, 2);
        assert_eq!(bytes, b"xabcde"[..]);
        assert_eq!(reader.read_buf(&mut bytes).await?, 0);
        let mut full: &mut [u8] = &mut [];
        assert_eq!(io::repeat(1).read_buf(&mut full).await?, 0);
        Ok(())
    })
}

#[test]
fn read_exact_fills_the_buffer_across_waits_and_interruptions() -> Outcome {
    on_both(async || {
        let acts = [
            Act::Give(b"ab"),
            Act::Wait,
            Act::Fail(ErrorKind::Interrupted),
            Act::Give(b"cdef"),
        ];
        let mut reader = Scripted::new(&acts);
        let mut buffer = [0; 5];
        assert_eq!(reader.read_exact(&mut buffer).await?, 5);
        assert_eq!(buffer, *b"abcde");
        let error = reader.read_exact(&mut buffer).await.expect_err("one byte");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(error.to_string(), "early eof");
        assert_eq!(reader.read_exact(&mut []).await?, 0);
        Ok(())
    })
}

#[test]
fn numbers_are_read_in_both_byte_orders() -> Outcome {
    on_both(async || {
        let bytes: Vec<u8> = (1..=16).collect();
        assert_eq!((&bytes[..]).read_u8().await?, 1);
        assert_eq!((&[0xff_u8][..]).read_i8().await?, -1);
        assert_eq!((&bytes[..]).read_u16().await?, 0x0102);
        assert_eq!((&bytes[..]).read_u16_le().await?, 0x0201);
        assert_eq!((&[0xff_u8, 0xfe][..]).read_i16().await?, -2);
        assert_eq!((&[0xfe_u8, 0xff][..]).read_i16_le().await?, -2);
        assert_eq!((&bytes[..]).read_u32().await?, 0x0102_0304);
        assert_eq!((&bytes[..]).read_u32_le().await?, 0x0403_0201);
        assert_eq!((&[0xff_u8; 4][..]).read_i32().await?, -1);
        assert_eq!((&[0xff_u8; 4][..]).read_i32_le().await?, -1);
        assert_eq!((&bytes[..]).read_u64().await?, 0x0102_0304_0506_0708);
        assert_eq!((&bytes[..]).read_u64_le().await?, 0x0807_0605_0403_0201);
        assert_eq!((&bytes[..]).read_i64().await?, 0x0102_0304_0506_0708);
        assert_eq!((&bytes[..]).read_i64_le().await?, 0x0807_0605_0403_0201);
        let wide = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
        assert_eq!((&bytes[..]).read_u128().await?, wide);
        assert_eq!((&bytes[..]).read_u128_le().await?, wide.swap_bytes());
        assert_eq!((&bytes[..]).read_i128().await?, wide as i128);
        assert_eq!(
            (&bytes[..]).read_i128_le().await?,
            wide.swap_bytes() as i128
        );
        assert_eq!((&1.5_f32.to_be_bytes()[..]).read_f32().await?, 1.5);
        assert_eq!((&1.5_f32.to_le_bytes()[..]).read_f32_le().await?, 1.5);
        assert_eq!((&2.5_f64.to_be_bytes()[..]).read_f64().await?, 2.5);
        assert_eq!((&2.5_f64.to_le_bytes()[..]).read_f64_le().await?, 2.5);
        Ok(())
    })
}

#[test]
fn a_number_comes_in_pieces_and_not_in_part() -> Outcome {
    on_both(async || {
        let mut reader = Scripted::new(&[
            Act::Give(&[1]),
            Act::Wait,
            Act::Give(&[2, 3]),
            Act::Give(&[4, 5]),
        ]);
        assert_eq!(reader.read_u32().await?, 0x0102_0304);
        let error = reader.read_u16().await.expect_err("one byte is left");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        Ok(())
    })
}

#[test]
fn read_to_end_appends_and_keeps_what_came_before_an_error() -> Outcome {
    on_both(async || {
        let mut all = b"x".to_vec();
        let mut reader = Scripted::new(&[Act::Give(b"abc"), Act::Wait, Act::Give(b"de")]);
        assert_eq!(reader.read_to_end(&mut all).await?, 5);
        assert_eq!(all, b"xabcde");
        let mut reader = Scripted::new(&[
            Act::Give(b"fg"),
            Act::Fail(ErrorKind::Interrupted),
            Act::Fail(ErrorKind::TimedOut),
        ]);
        let error = reader.read_to_end(&mut all).await.expect_err("it fails");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(all, b"xabcdefg");
        Ok(())
    })
}

#[test]
fn read_to_end_grows_for_much_and_not_for_an_exact_capacity() -> Outcome {
    on_both(async || {
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let mut all = Vec::new();
        assert_eq!((&bytes[..]).read_to_end(&mut all).await?, bytes.len());
        assert_eq!(all, bytes);
        let mut exact = Vec::with_capacity(bytes.len());
        let before = exact.capacity();
        (&bytes[..]).read_to_end(&mut exact).await?;
        assert_eq!(exact, bytes);
        assert_eq!(
            exact.capacity(),
            before,
            "the end is found without more room"
        );
        Ok(())
    })
}

/// Asks for initialised memory, gives one byte per read, and counts what was not initialised.
#[derive(Default)]
struct Trickle {
    left: usize,
    zeroed: usize,
}

impl AsyncRead for Trickle {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.zeroed += buf.capacity() - buf.initialized().len();
        buf.initialize_unfilled();
        if self.left > 0 {
            self.left -= 1;
            buf.advance(1);
        }
        Poll::Ready(Ok(()))
    }
}

#[test]
fn read_to_end_lets_each_byte_be_zeroed_once() -> Outcome {
    on_both(async || {
        let mut reader = Trickle {
            left: 5000,
            zeroed: 0,
        };
        let mut all = Vec::new();
        assert_eq!(reader.read_to_end(&mut all).await?, 5000);
        let most = 4 * all.capacity();
        assert!(reader.zeroed < most, "{} of {most}", reader.zeroed);
        Ok(())
    })
}

/// What std and tokio say of it.
const NOT_UTF8: &str = "stream did not contain valid UTF-8";

#[test]
fn text_that_is_not_utf8_leaves_the_string_as_it_was() -> Outcome {
    on_both(async || {
        let mut text = String::from("old ");
        assert_eq!((&b"new"[..]).read_to_string(&mut text).await?, 3);
        assert_eq!(text, "old new");
        let broken = (&b"\xff"[..]).read_to_string(&mut text).await;
        let broken = broken.expect_err("no text");
        assert_eq!(broken.kind(), ErrorKind::InvalidData);
        assert_eq!(broken.to_string(), NOT_UTF8);
        assert_eq!(text, "old new");
        let mut reader = Scripted::new(&[Act::Give(b"abc"), Act::Fail(ErrorKind::TimedOut)]);
        let failed = reader.read_to_string(&mut text).await;
        assert_eq!(failed.expect_err("it fails").kind(), ErrorKind::TimedOut);
        assert_eq!(text, "old new");
        Ok(())
    })
}

#[test]
fn take_ends_at_its_limit_and_chain_goes_on_behind_it() -> Outcome {
    on_both(async || {
        let mut taken = (&b"abcdef"[..]).take(4);
        let mut buffer = [0; 3];
        assert_eq!(taken.read(&mut buffer).await?, 3);
        assert_eq!(taken.limit(), 1);
        assert_eq!(taken.read(&mut buffer).await?, 1);
        assert_eq!(taken.read(&mut buffer).await?, 0);
        taken.set_limit(1);
        assert_eq!(taken.read_u8().await?, b'e');
        assert_eq!(*taken.get_ref(), b"f");

        let mut both = (&b"ab"[..]).chain((&b"cd"[..]).take(1));
        assert_eq!(both.read(&mut []).await?, 0, "no room is no end");
        let mut all = Vec::new();
        assert_eq!(both.read_to_end(&mut all).await?, 3);
        assert_eq!(all, b"abc");

        let mut lines = (&b"a\nb"[..]).chain(&b"c\n"[..]).lines();
        assert_eq!(lines.next_line().await?.as_deref(), Some("a"));
        assert_eq!(lines.next_line().await?.as_deref(), Some("bc"));
        assert_eq!(lines.next_line().await?, None);
        let mut limited = BufReader::new(&b"xyz\n"[..]).take(2);
        assert_eq!(limited.fill_buf().await?, b"xy");
        AsyncBufReadExt::consume(&mut limited, 2);
        assert_eq!(limited.fill_buf().await?, b"");
        Ok(())
    })
}

#[test]
fn lines_and_segments_keep_their_beginning_across_a_dropped_wait() -> Outcome {
    let acts = [
        Act::Give(b"on"),
        Act::Wait,
        Act::Give(b"e\r\n\ntwo\rx"),
        Act::Give(b"\n\xff\nend"),
    ];
    let mut lines = BufReader::new(Scripted::new(&acts)).lines();
    assert!(poll_once(lines.next_line()).is_pending());
    on_both(async || {
        let mut lines = BufReader::new(Scripted::new(&acts)).lines();
        assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
        assert_eq!(lines.next_line().await?.as_deref(), Some(""));
        assert_eq!(lines.next_line().await?.as_deref(), Some("two\rx"));
        let broken = lines.next_line().await.expect_err("no text");
        assert_eq!(broken.kind(), ErrorKind::InvalidData);
        assert_eq!(broken.to_string(), NOT_UTF8);
        assert_eq!(lines.next_line().await?.as_deref(), Some("end"));
        assert_eq!(lines.next_line().await?, None);
        Ok::<(), std::io::Error>(())
    })?;
    let Poll::Ready(Ok(Some(line))) = poll_once(lines.next_line()) else {
        panic!("the rest of the line is there");
    };
    assert_eq!(line, "one");

    let mut parts = BufReader::new(Scripted::new(&[
        Act::Give(b"a,"),
        Act::Give(b",b"),
        Act::Wait,
        Act::Give(b"c"),
    ]))
    .split(b',');
    let mut found = Vec::new();
    for _ in 0..10 {
        match poll_once(parts.next_segment()) {
            Poll::Ready(Ok(Some(part))) => found.push(part),
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(Err(error)) => return Err(error.into()),
            Poll::Pending => {}
        }
    }
    assert_eq!(found, [&b"a"[..], b"", b"bc"]);
    Ok(())
}

#[test]
fn read_line_and_read_until_keep_the_delimiter() -> Outcome {
    on_both(async || {
        let mut reader = BufReader::with_capacity(2, &b"first\nsecond\xff\nlast"[..]);
        let mut line = String::from("> ");
        assert_eq!(reader.read_line(&mut line).await?, 6);
        assert_eq!(line, "> first\n");
        let broken = reader.read_line(&mut line).await.expect_err("no text");
        assert_eq!(broken.kind(), ErrorKind::InvalidData);
        assert_eq!(broken.to_string(), NOT_UTF8);
        assert_eq!(line, "> first\n");
        let mut bytes = Vec::new();
        assert_eq!(reader.read_until(b's', &mut bytes).await?, 3);
        assert_eq!(reader.read_until(b's', &mut bytes).await?, 1);
        assert_eq!(bytes, b"last");
        assert_eq!(reader.read_until(b's', &mut bytes).await?, 0);
        Ok(())
    })
}

#[test]
fn a_cursor_seeks_and_reads_nothing_behind_its_end() -> Outcome {
    on_both(async || {
        let mut cursor = Cursor::new(b"abcdef".to_vec());
        assert_eq!(cursor.seek(SeekFrom::Start(4)).await?, 4);
        let mut rest = Vec::new();
        assert_eq!(cursor.read_to_end(&mut rest).await?, 2);
        assert_eq!(cursor.seek(SeekFrom::Current(10)).await?, 16);
        assert_eq!(cursor.read_to_end(&mut rest).await?, 0);
        assert_eq!(cursor.rewind().await?, 0);
        assert_eq!(cursor.stream_position().await?, 0);
        assert!(cursor.seek(SeekFrom::Current(-1)).await.is_err());
        assert_eq!(rest, b"ef");
        Ok(())
    })
}

#[test]
fn readers_behind_pointers_and_trait_objects_read_too() -> Outcome {
    on_both(async || {
        let mut boxed: Box<dyn AsyncRead + Unpin + Send> = Box::new(&b"abcd"[..]);
        assert_eq!(boxed.read_u8().await?, b'a');
        let borrowed = &mut boxed;
        assert_eq!(borrowed.read_u8().await?, b'b');
        let mut pinned = Box::pin(Scripted::new(&[Act::Give(b"c")]));
        assert_eq!(pinned.read_u8().await?, b'c');
        Ok(())
    })
}
