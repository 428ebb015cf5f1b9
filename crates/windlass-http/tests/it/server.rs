//! Serving: tower services, stopping, limits.

use std::future::IntoFuture;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream as Plain};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use windlass_http::Listener;
use windlass_http::body::Incoming;
use windlass_http::hyper::client::conn::http2;
use windlass_http::rt::{Executor, Io};
use windlass_http::{Client, RemoteAddr, Request, Response, body, serve, service_fn};
use windlass_io::net::{TcpStream, UnixListener};
use windlass_runtime::{spawn, spawn_blocking, time};
use windlass_sync::CancellationToken;

use crate::support::{LONG, Result, by_path, runtime, start, text};

#[test]
fn an_axum_router_is_served_to_a_client_that_is_not_ours() -> Result {
    runtime().block_on(async {
        let router = Router::new()
            .route(
                "/greet/{name}",
                get(|Path(name): Path<String>| async move { format!("hello {name}") }),
            )
            .route(
                "/shout",
                post(|text: String| async move { text.to_uppercase() }),
            )
            .route(
                "/sum",
                get(|Query(terms): Query<Vec<(String, i64)>>| async move {
                    axum::Json(terms.into_iter().map(|(_, term)| term).sum::<i64>())
                }),
            );
        let server = start(router, |server| server).await?;
        let address = server.address;
        let answer = spawn_blocking(move || {
            let mut plain = Plain::connect(address)?;
            // Three requests at once on one connection.
            plain.write_all(
                b"GET /greet/you HTTP/1.1\r\nhost: x\r\n\r\n\
                  POST /shout HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc\
                  GET /sum?a=40&b=2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            )?;
            let mut answer = String::new();
            plain.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        })
        .await??;
        // After the headers: the date in them holds any number now and then.
        let places: Vec<_> = ["\r\n\r\nhello you", "\r\n\r\nABC", "\r\n\r\n42"]
            .map(|body| answer.find(body))
            .to_vec();
        assert!(places.iter().all(Option::is_some), "{answer}");
        assert!(places.is_sorted(), "answered in the order of the requests");
        let served = server.end().await?;
        assert_eq!(
            (served.connections, served.broken, served.aborted),
            (1, 0, 0)
        );
        Ok(())
    })
}

#[test]
fn a_request_that_has_begun_is_answered_after_the_stop() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let url = server.url("/slow");
        let slow = spawn(async move { text(Client::new().get(&url).await?).await });
        time::sleep(Duration::from_millis(300)).await;
        let address = server.address;
        let served = server.end().await?;
        assert_eq!(slow.await??, "slow");
        assert_eq!((served.connections, served.aborted), (1, 0));
        let refused = spawn_blocking(move || Plain::connect(address)).await?;
        assert!(refused.is_err(), "nobody listens any more");
        Ok(())
    })
}

#[test]
fn an_idle_connection_is_closed_by_the_stop() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server).await?;
        let client = Client::new();
        assert_eq!(text(client.get(server.url("/kept")).await?).await?, "/kept");
        let snapshot = windlass_runtime::Handle::current().snapshot();
        let observed = snapshot.sources("http_server").next().expect("a server");
        assert_eq!(observed.label, Some(server.address.to_string()));
        assert_eq!(observed.sample("open"), Some(1.0));
        assert_eq!(observed.sample("accepted"), Some(1.0));
        let stopped = time::Instant::now();
        server.end().await?;
        assert!(
            stopped.elapsed() < Duration::from_secs(10),
            "not the time to drain"
        );
        Ok(())
    })
}

#[test]
fn what_is_not_answered_in_time_is_cut_off_and_counted() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| {
            server.drain_within(Duration::from_millis(200))
        })
        .await?;
        let url = server.url("/never");
        let never = spawn(async move { Client::new().get(&url).await.map(drop) });
        time::sleep(Duration::from_millis(300)).await;
        let served = server.end().await?;
        assert_eq!(served.aborted, 1);
        assert!(never.await?.is_err());
        Ok(())
    })
}

#[test]
fn a_dropped_server_stops_its_connections_too() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| {
            server.drain_within(Duration::from_millis(100))
        })
        .await?;
        let url = server.url("/never");
        let never = spawn(async move { Client::new().get(&url).await.map(drop) });
        time::sleep(Duration::from_millis(300)).await;
        server.task.abort();
        let ended = time::timeout(LONG, never).await??;
        assert!(ended.is_err());
        Ok(())
    })
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server.max_connections(1)).await?;
        let first = Client::new();
        assert_eq!(text(first.get(server.url("/one")).await?).await?, "/one");
        let url = server.url("/two");
        let second = spawn(async move { text(Client::new().get(&url).await?).await });
        time::sleep(Duration::from_millis(200)).await;
        assert!(!second.is_finished(), "the first is still connected");
        drop(first);
        assert_eq!(time::timeout(LONG, second).await???, "/two");
        assert_eq!(server.end().await?.connections, 2);
        Ok(())
    })
}

#[test]
fn a_service_sees_where_a_request_comes_from() -> Result {
    runtime().block_on(async {
        let service = service_fn(|request: Request<Incoming>| async move {
            let remote = request
                .extensions()
                .get::<RemoteAddr<std::net::SocketAddr>>();
            let local = remote.is_some_and(|remote| remote.0.ip().is_loopback());
            Ok::<_, std::convert::Infallible>(Response::new(body::full(local.to_string())))
        });
        let told = start(service, |server| server.with_remote_addr()).await?;
        assert_eq!(text(Client::new().get(told.url("/")).await?).await?, "true");
        let untold = start(service, |server| server).await?;
        assert_eq!(
            text(Client::new().get(untold.url("/")).await?).await?,
            "false"
        );
        Ok(())
    })
}

