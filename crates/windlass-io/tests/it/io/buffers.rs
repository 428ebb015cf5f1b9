//! `BufReader`, `BufWriter` and `BufStream`.

use std::io::{Cursor, ErrorKind, IoSlice, SeekFrom};

use windlass_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, BufReader, BufStream,
    BufWriter, duplex,
};

use super::{Act, Outcome, Scripted, on_both};

#[test]
fn a_buffered_reader_reads_ahead_and_large_reads_go_past_it() -> Outcome {
    on_both(async || {
        let mut reader = BufReader::with_capacity(4, &b"abcdefghij"[..]);
        assert_eq!(reader.read_u8().await?, b'a');
        assert_eq!(reader.buffer(), b"bcd");
        let mut large = [0; 6];
        assert_eq!(
            reader.read(&mut large).await?,
            3,
            "what is held comes first"
        );
        assert_eq!(reader.read(&mut large).await?, 6);
        assert_eq!(large, *b"efghij");
        assert!(reader.buffer().is_empty());
        Ok(())
    })
}

#[test]
fn fill_buf_shows_and_consume_takes() -> Outcome {
    on_both(async || {
        let mut reader = BufReader::new(Scripted::new(&[Act::Wait, Act::Give(b"abc")]));
        assert_eq!(reader.fill_buf().await?, b"abc");
        reader.consume(1);
        assert_eq!(reader.fill_buf().await?, b"bc");
        reader.consume(2);
        assert_eq!(reader.fill_buf().await?, b"", "the end");
        Ok(())
    })
}

#[test]
fn a_buffered_reader_seeks_from_where_its_user_is() -> Outcome {
    on_both(async || {
        let bytes: Vec<u8> = (0..100).collect();
        let mut reader = BufReader::with_capacity(10, Cursor::new(bytes));
        assert_eq!(reader.read_u8().await?, 0);
        assert_eq!(reader.stream_position().await?, 1);
        assert_eq!(reader.seek(SeekFrom::Current(4)).await?, 5);
        assert_eq!(reader.read_u8().await?, 5);
        assert_eq!(reader.seek(SeekFrom::Current(-6)).await?, 0);
        assert_eq!(reader.seek(SeekFrom::End(-1)).await?, 99);
        assert_eq!(reader.read_u8().await?, 99);
        assert!(reader.seek(SeekFrom::Current(i64::MIN)).await.is_err());
        assert_eq!(reader.rewind().await?, 0);
        assert_eq!(reader.read_u8().await?, 0);
        // So far back that both distances in one would overflow.
        assert!(reader.seek(SeekFrom::Current(i64::MIN)).await.is_err());
        Ok(())
    })
}

#[test]
fn a_buffered_writer_holds_small_writes_until_they_do_not_fit() -> Outcome {
    on_both(async || {
        let mut writer = BufWriter::with_capacity(4, Scripted::default());
        writer.write_all(b"abc").await?;
        assert_eq!(
            (writer.buffer(), &writer.get_ref().written[..]),
            (&b"abc"[..], &b""[..])
        );
        writer.write_all(b"de").await?;
        assert_eq!(writer.get_ref().written, b"abc");
        writer.write_all(b"0123456789").await?;
        assert_eq!(writer.get_ref().written, b"abcde0123456789");
        writer.write_all(b"x").await?;
        writer.flush().await?;
        assert_eq!(writer.get_ref().written, b"abcde0123456789x");
        assert_eq!(writer.get_ref().flushed, 1);
        writer.write_all(b"y").await?;
        writer.shutdown().await?;
        assert!(writer.get_ref().is_shut);
        assert_eq!(writer.into_inner().written, b"abcde0123456789xy");
        Ok(())
    })
}

