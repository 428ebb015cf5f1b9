//! Moving everything between two streams, both ways.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::copy::Transfer;
use super::{AsyncRead, AsyncWrite, BUFFER_SIZE};

/// Copies from `a` to `b` and from `b` to `a` at the same time, until both are at their end; gives
/// how many bytes went from `a` to `b`, and from `b` to `a`.
///
/// The end of one direction shuts the writing direction of the other stream down; the other
/// direction goes on. Not cancel-safe: what the buffers hold is lost.
///
/// # Errors
/// The first error of either direction; the other one stops too.
pub async fn copy_bidirectional<A, B>(a: &mut A, b: &mut B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    copy_bidirectional_with_sizes(a, b, BUFFER_SIZE, BUFFER_SIZE).await
}

/// Copies as [`copy_bidirectional`] does, with buffers of these sizes.
///
/// # Errors
/// The first error of either direction; the other one stops too.
///
/// # Panics
/// If a size is 0.
pub async fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    assert!(
        a_to_b_buf_size > 0,
        "`a_to_b_buf_size` must be greater than 0"
    );
    assert!(
        b_to_a_buf_size > 0,
        "`b_to_a_buf_size` must be greater than 0"
    );
    let mut forth = Direction::Copies(Transfer::new(a_to_b_buf_size));
    let mut back = Direction::Copies(Transfer::new(b_to_a_buf_size));
    poll_fn(|cx| {
        // Both are polled, whatever the first one says.
        let forth = forth.poll(cx, a, b)?;
        let back = back.poll(cx, b, a)?;
        match (forth, back) {
            (Poll::Ready(forth), Poll::Ready(back)) => Poll::Ready(Ok((forth, back))),
            _ => Poll::Pending,
        }
    })
    .await
}

/// How far one direction has got; the number is that of all its bytes.
enum Direction {
    Copies(Transfer),
    ShutsDown(u64),
    IsOver(u64),
}

impl Direction {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        if let Direction::Copies(transfer) = self {
            let copied = transfer.poll(cx, Pin::new(reader), Pin::new(&mut *writer));
            *self = Direction::ShutsDown(ready!(copied)?);
        }
        if let Direction::ShutsDown(total) = *self {
            ready!(Pin::new(writer).poll_shutdown(cx))?;
            *self = Direction::IsOver(total);
        }
        match *self {
            Direction::IsOver(total) => Poll::Ready(Ok(total)),
            _ => unreachable!("both steps before it are done"),
        }
    }
}
