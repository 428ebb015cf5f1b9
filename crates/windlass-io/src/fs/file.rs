//! An open file.
//!
//! At most one operation at a time is under way on a blocking thread; the next one waits for it.
//! Reads take what they are asked for, and what a dropped read had taken is kept for the next one.
//! Writes through the traits return when the bytes are copied; an error is reported by the next
//! operation or by `flush`. The methods of the file itself wait until the operating system has the
//! bytes.

use std::fs::{Metadata, Permissions};
use std::future::{Future, poll_fn};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};
use windlass_core::sync::Arc;
use windlass_core::task::JoinHandle;

use super::{OpenOptions, run, start};

/// The most that one operation moves.
const MOST: usize = 1 << 20;

/// An open file; reads and writes go on where the last one ended.
#[derive(Debug)]
pub struct File {
    file: Arc<std::fs::File>,
    /// Read, and not handed out yet.
    ahead: ReadAhead,
    under_way: UnderWay,
}

#[derive(Debug, Default)]
struct ReadAhead {
    bytes: Vec<u8>,
    begin: usize,
}

impl ReadAhead {
    fn len(&self) -> usize {
        self.bytes.len() - self.begin
    }

    fn hand_out(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.bytes[self.begin..][..count]);
        self.begin += count;
        count
    }

    /// Forgets what is left; gives how far the file's position is ahead of the user's.
    fn forget(&mut self) -> i64 {
        let left = self.len();
        self.bytes.clear();
        self.begin = 0;
        left as i64
    }
}

#[derive(Debug)]
enum UnderWay {
    Nothing,
    Read(JoinHandle<(io::Result<usize>, Vec<u8>)>),
    Write(JoinHandle<io::Result<()>>),
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

    /// Says how to open a file.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes a file that is open already.
    pub fn from_std(file: std::fs::File) -> File {
        File {
            file: Arc::new(file),
            ahead: ReadAhead::default(),
            under_way: UnderWay::Nothing,
        }
    }

    /// The file itself, after what is under way; at the position of the last read or write.
    pub async fn into_std(mut self) -> io::Result<std::fs::File> {
        self.settle().await?;
        match Arc::try_unwrap(self.file) {
            Ok(file) => Ok(file),
            Err(shared) => shared.try_clone(),
        }
    }

    /// Reads some bytes; 0 at the end. Cancel-safe: what a dropped read had taken comes next.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read_some(cx, buffer)).await
    }

    /// Fills the buffer. Not cancel-safe: what was read before the drop is lost.
    pub async fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let count = self.read(buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    /// Appends everything up to the end; gives how much that was. Not cancel-safe.
    pub async fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        self.settle().await?;
        let file = self.file.clone();
        let rest = run(move || {
            let mut rest = Vec::new();
            (&*file).read_to_end(&mut rest)?;
            Ok(rest)
        })
        .await?;
        bytes.extend_from_slice(&rest);
        Ok(rest.len())
    }

    /// Writes some of the bytes; the operating system has them then. Not cancel-safe: a dropped
    /// write happens or not.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = poll_fn(|cx| self.poll_write_some(cx, bytes)).await?;
        self.flush().await?;
        Ok(count)
    }

    /// Writes all of the bytes; the operating system has them then. Not cancel-safe.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = poll_fn(|cx| self.poll_write_some(cx, bytes)).await?;
            bytes = &bytes[count..];
        }
        self.flush().await
    }

    /// Waits until the operating system has what was written; tells if it did not take it.
    /// Cancel-safe.
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_written(cx)).await
    }

    /// Goes to a position; gives it, from the beginning. Not cancel-safe.
    pub async fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        poll_fn(|cx| self.poll_seek_to(cx, to)).await
    }

    /// Waits until everything, metadata too, is on the disk.
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.settle().await?;
        let file = self.file.clone();
        run(move || file.sync_all()).await
    }

    /// Waits until the contents are on the disk.
    pub async fn sync_data(&mut self) -> io::Result<()> {
        self.settle().await?;
        let file = self.file.clone();
        run(move || file.sync_data()).await
    }

    /// Cuts the file off or fills it up with zeros.
    pub async fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.settle().await?;
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

    /// Another handle for the same open file: both share one position.
    pub async fn try_clone(&mut self) -> io::Result<File> {
        self.settle().await?;
        let file = self.file.clone();
        run(move || file.try_clone()).await.map(File::from_std)
    }

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

    /// Waits until nothing is under way; what a read brings is kept.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match &mut self.under_way {
            UnderWay::Nothing => return Poll::Ready(Ok(())),
            UnderWay::Read(read) => match ready!(Pin::new(read).poll(cx)) {
                Ok((result, bytes)) => {
                    self.ahead = ReadAhead { bytes, begin: 0 };
                    result.map(drop)
                }
                Err(error) => Err(io::Error::other(error)),
            },
            UnderWay::Write(write) => flat(ready!(Pin::new(write).poll(cx))),
            UnderWay::Seek(_, seek) => flat(ready!(Pin::new(seek).poll(cx))).map(drop),
        };
        self.under_way = UnderWay::Nothing;
        Poll::Ready(result)
    }

    /// Waits for a write that is under way.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.under_way {
            UnderWay::Write(_) => self.poll_idle(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    pub(crate) fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let was_reading = matches!(self.under_way, UnderWay::Read(_));
            ready!(self.poll_idle(cx))?;
            if self.ahead.len() > 0 || was_reading {
                // Nothing at all: the end.
                return Poll::Ready(Ok(self.ahead.hand_out(buffer)));
            }
            let (file, mut bytes) = (self.file.clone(), std::mem::take(&mut self.ahead.bytes));
            self.ahead.begin = 0;
            let count = buffer.len().min(MOST);
            self.under_way = UnderWay::Read(start(move || {
                bytes.resize(count, 0);
                let result = until_not_interrupted(|| (&*file).read(&mut bytes));
                bytes.truncate(*result.as_ref().unwrap_or(&0));
                (result, bytes)
            })?);
        }
    }

    pub(crate) fn poll_write_some(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_idle(cx))?;
        let bytes = bytes[..bytes.len().min(MOST)].to_vec();
        let (file, count, back) = (self.file.clone(), bytes.len(), self.ahead.forget());
        self.under_way = UnderWay::Write(start(move || {
            if back > 0 {
                (&*file).seek(SeekFrom::Current(-back))?;
            }
            (&*file).write_all(&bytes)
        })?);
        Poll::Ready(Ok(count))
    }

    pub(crate) fn poll_seek_to(
        &mut self,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        loop {
            if let UnderWay::Seek(asked, seek) = &mut self.under_way
                && *asked == to
            {
                let result = flat(ready!(Pin::new(seek).poll(cx)));
                self.under_way = UnderWay::Nothing;
                return Poll::Ready(result);
            }
            // Another seek, that was dropped, counts for nothing; its errors neither.
            if let Err(error) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(Err(error));
            }
            let back = self.ahead.forget();
            let target = match to {
                SeekFrom::Current(distance) => SeekFrom::Current(distance.saturating_sub(back)),
                absolute => absolute,
            };
            let file = self.file.clone();
            self.under_way = UnderWay::Seek(to, start(move || (&*file).seek(target))?);
        }
    }
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
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_some(cx, buffer)
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }
}

impl AsyncSeek for File {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        self.poll_seek_to(cx, to)
    }
}
