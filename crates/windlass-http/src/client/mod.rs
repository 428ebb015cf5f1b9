//! Sending HTTP requests.

mod error;
mod pool;
mod response;

use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version, header};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::client::conn::{TrySendError, http1, http2};
use windlass_core::sync::Arc;
use windlass_io::net::TcpStream;
use windlass_runtime::spawn;
use windlass_runtime::time::{sleep_until, timeout};

pub use self::error::ClientError;
use self::pool::{Origin, Pool, Sender};
pub use self::response::ResponseBody;
use self::response::ResponseEnd;
use crate::BoxError;
use crate::body::{self, AnyBody};
use crate::rt::{Executor, Io, Timer};
use crate::tls::TlsConnector;

/// Sends requests and keeps connections for the next ones; clones share them.
///
/// Redirects, cookies and retries are the caller's. A request on a connection that the server
/// closed meanwhile is sent again on a new one, if the server cannot have seen it, or if it may be
/// asked twice: its method is safe (GET, HEAD, OPTIONS, TRACE), it has no body, and no answer came.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use windlass_http::{Client, body::read_all};
///
/// let client = Client::new();
/// let response = client.get("https://example.org/").await?;
/// println!("{}: {} bytes", response.status(), read_all(response.into_body(), 1 << 20).await?.len());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<ClientShared>);

struct ClientShared {
    pool: Pool,
    tls: TlsConnector,
    connect_timeout: Duration,
    response_timeout: Option<Duration>,
}

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    tls: Option<TlsConnector>,
    connect_timeout: Duration,
    response_timeout: Option<Duration>,
    idle_timeout: Duration,
    max_idle_per_server: usize,
}

impl ClientBuilder {
    /// The certificates to trust: by default the authorities that browsers trust.
    pub fn tls(mut self, tls: TlsConnector) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long a connection and its handshake may take: 10 seconds by default.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// How long the head of a response may take; none: no limit. 30 seconds by default. The body
    /// is the caller's: read it within a `timeout`.
    pub fn response_timeout(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.response_timeout = time.into();
        self
    }

    /// How long an unused connection is kept: 90 seconds by default.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = time;
        self
    }

    /// How many connections to one server are kept: 32 by default.
    pub fn max_idle_per_server(mut self, most: usize) -> Self {
        self.max_idle_per_server = most.max(1);
        self
    }

    /// Makes the client.
    pub fn build(self) -> Client {
        Client(Arc::new(ClientShared {
            pool: Pool::new(self.max_idle_per_server, self.idle_timeout),
            tls: self.tls.unwrap_or_default(),
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
        }))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client with the usual settings.
    pub fn new() -> Client {
        Client::builder().build()
    }

    /// Settings for a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            tls: None,
            connect_timeout: Duration::from_secs(10),
            response_timeout: Some(Duration::from_secs(30)),
            idle_timeout: Duration::from_secs(90),
            max_idle_per_server: 32,
        }
    }

    /// Asks for `uri`.
    ///
    /// Cancel-safe in the sense that a dropped request is ended; whether the server has seen it is
    /// not known.
    pub async fn get(&self, uri: impl AsRef<str>) -> Result<Response<ResponseBody>, ClientError> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(uri.as_ref())
            .body(body::empty())
            .map_err(ClientError::Invalid)?;
        self.send(request).await
    }

    /// Sends a request; its URI says where to. Gives the response as soon as its head is there.
    ///
    /// As cancel-safe as [`get`](Client::get).
    pub async fn request<B>(
        &self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, ClientError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.send(request.map(|body| body.map_err(Into::into).boxed_unsync()))
            .await
    }

    /// Connections that are kept, in use or not.
    pub fn kept_connections(&self) -> usize {
        self.0.pool.len()
    }

    async fn send(
        &self,
        mut request: Request<AnyBody>,
    ) -> Result<Response<ResponseBody>, ClientError> {
        let origin = origin_of(request.uri())?;
        let uri = request.uri().clone();
        // A kept connection may have been closed just now; a new one is tried once.
        while let Some(mut sender) = self.0.pool.take(&origin) {
            if !sender.ready().await {
                continue;
            }
            let copy = copy_if_safe(&request);
            request = match (self.exchange(&origin, sender, request).await, copy) {
                (Ok(Ok(response)), _) => return Ok(response),
                (Ok(Err(not_seen)), _) => not_seen.0,
                (Err(ClientError::Broken(error)), Some(copy)) if has_no_answer(&error) => copy,
                (Err(error), _) => return Err(error),
            };
            *request.uri_mut() = uri.clone();
        }
        let sender = self.connect(&origin).await?;
        match self.exchange(&origin, sender, request).await? {
            Ok(response) => Ok(response),
            Err(not_seen) => Err(ClientError::Broken(not_seen.1)),
        }
    }

    /// Sends the request over this connection. The inner error hands it back: the server has not
    /// seen it.
    async fn exchange(
        &self,
        origin: &Origin,
        mut sender: Sender,
        mut request: Request<AnyBody>,
    ) -> Result<Result<Response<ResponseBody>, UnsentRequest>, ClientError> {
        let answer = async {
            match &mut sender {
                Sender::Http1(sender) => {
                    to_http1(&mut request, origin)?;
                    Ok(sender.try_send_request(request).await)
                }
                Sender::Http2(sender) => {
                    *request.version_mut() = Version::HTTP_2;
                    Ok(sender.try_send_request(request).await)
                }
            }
        };
        let after = self.0.response_timeout;
        match within(after, "the response", answer).await?? {
            Ok(response) => {
                let over = ResponseEnd::default();
                self.keep(origin, sender, over.clone());
                Ok(Ok(response.map(|body| ResponseBody::new(body, over))))
            }
            Err(error) => refused(error).map(Err),
        }
    }

    fn keep(&self, origin: &Origin, sender: Sender, over: ResponseEnd) {
        if !self.0.pool.put(origin, sender, over) {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        drop(spawn(async move {
            while let Some(next) = inner.upgrade().and_then(|inner| inner.pool.sweep()) {
                sleep_until(next).await;
            }
        }));
    }

    async fn connect(&self, origin: &Origin) -> Result<Sender, ClientError> {
        let Origin { tls, host, port } = origin;
        let server = || format!("{host}:{port}");
        let reach = async {
            let host_only = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host_only, *port))
                .await
                .map_err(|source| ClientError::Connect {
                    server: server(),
                    source,
                })?;
            // Requests are not to wait for company. A connection that is broken says so later.
            let _ = stream.set_nodelay(true);
            if !tls {
                return start_http1(Io::new(stream)).await;
            }
            let stream =
                self.0
                    .tls
                    .connect(host, stream)
                    .await
                    .map_err(|source| ClientError::Tls {
                        server: server(),
                        source,
                    })?;
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                start_http2(Io::new(stream)).await
            } else {
                start_http1(Io::new(stream)).await
            }
        };
        within(Some(self.0.connect_timeout), "the connection", reach).await?
    }
}

