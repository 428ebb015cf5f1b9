//! An open file.
//!
//! At most one operation at a time is under way on a blocking thread; the next one waits for it.
//! Reads take what they are asked for, and what a dropped read had taken is kept for the next one.
//!
//! # When a write is reported
//! `poll_write` copies the bytes, starts one write on a blocking thread, and is pending until the
//! operating system has answered. Its count is that of the system's answer. So a write that was
//! reported is done, and an error is that of the write that caused it.
//!
//! A write future that is dropped in the middle leaves the write under way: its bytes arrive or its
//! error is kept. The next poll of a write cannot know whether it goes on with the same bytes or
//! begins anew, so it compares: if its buffer begins with what was written, that write *was* this
//! one, and its count is reported; otherwise the earlier write is over, and a new one begins behind
//! it. Either way each byte that is reported is in the file, and a dropped write has happened once
//! or counts as the next one. A read, a seek or any other operation in between ends the comparison;
//! a flush does not, because a caller may flush while its write is pending.
//!
//! Rejected: to report a write when its bytes are copied, as tokio does. The error then belongs to
//! a later operation, and a program that does not flush loses the end of its file at the exit
//! without a word.

use std::fs::{FileTimes, Metadata, Permissions};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::sync::Arc;
use windlass_core::task::JoinHandle;
use windlass_sync::lock::Mutex;

use super::{OpenOptions, run, start};
use crate::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

/// The most that one operation moves, unless the user says otherwise.
const MOST: usize = 1 << 20;

/// The most that one operation reads ahead for a caller that wants everything, likewise.
const MOST_AHEAD: usize = 16 << 20;

/// An open file; reads and writes go on where the last one ended.
///
/// It has [`AsyncRead`], [`AsyncWrite`] and [`AsyncSeek`], and so the methods of `AsyncReadExt`,
/// `AsyncWriteExt` and `AsyncSeekExt`.
///
/// Unlike a file of tokio, a write is reported when the operating system has the bytes, and with
/// the system's own count or error: no flush is needed. A write that is dropped before that happens
/// or not. If it has happened, and the next write begins with the same bytes, it counts as that
/// write: its bytes are not written twice.
///
/// ```
/// use windlass_io::fs::File;
/// use windlass_io::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// # let path = std::env::temp_dir().join(format!("windlass-file-{}", std::process::id()));
/// let mut file = File::options().read(true).write(true).create(true).open(&path).await?;
/// file.write_all(b"hello").await?;
/// file.rewind().await?;
/// let mut text = String::new();
/// file.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # std::fs::remove_file(path)
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct File {
    file: Arc<std::fs::File>,
    /// Locked by methods that share the file, such as `sync_all`.
    inner: Mutex<Inner>,
    /// A copy of that of `inner`, for a look without the lock.
    most: usize,
}

/// The part of a file that one operation uses at a time.
#[derive(Debug)]
struct Inner {
    file: Arc<std::fs::File>,
    /// Read, and not handed out yet.
    ahead: ReadAhead,
    under_way: UnderWay,
    /// Where the last seek went.
    position: u64,
    /// The next read is of a caller that wants everything up to the end.
    wants_all: bool,
    /// The most that an operation moves, and that one reads ahead.
    most: usize,
    most_ahead: usize,
}

#[derive(Debug, Default)]
struct ReadAhead {
    bytes: Vec<u8>,
    begin: usize,
    /// The file ends after these bytes, and no reader was told.
    is_end: bool,
}

impl ReadAhead {
    fn len(&self) -> usize {
        self.bytes.len() - self.begin
    }

    fn hand_out(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = self.len().min(buffer.remaining());
        buffer.put_slice(&self.bytes[self.begin..][..count]);
        self.begin += count;
    }

    /// Forgets what is left; gives how far the file's position is ahead of the user's.
    fn forget(&mut self) -> i64 {
        let left = self.len();
        self.bytes.clear();
        self.begin = 0;
        self.is_end = false;
        left as i64
    }

    /// Takes the memory out, to be used by an operation.
    fn take_memory(&mut self) -> Vec<u8> {
        self.forget();
        std::mem::take(&mut self.bytes)
    }

