//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod compile;
pub mod component;
pub mod diagnostic;
pub mod model;
