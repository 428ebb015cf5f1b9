//! HTTP servers and clients on the Windlass runtime: hyper below, tower services above, TLS by
//! rustls.
//!
//! [`serve`] runs any tower service, an axum `Router` for one; [`Client`] sends requests over
//! pooled connections. What hyper needs of a runtime is in [`rt`], for those who use hyper by hand.
//!
//! Everything waits on the runtime's own sockets and timers, so servers and clients run unchanged
//! in the simulator, over its network.
#![forbid(unsafe_code)]

pub mod body;
mod client;
pub mod rt;
mod server;
mod service_fn;
mod tls;

pub use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
pub use hyper;

pub use self::client::{Client, ClientBuilder, ClientError, ResponseBody};
pub use self::server::{
    HttpService, Listener, Remote, RemoteAddr, Served, Server, Transport, serve,
};
pub use self::service_fn::{ServiceFn, service_fn};
pub use self::tls::{ClientStream, ServerStream, TlsAcceptor, TlsConnector, TlsError, rustls};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
