//! Adapters to and from the traits of `futures-io`.

use std::io::{Cursor, SeekFrom};
use std::pin::Pin;

use windlass_io::io::compat::{FromFutures, IntoFutures};
use windlass_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, duplex,
};

use super::{Outcome, on_both};

#[test]
fn bytes_pass_both_adapters_and_an_end_does_too() -> Outcome {
    on_both(async || {
        let (near, mut far) = duplex(8);
        let mut stream = FromFutures::new(IntoFutures::new(near));
        stream.write_all(b"abc").await?;
        stream.flush().await?;
        stream.shutdown().await?;
        far.write_all(b"def").await?;
        assert_eq!(far.read_u8().await?, b'a');
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await?;
        assert_eq!(rest, b"bc");
        drop(far);
        rest.clear();
        stream.read_to_end(&mut rest).await?;
        assert_eq!(rest, b"def");
        Ok(())
    })
}

#[test]
fn positions_and_buffers_pass_both_adapters() -> Outcome {
    on_both(async || {
        let inside = BufReader::with_capacity(2, Cursor::new(b"one\ntwo\n".to_vec()));
        let mut reader = FromFutures::new(IntoFutures::new(inside));
        let mut line = String::new();
        reader.read_line(&mut line).await?;
        assert_eq!(line, "one\n");
        assert_eq!(reader.stream_position().await?, 4);
        assert_eq!(reader.seek(SeekFrom::Current(1)).await?, 5);
        assert_eq!(reader.read_u8().await?, b'w');
        assert_eq!(reader.rewind().await?, 0);
        assert_eq!(reader.get_ref().get_ref().buffer(), b"");
        Ok(())
    })
}

#[test]
fn a_stream_of_ours_passes_as_one_of_futures_io() -> Outcome {
    on_both(async || {
        let (near, mut far) = duplex(8);
        let mut foreign = IntoFutures::new(near);
        far.write_all(b"xyz").await?;
        let mut part = [0; 8];
        let read = std::future::poll_fn(|cx| {
            futures_io::AsyncRead::poll_read(Pin::new(&mut foreign), cx, &mut part)
        });
        assert_eq!(read.await?, 3);
        std::future::poll_fn(|cx| futures_io::AsyncWrite::poll_close(Pin::new(&mut foreign), cx))
            .await?;
        assert_eq!(far.read(&mut part).await?, 0);
        Ok(())
    })
}
