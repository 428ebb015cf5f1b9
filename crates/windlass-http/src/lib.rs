//! HTTP servers and clients on the Windlass runtime: hyper below, tower services above, TLS by rustls.
//!
//! [`serve`] runs any tower service, an axum `Router` for one; [`Client`] sends requests over pooled
//! connections. What hyper needs of a runtime is in [`rt`], for those who use hyper by hand.
//!
//! Everything waits on the runtime's own sockets and timers, so servers and clients run unchanged in
//! the simulator, over its network.
#![forbid(unsafe_code)]

pub mod body;
pub mod client;
pub mod rt;
pub mod server;
mod service_fn;
pub mod tls;

pub use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
pub use hyper;

pub use self::client::{Client, ClientError};
pub use self::server::{RemoteAddr, Served, Server, serve};
pub use self::service_fn::{ServiceFn, service_fn};
pub use self::tls::{TlsAcceptor, TlsConnector, TlsError};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