    /// Keeps memory for the next operation, unless it is large.
    fn keep_memory(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= 2 * MOST {
            bytes.clear();
            self.bytes = bytes;
        }
    }
}

/// What an operation on bytes gives: how many it moved, and the memory it used.
type Moved = (io::Result<usize>, Vec<u8>);

#[derive(Debug)]
enum UnderWay {
    Nothing,
    /// True: up to the end, or `MOST_AHEAD`.
    Read(bool, JoinHandle<Moved>),
    Write(JoinHandle<Moved>),
    /// A write of these bytes is done, and its count was not reported.
    Written(Vec<u8>),
    Seek(SeekFrom, JoinHandle<io::Result<u64>>),
}

impl File {
    /// Opens a file for reading.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file for writing; makes it, or throws away what was there.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .await
    }

    /// Makes a file that was not there, and opens it for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` if there is something at the path.
    pub async fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .await
    }

    /// Says how to open a file.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes a file that is open already.
    pub fn from_std(file: std::fs::File) -> File {
        File::new(file, MOST, MOST_AHEAD)
    }

    fn new(file: std::fs::File, most: usize, most_ahead: usize) -> File {
        let file = Arc::new(file);
        let inner = Inner {
            file: file.clone(),
            ahead: ReadAhead::default(),
            under_way: UnderWay::Nothing,
            position: 0,
            wants_all: false,
            most,
            most_ahead,
        };
        File {
            file,
            inner: Mutex::new(inner),
            most,
        }
    }

    /// The file itself, after what is under way; at the position of the last read or write. An
    /// error of a write that was dropped is lost: `flush` reports it.
    ///
    /// # Panics
    /// If an operation whose future was dropped still uses the file, and the program is out of
    /// descriptors for another handle.
    pub async fn into_std(self) -> std::fs::File {
        let mut inner = self.inner.into_inner();
        // An error leaves the position where it is: there is nothing else to give.
        let _ = inner.settle().await;
        drop(inner);
        match Arc::try_unwrap(self.file) {
            Ok(file) => file,
            Err(shared) => match shared.try_clone() {
                Ok(file) => file,
                Err(error) => panic!("no second handle for a file that is in use: {error}"),
            },
        }
    }

    /// The file itself, if nothing is under way and nothing was read ahead; at the position of the
    /// last read or write.
    ///
    /// # Errors
    /// Otherwise the file comes back: [`into_std`](File::into_std) waits.
    #[expect(
        clippy::result_large_err,
        reason = "tokio's signature; the file comes back"
    )]
    pub fn try_into_std(mut self) -> Result<std::fs::File, File> {
        let inner = self.inner.get_mut();
        let is_idle = matches!(inner.under_way, UnderWay::Nothing | UnderWay::Written(_));
        // Both of them are ours; a third is that of an operation whose future was dropped.
        if !is_idle || inner.ahead.len() > 0 || Arc::strong_count(&self.file) > 2 {
            return Err(self);
        }
        drop(self.inner);
        match Arc::try_unwrap(self.file) {
            Ok(file) => Ok(file),
            Err(_) => unreachable!("only operations have others, and none begins without the file"),
        }
    }

    /// Sets the most bytes that one read or write moves. Each is a trip to a blocking thread: few
    /// bytes are slow, many take memory. None at all would look like the end, and count as one.
    pub fn set_max_buf_size(&mut self, max_buf_size: usize) {
        let inner = self.inner.get_mut();
        inner.most = max_buf_size.max(1);
        inner.most_ahead = inner.most;
        self.most = inner.most;
    }

    /// Returns the most bytes that one read or write moves. A read of the whole file moves more at
    /// once, unless [`set_max_buf_size`](File::set_max_buf_size) was called.
    pub fn max_buf_size(&self) -> usize {
        self.most
    }

    /// Waits until everything, metadata too, is on the disk.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.inner.lock().await.settle().await?;
        let file = self.file.clone();
        run(move || file.sync_all()).await
    }

    /// Waits until the contents are on the disk.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.inner.lock().await.settle().await?;
        let file = self.file.clone();
        run(move || file.sync_data()).await
    }

    /// Cuts the file off or fills it up with zeros.
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.lock().await.settle().await?;
        let file = self.file.clone();
        run(move || file.set_len(length)).await
    }

    /// What is known about it.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let file = self.file.clone();
        run(move || file.metadata()).await
    }

    /// Says who may read, write and run it.
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        let file = self.file.clone();
        run(move || file.set_permissions(permissions)).await
    }

    /// Sets when the file was read and changed last.
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        let file = self.file.clone();
        run(move || file.set_times(times)).await
    }

    /// Sets when the file was changed last.
    #[allow(
        clippy::disallowed_types,
        reason = "times of files are of this type; no clock is read"
    )]
    pub async fn set_modified(&self, time: std::time::SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    /// Another handle for the same open file: both share one position.
    pub async fn try_clone(&self) -> io::Result<File> {
        let mut inner = self.inner.lock().await;
        inner.settle().await?;
        let (most, most_ahead) = (inner.most, inner.most_ahead);
        drop(inner);
        let file = self.file.clone();
        let clone = run(move || file.try_clone()).await?;
        Ok(File::new(clone, most, most_ahead))
    }
}