/// The same request once more, if it does no harm to ask twice.
fn copy_if_safe(request: &Request<AnyBody>) -> Option<Request<AnyBody>> {
    if !request.method().is_safe() || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// The connection ended, and what had come by then is no answer.
fn has_no_answer(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    let ended = |io: &io::Error| {
        matches!(
            io.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    };
    error.is_incomplete_message() || error.is_closed() || io.is_some_and(ended)
}

/// The request that no server has seen, and why.
struct UnsentRequest(Request<AnyBody>, hyper::Error);

fn refused(mut error: TrySendError<Request<AnyBody>>) -> Result<UnsentRequest, ClientError> {
    match error.take_message() {
        Some(request) => Ok(UnsentRequest(request, error.into_error())),
        None => Err(ClientError::Broken(error.into_error())),
    }
}

async fn within<F: Future>(
    time: Option<Duration>,
    what: &'static str,
    future: F,
) -> Result<F::Output, ClientError> {
    let Some(after) = time else {
        return Ok(future.await);
    };
    timeout(after, future)
        .await
        .map_err(|_| ClientError::TimedOut { what, after })
}

async fn start_http1<S>(stream: Io<S>) -> Result<Sender, ClientError>
where
    Io<S>: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream)
        .await
        .map_err(ClientError::Broken)?;
    drop(spawn(connection.with_upgrades()));
    Ok(Sender::Http1(sender))
}

async fn start_http2<S>(stream: Io<S>) -> Result<Sender, ClientError>
where
    Io<S>: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http2::Builder::new(Executor)
        .timer(Timer)
        .handshake(stream)
        .await
        .map_err(ClientError::Broken)?;
    drop(spawn(connection));
    Ok(Sender::Http2(sender))
}

fn origin_of(uri: &Uri) -> Result<Origin, ClientError> {
    let no_server = || ClientError::NoServer(uri.clone());
    let tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        _ => return Err(no_server()),
    };
    let host = uri.host().filter(|host| !host.is_empty());
    Ok(Origin {
        tls,
        host: host.ok_or_else(no_server)?.to_owned(),
        port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
    })
}

/// HTTP/1 has the host in a header and only the path in its first line.
fn to_http1(request: &mut Request<AnyBody>, origin: &Origin) -> Result<(), ClientError> {
    *request.version_mut() = Version::HTTP_11;
    if !request.headers().contains_key(header::HOST) {
        let usual = if origin.tls { 443 } else { 80 };
        let host = if origin.port == usual {
            origin.host.clone()
        } else {
            format!("{}:{}", origin.host, origin.port)
        };
        let host = HeaderValue::from_maybe_shared(Bytes::from(host))
            .map_err(|error| ClientError::Invalid(error.into()))?;
        request.headers_mut().insert(header::HOST, host);
    }
    let path = request.uri().path_and_query();
    let path = path.cloned().unwrap_or(PathAndQuery::from_static("/"));
    if request.method() != Method::CONNECT {
        *request.uri_mut() = Uri::from(path);
    }
    Ok(())
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("kept_connections", &self.kept_connections())
            .field("connect_timeout", &self.0.connect_timeout)
            .field("response_timeout", &self.0.response_timeout)
            .finish_non_exhaustive()
    }
}
