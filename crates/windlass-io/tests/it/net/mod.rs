//! Sockets: what they promise on the driver, what goes wrong, and the same in a simulation.

mod faults;
mod readiness;
mod shape;
mod simulated;
mod tcp;
mod udp;
mod unix;

use windlass_io::net::{TcpListener, TcpStream};

/// Two ends of a real TCP connection.
async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("known");
    let client = TcpStream::connect(address).await.expect("connected");
    let (server, _) = listener.accept().await.expect("accepted");
    (client, server)
}
