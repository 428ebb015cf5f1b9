//! What can go wrong with a request.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http::Uri;

/// Why there is no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The request's URI is not of the form `http://host/path` or `https://host/path`.
    NoServer(Uri),
    /// The request cannot be built: its URI, method or a header is not valid.
    Invalid(http::Error),
    /// No connection to the server.
    Connect {
        /// The server that the client tried to reach.
        server: String,
        /// The reason of the failure.
        source: io::Error,
    },
    /// The server was reached, but the TLS handshake failed.
    Tls {
        /// The server that the client tried to reach.
        server: String,
        /// The reason of the failure.
        source: io::Error,
    },
    /// The connection broke, or what came over it is no HTTP.
    Broken(hyper::Error),
    /// It took too long.
    TimedOut {
        /// What took so long.
        what: &'static str,
        /// How long we waited.
        after: Duration,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NoServer(uri) => {
                write!(
                    f,
                    "{uri} names no server: write http://host/path or https://host/path"
                )
            }
            ClientError::Invalid(error) => write!(f, "this is no request: {error}"),
            ClientError::Connect { server, source } => {
                write!(
                    f,
                    "no connection to {server} ({source}); is it running, and reachable from here?"
                )
            }
            ClientError::Tls { server, source } => {
                write!(
                    f,
                    "no TLS with {server} ({source}); check its certificate and whom this client trusts"
                )
            }
            ClientError::Broken(error) => {
                write!(
                    f,
                    "the exchange broke ({error}); whether the server saw the request is not known"
                )
            }
            ClientError::TimedOut { what, after } => {
                write!(
                    f,
                    "{what} took more than {after:?}; try again later or allow more"
                )
            }
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ClientError::NoServer(_) | ClientError::TimedOut { .. } => None,
            ClientError::Invalid(error) => Some(error),
            ClientError::Connect { source, .. } | ClientError::Tls { source, .. } => Some(source),
            ClientError::Broken(error) => Some(error),
        }
    }
}
