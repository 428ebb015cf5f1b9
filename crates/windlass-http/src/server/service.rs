//! A tower service, as hyper calls it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;

use super::listener::Remote;
use crate::BoxError;

/// What can answer requests: every tower service that can be cloned and sent, an axum `Router` for
/// one. Implemented for all of them; not to be implemented by hand.
pub trait HttpService: Clone + Send + 'static {
    /// The body of its answers.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
    /// Why it could not answer; the connection ends then.
    type Error: Into<BoxError> + Send + 'static;
    /// Its answer to come.
    type Future: Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static;

    /// Waits until the service takes a request.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;
    /// Answers a request.
    fn call(&mut self, request: Request<Incoming>) -> Self::Future;
}

impl<S, B> HttpService for S
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        tower_service::Service::poll_ready(self, cx)
    }

    fn call(&mut self, request: Request<Incoming>) -> S::Future {
        tower_service::Service::call(self, request)
    }
}

/// Where a request came from; in its extensions if the server puts it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteAddr<A>(pub A);

/// The service of one connection.
#[derive(Debug)]
pub(super) struct TowerService<S, A> {
    pub(super) service: S,
    pub(super) remote: Option<A>,
}

impl<S: HttpService, A: Remote> hyper::service::Service<Request<Incoming>> for TowerService<S, A> {
    type Response = Response<S::Body>;
    type Error = S::Error;
    type Future = Answer<S>;

    fn call(&self, mut request: Request<Incoming>) -> Answer<S> {
        if let Some(remote) = &self.remote {
            request.extensions_mut().insert(RemoteAddr(remote.clone()));
        }
        let mut service = self.service.clone();
        // Most are always ready: asked here, the request need not be kept. One that is not is asked
        // again by the future, which has a waker.
        let mut nobody = Context::from_waker(Waker::noop());
        match service.poll_ready(&mut nobody) {
            Poll::Ready(Ok(())) => Answer::Called {
                future: service.call(request),
            },
            Poll::Ready(Err(error)) => Answer::Failed { error: Some(error) },
            Poll::Pending => Answer::Waiting {
                service,
                request: Some(request),
            },
        }
    }
}

pin_project! {
    /// Waits until the service takes the request, then for its answer.
    #[project = AnswerProjection]
    pub(super) enum Answer<S: HttpService> {
        Waiting {
            service: S,
            request: Option<Request<Incoming>>,
        },
        Called {
            #[pin]
            future: S::Future,
        },
        Failed { error: Option<S::Error> },
    }
}

impl<S: HttpService> Future for Answer<S> {
    type Output = Result<Response<S::Body>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let future = match self.as_mut().project() {
                AnswerProjection::Called { future } => return future.poll(cx),
                AnswerProjection::Failed { error } => match error.take() {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => panic!("an answer was polled again after it had ended"),
                },
                AnswerProjection::Waiting { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    let Some(request) = request.take() else {
                        panic!("an answer was polled again after it had ended");
                    };
                    service.call(request)
                }
            };
            self.set(Answer::Called { future });
        }
    }
}
