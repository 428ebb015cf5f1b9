//! Files and directories.

use std::io::{ErrorKind, IoSlice, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::Poll;

use windlass_io::fs::{self, File};
use windlass_io::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use windlass_runtime::Runtime;

/// A directory that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Scratch(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Real threads, and the simulator's.
fn on_both(
    test: impl AsyncFn() -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Runtime::builder().workers(2).build()?.block_on(test())?;
    Runtime::simulated(11).block_on(test())
}

#[test]
fn what_is_written_is_read_again() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("written");
    on_both(async || {
        let path = scratch.file("numbers");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .await?;
        let bytes: Vec<u8> = (0..3_000_000u32).map(|number| number as u8).collect();
        file.write_all(&bytes).await?;
        assert_eq!(fs::metadata(&path).await?.len(), bytes.len() as u64);
        assert_eq!(file.seek(SeekFrom::Start(1000)).await?, 1000);
        let mut part = [0; 10];
        file.read_exact(&mut part).await?;
        assert_eq!(part, bytes[1000..1010]);
        // A write goes on where the last read ended.
        file.write_all(b"xyz").await?;
        assert_eq!(file.seek(SeekFrom::Current(-3)).await?, 1010);
        let mut rest = Vec::new();
        assert_eq!(file.read_to_end(&mut rest).await?, bytes.len() - 1010);
        assert_eq!(rest[..3], *b"xyz");
        assert_eq!(rest[3..], bytes[1013..]);
        assert_eq!(file.read(&mut part).await?, 0, "the end");
        file.set_len(5).await?;
        file.sync_all().await?;
        assert_eq!(fs::read(&path).await?, bytes[..5]);
        Ok(())
    })
}

#[test]
fn what_a_dropped_read_had_taken_comes_next() -> Result<(), Box<dyn std::error::Error + Send + Sync>>
{
    let scratch = Scratch::new("dropped");
    on_both(async || {
        let path = scratch.file("letters");
        fs::write(&path, "abcdefgh").await?;
        let mut file = File::open(&path).await?;
        let mut buffer = [0; 4];
        // Begun, and dropped before its end; always so in the simulator.
        let at_once = std::future::poll_fn(|cx| {
            Poll::Ready(
                futures_io::AsyncRead::poll_read(Pin::new(&mut file), cx, &mut buffer).is_ready(),
            )
        });
        if at_once.await {
            file.seek(SeekFrom::Start(0)).await?;
        }
        let mut two = [0; 2];
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"ab");
        let mut file = File::from_std(file.into_std().await);
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"cd", "the position is where the reader was");
        let mut other = file.try_clone().await?;
        other.read_exact(&mut two).await?;
        assert_eq!(&two, b"ef", "clones share it");
        Ok(())
    })
}

#[test]
fn operations_move_no_more_than_the_user_allows()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("most");
    on_both(async || {
        let path = scratch.file("few");
        let mut file = File::create(&path).await?;
        file.set_max_buf_size(2);
        assert_eq!(file.try_clone().await?.max_buf_size(), 2);
        assert_eq!(file.write(b"abc").await?, 2);
        file.write_all(b"cdefg").await?;
        let mut file = File::open(&path).await?;
        file.set_max_buf_size(3);
        let mut buffer = [0; 8];
        assert_eq!(file.read(&mut buffer).await?, 3);
        let mut rest = String::new();
        file.read_to_string(&mut rest).await?;
        assert_eq!(rest, "defg");
        Ok(())
    })
}

#[test]
fn a_shared_file_is_settled_by_what_looks_at_it()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("shared");
    on_both(async || {
        let path = scratch.file("shared");
        let mut file = File::create(&path).await?;
        // Under way, or done.
        begin_write(&mut file, b"abcdef").await;
        let shared = &file;
        shared.sync_all().await?;
        assert_eq!(shared.metadata().await?.len(), 6);
        shared.set_len(2).await?;
        shared.sync_data().await?;
        assert_eq!(shared.try_clone().await?.metadata().await?.len(), 2);
        assert_eq!(fs::read(&path).await?, b"ab");
        Ok(())
    })
}

#[test]
fn several_buffers_are_one_write() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("several");
    on_both(async || {
        let path = scratch.file("several");
        let mut file = File::create(&path).await?;
        assert!(file.is_write_vectored());
        let parts = [&b"ab"[..], b"", b"cde", b"f"].map(IoSlice::new);
        assert_eq!(file.write_vectored(&parts).await?, 6);
        file.set_max_buf_size(4);
        assert_eq!(file.write_vectored(&parts).await?, 4);
        assert_eq!(file.write_vectored(&[]).await?, 0);
        assert_eq!(fs::read(&path).await?, b"abcdefabcd");
        Ok(())
    })
}

