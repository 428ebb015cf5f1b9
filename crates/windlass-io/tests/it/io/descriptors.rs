//! `AsyncFd` on real pipes, and what is refused in a simulation.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use windlass_io::io::unix::AsyncFd;
use windlass_io::io::{self, AsyncReadExt, AsyncWriteExt, Interest, Ready};
use windlass_runtime::{Builder, Runtime, spawn, time};

use super::Outcome;

/// A pipe in non-blocking mode.
fn pipe() -> std::io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = std::io::pipe()?;
    let flags = |descriptor: i32| {
        // SAFETY: takes no pointers.
        let done = unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
        assert_eq!(done, 0);
    };
    flags(reader.as_raw_fd());
    flags(writer.as_raw_fd());
    Ok((reader, writer))
}

fn register<T: AsRawFd>(end: T, interest: Interest) -> std::io::Result<AsyncFd<T>> {
    // SAFETY: an end of a pipe keeps its descriptor open.
    Ok(unsafe { AsyncFd::register_with_interest(end, interest)? })
}

#[test]
fn a_guard_waits_for_bytes_and_takes_a_false_alarm_back() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let (reader, mut writer) = pipe()?;
        let reader = register(reader, Interest::READABLE)?;
        let early = time::timeout(Duration::from_millis(20), reader.readable());
        assert!(early.await.is_err(), "nothing is there");
        writer.write_all(b"ab")?;
        let mut byte = [0];
        let mut guard = reader.readable().await?;
        assert!(guard.ready().is_readable());
        let read = guard.try_io(|reader| reader.get_ref().read(&mut byte));
        assert!(matches!(read, Ok(Ok(1))));
        drop(guard);
        // The readiness was kept: there is more.
        let mut guard = reader.readable().await?;
        assert!(matches!(
            guard.try_io(|reader| reader.get_ref().read(&mut byte)),
            Ok(Ok(1))
        ));
        assert!(
            guard
                .try_io(|reader| reader.get_ref().read(&mut byte))
                .is_err()
        );
        assert!(guard.ready().is_empty());
        drop(guard);
        let again = time::timeout(Duration::from_millis(20), reader.readable());
        assert!(again.await.is_err(), "the readiness was taken back");
        let would_block = reader.try_io(Interest::READABLE, |reader| {
            let mut reader = reader;
            reader.read(&mut byte)
        });
        assert_eq!(
            would_block.expect_err("empty").kind(),
            ErrorKind::WouldBlock
        );
        drop(writer);
        let guard = reader.readable().await?;
        assert!(guard.ready().is_read_closed());
        Ok(())
    })
}

#[test]
fn operations_are_tried_until_they_do_not_block() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let (reader, writer) = pipe()?;
        let reader = register(reader, Interest::READABLE)?;
        let reading = spawn(async move {
            let mut all = Vec::new();
            let mut part = [0; 4096];
            loop {
                let read = reader.async_io(Interest::READABLE, |mut reader| reader.read(&mut part));
                match read.await? {
                    0 => return std::io::Result::Ok(all.len()),
                    count => all.extend_from_slice(&part[..count]),
                }
            }
        });
        // More than the pipe holds: the writer waits for the reader.
        let mut writer = register(writer, Interest::WRITABLE)?;
        let (bytes, mut written) = (vec![7; 1 << 20], 0);
        while written < bytes.len() {
            let write =
                writer.async_io_mut(Interest::WRITABLE, |writer| writer.write(&bytes[written..]));
            written += write.await?;
        }
        assert_eq!(writer.as_fd().as_raw_fd(), writer.as_raw_fd());
        drop(writer.into_inner());
        assert_eq!(reading.await??, bytes.len());
        Ok(())
    })
}

#[test]
fn one_wait_can_be_for_both_directions() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let (one, mut other) = std::os::unix::net::UnixStream::pair()?;
        one.set_nonblocking(true)?;
        let one = register(one, Interest::READABLE | Interest::WRITABLE)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        let mut guard = one.ready(both).await?;
        assert!(guard.ready().is_writable() && !guard.ready().is_readable());
        guard.clear_ready_matching(Ready::READABLE);
        assert!(guard.ready().is_writable());
        guard.clear_ready();
        drop(guard);
        other.write_all(b"x")?;
        let guard = one.ready(both).await?;
        assert!(guard.ready().is_readable());
        Ok(())
    })
}

#[test]
fn a_value_that_cannot_be_registered_comes_back() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let file = std::fs::File::open("/dev/null")?;
        let path = std::env::temp_dir().join(format!("windlass-afd-{}", std::process::id()));
        drop(file);
        let file = std::fs::File::create(&path)?;
        std::fs::remove_file(&path)?;
        let descriptor = file.as_raw_fd();
        // SAFETY: the file keeps its descriptor open.
        let refused = unsafe { AsyncFd::register(file) }.expect_err("no events of a file");
        let (file, error) = refused.into_parts();
        assert_eq!(file.as_raw_fd(), descriptor);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        Ok(())
    })
}

