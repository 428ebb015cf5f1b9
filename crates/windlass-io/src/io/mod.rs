//! Reading and writing bytes without blocking: traits, buffers and tools.
//!
//! Names and signatures are tokio's. [`AsyncRead`], [`AsyncWrite`], [`AsyncBufRead`] and
//! [`AsyncSeek`] are what streams implement; [`AsyncReadExt`], [`AsyncWriteExt`],
//! [`AsyncBufReadExt`] and [`AsyncSeekExt`] are what callers use.
//!
//! ```
//! use windlass_io::io::{self, AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # windlass_runtime::Runtime::new()?.block_on(async {
//! let (mut client, server) = io::duplex(64);
//! client.write_all(b"first\nsecond\n").await?;
//! client.shutdown().await?;
//! let mut lines = BufReader::new(server).lines();
//! while let Some(line) = lines.next_line().await? {
//!     println!("{line}");
//! }
//! # std::io::Result::Ok(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | read and write in larger pieces | [`BufReader`], [`BufWriter`], [`BufStream`] |
//! | read lines or segments | [`AsyncBufReadExt::lines`], [`AsyncBufReadExt::split`] |
//! | move everything | [`copy`](copy()), [`copy_buf`], [`copy_bidirectional`](copy_bidirectional()) |
//! | connect two tasks in memory | [`duplex`](duplex()), [`simplex`](simplex()) |
//! | give two tasks a half each | [`split`] |
//! | wait for any descriptor | [`unix::AsyncFd`] |
//!
//! Everything here that is always ready spends the cooperative budget of its task, so that a loop
//! over it gives way to others. Slices, vectors and cursors do not: they end.

mod async_buf_read;
mod async_buf_read_ext;
mod async_fd;
mod async_read;
mod async_read_ext;
mod async_seek;
mod async_seek_ext;
mod async_write;
mod async_write_ext;
mod buf_reader;
mod buf_stream;
mod buf_writer;
mod chain;
pub mod compat;
mod copy;
mod copy_bidirectional;
mod duplex;
mod empty;
mod forward;
mod futures;
mod halves;
mod interest;
mod join;
mod lines;
mod output;
pub(crate) mod read_buf;
pub(crate) mod ready;
mod repeat;
mod segments;
mod simplex;
mod sink;
mod stdin;
mod take;

use std::task::{Context, Poll};

use windlass_runtime::driver::Reality;

#[doc(no_inline)]
pub use std::io::{Error, ErrorKind, Result, SeekFrom};

pub use self::async_buf_read::AsyncBufRead;
pub use self::async_buf_read_ext::AsyncBufReadExt;
pub use self::async_read::AsyncRead;
pub use self::async_read_ext::AsyncReadExt;
pub use self::async_seek::AsyncSeek;
pub use self::async_seek_ext::AsyncSeekExt;
pub use self::async_write::AsyncWrite;
pub use self::async_write_ext::AsyncWriteExt;
pub use self::buf_reader::BufReader;
pub use self::buf_stream::BufStream;
pub use self::buf_writer::BufWriter;
pub use self::chain::Chain;
pub use self::copy::{copy, copy_buf};
pub use self::copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use self::duplex::{DuplexStream, duplex};
pub use self::empty::{Empty, empty};
pub use self::halves::{ReadHalf, WriteHalf, split};
pub use self::interest::Interest;
pub use self::join::{Join, join};
pub use self::lines::Lines;
pub use self::output::{Stderr, Stdout, stderr, stdout};
pub use self::read_buf::ReadBuf;
pub use self::ready::Ready;
pub use self::repeat::{Repeat, repeat};
pub use self::segments::Split;
pub use self::simplex::{SimplexStream, simplex};
pub use self::sink::{Sink, sink};
pub use self::stdin::{Stdin, stdin};
pub use self::take::Take;

/// What only Unix systems have.
pub mod unix {
    pub use super::async_fd::{
        AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
    };

    #[doc(hidden)]
    #[expect(deprecated, reason = "tokio still exports the old name")]
    pub use super::async_fd::AsyncFdTryNewError;
}

/// The size of a buffer unless its user says another.
const BUFFER_SIZE: usize = 8 * 1024;

/// Spends a unit of the budget, for what never has to wait.
fn always_ready(cx: &mut Context<'_>) -> Poll<()> {
    windlass_core::task::spend(cx).map(|unit| unit.made_progress())
}

/// Fails in a simulation, for what the operating system shares with other programs.
fn refuse_in_simulation(name: &str) -> Result<()> {
    let is_simulated = windlass_runtime::Handle::try_current()
        .is_ok_and(|handle| matches!(handle.reality(), Reality::Simulated(_)));
    if is_simulated {
        let text = format!(
            "a simulation has no {name}: what is typed or shown could not be replayed; use \
             `io::duplex` there"
        );
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(())
}
