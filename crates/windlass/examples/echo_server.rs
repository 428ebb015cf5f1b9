//! An echo server: one task per connection, ctrl-c stops it. `nc localhost 7007` talks to it.
//!
//! `cargo run --example echo_server`; with an argument it talks to itself and ends.

use windlass::io::{AsyncReadExt, AsyncWriteExt};
use windlass::net::{TcpListener, TcpStream};

async fn echo(mut stream: TcpStream) -> std::io::Result<u64> {
    let mut buffer = [0; 4096];
    let mut echoed = 0;
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(echoed);
        }
        stream.write_all(&buffer[..read]).await?;
        echoed += read as u64;
    }
}

async fn serve(listener: TcpListener) -> windlass::Result<()> {
    loop {
        let (stream, from) = listener.accept().await?;
        let connection = windlass::spawn(async move {
            match echo(stream).await {
                Ok(bytes) => println!("{from}: {bytes} bytes, goodbye"),
                Err(error) => println!("{from}: {error}"),
            }
        });
        connection.detach();
    }
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let demo = std::env::args().nth(1).is_some();
    let listener = TcpListener::bind(if demo {
        "localhost:0"
    } else {
        "localhost:7007"
    })
    .await?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let server = windlass::spawn(serve(listener));
    if demo {
        let mut client = TcpStream::connect(address).await?;
        client.write_all(b"hello").await?;
        let mut answer = [0; 5];
        client.read_exact(&mut answer).await?;
        println!("it says {:?}", String::from_utf8_lossy(&answer));
    } else {
        windlass::signal::ctrl_c().await?;
    }
    server.abort();
    Ok(())
}