/// The number of a descriptor that its owner closes when it likes.
struct Number(i32);

impl AsRawFd for Number {
    fn as_raw_fd(&self) -> i32 {
        self.0
    }
}

/// The kernel goes on telling of a closed descriptor as long as a duplicate of it is open.
#[test]
fn an_event_of_a_descriptor_closed_early_touches_no_memory() -> Outcome {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (end, mut peer) = UnixStream::pair()?;
        end.set_nonblocking(true)?;
        let closed = (0..8)
            .map(|_| end.try_clone())
            .collect::<Result<Vec<_>, _>>()?;
        let watch =
            |end: &UnixStream| AsyncFd::with_interest(Number(end.as_raw_fd()), Interest::READABLE);
        let watched = closed.iter().map(watch).collect::<Result<Vec<_>, _>>()?;
        drop(closed);
        drop(watched);
        // The driver frees what it kept for them when it sleeps; the memory is ours then.
        time::sleep(Duration::from_millis(5)).await;
        let blocks: Vec<_> = (8..40)
            .flat_map(|words| vec![vec![0_u64; words]; 16])
            .collect();
        peer.write_all(b"news")?;
        time::sleep(Duration::from_millis(5)).await;
        assert!(blocks.iter().flatten().all(|&word| word == 0));
        std::io::Result::Ok(())
    })?;
    Ok(())
}

#[test]
fn interests_and_readiness_are_put_together_and_shown() {
    let both = Interest::READABLE | Interest::WRITABLE;
    assert_eq!(format!("{both:?}"), "READABLE | WRITABLE");
    assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    assert_eq!(Interest::READABLE.remove(both), None);
    let ready = Ready::READ_CLOSED | Ready::WRITABLE;
    assert!(ready.is_readable() && ready.is_writable() && !ready.is_write_closed());
    assert_eq!(ready - Ready::WRITABLE, Ready::READ_CLOSED);
    assert_eq!(ready & Ready::READABLE, Ready::EMPTY);
}

#[test]
fn a_simulation_refuses_what_it_could_not_replay() {
    Runtime::simulated(1).block_on(async {
        let (reader, _writer) = pipe().expect("a pipe");
        let refused = register(reader, Interest::READABLE).expect_err("no descriptors");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("`AsyncFd`"), "{refused}");
        let refused = io::stdin().read(&mut [0; 1]).await.expect_err("no input");
        assert!(refused.to_string().contains("`stdin`"), "{refused}");
        let refused = io::stdout().write(b"x").await.expect_err("no output");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(io::stderr().write(b"x").await.is_err());
    });
}

#[test]
fn output_is_reported_when_it_is_written() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        io::stdout().write_all(b"to the output\n").await?;
        let mut errors = io::stderr();
        errors.write_all(b"to the error output\n").await?;
        errors.flush().await?;
        errors.shutdown().await?;
        Ok(())
    })
}

/// The other half of the tests below: what it does with its input, as a process of its own. It
/// does nothing unless one of those tests has started it.
#[test]
fn helper_reads_input() {
    if std::env::var_os("WINDLASS_TEST_INPUT").is_none() {
        return;
    }
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    if std::env::var_os("WINDLASS_TEST_WAITS").is_some() {
        runtime.block_on(async {
            let reading = time::timeout(Duration::from_millis(50), async {
                io::stdin().read(&mut [0; 8]).await
            });
            assert!(reading.await.is_err());
        });
        println!("gave up");
        return;
    }
    runtime.block_on(async {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).await.expect("text");
        println!("read {text:?}");
    });
}

/// Starts the helper, with its input piped.
fn helper(waits: bool) -> std::io::Result<std::process::Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .args(["--nocapture", "--exact"])
        .arg("io::descriptors::helper_reads_input")
        .env("WINDLASS_TEST_INPUT", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    if waits {
        command.env("WINDLASS_TEST_WAITS", "1");
    }
    command.spawn()
}

#[test]
fn input_is_read_to_its_end() -> Outcome {
    let mut child = helper(false)?;
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"first\n")?;
    input.write_all(&[b'x'; 20_000])?;
    drop(input);
    let output = String::from_utf8(child.wait_with_output()?.stdout)?;
    assert!(output.contains("read \"first\\nxxx"), "{output:.200}");
    assert!(output.contains(&"x".repeat(20_000)));
    Ok(())
}

#[test]
fn a_read_of_the_input_that_waits_does_not_hold_up_the_exit() -> Outcome {
    let mut child = helper(true)?;
    // Kept open: the helper's read never ends.
    let input = child.stdin.take();
    let output = String::from_utf8(child.wait_with_output()?.stdout)?;
    assert!(output.contains("gave up"), "{output}");
    drop(input);
    Ok(())
}
