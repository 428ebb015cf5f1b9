//! Traits, buffers and tools of `windlass_io::io`.

mod auto_traits;
mod buffers;
mod compat;
mod copying;
mod descriptors;
mod in_memory;
mod read_buf;
mod reading;
mod writing;

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use windlass_io::io::{AsyncRead, AsyncWrite, ReadBuf};
use windlass_runtime::Runtime;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Runs on a runtime and in a simulation: tools over memory behave alike.
fn on_both<T, E>(test: impl AsyncFn() -> Result<T, E>) -> Result<(), E>
where
    E: From<io::Error> + Send + Sync + 'static,
{
    let runtime = Runtime::builder().workers(1).build();
    runtime.expect("a runtime").block_on(test())?;
    Runtime::simulated(3).block_on(test())?;
    Ok(())
}

/// Polls a future once, on a plain thread, with a waker that does nothing.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// What a scripted stream does next.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A read gives these bytes, in one piece if they fit.
    Give(&'static [u8]),
    /// A write takes at most so many bytes.
    Take(usize),
    /// The operation has to wait once.
    Wait,
    /// The operation fails.
    Fail(io::ErrorKind),
}

/// A stream that does what a script says. After the script reads are at the end, and writes take
/// everything.
#[derive(Debug, Default)]
struct Scripted {
    acts: VecDeque<Act>,
    written: Vec<u8>,
    flushed: usize,
    is_shut: bool,
}

impl Scripted {
    fn new(acts: &[Act]) -> Scripted {
        Scripted {
            acts: acts.iter().copied().collect(),
            ..Scripted::default()
        }
    }
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.acts.pop_front() {
            None => Poll::Ready(Ok(())),
            Some(Act::Give(bytes)) => {
                let count = bytes.len().min(buf.remaining());
                buf.put_slice(&bytes[..count]);
                if count < bytes.len() {
                    self.acts.push_front(Act::Give(&bytes[count..]));
                }
                Poll::Ready(Ok(()))
            }
            Some(Act::Wait) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Act::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Act::Take(_)) => panic!("a read where the script has a write"),
        }
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.acts.pop_front() {
            None => {
                self.written.extend_from_slice(buf);
                Poll::Ready(Ok(buf.len()))
            }
            Some(Act::Take(most)) => {
                let count = most.min(buf.len());
                self.written.extend_from_slice(&buf[..count]);
                Poll::Ready(Ok(count))
            }
            Some(Act::Wait) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Act::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Act::Give(_)) => panic!("a write where the script has a read"),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut = true;
        Poll::Ready(Ok(()))
    }
}
