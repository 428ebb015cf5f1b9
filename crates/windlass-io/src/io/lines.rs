//! The lines of a reader.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::AsyncBufRead;
use super::futures::{not_utf8, poll_read_until};

pin_project! {
    /// The lines of a reader, without their line ends; made by
    /// [`lines`](super::AsyncBufReadExt::lines).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Lines<R> {
        #[pin]
        reader: R,
        // The beginning of a line whose end has not come yet.
        bytes: Vec<u8>,
    }
}

impl<R> Lines<R> {
    pub(super) fn new(reader: R) -> Lines<R> {
        Lines {
            reader,
            bytes: Vec::new(),
        }
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Returns the next line, or none at the end.
    ///
    /// Cancel-safe: the beginning of a line that was read is kept for the next call.
    pub async fn next_line(&mut self) -> io::Result<Option<String>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_line(cx)).await
    }

    /// Returns the reader, to be changed.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the reader as it is.
    pub fn get_ref(&mut self) -> &R {
        &self.reader
    }

    /// Gives the reader back. The beginning of a line that was read is lost.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

impl<R: AsyncBufRead> Lines<R> {
    /// Polls for what [`next_line`](Lines::next_line) awaits.
    ///
    /// # Errors
    /// Those of the reader, and `InvalidData` for a line that is not UTF-8, which is consumed.
    pub fn poll_next_line(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let this = self.project();
        ready!(poll_read_until(this.reader, cx, b'\n', this.bytes, &mut 0))?;
        if this.bytes.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let mut line = std::mem::take(this.bytes);
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            line.pop_if(|byte| *byte == b'\r');
        }
        let text = String::from_utf8(line);
        Poll::Ready(text.map(Some).map_err(|_| not_utf8()))
    }
}
