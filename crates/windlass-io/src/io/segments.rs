//! The segments of a reader.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::AsyncBufRead;
use super::futures::poll_read_until;

pin_project! {
    /// The segments of a reader that end with a byte, without that byte; made by
    /// [`split`](super::AsyncBufReadExt::split).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Split<R> {
        #[pin]
        reader: R,
        delimiter: u8,
        // The beginning of a segment whose end has not come yet.
        bytes: Vec<u8>,
    }
}

impl<R> Split<R> {
    pub(super) fn new(reader: R, delimiter: u8) -> Split<R> {
        Split {
            reader,
            delimiter,
            bytes: Vec::new(),
        }
    }
}

impl<R: AsyncBufRead + Unpin> Split<R> {
    /// Returns the next segment, or none at the end.
    ///
    /// Cancel-safe: the beginning of a segment that was read is kept for the next call.
    ///
    /// ```
    /// use windlass_io::io::{AsyncBufReadExt, BufReader};
    ///
    /// # windlass_runtime::Runtime::new()?.block_on(async {
    /// let source: &[u8] = b"one,two";
    /// let mut parts = BufReader::new(source).split(b',');
    /// assert_eq!(parts.next_segment().await?.as_deref(), Some(&b"one"[..]));
    /// assert_eq!(parts.next_segment().await?.as_deref(), Some(&b"two"[..]));
    /// assert_eq!(parts.next_segment().await?, None);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next_segment(&mut self) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_segment(cx)).await
    }
}

impl<R: AsyncBufRead> Split<R> {
    /// Polls for what [`next_segment`](Split::next_segment) awaits.
    pub fn poll_next_segment(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        let this = self.project();
        let delimiter = *this.delimiter;
        ready!(poll_read_until(
            this.reader,
            cx,
            delimiter,
            this.bytes,
            &mut 0
        ))?;
        if this.bytes.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let mut segment = std::mem::take(this.bytes);
        segment.pop_if(|byte| *byte == delimiter);
        Poll::Ready(Ok(Some(segment)))
    }
}
