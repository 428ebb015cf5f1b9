//! A function as a service.

use std::fmt;
use std::future::Future;
use std::task::{Context, Poll};

/// Makes a tower service of an async function from request to response.
pub fn service_fn<F>(function: F) -> ServiceFn<F> {
    ServiceFn(function)
}

/// The service of [`service_fn`].
#[derive(Clone, Copy)]
pub struct ServiceFn<F>(F);

impl<F, Request, Fut, Response, Error> tower_service::Service<Request> for ServiceFn<F>
where
    F: FnMut(Request) -> Fut,
    Fut: Future<Output = Result<Response, Error>>,
{
    type Response = Response;
    type Error = Error;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Fut {
        (self.0)(request)
    }
}

impl<F> fmt::Debug for ServiceFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceFn").finish_non_exhaustive()
    }
}
