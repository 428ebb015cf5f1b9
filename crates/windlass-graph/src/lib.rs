//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod check;
pub mod compile;
pub mod component;
pub mod diagnostic;
mod json_schema;
mod limits;
pub mod lint;
pub mod load;
pub mod model;
pub mod source;
mod suggest;

pub use json_schema::json_schema;
pub use limits::Limits;