#[test]
fn what_a_failed_flush_did_not_pass_on_is_kept() -> Outcome {
    on_both(async || {
        let acts = [
            Act::Take(2),
            Act::Fail(ErrorKind::TimedOut),
            Act::Take(0),
            Act::Wait,
        ];
        let mut writer = BufWriter::new(Scripted::new(&acts));
        writer.write_all(b"abcd").await?;
        let error = writer.flush().await.expect_err("it fails");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(writer.buffer(), b"cd");
        let error = writer.flush().await.expect_err("no byte is taken");
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        assert_eq!(error.to_string(), "failed to write the buffered data");
        writer.flush().await?;
        assert_eq!(writer.get_ref().written, b"abcd");
        Ok(())
    })
}

#[test]
fn a_buffered_writer_takes_several_buffers_whatever_is_below() -> Outcome {
    on_both(async || {
        let buffers = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cde")];
        let mut plain = BufWriter::with_capacity(4, Scripted::default());
        assert!(plain.is_write_vectored());
        assert_eq!(
            plain.write_vectored(&buffers).await?,
            2,
            "the third does not fit"
        );
        assert_eq!(plain.buffer(), b"ab");
        assert_eq!(plain.write_vectored(&buffers[2..]).await?, 3);
        assert_eq!(plain.get_ref().written, b"ab");
        let large = [IoSlice::new(b"012345"), IoSlice::new(b"x")];
        assert_eq!(plain.write_vectored(&large).await?, 6);
        assert_eq!(plain.get_ref().written, b"abcde012345");
        let mut vectored = BufWriter::with_capacity(4, Vec::new());
        assert_eq!(
            vectored.write_vectored(&buffers).await?,
            5,
            "past the buffer"
        );
        assert_eq!(*vectored.get_ref(), b"abcde");
        Ok(())
    })
}

#[test]
fn a_buffered_writer_passes_its_buffer_on_before_it_moves() -> Outcome {
    on_both(async || {
        let mut writer = BufWriter::new(Cursor::new(Vec::new()));
        writer.write_all(b"abcdef").await?;
        assert_eq!(writer.seek(SeekFrom::Start(2)).await?, 2);
        writer.write_all(b"XY").await?;
        writer.flush().await?;
        assert_eq!(writer.get_ref().get_ref(), b"abXYef");
        Ok(())
    })
}

#[test]
fn a_buffered_stream_has_both_buffers_in_either_order() -> Outcome {
    on_both(async || {
        let (near, mut far) = duplex(64);
        let mut stream = BufStream::with_capacity(8, 8, near);
        stream.write_all(b"ping\n").await?;
        stream.flush().await?;
        let mut word = [0; 5];
        far.read_exact(&mut word).await?;
        far.write_all(b"pong\nrest").await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        assert_eq!(line, "pong\n");

        let (near, mut far) = duplex(64);
        far.write_all(b"abc").await?;
        let mut reader = BufReader::new(near);
        assert_eq!(reader.read_u8().await?, b'a');
        let mut writer = BufWriter::new(reader);
        writer.write_all(b"held").await?;
        let mut stream = BufStream::from(writer);
        assert_eq!(stream.read_u8().await?, b'b', "what was read ahead is kept");
        stream.flush().await?;
        far.read_exact(&mut word[..4]).await?;
        assert_eq!(word[..4], *b"held");
        Ok(())
    })
}

#[test]
fn debug_texts_show_how_full_the_buffers_are() -> Outcome {
    on_both(async || {
        let mut reader = BufReader::with_capacity(4, &b"abc"[..]);
        reader.read_u8().await?;
        assert_eq!(
            format!("{reader:?}"),
            "BufReader { reader: [], buffer: 2/4 }"
        );
        let mut writer = BufWriter::with_capacity(4, Vec::new());
        writer.write_all(b"ab").await?;
        let text = "BufWriter { writer: [], buffer: 2/4, written: 0 }";
        assert_eq!(format!("{writer:?}"), text);
        Ok(())
    })
}

#[test]
#[should_panic(expected = "capacity must be greater than zero")]
fn a_reader_without_a_buffer_is_refused() {
    let _ = BufReader::with_capacity(0, &b""[..]);
}
