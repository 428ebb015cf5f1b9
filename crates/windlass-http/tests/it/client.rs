//! The client: its pool, its limits, its errors.

use std::io::{Read, Write};
use std::time::Duration;

use windlass_http::body::{Bytes, full, read_all};
use windlass_http::{Client, ClientError, Method, Request, StatusCode, body};
use windlass_runtime::{spawn_blocking, time};

use crate::support::{LONG, Result, by_path, runtime, start, text};

#[test]
fn requests_one_after_another_share_a_connection() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let client = Client::new();
        for number in 0..20 {
            let path = format!("/{number}");
            assert_eq!(text(client.get(server.url(&path)).await?).await?, path);
        }
        assert_eq!(client.kept_connections(), 1);
        assert_eq!(server.end().await?.connections, 1);
        Ok(())
    })
}

#[test]
fn a_response_that_is_still_read_keeps_its_connection_to_itself() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let client = Client::new();
        let long = client.get(server.url("/long")).await?;
        assert_eq!(
            text(client.get(server.url("/other")).await?).await?,
            "/other"
        );
        assert_eq!(read_all(long.into_body(), 64 << 20).await?.len(), 10 << 20);
        assert_eq!(server.end().await?.connections, 2);
        Ok(())
    })
}

#[test]
fn a_body_is_sent_and_comes_back() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let sent = vec![b'x'; 300_000];
        let request = Request::builder()
            .method(Method::POST)
            .uri(server.url("/echo"))
            .body(full(sent.clone()))?;
        let response = Client::new().request(request).await?;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(text(response).await?.into_bytes(), sent);
        Ok(())
    })
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_is_replaced() -> Result {
    runtime().block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        // A server that closes after each answer without saying so.
        let server = spawn_blocking(move || {
            for _ in 0..5 {
                let (mut stream, _) = listener.accept()?;
                let mut head = [0; 1024];
                let read = stream.read(&mut head)?;
                assert!(head[..read].ends_with(b"\r\n\r\n"));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
            }
            Ok::<_, std::io::Error>(())
        });
        let client = Client::new();
        for _ in 0..5 {
            assert_eq!(text(client.get(&url).await?).await?, "ok");
        }
        server.await??;
        Ok(())
    })
}

/// The server reads the second request of a connection and closes it instead of answering.
#[test]
fn what_may_be_asked_twice_is_asked_again_and_nothing_else() -> Result {
    runtime().block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        let server = spawn_blocking(move || {
            let mut heads = Vec::new();
            while heads.last() != Some(&b'P') {
                let (mut stream, _) = listener.accept()?;
                let mut head = [0; 1024];
                assert_ne!(stream.read(&mut head)?, 0);
                heads.push(head[0]);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
                assert_ne!(stream.read(&mut head)?, 0);
                heads.push(head[0]);
            }
            Ok::<_, std::io::Error>(heads)
        });
        let client = Client::new();
        for _ in 0..2 {
            assert_eq!(text(client.get(&url).await?).await?, "ok");
        }
        let post = Request::post(&url).body(body::full("once"))?;
        let error = client.request(post).await.expect_err("not asked twice");
        assert!(matches!(error, ClientError::Broken(_)), "{error}");
        assert_eq!(server.await??, b"GGGP", "GET, GET and again, POST");
        Ok(())
    })
}

#[test]
fn each_failure_has_its_own_error() -> Result {
    runtime().block_on(async {
        let client = Client::builder()
            .response_timeout(Duration::from_millis(200))
            .build();
        for nonsense in ["/path/only", "ftp://example.org/", "mailto:someone"] {
            let error = client.get(nonsense).await.expect_err("no server");
            assert!(
                matches!(error, ClientError::NoServer(_) | ClientError::Invalid(_)),
                "{nonsense}: {error}"
            );
        }
        let error = client.get("http://ho st/").await.expect_err("no URI");
        assert!(matches!(error, ClientError::Invalid(_)), "{error}");

        let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let error = client.get(format!("http://{nobody}/")).await;
        assert!(matches!(error, Err(ClientError::Connect { .. })));

        let server = start(by_path(), |server| server.drain_within(Duration::ZERO)).await?;
        let error = client.get(server.url("/never")).await;
        assert!(matches!(
            error,
            Err(ClientError::TimedOut {
                what: "the response",
                ..
            })
        ));
        // To write a panic down takes longer than that on a busy machine.
        let client = Client::new();
        let error = client.get(server.url("/panic")).await;
        assert!(matches!(error, Err(ClientError::Broken(_))));
        assert_eq!(text(client.get(server.url("/fine")).await?).await?, "/fine");
        server.end().await?;
        Ok(())
    })
}

#[test]
fn a_body_longer_than_allowed_is_an_error() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let response = Client::new().get(server.url("/long")).await?;
        let error = read_all(response.into_body(), 1000).await;
        assert!(matches!(
            error,
            Err(body::ReadError::TooLong { limit: 1000 })
        ));
        Ok(())
    })
}

#[test]
fn pieces_of_a_body_are_put_together() -> Result {
    runtime().block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        let server = spawn_blocking(move || {
            let (mut stream, _) = listener.accept()?;
            let mut head = [0; 1024];
            let _ = stream.read(&mut head)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            for piece in ["2\r\nab\r\n", "3\r\ncde\r\n", "1\r\nf\r\n", "0\r\n\r\n"] {
                stream.write_all(piece.as_bytes())?;
                stream.flush()?;
            }
            Ok::<_, std::io::Error>(())
        });
        let response = Client::new().get(&url).await?;
        let whole = time::timeout(LONG, read_all(response.into_body(), 6)).await??;
        assert_eq!(whole, Bytes::from("abcdef"));
        server.await??;
        Ok(())
    })
}