#[test]
fn a_connection_can_become_something_else() -> Result {
    runtime().block_on(async {
        let service = service_fn(|mut request: Request<Incoming>| async move {
            let upgrade = windlass_http::hyper::upgrade::on(&mut request);
            let echo = async move {
                use windlass_http::hyper::rt::{Read, ReadBuf, Write};
                let mut stream = upgrade.await.expect("it is upgraded");
                let mut bytes = [0; 4];
                let mut buffer = ReadBuf::new(&mut bytes);
                while buffer.filled().len() < 4 {
                    std::future::poll_fn(|cx| {
                        std::pin::Pin::new(&mut stream).poll_read(cx, buffer.unfilled())
                    })
                    .await
                    .expect("bytes");
                }
                std::future::poll_fn(|cx| {
                    std::pin::Pin::new(&mut stream).poll_write(cx, buffer.filled())
                })
                .await
                .expect("written");
            };
            drop(spawn(echo));
            Response::builder()
                .status(101)
                .header("connection", "upgrade")
                .header("upgrade", "echo")
                .body(body::empty())
        });
        let server = start(service, |server| server).await?;
        let address = server.address;
        let answer = spawn_blocking(move || {
            let mut plain = Plain::connect(address)?;
            plain.write_all(
                b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nping",
            )?;
            plain.shutdown(Shutdown::Write)?;
            let mut answer = String::new();
            plain.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        })
        .await??;
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert!(answer.ends_with("ping"), "{answer}");
        Ok(())
    })
}

#[test]
fn a_unix_socket_is_served_too() -> Result {
    runtime().block_on(async {
        let path = std::env::temp_dir().join(format!("windlass-http-{}", std::process::id()));
        let listener = UnixListener::bind(&path)?;
        let stop = CancellationToken::new();
        let server = spawn(serve(listener, by_path()).stop_on(&stop).into_future());
        let client = path.clone();
        let answer = spawn_blocking(move || {
            let mut plain = std::os::unix::net::UnixStream::connect(client)?;
            plain.write_all(b"GET /unix HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            plain.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        })
        .await??;
        std::fs::remove_file(&path)?;
        assert!(answer.ends_with("/unix"), "{answer}");
        stop.cancel();
        assert_eq!(server.await??.connections, 1);
        Ok(())
    })
}

#[test]
fn http2_is_served_without_tls_to_who_knows_it() -> Result {
    runtime().block_on(async {
        let server = start(by_path(), |server| server.http2_only()).await?;
        let stream = Io::new(TcpStream::connect(server.address).await?);
        let (mut sender, connection) = http2::Builder::new(Executor)
            .handshake::<_, body::AnyBody>(stream)
            .await?;
        let driven = spawn(connection);
        // Both at once over one connection.
        let ask = |path: &str| Request::get(format!("http://x{path}")).body(body::empty());
        let (slow, quick) = (
            sender.send_request(ask("/slow")?),
            sender.send_request(ask("/quick")?),
        );
        let quick = quick.await?;
        assert_eq!(quick.version(), windlass_http::hyper::Version::HTTP_2);
        assert_eq!(body::read_all(quick.into_body(), 100).await?, "/quick");
        assert_eq!(body::read_all(slow.await?.into_body(), 100).await?, "slow");
        drop(sender);
        driven.await??;
        assert_eq!(server.end().await?.connections, 1);
        Ok(())
    })
}

/// Is not ready when it is first asked; then it is, or fails.
#[derive(Clone)]
struct Late {
    asked: bool,
    fails: bool,
}

impl tower_service::Service<Request<Incoming>> for Late {
    type Response = Response<body::AnyBody>;
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Self::Response>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        if !std::mem::replace(&mut self.asked, true) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(match self.fails {
            true => Err(std::io::Error::other("never")),
            false => Ok(()),
        })
    }

    fn call(&mut self, _: Request<Incoming>) -> Self::Future {
        assert!(self.asked, "called without being ready");
        std::future::ready(Ok(Response::new(body::full("late"))))
    }
}

#[test]
fn a_service_is_waited_for_until_it_is_ready() -> Result {
    runtime().block_on(async {
        let late = |asked, fails| start(Late { asked, fails }, |server| server);
        let server = late(false, false).await?;
        assert_eq!(
            text(Client::new().get(server.url("/")).await?).await?,
            "late"
        );
        assert_eq!(server.end().await?.broken, 0);
        // One that fails, at once or later, ends its connection.
        for asked in [false, true] {
            let server = late(asked, true).await?;
            assert!(Client::new().get(server.url("/")).await.is_err());
            assert_eq!(server.end().await?.broken, 1);
        }
        Ok(())
    })
}

/// Gives no connection, but an error.
struct Broken;

impl Listener for Broken {
    type Stream = TcpStream;
    type Address = ();

    async fn accept(&mut self) -> std::io::Result<(TcpStream, ())> {
        Err(std::io::Error::other("the cable is cut"))
    }
}

#[test]
fn a_listener_that_fails_ends_the_server_with_its_error() -> Result {
    runtime().block_on(async {
        let ended = time::timeout(LONG, serve(Broken, by_path()).into_future()).await?;
        assert_eq!(ended.expect_err("it fails").to_string(), "the cable is cut");
        Ok(())
    })
}
