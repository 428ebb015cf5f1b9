//! tokio beside Windlass: libraries that know no other runtime run unmodified.
//!
//! | item | what it is |
//! |---|---|
//! | [`with_tokio`], [`try_with_tokio`] | a future that finds a tokio runtime while it is polled |
//! | [`TokioCompat`] | a stream with tokio's `AsyncRead` and `AsyncWrite` |
//!
//! This is the only crate below the facade that depends on tokio. Applications use the `windlass`
//! crate with the feature `tokio-guest`.
#![forbid(unsafe_code)]

mod compat;
mod guest;

pub use compat::TokioCompat;
pub use guest::{GuestError, WithTokio, try_with_tokio, with_tokio};
