//! Components: what users write.

pub mod built_in;
mod descriptor;

pub use descriptor::{Catalog, ConfigField, ConfigKind, Descriptor, Port};
