//! The same server and client over the simulated network, with exact times.

use std::future::IntoFuture;
use std::time::Duration;

use windlass_http::{Client, ClientError, TlsAcceptor, serve};
use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::TcpListener;
use windlass_io::simulated::Net;
use windlass_runtime::{Runtime, spawn, time};
use windlass_sync::CancellationToken;

use crate::support::{Result, by_path, text};

async fn far_server(net: &Net, stop: &CancellationToken) -> Result {
    let listener = net.on("server", TcpListener::bind("server:80")).await?;
    let server = serve(listener, by_path())
        .stop_on(stop)
        .drain_within(Duration::from_secs(5));
    drop(spawn(net.on("server", server.into_future())));
    Ok(())
}

#[test]
fn a_partition_is_a_timeout_and_healing_it_helps() -> Result {
    for seed in 0..20 {
        Runtime::simulated(seed).block_on(async {
            let net = Net::current();
            net.latency(Duration::from_millis(5)..=Duration::from_millis(5));
            let stop = CancellationToken::new();
            far_server(&net, &stop).await?;
            let client = Client::builder()
                .response_timeout(Duration::from_secs(2))
                .build();
            let ask = async |path: &str| {
                let request = client.get(format!("http://server{path}"));
                text(net.on("client", request).await?).await
            };
            assert_eq!(ask("/before").await?, "/before");

            net.partition("client", "server");
            let began = time::Instant::now();
            let error = net.on("client", client.get("http://server/cut")).await;
            assert!(
                matches!(error, Err(ClientError::TimedOut { .. })),
                "{error:?}"
            );
            assert_eq!(began.elapsed(), Duration::from_secs(2), "exactly");

            net.heal("client", "server");
            assert_eq!(ask("/after").await?, "/after");

            net.break_connections("client", "server");
            assert_eq!(ask("/again").await?, "/again");
            stop.cancel();
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        })?;
    }
    Ok(())
}

#[test]
fn a_head_that_does_not_come_is_waited_for_exactly_as_long_as_told() -> Result {
    Runtime::simulated(5).block_on(async {
        let listener = TcpListener::bind("localhost:80").await?;
        let server = serve(listener, by_path()).header_timeout(Duration::from_secs(7));
        drop(spawn(server.into_future()));
        let mut stream = windlass_io::net::TcpStream::connect("localhost:80").await?;
        stream.write_all(b"GET / HT").await?;
        let began = time::Instant::now();
        let mut answer = [0; 1000];
        while stream.read(&mut answer).await? > 0 {}
        assert_eq!(began.elapsed(), Duration::from_secs(7));
        Ok(())
    })
}

#[test]
fn an_idle_connection_of_a_client_is_closed_after_its_time() -> Result {
    Runtime::simulated(5).block_on(async {
        let listener = TcpListener::bind("localhost:80").await?;
        let stop = CancellationToken::new();
        let server = serve(listener, by_path())
            .stop_on(&stop)
            .header_timeout(None);
        let server = spawn(server.into_future());
        let client = Client::builder()
            .idle_timeout(Duration::from_secs(60))
            .build();
        assert_eq!(text(client.get("http://localhost/").await?).await?, "/");
        time::sleep(Duration::from_secs(59)).await;
        assert_eq!(client.kept_connections(), 1);
        time::sleep(Duration::from_secs(2)).await;
        assert_eq!(client.kept_connections(), 0);
        stop.cancel();
        assert_eq!(server.await??.connections, 1);
        Ok(())
    })
}

#[test]
fn a_tls_handshake_that_does_not_come_is_waited_for_exactly_as_long_as_told() -> Result {
    Runtime::simulated(5).block_on(async {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let acceptor = TlsAcceptor::from_pem(chain.as_bytes(), key.as_bytes())?;
        let listener = TcpListener::bind("localhost:443").await?;
        let server = serve(listener, by_path())
            .tls(acceptor)
            .handshake_timeout(Duration::from_secs(3));
        drop(spawn(server.into_future()));
        let mut stream = windlass_io::net::TcpStream::connect("localhost:443").await?;
        let began = time::Instant::now();
        assert_eq!(stream.read(&mut [0; 10]).await?, 0, "closed");
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        Ok(())
    })
}
