//! What is in a directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use windlass_core::sync::Arc;
use windlass_core::task::JoinHandle;

use super::{run, start};

/// Entries that are read at once on a blocking thread.
const BATCH: usize = 32;

/// What is in a directory, entry by entry, in the order in which the operating system gives it.
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    let entries = run(move || std::fs::read_dir(path)).await?;
    Ok(ReadDir {
        ready: VecDeque::new(),
        state: State::Idle(Some(entries)),
    })
}

/// The entries of a directory; also a [`Stream`].
#[derive(Debug)]
pub struct ReadDir {
    ready: VecDeque<io::Result<std::fs::DirEntry>>,
    state: State,
}

type Batch = (
    VecDeque<io::Result<std::fs::DirEntry>>,
    Option<std::fs::ReadDir>,
);

#[derive(Debug)]
enum State {
    /// None: everything was read.
    Idle(Option<std::fs::ReadDir>),
    Reading(JoinHandle<Batch>),
}

impl ReadDir {
    /// The next entry; none at the end. Cancel-safe.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// Polls for the next entry; none at the end. The last task that polled is woken.
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        self.poll_entry(cx).map(Option::transpose)
    }

    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<DirEntry>>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Poll::Ready(Some(entry.map(|entry| DirEntry(Arc::new(entry)))));
            }
            match &mut self.state {
                State::Idle(None) => return Poll::Ready(None),
                State::Idle(entries) => {
                    let Some(mut entries) = entries.take() else {
                        return Poll::Ready(None);
                    };
                    let reading = start(move || {
                        let batch: VecDeque<_> = entries.by_ref().take(BATCH).collect();
                        let rest = (batch.len() == BATCH).then_some(entries);
                        (batch, rest)
                    });
                    match reading {
                        Ok(reading) => self.state = State::Reading(reading),
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
                State::Reading(reading) => {
                    let (batch, rest) = match ready!(Pin::new(reading).poll(cx)) {
                        Ok(read) => read,
                        Err(error) => {
                            self.state = State::Idle(None);
                            return Poll::Ready(Some(Err(io::Error::other(error))));
                        }
                    };
                    self.ready = batch;
                    self.state = State::Idle(rest);
                }
            }
        }
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_entry(cx)
    }
}

/// One entry of a directory.
#[derive(Debug, Clone)]
pub struct DirEntry(Arc<std::fs::DirEntry>);

impl DirEntry {
    /// Returns the path: that of the directory and the name of the entry.
    pub fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// Returns the name of the entry alone.
    pub fn file_name(&self) -> OsString {
        self.0.file_name()
    }

    /// Returns the number of the entry's inode.
    pub fn ino(&self) -> u64 {
        self.0.ino()
    }

    /// What is known about it; does not follow symbolic links.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let entry = self.0.clone();
        run(move || entry.metadata()).await
    }

    /// Whether it is a file, a directory or a symbolic link.
    pub async fn file_type(&self) -> io::Result<FileType> {
        let entry = self.0.clone();
        run(move || entry.file_type()).await
    }
}
