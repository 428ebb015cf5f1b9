//! Unix sockets on the driver, and the same in a simulation.

use std::io::ErrorKind;
use std::path::PathBuf;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::{UnixDatagram, UnixListener, UnixStream};
use windlass_runtime::{Runtime, spawn};

use crate::support::runtime;

/// A path that no other test uses; its file is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let file = format!("windlass-{}-{name}", std::process::id());
        Place(std::env::temp_dir().join(file))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn talk(path: PathBuf) {
    let listener = UnixListener::bind(&path).unwrap();
    let taken = UnixListener::bind(&path).expect_err("in use");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    let local = listener.local_addr().unwrap();
    assert_eq!(local.as_pathname(), Some(path.as_path()));
    let server = spawn(async move {
        let (stream, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed());
        let (mut reading, mut writing) = stream.into_split();
        let mut all = Vec::new();
        reading.read_to_end(&mut all).await.unwrap();
        writing.write_all(&all).await.unwrap();
        reading.reunite(writing).expect("of one stream");
    });
    let mut client = UnixStream::connect(&path).await.unwrap();
    let peer = client.peer_addr().unwrap();
    assert_eq!(peer.as_pathname(), Some(path.as_path()));
    let sent: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    client.write_all(&sent).await.unwrap();
    client.shutdown().await.unwrap();
    let mut back = Vec::new();
    client.read_to_end(&mut back).await.unwrap();
    assert!(back == sent);
    server.await.unwrap();
}

#[test]
fn a_stream_at_a_path_carries_bytes_both_ways() {
    let place = Place::new("talk");
    runtime(2).block_on(talk(place.0.clone()));
    // The file is still there, and nobody listens.
    let refused = runtime(1).block_on(UnixStream::connect(&place.0));
    let kind = refused.expect_err("nobody listens").kind();
    assert_eq!(kind, ErrorKind::ConnectionRefused);
    Runtime::simulated(1).block_on(talk("/run/talk".into()));
}

#[test]
fn a_path_with_nothing_there_is_not_found() {
    let check = || async {
        let missing = UnixStream::connect("/run/windlass-nobody-is-here").await;
        assert_eq!(missing.expect_err("missing").kind(), ErrorKind::NotFound);
        let socket = UnixDatagram::unbound().unwrap();
        let missing = socket.send_to(b"x", "/run/windlass-nobody-is-here").await;
        assert_eq!(missing.expect_err("missing").kind(), ErrorKind::NotFound);
    };
    runtime(1).block_on(check());
    Runtime::simulated(1).block_on(check());
}

#[test]
fn a_pair_is_connected_and_sees_the_other_end() {
    let check = || async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.write_all(b"x").await.unwrap();
        other.read_exact(&mut [0]).await.unwrap();
        drop(one);
        assert_eq!(other.read(&mut [0]).await.unwrap(), 0);
        let broken = other.write_all(b"x").await.expect_err("nobody reads");
        assert_eq!(broken.kind(), ErrorKind::BrokenPipe);
    };
    runtime(1).block_on(check());
    Runtime::simulated(1).block_on(check());
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_says_who_is_at_the_other_end() {
    runtime(1).block_on(async {
        let (one, _other) = UnixStream::pair().unwrap();
        let found = one.peer_cred().unwrap();
        assert_eq!(found.pid(), Some(std::process::id() as i32));
    });
}

async fn exchange(here: PathBuf, there: PathBuf) {
    let one = UnixDatagram::bind(&here).unwrap();
    let other = UnixDatagram::bind(&there).unwrap();
    let mut buffer = [0; 16];
    one.send_to(b"hello", &there).await.unwrap();
    let (count, from) = other.recv_from(&mut buffer).await.unwrap();
    assert_eq!((count, from.as_pathname()), (5, Some(here.as_path())));
    other.connect(&here).unwrap();
    other.send(b"you").await.unwrap();
    assert_eq!(one.recv(&mut buffer).await.unwrap(), 3);
    let stranger = UnixDatagram::unbound().unwrap();
    let refused = stranger
        .send_to(b"?", &there)
        .await
        .expect_err("it has a peer");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn datagrams_go_from_path_to_path() {
    let (here, there) = (Place::new("here"), Place::new("there"));
    runtime(1).block_on(exchange(here.0.clone(), there.0.clone()));
    Runtime::simulated(1).block_on(exchange("/here".into(), "/there".into()));
}

#[test]
fn a_datagram_sender_waits_for_its_slow_receiver_and_loses_none() {
    let check = || async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let sender = spawn(async move {
            for number in 0..1000u32 {
                one.send(&number.to_be_bytes()).await.unwrap();
            }
        });
        windlass_runtime::time::sleep(std::time::Duration::from_millis(20)).await;
        for number in 0..1000u32 {
            let mut buffer = [0; 4];
            assert_eq!(other.recv(&mut buffer).await.unwrap(), 4);
            assert_eq!(u32::from_be_bytes(buffer), number);
        }
        sender.await.unwrap();
    };
    runtime(2).block_on(check());
    Runtime::simulated(1).block_on(check());
}

