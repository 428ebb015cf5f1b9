//! Components: what users write.

mod descriptor;

pub use descriptor::{Catalog, ConfigField, ConfigKind, Descriptor, Port};
