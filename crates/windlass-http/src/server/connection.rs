//! One connection, from its handshake to its end.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use windlass_runtime::time::timeout;
use windlass_sync::CancellationToken;

use super::listener::{Remote, Transport};
use super::service::{HttpService, TowerService};
use crate::BoxError;
use crate::rt::{Executor, Io, Timer};
use crate::tls::TlsAcceptor;

/// What all connections of a server have in common.
#[derive(Debug, Clone)]
pub(super) struct ConnectionOptions {
    pub(super) header_timeout: Option<Duration>,
    pub(super) handshake_timeout: Duration,
    pub(super) drain: Duration,
    pub(super) http2_only: bool,
    pub(super) tls: Option<TlsAcceptor>,
}

/// Why a connection ended badly.
#[derive(Debug)]
pub(super) enum Failure {
    /// The other side broke it, or what it sent is no HTTP.
    Broken(BoxError),
    /// It was still busy when the time to drain was over.
    NotDrained,
}

impl ConnectionOptions {
    /// Serves requests from `stream` until it ends, or `stop` is cancelled and what had begun is
    /// answered.
    ///
    /// Each kind of connection is a future of its own and boxed but for the usual one: a task is as
    /// large as the largest future that it may become.
    pub(super) async fn serve<IO: Transport, S: HttpService, A: Remote>(
        &self,
        stream: IO,
        service: TowerService<S, A>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        match &self.tls {
            Some(tls) => Box::pin(self.serve_tls(tls, stream, service, stop)).await,
            None if self.http2_only => Box::pin(self.serve_http2(stream, service, stop)).await,
            None => self.serve_http1(stream, service, stop).await,
        }
    }

    async fn serve_tls<IO: Transport, S: HttpService, A: Remote>(
        &self,
        tls: &TlsAcceptor,
        stream: IO,
        service: TowerService<S, A>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let handshake = timeout(self.handshake_timeout, tls.accept(stream));
        let stream = match stop.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => stream,
            Some(Ok(Err(error))) => return Err(Failure::Broken(error.into())),
            Some(Err(late)) => return Err(Failure::Broken(late.into())),
            // It has not asked for anything yet.
            None => return Ok(()),
        };
        if self.http2_only || stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.serve_http2(stream, service, stop).await
        } else {
            self.serve_http1(stream, service, stop).await
        }
    }

    async fn serve_http1<IO: Transport, S: HttpService, A: Remote>(
        &self,
        stream: IO,
        service: TowerService<S, A>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let connection = http1::Builder::new()
            .timer(Timer)
            .header_read_timeout(self.header_timeout)
            .serve_connection(Io::new(stream), service)
            .with_upgrades();
        self.drive(connection, stop).await
    }

    async fn serve_http2<IO: Transport, S: HttpService, A: Remote>(
        &self,
        stream: IO,
        service: TowerService<S, A>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let connection = http2::Builder::new(Executor)
            .timer(Timer)
            .serve_connection(Io::new(stream), service);
        self.drive(connection, stop).await
    }

    async fn drive<C: Connection>(
        &self,
        connection: C,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let mut connection = pin!(connection);
        let mut stopped = stop.cancelled();
        let ended = poll_fn(|cx| match connection.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Pin::new(&mut stopped).poll(cx).map(|()| None),
        });
        let result = match ended.await {
            Some(result) => result,
            None => {
                connection.as_mut().finish();
                match timeout(self.drain, connection).await {
                    Ok(result) => result,
                    Err(_) => return Err(Failure::NotDrained),
                }
            }
        };
        result.map_err(|error| Failure::Broken(error.into()))
    }
}

/// A connection that can be asked to end after what it has begun.
trait Connection: Future<Output = hyper::Result<()>> {
    fn finish(self: Pin<&mut Self>);
}

impl<IO: Transport, S: HttpService, A: Remote> Connection
    for http1::UpgradeableConnection<Io<IO>, TowerService<S, A>>
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<IO: Transport, S: HttpService, A: Remote> Connection
    for http2::Connection<Io<IO>, TowerService<S, A>, Executor>
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// True if the listener itself is fine and the next connection may well be, too.
pub(super) fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