#[test]
fn a_dropped_write_of_several_buffers_counts_as_the_next_one()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("several-dropped");
    on_both(async || {
        let path = scratch.file("several");
        let mut file = File::create(&path).await?;
        let same = [&b"ab"[..], b"cd"].map(IoSlice::new);
        let other = [&b"ab"[..], b"xy"].map(IoSlice::new);
        if !begin_write(&mut file, b"abc").await {
            assert_eq!(file.write_vectored(&same).await?, 3, "it was that write");
        }
        if !begin_write(&mut file, b"abc").await {
            assert_eq!(file.write_vectored(&other).await?, 4, "another one");
            assert_eq!(fs::read(&path).await?, b"abcabcabxy");
        }
        Ok(())
    })
}

#[test]
fn an_idle_file_is_given_out_at_once() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("idle");
    on_both(async || {
        let path = scratch.file("idle");
        let mut file = File::create(&path).await?;
        file.write_all(b"abc").await?;
        let mut file = file.try_into_std().expect("nothing is under way");
        std::io::Write::write_all(&mut file, b"def")?;
        let mut file = File::open(&path).await?;
        let mut buffer = [0; 4];
        let read = std::future::poll_fn(|cx| {
            let mut buffer = ReadBuf::new(&mut buffer);
            Poll::Ready(Pin::new(&mut file).poll_read(cx, &mut buffer).is_ready())
        });
        if !read.await {
            file = file.try_into_std().expect_err("a read is under way");
        }
        let mut all = String::new();
        let file = file.into_std().await;
        let mut file = File::from(file);
        assert_eq!(file.as_raw_fd(), file.as_fd().as_raw_fd());
        file.rewind().await?;
        file.read_to_string(&mut all).await?;
        assert_eq!(all, "abcdef");
        Ok(())
    })
}

/// Polls a write once and drops it; true if it was done at once, which the simulator never does.
async fn begin_write(file: &mut File, bytes: &[u8]) -> bool {
    let poll = |cx: &mut std::task::Context<'_>| Pin::new(&mut *file).poll_write(cx, bytes);
    let mut poll = poll;
    std::future::poll_fn(|cx| Poll::Ready(poll(cx).is_ready())).await
}

#[test]
fn a_reported_write_is_in_the_file() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("reported");
    on_both(async || {
        let path = scratch.file("log");
        let mut file = File::create(&path).await?;
        for round in 1..=20 {
            assert_eq!(file.write(b"line\n").await?, 5);
            assert_eq!(
                std::fs::metadata(&path)?.len(),
                5 * round,
                "no flush is needed"
            );
        }
        assert_eq!(file.write(&[]).await?, 0);
        Ok(())
    })
}

#[test]
fn a_dropped_write_happens_once_or_counts_as_the_next_one()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("dropped-write");
    on_both(async || {
        let path = scratch.file("letters");
        let mut file = File::create(&path).await?;
        // The same bytes: one write, not two.
        if begin_write(&mut file, b"abc").await {
            return Ok(());
        }
        file.write_all(b"abc").await?;
        assert_eq!(std::fs::read(&path)?, b"abc");
        // A flush in between changes nothing.
        if begin_write(&mut file, b"de").await {
            return Ok(());
        }
        file.flush().await?;
        assert_eq!(file.write(b"def").await?, 2, "what was written of it");
        file.write_all(b"f").await?;
        assert_eq!(std::fs::read(&path)?, b"abcdef");
        // Other bytes: both are written, and the count is the new one's.
        if begin_write(&mut file, b"123").await {
            return Ok(());
        }
        assert_eq!(file.write(b"4").await?, 1);
        assert_eq!(std::fs::read(&path)?, b"abcdef1234");
        // Another operation in between: the same bytes are written again.
        if begin_write(&mut file, b"x").await {
            return Ok(());
        }
        assert_eq!(file.stream_position().await?, 11);
        assert_eq!(file.write(b"x").await?, 1);
        assert_eq!(std::fs::read(&path)?, b"abcdef1234xx");
        Ok(())
    })
}

#[test]
fn read_to_end_takes_large_pieces_and_keeps_the_position()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("large");
    on_both(async || {
        let path = scratch.file("numbers");
        let bytes: Vec<u8> = (0..17_000_000_u32).map(|number| number as u8).collect();
        std::fs::write(&path, &bytes)?;
        let mut file = File::open(&path).await?;
        let mut all = Vec::new();
        assert_eq!(file.read_to_end(&mut all).await?, bytes.len());
        assert!(all == bytes);
        assert_eq!(file.stream_position().await?, bytes.len() as u64);
        // What was appended after the end is read.
        let mut end = std::fs::OpenOptions::new().append(true).open(&path)?;
        std::io::Write::write_all(&mut end, b"more")?;
        all.clear();
        assert_eq!(file.read_to_end(&mut all).await?, 4);
        // A dropped call takes nothing away.
        file.rewind().await?;
        all.clear();
        {
            let mut reading = std::pin::pin!(file.read_to_end(&mut all));
            std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await;
        }
        let read = all.len() as u64;
        assert_eq!(file.stream_position().await?, read);
        Ok(())
    })
}

