//! UDP on the driver.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;

use windlass_io::net::UdpSocket;
use windlass_runtime::Runtime;

use crate::support::{join, runtime};

async fn pair() -> (UdpSocket, UdpSocket) {
    let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    (one, other)
}

#[test]
fn datagrams_keep_their_bounds_and_say_where_they_come_from() {
    let check = || async {
        let (one, other) = pair().await;
        let (from, to) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let mut buffer = [0; 16];
        one.send_to(b"a long one", to).await.unwrap();
        assert_eq!(other.peek_from(&mut buffer).await.unwrap(), (10, from));
        assert_eq!(other.recv_from(&mut buffer[..4]).await.unwrap(), (4, from));
        one.send_to(b"", to).await.unwrap();
        assert_eq!(other.recv_from(&mut buffer).await.unwrap(), (0, from));
        let nothing = other.try_recv_from(&mut buffer).expect_err("all are gone");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert!(one.send(b"x").await.is_err(), "no peer");
        let huge = one.send_to(&[0; 70_000], to).await;
        assert!(huge.is_err(), "larger than a datagram");
        let taken = UdpSocket::bind(to).await.expect_err("in use");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    };
    runtime(1).block_on(check());
    Runtime::simulated(1).block_on(check());
}

#[test]
fn a_connected_socket_hears_its_peer_only() {
    let check = || async {
        let (one, other) = pair().await;
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (from, to) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        assert!(other.peer_addr().is_err());
        one.connect(to).await.unwrap();
        other.connect(from).await.unwrap();
        assert_eq!(other.peer_addr().unwrap(), from);
        stranger.send_to(b"?", to).await.unwrap();
        one.send(b"hello").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(other.recv(&mut buffer).await.unwrap(), 5);
        assert!(other.try_recv(&mut buffer).is_err());
        other.set_ttl(3).unwrap();
        other.set_broadcast(true).unwrap();
        assert_eq!(
            (other.ttl().unwrap(), other.broadcast().unwrap()),
            (3, true)
        );
    };
    runtime(1).block_on(check());
    Runtime::simulated(1).block_on(check());
}

#[test]
fn several_tasks_receive_from_one_socket() {
    let runtime = runtime(2);
    let (one, other) = runtime.block_on(pair());
    let (to, other) = (other.local_addr().unwrap(), Arc::new(other));
    let receivers: Vec<_> = (0..8)
        .map(|_| {
            let other = other.clone();
            runtime.spawn(async move { other.recv_from(&mut [0; 8]).await.map(drop) })
        })
        .collect();
    for _ in 0..8 {
        runtime.block_on(one.send_to(b"x", to)).unwrap();
    }
    for receiver in receivers {
        join("each gets one", receiver).unwrap();
    }
}

#[test]
fn groups_are_for_real_sockets() {
    let (group, any) = (Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::LOCALHOST);
    runtime(1).block_on(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        // A machine without a route for groups refuses; a socket of ours does not.
        if socket.join_multicast_v4(group, any).is_ok() {
            socket.leave_multicast_v4(group, any).unwrap();
        }
        socket.into_std().unwrap();
    });
    Runtime::simulated(1).block_on(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let refused = socket.join_multicast_v4(group, any).expect_err("no groups");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(socket.into_std().is_err());
    });
}

#[test]
fn a_peer_that_is_not_there_is_an_error_and_the_socket_goes_on() {
    runtime(1).block_on(async {
        let (one, other) = pair().await;
        let to = other.local_addr().unwrap();
        drop(other);
        one.connect(to).await.unwrap();
        one.send(b"x").await.unwrap();
        let refused = one.recv(&mut [0; 8]).await.expect_err("nobody is there");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let other = UdpSocket::bind(to).await.unwrap();
        one.send(b"again").await.unwrap();
        assert_eq!(other.recv(&mut [0; 8]).await.unwrap(), 5);
    });
}
