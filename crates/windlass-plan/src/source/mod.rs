//! The text of a graph file: as nodes that know where they stand in it, and as a map from paths to
//! places.

mod map;
mod node;
mod parse;
mod scalar;
mod span;

pub use map::SourceMap;
pub use span::Span;

pub(crate) use node::{Entry, Key, Node, Scalar, Style, Value};
pub(crate) use parse::parse;
pub(crate) use scalar::Plain;