#[test]
fn a_full_disk_is_told() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    on_both(async || {
        let mut full = File::options().write(true).open("/dev/full").await?;
        let error = full.write_all(b"no room").await.expect_err("it is full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        // The write itself tells, not an operation after it.
        let error = full.write(b"again").await.expect_err("it is still full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        full.flush().await?;
        // The error of a write that was dropped is told by the next operation, once.
        if begin_write(&mut full, b"dropped").await {
            return Ok(());
        }
        let error = full.flush().await.expect_err("it failed");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        full.flush().await?;
        let error = fs::write("/dev/full", "at once").await;
        assert_eq!(error.expect_err("full").kind(), ErrorKind::StorageFull);
        Ok(())
    })
}

#[test]
fn directories_are_made_listed_and_removed() -> Result<(), Box<dyn std::error::Error + Send + Sync>>
{
    let scratch = Scratch::new("directories");
    on_both(async || {
        let deep = scratch.file("a/b/c");
        assert_eq!(
            fs::create_dir(&deep).await.expect_err("no parent").kind(),
            ErrorKind::NotFound
        );
        fs::create_dir_all(&deep).await?;
        for number in 0..100 {
            fs::write(deep.join(format!("{number:02}")), number.to_string()).await?;
        }
        let mut entries = fs::read_dir(&deep).await?;
        let mut names = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            assert!(entry.file_type().await?.is_file());
            assert_eq!(
                entry.metadata().await?.len() as usize,
                entry
                    .file_name()
                    .to_string_lossy()
                    .trim_start_matches('0')
                    .len()
                    .max(1)
            );
            names.push(entry.file_name().into_string().expect("text"));
        }
        names.sort();
        assert_eq!(names.len(), 100);
        assert_eq!((&*names[0], &*names[99]), ("00", "99"));

        fs::rename(deep.join("00"), deep.join("first")).await?;
        assert!(!fs::try_exists(deep.join("00")).await?);
        assert_eq!(fs::copy(deep.join("99"), deep.join("copy")).await?, 2);
        fs::symlink(deep.join("copy"), deep.join("link")).await?;
        assert_eq!(fs::read_to_string(deep.join("link")).await?, "99");
        assert_eq!(fs::read_link(deep.join("link")).await?, deep.join("copy"));
        assert_eq!(
            fs::remove_dir(&deep).await.expect_err("not empty").kind(),
            ErrorKind::DirectoryNotEmpty
        );
        fs::remove_dir_all(scratch.file("a")).await?;
        assert!(!fs::try_exists(&deep).await?);
        Ok(())
    })
}

#[test]
fn each_failure_is_that_of_the_operating_system()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = Scratch::new("failures");
    on_both(async || {
        let missing = scratch.file("missing");
        assert_eq!(
            File::open(&missing).await.expect_err("missing").kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            fs::read(&scratch.0).await.expect_err("a directory").kind(),
            ErrorKind::IsADirectory
        );
        let mut only_read = File::open("/dev/zero").await?;
        assert!(only_read.write_all(b"x").await.is_err());
        let taken = scratch.file("taken");
        fs::write(&taken, "").await?;
        let new = File::options()
            .write(true)
            .create_new(true)
            .open(&taken)
            .await;
        assert_eq!(new.expect_err("there").kind(), ErrorKind::AlreadyExists);
        let bytes = fs::write(scratch.file("binary"), [0xff, 0xfe]).await;
        bytes?;
        let text = fs::read_to_string(scratch.file("binary")).await;
        assert_eq!(text.expect_err("no text").kind(), ErrorKind::InvalidData);
        Ok(())
    })
}

#[test]
fn a_directory_is_made_with_those_above_and_its_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("dir-builder");
    let deep = scratch.file("a").join("b");
    Runtime::new().unwrap().block_on(async {
        let error = fs::DirBuilder::new().create(&deep).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&deep).await.unwrap();
        builder.create(&deep).await.unwrap();
    });
    let mode = std::fs::metadata(&deep).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_file_has_times_a_descriptor_and_an_inode() {
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::MetadataExt;
    use std::time::SystemTime;

    let scratch = Scratch::new("times");
    Runtime::new().unwrap().block_on(async {
        let path = scratch.file("new");
        let file = fs::File::create_new(&path).await.unwrap();
        let again = fs::File::create_new(&path).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        file.set_modified(SystemTime::UNIX_EPOCH).await.unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_eq!(metadata.modified().unwrap(), SystemTime::UNIX_EPOCH);
        assert_eq!(file.as_fd().as_raw_fd(), file.as_raw_fd());
        let mut entries = fs::read_dir(path.parent().unwrap()).await.unwrap();
        let entry = entries.next_entry().await.unwrap().unwrap();
        assert_eq!(entry.ino(), metadata.ino());
        let owned = file.as_fd().try_clone_to_owned().unwrap();
        let same = fs::File::from(owned).metadata().await.unwrap();
        assert_eq!(same.ino(), metadata.ino());
    });
}
