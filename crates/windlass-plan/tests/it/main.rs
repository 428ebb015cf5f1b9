//! What graph files mean, one module per promise.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod arbitrary;
mod borders;
mod broken;
mod checks;
mod examples;
mod expressions;
mod limits;
mod lints;
mod loader;
mod partial;
mod scale;
mod schema;
mod sources;
mod subgraphs;
mod support;
mod templates;
mod yaml;
