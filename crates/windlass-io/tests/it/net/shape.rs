//! What sockets have because tokio's have it: readiness, sockets before they connect, datagrams
//! into buffers.

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::task::Poll;

use bytes::BytesMut;
use windlass_io::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};
use windlass_io::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSocket,
    UnixStream, tcp, unix::pipe,
};
use windlass_runtime::Runtime;

use crate::io::Outcome;

/// Real sockets, and simulated ones.
fn on_both(test: impl AsyncFn() -> Outcome) -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(test())?;
    Runtime::simulated(5).block_on(test())
}

async fn connected() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    Ok((client, listener.accept().await?.0))
}

#[test]
fn readiness_is_waited_for_and_operations_are_tried() -> Outcome {
    on_both(async || {
        let (mut client, server) = connected().await?;
        let both = Interest::READABLE | Interest::WRITABLE;
        assert!(server.ready(both).await?.is_writable());
        let none = server.try_read(&mut [0; 4]);
        assert_eq!(none.expect_err("empty").kind(), ErrorKind::WouldBlock);
        client.write_all(b"hello").await?;
        assert!(server.ready(Interest::READABLE).await?.is_readable());
        std::future::poll_fn(|cx| server.poll_read_ready(cx)).await?;
        std::future::poll_fn(|cx| server.poll_write_ready(cx)).await?;
        let mut bytes = BytesMut::with_capacity(2);
        assert_eq!(server.try_read_buf(&mut bytes)?, 2);
        assert_eq!(bytes, b"he"[..]);
        let mut memory = [0; 8];
        let mut peeked = ReadBuf::new(&mut memory);
        let count = std::future::poll_fn(|cx| server.poll_peek(cx, &mut peeked)).await?;
        assert_eq!((count, peeked.filled()), (3, &b"llo"[..]));
        let mut rest = [0; 8];
        let read = server.async_io(Interest::READABLE, || server.try_read(&mut rest));
        assert_eq!(read.await?, 3);
        Ok(())
    })
}

#[test]
fn would_block_from_a_tried_operation_takes_the_readiness_back() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let (mut client, server) = connected().await?;
        client.write_all(b"x").await?;
        server.readable().await?;
        let blocked = server.try_io(Interest::READABLE, || {
            Err::<(), _>(ErrorKind::WouldBlock.into())
        });
        assert_eq!(blocked.expect_err("as told").kind(), ErrorKind::WouldBlock);
        let mut was_called = false;
        let again = server.try_io(Interest::READABLE, || {
            was_called = true;
            Ok(())
        });
        assert!(again.is_err() && !was_called, "it is not ready any more");
        client.write_all(b"y").await?;
        server.readable().await?;
        server.try_io(Interest::READABLE, || Ok(()))?;
        Ok(())
    })
}

#[test]
fn halves_have_addresses_readiness_and_a_name() -> Outcome {
    on_both(async || {
        let (client, mut server) = connected().await?;
        let address = client.local_addr()?;
        let (reading, mut writing): (tcp::OwnedReadHalf, tcp::OwnedWriteHalf) = client.into_split();
        assert_eq!(reading.local_addr()?, address);
        assert_eq!(writing.peer_addr()?, server.local_addr()?);
        assert!(writing.ready(Interest::WRITABLE).await?.is_writable());
        writing.write_all(b"x").await?;
        let (mut borrowed, _): (tcp::ReadHalf<'_>, tcp::WriteHalf<'_>) = server.split();
        let mut byte = [0];
        assert_eq!(borrowed.peek(&mut byte).await?, 1);
        assert_eq!(borrowed.read_u8().await?, b'x');
        let stream: &TcpStream = reading.as_ref();
        assert_eq!(stream.local_addr()?, address);
        let (other, _kept) = connected().await?;
        let (_, stranger) = other.into_split();
        let error = reading.reunite(stranger).expect_err("two streams");
        let text = "tried to reunite halves that are not from the same socket";
        assert_eq!(error.to_string(), text);
        drop(writing);
        Ok(())
    })
}

#[test]
fn a_socket_is_set_up_before_it_listens_or_connects() -> Outcome {
    on_both(async || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_nodelay(true)?;
        assert!(socket.reuseaddr()? && socket.nodelay()?);
        socket.bind("127.0.0.1:0".parse()?)?;
        let listener = socket.listen(16)?;
        let mut client = TcpSocket::new_v4()?.connect(listener.local_addr()?).await?;
        let (mut server, from) = listener.accept().await?;
        assert_eq!(from, client.local_addr()?);
        client.write_all(b"x").await?;
        assert_eq!(server.read_u8().await?, b'x');
        Ok(())
    })
}

#[test]
fn a_unix_socket_is_one_kind_and_says_so() -> Outcome {
    let path = std::env::temp_dir().join(format!("windlass-shape-{}", std::process::id()));
    on_both(async || {
        let _ = std::fs::remove_file(&path);
        let socket = UnixSocket::new_stream()?;
        socket.bind(&path)?;
        let listener: UnixListener = socket.listen(16)?;
        let mut client = UnixSocket::new_stream()?.connect(&path).await?;
        let (mut server, _) = listener.accept().await?;
        client.write_all(b"x").await?;
        assert_eq!(server.read_u8().await?, b'x');
        let wrong = UnixSocket::new_datagram()?.listen(1);
        let text = "listen cannot be called on a datagram socket";
        assert_eq!(wrong.expect_err("datagrams").to_string(), text);
        assert!(UnixSocket::new_stream()?.datagram().is_err());
        UnixSocket::new_datagram()?.datagram()?;
        Ok(())
    })?;
    let _ = std::fs::remove_file(&path);
    Ok(())
}

