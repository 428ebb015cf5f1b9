//! The program's input.
//!
//! A read of the terminal blocks its thread, and nothing ends it: on a thread of the blocking pool
//! it would hold up the end of the runtime. So one thread of its own, which belongs to no runtime
//! and is never joined, does all reads. It reads only while a task has asked, so that a command
//! that inherits the input finds what no task has read.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::sync::{Condvar, Mutex, thread};
use windlass_core::task::spend;

use super::{AsyncRead, BUFFER_SIZE, ReadBuf, refuse_in_simulation};

/// The program's input; made by [`stdin`].
///
/// Any number of these share one input, with the standard library's. A read that waits does not
/// hold up the end of a runtime or of the program. What a dropped read had asked for is there for
/// the next one. In a simulation each read fails with `Unsupported`.
#[derive(Debug)]
pub struct Stdin(());

/// Returns the program's input.
pub fn stdin() -> Stdin {
    Stdin(())
}

static INPUT: Input = Input {
    state: Mutex::new(State {
        bytes: Vec::new(),
        begin: 0,
        result: None,
        asked: 0,
        has_thread: false,
        waiting: Vec::new(),
    }),
    asked: Condvar::new(),
};

/// What tasks and the reading thread share.
struct Input {
    state: Mutex<State>,
    /// Notified when a task asks for a read.
    asked: Condvar,
}

struct State {
    /// Read, and from `begin` on not handed out.
    bytes: Vec<u8>,
    begin: usize,
    /// The end or an error, to be reported once, after the bytes.
    result: Option<io::Result<()>>,
    /// How much the read under way is for; 0: none is.
    asked: usize,
    has_thread: bool,
    waiting: Vec<Waker>,
}

impl Input {
    /// The life of the reading thread.
    fn serve(&self) {
        let mut memory = Vec::new();
        loop {
            let mut state = self.state.lock();
            while state.asked == 0 {
                state = self.asked.wait(state);
            }
            memory.resize(state.asked, 0);
            drop(state);
            let read = io::stdin().lock().read(&mut memory);
            if matches!(&read, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
                continue;
            }
            let mut state = self.state.lock();
            match read {
                Ok(0) => state.result = Some(Ok(())),
                Ok(count) => {
                    state.bytes.clear();
                    state.bytes.extend_from_slice(&memory[..count]);
                    state.begin = 0;
                }
                Err(error) => state.result = Some(Err(error)),
            }
            state.asked = 0;
            let waiting = std::mem::take(&mut state.waiting);
            // The wakers run code of others: not under the lock.
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    fn poll_read(
        &'static self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        if state.begin < state.bytes.len() {
            let rest = &state.bytes[state.begin..];
            let count = rest.len().min(buf.remaining());
            buf.put_slice(&rest[..count]);
            state.begin += count;
            return Poll::Ready(Ok(()));
        }
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        if !state.has_thread {
            let serve = move || self.serve();
            thread::spawn("windlass-stdin".into(), 256 * 1024, serve)?;
            state.has_thread = true;
        }
        if state.asked == 0 {
            state.asked = buf.remaining().min(BUFFER_SIZE);
            self.asked.notify_one();
        }
        if !state
            .waiting
            .iter()
            .any(|known| known.will_wake(cx.waker()))
        {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        refuse_in_simulation("`stdin`")?;
        let unit = ready!(spend(cx));
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = ready!(INPUT.poll_read(cx, buf));
        unit.made_progress();
        Poll::Ready(read)
    }
}

impl AsRawFd for Stdin {
    fn as_raw_fd(&self) -> RawFd {
        io::stdin().as_raw_fd()
    }
}

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // The standard library's input lives as long as the program.
        static STDIN: std::sync::LazyLock<io::Stdin> = std::sync::LazyLock::new(io::stdin);
        STDIN.as_fd()
    }
}
