//! Bodies of requests and responses.

use std::error::Error;
use std::fmt;
use std::pin::pin;

use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};

pub use bytes::Bytes;
pub use http_body_util as util;
pub use hyper::body::Incoming;

use crate::BoxError;

/// A body of any kind, as the client sends it.
pub type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

/// A body with nothing in it.
pub fn empty() -> AnyBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body of these bytes.
pub fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Reads a body to its end, but not more than `limit` bytes of it.
///
/// Not cancel-safe: what was read before the drop is lost.
pub async fn read_all<B>(body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut all: Vec<u8> = Vec::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ReadError::Broken(error.into()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let before = first.as_ref().map_or(all.len(), Bytes::len);
        if before + data.len() > limit {
            return Err(ReadError::TooLong { limit });
        }
        // Most bodies are one piece, which is not copied.
        match (before, first.take()) {
            (0, _) => first = Some(data),
            (_, Some(piece)) => {
                all.extend_from_slice(&piece);
                all.extend_from_slice(&data);
            }
            (_, None) => all.extend_from_slice(&data),
        }
    }
    Ok(first.unwrap_or_else(|| all.into()))
}

/// Why a body was not read to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// It is longer than that.
    TooLong {
        /// What was allowed.
        limit: usize,
    },
    /// The connection ended in the middle of it, or what came is no HTTP.
    Broken(BoxError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooLong { limit } => write!(
                f,
                "the body is longer than {limit} bytes; allow more, or read it piece by piece"
            ),
            ReadError::Broken(error) => write!(f, "the body did not arrive whole: {error}"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::TooLong { .. } => None,
            ReadError::Broken(error) => Some(&**error),
        }
    }
}
