//! `copy`, `copy_buf` and `copy_bidirectional`.

use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use windlass_io::io::{
    self, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter, copy, copy_bidirectional,
    copy_bidirectional_with_sizes, copy_buf, duplex,
};
use windlass_runtime::Runtime;

use super::{Act, Outcome, Scripted, on_both, poll_once};

#[test]
fn copy_moves_everything_and_flushes() -> Outcome {
    on_both(async || {
        let bytes: Vec<u8> = (0..50_000_u32).map(|number| number as u8).collect();
        let mut writer = Scripted::new(&[Act::Take(1), Act::Wait, Act::Take(3000)]);
        assert_eq!(copy(&mut &bytes[..], &mut writer).await?, 50_000);
        assert_eq!(writer.written, bytes);
        assert_eq!(writer.flushed, 1);
        let mut writer = Scripted::new(&[Act::Take(1), Act::Wait, Act::Take(3000)]);
        let mut reader = BufReader::with_capacity(100, &bytes[..]);
        assert_eq!(copy_buf(&mut reader, &mut writer).await?, 50_000);
        assert_eq!(writer.written, bytes);
        assert_eq!(writer.flushed, 1);
        Ok(())
    })
}

#[test]
fn copy_passes_errors_of_both_sides_on() -> Outcome {
    on_both(async || {
        let failing = [Act::Give(b"abc"), Act::Fail(ErrorKind::TimedOut)];
        let mut written = Vec::new();
        let error = copy(&mut Scripted::new(&failing), &mut written).await;
        assert_eq!(error.expect_err("it fails").kind(), ErrorKind::TimedOut);
        let mut full = Scripted::new(&[Act::Take(0)]);
        let error = copy(&mut &b"abc"[..], &mut full).await.expect_err("full");
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        assert_eq!(error.to_string(), "write zero byte into writer");
        let mut full = Scripted::new(&[Act::Take(0)]);
        let error = copy_buf(&mut &b"abc"[..], &mut full).await;
        assert_eq!(error.expect_err("full").kind(), ErrorKind::WriteZero);
        Ok(())
    })
}

#[test]
fn copy_flushes_while_the_reader_has_nothing() -> Outcome {
    on_both(async || {
        // The other end answers only to what has arrived: without a flush both would wait.
        let (near, mut far) = duplex(64);
        let (mut source, mut feed) = duplex(64);
        let mut writer = BufWriter::new(near);
        let copying = windlass_runtime::spawn(async move { copy(&mut source, &mut writer).await });
        feed.write_all(b"question").await?;
        let mut word = [0; 8];
        far.read_exact(&mut word).await?;
        assert_eq!(&word, b"question");
        drop(feed);
        assert_eq!(copying.await.expect("no panic")?, 8);
        Ok::<(), std::io::Error>(())
    })
    .map_err(Into::into)
}

#[test]
fn copy_reads_no_more_than_its_buffer_while_the_writer_waits() -> Outcome {
    let (mut near, _far) = duplex(1);
    let bytes = vec![7; 100_000];
    let mut source = &bytes[..];
    assert!(poll_once(copy(&mut source, &mut near)).is_pending());
    let read = bytes.len() - source.len();
    assert!((1..=2 * 8192).contains(&read), "{read} bytes");
    Ok(())
}

#[test]
fn endless_copies_give_way_to_other_tasks() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let endless =
            windlass_runtime::spawn(async { copy(&mut io::repeat(1), &mut io::sink()).await });
        let buffered = windlass_runtime::spawn(async {
            copy_buf(&mut BufReader::new(io::repeat(1)), &mut io::sink()).await
        });
        for _ in 0..10 {
            windlass_runtime::task::yield_now().await;
        }
        endless.abort();
        buffered.abort();
        assert!(endless.await.is_err());
        assert!(buffered.await.is_err());
    });
    Ok(())
}

#[test]
fn loops_over_what_is_always_ready_give_way() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let tasks = [
            windlass_runtime::spawn(async { while io::empty().read(&mut [0; 1]).await.is_ok() {} }),
            windlass_runtime::spawn(async { while io::sink().write(b"x").await.is_ok() {} }),
            windlass_runtime::spawn(async {
                while io::repeat(1).read(&mut [0; 4]).await.is_ok() {}
            }),
            windlass_runtime::spawn(async {
                let (mut one, mut other) = duplex(8);
                while one.write(b"x").await.is_ok() && other.read(&mut [0; 1]).await.is_ok() {}
            }),
        ];
        for _ in 0..10 {
            windlass_runtime::task::yield_now().await;
        }
        for task in tasks {
            task.abort();
            assert!(task.await.is_err());
        }
    });
    Ok(())
}

#[test]
fn both_directions_are_copied_and_each_end_is_passed_on() -> Outcome {
    on_both(async || {
        let (mut client, mut left) = duplex(16);
        let (mut right, mut server) = duplex(16);
        let proxy = windlass_runtime::spawn(async move {
            copy_bidirectional_with_sizes(&mut left, &mut right, 3, 5).await
        });
        client.write_all(b"request").await?;
        client.shutdown().await?;
        let mut request = Vec::new();
        server.read_to_end(&mut request).await?;
        assert_eq!(request, b"request");
        server.write_all(b"a longer response").await?;
        server.shutdown().await?;
        let mut response = Vec::new();
        client.read_to_end(&mut response).await?;
        assert_eq!(response, b"a longer response");
        assert_eq!(proxy.await.expect("no panic")?, (7, 17));
        Ok::<(), std::io::Error>(())
    })
    .map_err(Into::into)
}

#[test]
fn an_error_of_one_direction_ends_both() {
    let (mut left, _client) = duplex(16);
    let mut broken = Scripted::new(&[Act::Fail(ErrorKind::TimedOut)]);
    let copied = poll_once(copy_bidirectional(&mut left, &mut broken));
    let Poll::Ready(Err(error)) = copied else {
        panic!("it fails at once");
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
#[should_panic(expected = "`b_to_a_buf_size` must be greater than 0")]
fn a_copy_without_a_buffer_is_refused() {
    let (mut one, mut other) = duplex(1);
    let copying = pin!(copy_bidirectional_with_sizes(&mut one, &mut other, 1, 0));
    let _ = copying.poll(&mut Context::from_waker(Waker::noop()));
}
