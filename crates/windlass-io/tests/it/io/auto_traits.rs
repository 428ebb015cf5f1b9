//! What can be sent, shared and moved: as in tokio, or code that compiles there does not here.

use std::io::Cursor;
use std::panic::{RefUnwindSafe, UnwindSafe};

use bytes::BytesMut;
use windlass_io::fs::File;
use windlass_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufStream, BufWriter,
    Chain, DuplexStream, Empty, Join, Lines, ReadBuf, ReadHalf, Repeat, SimplexStream, Sink, Split,
    Take, WriteHalf,
};
use windlass_io::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream, tcp,
};

/// True unless the type is `Unpin`: the method of a value is found before that of its reference.
trait IsPinned {
    fn is_pinned(&self) -> bool {
        true
    }
}

struct Of<T>(std::marker::PhantomData<T>);

impl<T: Unpin> Of<T> {
    fn is_pinned(&self) -> bool {
        false
    }
}

impl<T> IsPinned for Of<T> {}

fn sent_and_shared<T: Send + Sync>() {}

fn moved<T: Send + Sync + Unpin>() {}

/// A future that can be sent and shared; says whether it may move.
macro_rules! future_is_pinned {
    ($future:expr) => {{
        fn of<T: Send + Sync>(_: &T) -> Of<T> {
            Of(std::marker::PhantomData)
        }
        of(&$future).is_pinned()
    }};
}

#[test]
fn streams_and_buffers_can_be_sent_shared_and_moved() {
    moved::<ReadBuf<'_>>();
    moved::<BufReader<File>>();
    moved::<BufWriter<TcpStream>>();
    moved::<BufStream<UnixStream>>();
    moved::<Lines<BufReader<TcpStream>>>();
    moved::<Split<BufReader<TcpStream>>>();
    moved::<Take<TcpStream>>();
    moved::<Chain<TcpStream, File>>();
    moved::<Join<tcp::OwnedReadHalf, tcp::OwnedWriteHalf>>();
    moved::<DuplexStream>();
    moved::<SimplexStream>();
    moved::<Empty>();
    moved::<Sink>();
    moved::<Repeat>();
    moved::<ReadHalf<TcpStream>>();
    moved::<WriteHalf<TcpStream>>();
    // A stream that must not move can be split: its halves can.
    moved::<ReadHalf<std::marker::PhantomPinned>>();
    sent_and_shared::<BufReader<std::marker::PhantomPinned>>();
}

#[test]
fn futures_of_the_methods_can_be_sent_and_shared_but_not_moved() {
    let mut cursor = BufReader::new(Cursor::new(Vec::new()));
    let (mut bytes, mut text, mut buffer) = (Vec::new(), String::new(), [0; 1]);
    let mut target = BytesMut::new();
    assert!(future_is_pinned!(cursor.read(&mut buffer)));
    assert!(future_is_pinned!(cursor.read_buf(&mut target)));
    assert!(future_is_pinned!(cursor.read_exact(&mut buffer)));
    assert!(future_is_pinned!(cursor.read_u16()));
    assert!(future_is_pinned!(cursor.read_to_end(&mut bytes)));
    assert!(future_is_pinned!(cursor.read_to_string(&mut text)));
    assert!(future_is_pinned!(cursor.read_until(b'x', &mut bytes)));
    assert!(future_is_pinned!(cursor.read_line(&mut text)));
    assert!(future_is_pinned!(cursor.fill_buf()));
    assert!(future_is_pinned!(cursor.rewind()));
    let mut writer = Vec::new();
    assert!(future_is_pinned!(writer.write(b"x")));
    assert!(future_is_pinned!(writer.write_all(b"x")));
    assert!(future_is_pinned!(writer.write_all_buf(&mut target)));
    assert!(future_is_pinned!(writer.write_f64_le(1.0)));
    assert!(future_is_pinned!(writer.flush()));
    assert!(future_is_pinned!(writer.shutdown()));
    // The test itself can tell.
    assert!(!future_is_pinned!(std::future::ready(())));
}

#[test]
fn sockets_cross_a_catch_of_panics() {
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<TcpListener>();
    is_unwind_safe::<TcpSocket>();
    is_unwind_safe::<TcpStream>();
    is_unwind_safe::<UdpSocket>();
    is_unwind_safe::<UnixDatagram>();
    is_unwind_safe::<UnixListener>();
    is_unwind_safe::<UnixStream>();
}
