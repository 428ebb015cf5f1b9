//! `duplex`, `simplex`, `split` and `join`.

use std::io::ErrorKind;
use std::task::Poll;

use windlass_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, SimplexStream, duplex, join, simplex,
    split,
};

use super::{Act, Outcome, Scripted, on_both, poll_once};

#[test]
fn a_full_pipe_holds_its_writer_until_it_is_read() -> Outcome {
    on_both(async || {
        let (mut one, mut other) = duplex(4);
        let writing = windlass_runtime::spawn(async move {
            one.write_all(b"0123456789").await?;
            std::io::Result::Ok(one)
        });
        let mut all = [0; 10];
        other.read_exact(&mut all).await?;
        assert_eq!(all, *b"0123456789");
        drop(writing.await.expect("no panic")?);
        assert_eq!(other.read(&mut all).await?, 0);
        Ok::<(), std::io::Error>(())
    })
    .map_err(Into::into)
}

#[test]
fn a_short_write_fills_what_room_there_is() {
    let (mut one, _other) = duplex(4);
    assert!(matches!(
        poll_once(one.write(b"abcdef")),
        Poll::Ready(Ok(4))
    ));
    assert!(poll_once(one.write(b"g")).is_pending());
    assert!(matches!(poll_once(one.write(b"")), Poll::Ready(Ok(0))));
}

#[test]
fn a_dropped_end_is_an_end_for_reads_and_broken_for_writes() -> Outcome {
    on_both(async || {
        let (mut one, mut other) = duplex(16);
        one.write_all(b"last").await?;
        drop(one);
        let mut all = Vec::new();
        other.read_to_end(&mut all).await?;
        assert_eq!(all, b"last");
        let error = other.write(b"x").await.expect_err("the other end is gone");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok(())
    })
}

#[test]
fn a_dropped_end_wakes_both_directions() -> Outcome {
    on_both(async || {
        let (one, other) = duplex(1);
        let (mut reading, mut writing) = split(other);
        writing.write_all(b"x").await?;
        let reader = windlass_runtime::spawn(async move { reading.read(&mut [0; 1]).await });
        let writer = windlass_runtime::spawn(async move { writing.write(b"y").await });
        windlass_runtime::task::yield_now().await;
        drop(one);
        assert_eq!(reader.await.expect("no panic")?, 0);
        let error = writer.await.expect("no panic").expect_err("broken");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok::<(), std::io::Error>(())
    })
    .map_err(Into::into)
}

#[test]
fn a_shutdown_ends_one_direction_only() -> Outcome {
    on_both(async || {
        let (mut one, mut other) = duplex(16);
        one.write_all(b"bye").await?;
        one.shutdown().await?;
        let error = one.write(b"x").await.expect_err("it was shut down");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let mut all = Vec::new();
        assert_eq!(other.read_to_end(&mut all).await?, 3);
        other.write_all(b"still here").await?;
        drop(other);
        assert_eq!(one.read_to_end(&mut all).await?, 10);
        Ok(())
    })
}

#[test]
fn a_simplex_pipe_goes_one_way_and_ends_with_a_shutdown() -> Outcome {
    on_both(async || {
        let (mut reading, mut writing) = simplex(4);
        writing.write_all(b"abc").await?;
        let mut part = [0; 2];
        reading.read_exact(&mut part).await?;
        // Round the end of the memory.
        writing.write_all(b"def").await?;
        writing.shutdown().await?;
        let mut rest = Vec::new();
        reading.read_to_end(&mut rest).await?;
        assert_eq!(rest, b"cdef");
        assert!(writing.write(b"x").await.is_err());
        let mut whole = SimplexStream::new_unsplit(2);
        whole.write_all(b"ab").await?;
        assert_eq!(whole.read_u16().await?, 0x6162);
        Ok(())
    })
}

#[test]
#[should_panic(expected = "`max_buf_size` must be greater than 0")]
fn a_pipe_without_room_is_refused() {
    let _ = duplex(0);
}

#[test]
fn halves_know_each_other_and_come_together_again() -> Outcome {
    on_both(async || {
        let (one, mut far) = duplex(16);
        let (two, _kept) = duplex(16);
        let (mut reading, mut writing) = split(one);
        let (_, stranger) = split(two);
        assert!(reading.is_pair_of(&writing) && writing.is_pair_of(&reading));
        assert!(!reading.is_pair_of(&stranger));
        writing.write_all(b"to").await?;
        far.write_all(b"from").await?;
        let mut word = [0; 4];
        reading.read_exact(&mut word).await?;
        assert_eq!(word, *b"from");
        let mut whole = reading.unsplit(writing);
        whole.write_all(b"gether").await?;
        drop(whole);
        let mut all = Vec::new();
        far.read_to_end(&mut all).await?;
        assert_eq!(all, b"together");
        Ok(())
    })
}

#[test]
#[should_panic(expected = "Unrelated `split::Write` passed to `split::Read::unsplit`.")]
fn halves_of_two_streams_do_not_come_together() {
    let (one, two) = duplex(1);
    let ((reading, _), (_, writing)) = (split(one), split(two));
    let _ = reading.unsplit(writing);
}

#[test]
fn a_joined_stream_reads_from_one_and_writes_to_the_other() -> Outcome {
    on_both(async || {
        let reader = BufReader::new(Scripted::new(&[Act::Give(b"in\n")]));
        let mut stream = join(reader, Vec::new());
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        stream.write_all(b"out").await?;
        assert_eq!(line, "in\n");
        assert_eq!(stream.writer(), b"out");
        let (_, written) = stream.into_inner();
        assert_eq!(written, b"out");
        Ok(())
    })
}
