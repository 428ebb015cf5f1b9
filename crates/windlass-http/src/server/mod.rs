//! Serving HTTP.

mod connection;
mod listener;
mod service;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::pin::Pin;
use std::sync::Weak;
use std::time::Duration;

use windlass_core::sync::Arc;
use windlass_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use windlass_runtime::observe::{Cursor, Observe, Page, Sample};
use windlass_runtime::time::sleep;
use windlass_runtime::{Handle, spawn};
use windlass_sync::CancellationToken;
use windlass_sync::lock::Semaphore;

use self::connection::{ConnectionOptions, Failure, is_of_one_connection};
pub use self::listener::{Listener, Remote, Transport};
use self::service::TowerService;
pub use self::service::{HttpService, RemoteAddr};
use crate::tls::TlsAcceptor;

/// Connections at a time by default.
const MOST_CONNECTIONS: usize = 32_768;
/// How long a server that is out of descriptors waits before it tries again.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Serves HTTP/1 (and HTTP/2 over TLS, where both sides want it) to the connections of `listener`,
/// each in a task of its own, until it is stopped.
///
/// Nothing is served before it is awaited or spawned. When it is dropped, its connections finish
/// what they have begun, as after [`Server::stop_on`].
///
/// ```
/// use std::convert::Infallible;
/// use http_body_util::Full;
/// use windlass_http::{Client, Request, Response, body::{Bytes, Incoming, read_all}, serve, service_fn};
/// use windlass_runtime::Runtime;
/// use windlass_io::net::TcpListener;
/// use windlass_sync::CancellationToken;
///
/// let hello = service_fn(|_: Request<Incoming>| async {
///     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
/// });
/// Runtime::new()?.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let url = format!("http://{}/", listener.local_addr()?);
///     let stop = CancellationToken::new();
///     let server = windlass_runtime::spawn(serve(listener, hello).stop_on(&stop).into_future());
///
///     let response = Client::new().get(&url).await?;
///     assert_eq!(read_all(response.into_body(), 1024).await?, "hello");
///
///     stop.cancel();
///     let served = server.await??;
///     assert_eq!((served.connections, served.aborted), (1, 0));
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// })?;
/// # use std::future::IntoFuture;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// A function of one's own takes what `serve` takes by the same two bounds. `Listener` and
/// `HttpService` say all that is needed of their associated types, too.
///
/// ```
/// use std::time::Duration;
/// use windlass_http::{HttpService, Listener, Served, Server, serve};
/// use windlass_sync::CancellationToken;
///
/// /// The limits that all servers of this program have.
/// fn limited<L: Listener, S: HttpService>(listener: L, service: S) -> Server<L, S> {
///     serve(listener, service).max_connections(100).header_timeout(Duration::from_secs(5))
/// }
///
/// async fn serve_for<L, S>(listener: L, service: S, time: Duration) -> std::io::Result<Served>
/// where
///     L: Listener,
///     S: HttpService,
/// {
///     let stop = CancellationToken::new();
///     let server = limited(listener, service).stop_on(&stop);
///     let server = windlass_runtime::spawn(async move { server.await });
///     windlass_runtime::time::sleep(time).await;
///     stop.cancel();
///     server.await.map_err(std::io::Error::other)?
/// }
/// # use http_body_util::Full;
/// # use windlass_http::{Request, Response, body::{Bytes, Incoming}, service_fn};
/// #
/// # let hello = service_fn(|_: Request<Incoming>| async {
/// #     Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("hello"))))
/// # });
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// #     let listener = windlass_io::net::TcpListener::bind("127.0.0.1:0").await?;
/// #     assert_eq!(serve_for(listener, hello, Duration::from_millis(10)).await?.connections, 0);
/// #     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn serve<L: Listener, S: HttpService>(listener: L, service: S) -> Server<L, S> {
    Server {
        listener,
        service,
        stop: CancellationToken::new(),
        most_connections: MOST_CONNECTIONS,
        remote_addr: false,
        options: ConnectionOptions {
            header_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(30),
            http2_only: false,
            tls: None,
        },
    }
}

/// A server to be: [`serve`] makes it, `.await` runs it.
#[must_use = "a server does nothing unless awaited"]
pub struct Server<L, S> {
    listener: L,
    service: S,
    stop: CancellationToken,
    most_connections: usize,
    remote_addr: bool,
    options: ConnectionOptions,
}

impl<L: Listener, S: HttpService> Server<L, S> {
    /// Stops when `token` is cancelled: no new connections, idle ones are closed, what has begun is
    /// answered within [`drain_within`](Server::drain_within).
    pub fn stop_on(mut self, token: &CancellationToken) -> Self {
        self.stop = token.child();
        self
    }

