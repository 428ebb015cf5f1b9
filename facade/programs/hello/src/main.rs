//! A TCP echo with a client, a channel, a `select!` and a timeout. Prints what came back.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends every byte back until the stop comes.
async fn serve(listener: TcpListener, mut stop: oneshot::Receiver<()>) -> Result<usize, Error> {
    let mut served = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (mut stream, _) = accepted?;
                served += 1;
                drop(tokio::spawn(async move {
                    let (mut reader, mut writer) = stream.split();
                    tokio::io::copy(&mut reader, &mut writer).await
                }));
            }
            _ = &mut stop => return Ok(served),
        }
    }
}

/// Sends a line and reads it back.
async fn ask(address: std::net::SocketAddr, line: String) -> Result<String, Error> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    stream.shutdown().await?;
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    reader.read_line(&mut answer).await?;
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await?;
    Ok(answer.trim_end().to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let server = tokio::spawn(serve(listener, stopped));

    let (answers, mut received) = mpsc::channel(2);
    for number in 1..=3 {
        let answers = answers.clone();
        drop(tokio::spawn(async move {
            let answer = ask(address, format!("hello {number}")).await;
            // The receiver waits for all three, so the channel is open.
            let _ = answers.send(answer).await;
        }));
    }
    drop(answers);
    let mut lines = Vec::new();
    while let Some(answer) = timeout(PATIENCE, received.recv()).await? {
        lines.push(answer?);
    }
    lines.sort();
    for line in lines {
        println!("{line}");
    }

    let _ = stop.send(());
    let served = timeout(PATIENCE, server).await???;
    println!("served {served}");
    let never = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
    println!("timed out: {}", never.is_err());
    Ok(())
}