impl Inner {
    /// Ends what is under way, and brings the file's position to the user's.
    async fn settle(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_idle(cx)).await?;
        let back = self.ahead.forget();
        if back > 0 {
            let file = self.file.clone();
            run(move || (&*file).seek(SeekFrom::Current(-back))).await?;
        }
        Ok(())
    }

    /// Waits until nothing is under way; what a read brings is kept, what a write gave is forgotten
    /// unless it is an error.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_written(cx))?;
        let result = match &mut self.under_way {
            UnderWay::Read(to_end, read) => match ready!(Pin::new(read).poll(cx)) {
                Ok((result, bytes)) => {
                    self.ahead = ReadAhead {
                        is_end: *to_end && result.is_ok() && bytes.len() < self.most_ahead,
                        bytes,
                        begin: 0,
                    };
                    result.map(drop)
                }
                Err(error) => Err(io::Error::other(error)),
            },
            UnderWay::Seek(_, seek) => {
                let result = flat(ready!(Pin::new(seek).poll(cx)));
                result.map(|position| self.position = position)
            }
            UnderWay::Nothing | UnderWay::Write(_) | UnderWay::Written(_) => Ok(()),
        };
        if let UnderWay::Written(bytes) = std::mem::replace(&mut self.under_way, UnderWay::Nothing)
        {
            self.ahead.keep_memory(bytes);
        }
        Poll::Ready(result)
    }

    /// Waits for a write that is under way; keeps what it wrote, to be reported.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let UnderWay::Write(write) = &mut self.under_way else {
            return Poll::Ready(Ok(()));
        };
        let joined = ready!(Pin::new(write).poll(cx));
        self.under_way = UnderWay::Nothing;
        let (result, mut bytes) = joined.map_err(io::Error::other)?;
        bytes.truncate(result?);
        self.under_way = UnderWay::Written(bytes);
        Poll::Ready(Ok(()))
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wants_all = std::mem::take(&mut self.wants_all);
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let was_reading = matches!(self.under_way, UnderWay::Read(..));
            ready!(self.poll_idle(cx))?;
            if self.ahead.len() > 0 {
                self.ahead.hand_out(buffer);
                return Poll::Ready(Ok(()));
            }
            // The end is reported once: the file may have grown after that.
            if was_reading || std::mem::take(&mut self.ahead.is_end) {
                self.ahead.is_end = false;
                return Poll::Ready(Ok(()));
            }
            let (file, mut bytes) = (self.file.clone(), self.ahead.take_memory());
            let count = buffer.remaining().min(self.most);
            let most_ahead = self.most_ahead as u64;
            let read = start(move || {
                let result = if wants_all {
                    (&*file).take(most_ahead).read_to_end(&mut bytes)
                } else {
                    bytes.resize(count, 0);
                    let result = until_not_interrupted(|| (&*file).read(&mut bytes));
                    bytes.truncate(*result.as_ref().unwrap_or(&0));
                    result
                };
                (result, bytes)
            })?;
            self.under_way = UnderWay::Read(wants_all, read);
        }
    }

    fn poll_write_some(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        loop {
            ready!(self.poll_written(cx))?;
            if let UnderWay::Written(written) = &mut self.under_way
                && begin_with(buffers, written)
            {
                let written = std::mem::take(written);
                let count = written.len();
                self.under_way = UnderWay::Nothing;
                self.ahead.keep_memory(written);
                return Poll::Ready(Ok(count));
            }
            ready!(self.poll_idle(cx))?;
            let (file, back) = (self.file.clone(), self.ahead.forget());
            let mut copy = self.ahead.take_memory();
            for buffer in buffers {
                let room = self.most - copy.len();
                copy.extend_from_slice(&buffer[..buffer.len().min(room)]);
            }
            self.under_way = UnderWay::Write(start(move || {
                let moved = match back {
                    0 => Ok(0),
                    back => (&*file).seek(SeekFrom::Current(-back)),
                };
                let write = || (&*file).write(&copy);
                let result = moved.and_then(|_| until_not_interrupted(write));
                (result, copy)
            })?);
        }
    }

    /// Begins a seek; nothing else is under way.
    fn begin_seek(&mut self, to: SeekFrom) -> io::Result<()> {
        let back = self.ahead.forget();
        let target = match to {
            SeekFrom::Current(distance) => SeekFrom::Current(distance.saturating_sub(back)),
            absolute => absolute,
        };
        let file = self.file.clone();
        self.under_way = UnderWay::Seek(to, start(move || (&*file).seek(target))?);
        Ok(())
    }
}

