//! Sockets: TCP, UDP and Unix; real ones on a real runtime, the simulated network in a simulation.
//!
//! ```
//! use windlass_runtime::Runtime;
//! use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
//! use windlass_io::net;
//!
//! let echo = || async {
//!     let listener = net::TcpListener::bind("localhost:0").await?;
//!     let address = listener.local_addr()?;
//!     let server = windlass_runtime::spawn(async move {
//!         let (mut stream, _) = listener.accept().await?;
//!         let mut word = [0; 5];
//!         stream.read_exact(&mut word).await?;
//!         stream.write_all(&word).await
//!     });
//!     let mut client = net::TcpStream::connect(address).await?;
//!     client.write_all(b"hello").await?;
//!     let mut word = [0; 5];
//!     client.read_exact(&mut word).await?;
//!     assert_eq!(&word, b"hello");
//!     server.await.expect("it does not panic")
//! };
//! Runtime::new()?.block_on(echo())?;
//! Runtime::simulated(7).block_on(echo())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | what it carries |
//! |---|---|
//! | [`TcpListener`], [`TcpStream`] | bytes between hosts, in order |
//! | [`UdpSocket`] | datagrams between hosts |
//! | [`UnixListener`], [`UnixStream`] | bytes within a host, in order |
//! | [`UnixDatagram`] | datagrams within a host |
//!
//! Streams and their halves have the traits of [`io`](crate::io), and so the methods of
//! `AsyncReadExt` and `AsyncWriteExt`. They have those of `futures-io` too; the crate
//! `windlass-tokio-guest` has an adapter to tokio's. Any number of tasks may wait in the async
//! methods of one socket; of those in poll functions, the last one per direction is woken.

use std::panic::{RefUnwindSafe, UnwindSafe};

mod address;
mod datagram;
mod dns;
mod from_std;
mod listener;
mod readiness;
pub(crate) mod simulated;
mod split;
mod stream;
pub mod tcp;
mod udp;
pub mod unix;

pub use self::address::{Address, ToSocketAddrs};
pub use self::dns::lookup_host;
#[doc(inline)]
pub use self::tcp::{listener::TcpListener, socket::TcpSocket, stream::TcpStream};
pub use self::udp::UdpSocket;
#[doc(inline)]
pub use self::unix::{
    datagram::UnixDatagram, listener::UnixListener, socket::UnixSocket, stream::UnixStream,
};

/// Types that hold no value of the program that a panic could leave half changed.
macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => { $(
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    )+ };
}

unwind_safe!(
    TcpListener,
    TcpStream,
    UdpSocket,
    UnixDatagram,
    UnixListener,
    UnixStream,
    unix::pipe::Receiver,
    unix::pipe::Sender,
);
