//! What the tests share: services, and servers that end with the test.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use windlass_core::task::JoinHandle;
use windlass_http::HttpService;
use windlass_http::ResponseBody;
use windlass_http::body::util::Full;
use windlass_http::body::{Bytes, Incoming, read_all};
use windlass_http::{Request, Response, Served, Server, serve, service_fn};
use windlass_io::net::TcpListener;
use windlass_runtime::{Runtime, spawn, time};
use windlass_sync::CancellationToken;

pub(crate) type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> =
    std::result::Result<T, E>;

pub(crate) fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("it builds")
}

/// Generous: ten times what a busy machine needs.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A server of this test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<io::Result<Served>>,
}

impl Running {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn end(self) -> Result<Served> {
        self.stop.cancel();
        Ok(time::timeout(LONG, self.task).await???)
    }
}

/// Serves on a free port, as `change` says.
pub(crate) async fn start<S: HttpService>(
    service: S,
    change: impl FnOnce(Server<TcpListener, S>) -> Server<TcpListener, S>,
) -> Result<Running> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let server = change(serve(listener, service).stop_on(&stop));
    Ok(Running {
        address,
        stop,
        task: spawn(server.into_future()),
    })
}

/// Answers by the path: `/echo` the body, `/slow` after a second, `/long` ten megabytes, `/panic`
/// not at all; everything else with itself.
pub(crate) fn by_path() -> impl HttpService {
    service_fn(|request: Request<Incoming>| async move {
        let body = match request.uri().path() {
            "/echo" => match read_all(request.into_body(), 1 << 20).await {
                Ok(body) => body,
                Err(error) => Bytes::from(error.to_string()),
            },
            "/slow" => {
                time::sleep(Duration::from_secs(1)).await;
                Bytes::from_static(b"slow")
            }
            "/never" => std::future::pending().await,
            "/long" => Bytes::from(vec![7; 10 << 20]),
            "/panic" => panic!("the service was asked to"),
            path => Bytes::from(path.to_owned()),
        };
        Ok::<_, Infallible>(Response::new(Full::new(body)))
    })
}

/// The text of a response.
pub(crate) async fn text(response: Response<ResponseBody>) -> Result<String> {
    let body = read_all(response.into_body(), 64 << 20).await?;
    Ok(String::from_utf8(body.to_vec())?)
}