impl From<std::fs::File> for File {
    /// Takes a file that is open already; see [`File::from_std`].
    fn from(std: std::fs::File) -> File {
        File::from_std(std)
    }
}

impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> File {
        File::from_std(fd.into())
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// True if the bytes of the buffers, one after the other, begin with those of `written`.
fn begin_with(buffers: &[IoSlice<'_>], mut written: &[u8]) -> bool {
    for buffer in buffers {
        let (part, rest) = written.split_at(written.len().min(buffer.len()));
        if !buffer.starts_with(part) {
            return false;
        }
        written = rest;
    }
    written.is_empty()
}

fn flat<T, E>(joined: Result<io::Result<T>, E>) -> io::Result<T>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    joined.map_err(io::Error::other)?
}

fn until_not_interrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.get_mut().poll_read_some(cx, buf)
    }

    fn announce_read_to_end(mut self: Pin<&mut Self>) {
        self.inner.get_mut().wants_all = true;
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buffers = [IoSlice::new(buf)];
        self.inner.get_mut().poll_write_some(cx, &buffers)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner.get_mut().poll_write_some(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.get_mut().poll_written(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.get_mut().poll_written(cx)
    }
}

impl AsyncSeek for File {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let inner = self.inner.get_mut();
        match inner.under_way {
            UnderWay::Nothing | UnderWay::Written(_) => inner.begin_seek(position),
            _ => Err(io::Error::other(
                "other file operation is pending, call poll_complete before start_seek",
            )),
        }
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let inner = self.inner.get_mut();
        ready!(inner.poll_idle(cx))?;
        Poll::Ready(Ok(inner.position))
    }
}

impl futures_io::AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(self.inner.get_mut().poll_read_some(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl futures_io::AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buffers = [IoSlice::new(bytes)];
        self.inner.get_mut().poll_write_some(cx, &buffers)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner.get_mut().poll_write_some(cx, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.get_mut().poll_written(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.get_mut().poll_written(cx)
    }
}

impl futures_io::AsyncSeek for File {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        // A move to another position, of a future that was dropped, ends first.
        let inner = self.inner.get_mut();
        let is_ours = matches!(&inner.under_way, UnderWay::Seek(asked, _) if *asked == to);
        if !is_ours {
            ready!(inner.poll_idle(cx))?;
            inner.begin_seek(to)?;
        }
        AsyncSeek::poll_complete(self, cx)
    }
}