#[cfg(target_os = "linux")]
#[test]
fn bytes_behind_passed_descriptors_are_told_of() {
    // The kernel ends a read there, though there is more.
    runtime(1).block_on(async {
        let (plain, reading) = std::os::unix::net::UnixStream::pair().unwrap();
        pass_descriptor(&plain);
        std::io::Write::write_all(&mut &plain, b"behind").unwrap();
        let mut reading = UnixStream::from_std(reading).unwrap();
        let mut all = [0; 7];
        let mut filled = 0;
        while filled < all.len() {
            // A buffer that is never full.
            let mut buffer = [0; 64];
            let count = reading.read(&mut buffer).await.unwrap();
            all[filled..filled + count].copy_from_slice(&buffer[..count]);
            filled += count;
        }
        assert_eq!(&all, b"!behind");
    });
}

/// Sends a byte with a descriptor.
#[cfg(target_os = "linux")]
fn pass_descriptor(socket: &std::os::unix::net::UnixStream) {
    use std::os::fd::AsRawFd;
    let mut byte = *b"!";
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 8];
    // SAFETY: plain data, all zero is a valid value; every pointer is to a local that outlives the
    // call, and the control buffer is aligned and large enough for one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(0);
        libc::sendmsg(socket.as_raw_fd(), &message, 0)
    };
    assert_eq!(sent, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_file_is_bound_and_connected_to() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let name = format!("windlass-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).expect("a name").into();
    let runtime = runtime(2);
    runtime.block_on(async {
        let listener = UnixListener::bind_addr(&address).expect("it is free");
        assert!(UnixListener::bind_addr(&address).is_err(), "it is taken");
        let connected = UnixStream::connect_addr(&address).await;
        let mut client = connected.expect("it listens");
        let (mut accepted, _) = listener.accept().await.expect("a client");
        client.write_all(b"hello").await.expect("sent");
        let mut first = [0; 3];
        // Seen twice, then read.
        for _ in 0..2 {
            assert_eq!(accepted.peek(&mut first).await.expect("bytes"), 3);
            assert_eq!(&first, b"hel");
        }
        let mut all = [0; 5];
        accepted.read_exact(&mut all).await.expect("bytes");
        assert_eq!(&all, b"hello");
        drop(listener);
        assert!(UnixStream::connect_addr(&address).await.is_err(), "gone");
        UnixListener::bind_addr(&address).expect("it is free again");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_begins_with_zero_is_a_name_that_is_no_file() {
    let path = format!("\0windlass-test-path-{}", std::process::id());
    runtime(2).block_on(async {
        let listener = UnixListener::bind(&path).expect("it is free");
        let client = UnixStream::connect(&path).await.expect("it listens");
        let (accepted, _) = listener.accept().await.expect("a client");
        for address in [client.peer_addr(), accepted.local_addr()] {
            let address = address.expect("an address");
            assert_eq!(address.as_abstract_name(), Some(&path.as_bytes()[1..]));
        }
        drop(listener);
        assert!(UnixStream::connect(&path).await.is_err(), "gone");
    });
    Runtime::simulated(1).block_on(async {
        let refused = UnixListener::bind(&path).expect_err("not in a simulation");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        let refused = UnixStream::connect(&path).await;
        let refused = refused.expect_err("not in a simulation");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn peeking_leaves_the_bytes_in_a_simulation_too() {
    windlass_runtime::simulator::explore(5, || async {
        let (mut one, mut other) = UnixStream::pair().expect("a pair");
        one.write_all(b"hello").await.expect("sent");
        let mut seen = [0; 5];
        let peeked = other.peek(&mut seen).await.expect("bytes");
        assert!(b"hello".starts_with(&seen[..peeked]));
        let mut all = [0; 5];
        other.read_exact(&mut all).await.expect("bytes");
        assert_eq!(&all, b"hello");
    });
}