    /// How long requests that have begun may take after the server was stopped; then their
    /// connections are closed. 30 seconds by default.
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.options.drain = time;
        self
    }

    /// Speaks TLS on every connection.
    pub fn tls(mut self, acceptor: TlsAcceptor) -> Self {
        self.options.tls = Some(acceptor);
        self
    }

    /// Speaks HTTP/2 only, also without TLS.
    pub fn http2_only(mut self) -> Self {
        self.options.http2_only = true;
        self
    }

    /// Connections at a time; more wait in the listener's backlog. 32,768 by default.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.most_connections = most.max(1);
        self
    }

    /// How long a request's head may take to arrive; none: no limit. 30 seconds by default. An idle
    /// connection is closed after the same time.
    pub fn header_timeout(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.options.header_timeout = time.into();
        self
    }

    /// How long a TLS handshake may take: 10 seconds by default.
    pub fn handshake_timeout(mut self, time: Duration) -> Self {
        self.options.handshake_timeout = time;
        self
    }

    /// Puts a [`RemoteAddr`] into the extensions of each request.
    pub fn with_remote_addr(mut self) -> Self {
        self.remote_addr = true;
        self
    }

    async fn run(mut self) -> io::Result<Served> {
        let counts = Arc::new(ServerCounts {
            address: self.listener.local_address(),
            ..ServerCounts::default()
        });
        if let Ok(runtime) = Handle::try_current() {
            let observed: Weak<dyn Observe> = Arc::<ServerCounts>::downgrade(&counts);
            runtime.add_observed(observed);
        }
        let room = Arc::new(Semaphore::new(self.most_connections));
        // However this ends, the connections are stopped.
        let _told = self.stop.clone().drop_guard();
        let result = self.accept_all(&counts, &room).await;
        self.stop.cancel();
        // All room is free when no connection is left. Each ends within the time to drain.
        drop(room.acquire_weight(self.most_connections).await);
        result.map(|()| counts.report())
    }

    /// Accepts until the server is stopped.
    async fn accept_all(
        &mut self,
        counts: &Arc<ServerCounts>,
        room: &Arc<Semaphore>,
    ) -> io::Result<()> {
        let options = Arc::new(self.options.clone());
        loop {
            let next = async {
                let place = room.clone().acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let Some((place, accepted)) = self.stop.run_until_cancelled(next).await else {
                return Ok(());
            };
            let (stream, remote) = match accepted {
                Ok(connection) => connection,
                Err(error) if is_of_one_connection(&error) => {
                    counts.not_accepted.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Err(error) if is_out_of_resources(&error) => {
                    counts.not_accepted.fetch_add(1, Ordering::Relaxed);
                    // There is no notification when a descriptor is free: the one place that tries
                    // again.
                    let _ = self
                        .stop
                        .run_until_cancelled(sleep(OUT_OF_DESCRIPTORS))
                        .await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            counts.connections.fetch_add(1, Ordering::Relaxed);
            let service = TowerService {
                service: self.service.clone(),
                remote: self.remote_addr.then_some(remote),
            };
            // Made here: a task that never begins has to count as closed, too.
            let open = OpenConnection::new(counts);
            let (options, stop) = (options.clone(), self.stop.clone());
            drop(spawn(async move {
                let _place = place;
                let counts = &open.0;
                match options.serve(stream, service, &stop).await {
                    Ok(()) => {}
                    Err(Failure::Broken(error)) => {
                        tracing::debug!(target: "windlass::http", error, "a connection broke");
                        counts.broken.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(Failure::NotDrained) => {
                        counts.aborted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
    }
}

fn is_out_of_resources(error: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM.
    const OUT_OF: [i32; 4] = [24, 23, 105, 12];
    error
        .raw_os_error()
        .is_some_and(|code| OUT_OF.contains(&code))
}

#[derive(Debug, Default)]
struct ServerCounts {
    /// Where the server listens, for people.
    address: Option<String>,
    /// Connections that are open.
    open: AtomicUsize,
    connections: AtomicU64,
    not_accepted: AtomicU64,
    broken: AtomicU64,
    aborted: AtomicU64,
}

impl ServerCounts {
    fn report(&self) -> Served {
        // Relaxed: a connection that was counted has given its permit back before.
        Served {
            connections: self.connections.load(Ordering::Relaxed),
            not_accepted: self.not_accepted.load(Ordering::Relaxed),
            broken: self.broken.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }
}

/// A connection that counts as open until this is dropped.
struct OpenConnection(Arc<ServerCounts>);

impl OpenConnection {
    fn new(counts: &Arc<ServerCounts>) -> OpenConnection {
        counts.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(counts.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Observe for ServerCounts {
    fn source(&self) -> &'static str {
        "http_server"
    }

    fn label(&self) -> Option<String> {
        self.address.clone()
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let served = self.report();
        take(Sample::gauge("open", self.open.load(Ordering::Relaxed)));
        take(Sample::counter("accepted", served.connections));
        take(Sample::counter("not_accepted", served.not_accepted));
        take(Sample::counter("broken", served.broken));
        take(Sample::counter("aborted", served.aborted));
    }

    /// Each connection is a task, and an entity there.
    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

/// What a server has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Served {
    /// Connections that were accepted.
    pub connections: u64,
    /// Attempts to accept that failed: broken before their turn, or no descriptor was left.
    pub not_accepted: u64,
    /// Connections that ended badly: broken by the other side, late, or not HTTP.
    pub broken: u64,
    /// Connections that were still busy when the time to drain was over.
    pub aborted: u64,
}

impl<L: Listener, S: HttpService> IntoFuture for Server<L, S> {
    type Output = io::Result<Served>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<Served>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<L, S> fmt::Debug for Server<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("options", &self.options)
            .field("max_connections", &self.most_connections)
            .finish_non_exhaustive()
    }
}
