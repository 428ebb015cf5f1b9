//! Graph files without a runtime: what an editor, a linter or a server needs of them.
//!
//! | module | what it does |
//! |---|---|
//! | [`source`], [`load()`] | reads a file, with the place of everything in it |
//! | [`model`] | what a file describes: components, edges, lanes, loops |
//! | [`catalog`] | what is known of component types: ports, configuration |
//! | [`expression`] | the language of conditions and transformations |
//! | [`check`], [`lint`], [`diagnostic`] | finds mistakes, and says where they are and what to do |
//! | [`compile`] | makes the plan of a graph |
//! | [`render`] | draws a plan |
//!
//! Nothing here runs a graph: `windlass-graph` does. Applications use `windlass::graph`.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod check;
pub mod compile;
pub mod diagnostic;
mod diff;
mod explain;
pub mod expression;
mod json_schema;
mod limits;
pub mod lint;
mod load;
pub mod model;
pub mod render;
pub mod source;
mod suggest;

pub use diff::PlanDiff;
pub use explain::{Explained, ExplainedRegion, Explanation};
pub use json_schema::json_schema;
pub use limits::Limits;
pub use load::{LoadErrors, LoadOptions, LoadProblem, Loaded, Partial, load, values};
/// For the macros of this crate.
#[doc(hidden)]
pub use serde;