#[test]
fn datagrams_are_received_into_buffers_and_peeked() -> Outcome {
    on_both(async || {
        let one = UdpSocket::bind("127.0.0.1:0").await?;
        let other = UdpSocket::bind("127.0.0.1:0").await?;
        one.send_to(b"first", other.local_addr()?).await?;
        assert!(other.ready(Interest::READABLE).await?.is_readable());
        assert_eq!(other.peek_sender().await?, one.local_addr()?);
        let mut memory = [0; 16];
        let mut buffer = ReadBuf::new(&mut memory);
        buffer.put_slice(b">");
        let from = std::future::poll_fn(|cx| other.poll_recv_from(cx, &mut buffer)).await?;
        assert_eq!((buffer.filled(), from), (&b">first"[..], one.local_addr()?));
        let mut bytes = BytesMut::with_capacity(16);
        let empty = other.try_recv_buf(&mut bytes);
        assert_eq!(empty.expect_err("empty").kind(), ErrorKind::WouldBlock);
        one.send_to(b"second", other.local_addr()?).await?;
        let (count, _) = other.recv_buf_from(&mut bytes).await?;
        assert_eq!((count, &bytes[..]), (6, &b"second"[..]));
        let (near, far) = UnixDatagram::pair()?;
        near.send(b"third").await?;
        assert_eq!(far.recv_buf(&mut bytes).await?, 5);
        assert_eq!(bytes, b"secondthird"[..]);
        Ok(())
    })
}

#[test]
fn pipes_carry_bytes_and_check_their_files() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let (mut sender, mut receiver) = pipe::pipe()?;
        let none = receiver.try_read(&mut [0; 4]);
        assert_eq!(none.expect_err("empty").kind(), ErrorKind::WouldBlock);
        sender.write_all(b"ab").await?;
        receiver.readable().await?;
        assert_eq!(receiver.read_u8().await?, b'a');
        let receiver = receiver.into_nonblocking_fd()?;
        let mut receiver = pipe::Receiver::from_owned_fd(receiver)?;
        assert_eq!(receiver.read_u8().await?, b'b');
        let sender = sender.into_nonblocking_fd()?;
        let wrong = pipe::Receiver::from_owned_fd(sender).expect_err("the other end");
        assert_eq!(wrong.to_string(), "not in O_RDONLY or O_RDWR access mode");
        assert_eq!(receiver.read(&mut [0; 1]).await?, 0, "the sender is closed");
        let wrong = pipe::OpenOptions::new().open_receiver("/dev/null");
        assert_eq!(wrong.expect_err("a device").to_string(), "not a pipe");
        Ok(())
    })
}

#[test]
fn options_of_the_system_are_set_and_read() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_multicast_ttl_v4(3)?;
        socket.set_tos_v4(16)?;
        assert!(!socket.multicast_loop_v4()?);
        assert_eq!((socket.multicast_ttl_v4()?, socket.tos_v4()?), (3, 16));
        assert_eq!(socket.device()?, None);
        let (client, _server) = connected().await?;
        client.set_quickack(true)?;
        client.set_zero_linger()?;
        assert_eq!(client.linger()?, Some(std::time::Duration::ZERO));
        std::io::Result::Ok(())
    })?;
    Runtime::simulated(1).block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let refused = socket.set_tos_v4(16).expect_err("simulated");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        Ok(())
    })
}

#[test]
fn addresses_have_the_forms_of_the_standard_library() -> Outcome {
    on_both(async || {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let SocketAddr::V4(address) = listener.local_addr()? else {
            panic!("bound to IPv4");
        };
        TcpStream::connect(address).await?;
        TcpStream::connect((*address.ip(), address.port())).await?;
        TcpStream::connect((address.ip().to_string(), address.port())).await?;
        TcpStream::connect(&[SocketAddr::from(address)][..]).await?;
        let none: &[SocketAddr] = &[];
        assert!(TcpStream::connect(none).await.is_err());
        Ok(())
    })
}

#[test]
fn sockets_leave_the_runtime_and_come_back() -> Outcome {
    Runtime::builder().workers(1).build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?.into_std()?;
        let listener = TcpListener::try_from(listener)?;
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        let mut server = listener.accept().await?.0.into_std()?;
        server.set_nonblocking(false)?;
        client.write_all(b"x").await?;
        let mut byte = [0];
        server.read_exact(&mut byte)?;
        assert_eq!(byte, *b"x");
        let (one, _) = std::os::unix::net::UnixStream::pair()?;
        let stream = UnixStream::try_from(one)?;
        assert_eq!(stream.peer_cred()?.pid(), Some(std::process::id() as i32));
        assert!(std::os::fd::AsRawFd::as_raw_fd(&stream) > 2);
        let mut unused = [0];
        assert!(matches!(stream.try_read(&mut unused), Ok(0)));
        std::io::Result::Ok(())
    })?;
    Runtime::simulated(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let refused = listener.into_std().expect_err("simulated");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        let mut noop = std::task::Context::from_waker(std::task::Waker::noop());
        let (one, _other) = connected().await?;
        assert!(matches!(
            one.poll_write_ready(&mut noop),
            Poll::Ready(Ok(()))
        ));
        Ok(())
    })
}
