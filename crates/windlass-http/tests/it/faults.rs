//! Clients that break off, dawdle or talk nonsense: the server goes on, and nothing hangs.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as Plain};
use std::time::Duration;

use windlass_http::Client;
use windlass_runtime::{spawn_blocking, time};

use crate::support::{LONG, Result, Running, by_path, runtime, start, text};

/// Sends `bytes`, ends its side, and gives all that comes back.
fn say(address: SocketAddr, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Plain::connect(address)?;
    plain.set_read_timeout(Some(LONG))?;
    plain.write_all(bytes)?;
    match plain.shutdown(Shutdown::Write) {
        // The server has reset the connection already: reading says so, too.
        Err(error) if error.kind() == std::io::ErrorKind::NotConnected => {}
        result => result?,
    }
    let mut answer = Vec::new();
    match plain.read_to_end(&mut answer) {
        Ok(_) => Ok(answer),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(answer),
        Err(error) => Err(error),
    }
}

async fn still_serves(server: &Running) -> Result {
    assert_eq!(
        text(Client::new().get(server.url("/alive")).await?).await?,
        "/alive"
    );
    Ok(())
}

#[test]
fn nonsense_is_refused_and_never_hangs() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let address = server.address;
        let cases: &[&[u8]] = &[
            b"",
            b"\0\0\0\0\0\0\0\0",
            b"GET",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
            // Two lengths, a length and chunks, a length that is none: what smuggling is made of.
            b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde",
            b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n",
            b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
            b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
            // A body that never comes whole.
            b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc",
        ];
        for case in cases {
            let answer = spawn_blocking(move || say(address, case)).await??;
            let answer = String::from_utf8_lossy(&answer);
            let begun = String::from_utf8_lossy(case);
            assert!(!answer.contains("/smuggled"), "{begun:?} was answered with {answer:?}");
        }
        let huge = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'a'; 2 << 20], b"\r\n\r\n"].concat();
        let answer = spawn_blocking(move || say(address, &huge).or_else(|error| match error.kind() {
            // It does not read all of that.
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => Ok(Vec::new()),
            _ => Err(error),
        }))
        .await??;
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
        still_serves(&server).await?;
        let served = server.end().await?;
        assert!(served.broken >= 6, "{served:?}");
        Ok(())
    })
}

#[test]
fn a_client_that_breaks_off_at_any_byte_leaves_the_server_whole() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let address = server.address;
        let whole: &[u8] =
            b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\n\r\nhello, world";
        spawn_blocking(move || {
            for end in 0..=whole.len() {
                let mut plain = Plain::connect(address)?;
                plain.write_all(&whole[..end])?;
                // Unread bytes and an abrupt close make a reset of it.
                drop(plain);
            }
            Ok::<_, std::io::Error>(())
        })
        .await??;
        still_serves(&server).await?;
        let served = server.end().await?;
        assert_eq!(served.connections as usize, whole.len() + 2);
        assert_eq!(served.aborted, 0);
        Ok(())
    })
}

#[test]
fn a_reader_that_stops_in_the_middle_holds_up_nobody() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| {
            server.drain_within(Duration::from_millis(100))
        })
        .await?;
        let address = server.address;
        let stuck = spawn_blocking(move || {
            let mut plain = Plain::connect(address)?;
            plain.write_all(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n")?;
            let mut first = [0; 1000];
            plain.read_exact(&mut first)?;
            Ok::<_, std::io::Error>(plain)
        })
        .await??;
        for _ in 0..10 {
            still_serves(&server).await?;
        }
        let served = server.end().await?;
        assert_eq!(served.aborted, 1, "its answer did not get through");
        drop(stuck);
        Ok(())
    })
}

#[test]
fn a_client_that_does_not_finish_its_request_is_let_go() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| {
            server.header_timeout(Duration::from_millis(200))
        })
        .await?;
        let address = server.address;
        let began = time::Instant::now();
        let answer = spawn_blocking(move || {
            let mut plain = Plain::connect(address)?;
            plain.set_read_timeout(Some(LONG))?;
            plain.write_all(b"GET / HTTP/1.1\r\nhos")?;
            let mut answer = Vec::new();
            plain.read_to_end(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        })
        .await??;
        assert!(began.elapsed() >= Duration::from_millis(200));
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.contains("408"), "{answer}");
        still_serves(&server).await
    })
}

#[test]
fn a_service_that_panics_ends_its_own_connection_only() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let address = server.address;
        let answer =
            spawn_blocking(move || say(address, b"GET /panic HTTP/1.1\r\nhost: x\r\n\r\n"))
                .await??;
        assert!(answer.is_empty());
        still_serves(&server).await?;
        assert_eq!(server.end().await?.connections, 2);
        Ok(())
    })
}

#[test]
fn a_server_without_descriptors_goes_on_once_there_are_some() -> Result {
    const NAME: &str = "faults::a_server_without_descriptors_goes_on_once_there_are_some";
    const PLAY: &str = "WINDLASS_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(PLAY).is_none() {
        // The limit is the whole process's.
        let output = std::process::Command::new("sh")
            .args(["-c", r#"ulimit -n 64; exec "$0" --exact "$1" --nocapture"#])
            .arg(std::env::current_exe()?)
            .arg(NAME)
            .env(PLAY, "1")
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        return Ok(());
    }
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let address = server.address;
        let taken = spawn_blocking(move || {
            let mut taken = Vec::new();
            while let Ok(stream) = Plain::connect(address) {
                taken.push(stream);
                assert!(taken.len() < 64, "there is a limit");
            }
            taken
        })
        .await?;
        // The server meets the limit, too, again and again.
        time::sleep(Duration::from_millis(300)).await;
        drop(taken);
        let alive = async {
            while still_serves(&server).await.is_err() {
                time::sleep(Duration::from_millis(10)).await;
            }
        };
        time::timeout(LONG, alive).await?;
        let served = server.end().await?;
        assert!(served.not_accepted > 0, "{served:?}");
        assert!(
            served.not_accepted < 100,
            "and it does not spin: {served:?}"
        );
        Ok(())
    })
}
