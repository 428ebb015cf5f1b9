//! The component types that the command knows.

use windlass::graph::component::Registry;

/// The built-in types, and those of `windlass::components`.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::built_in();
    windlass::components::register(&mut registry);
    registry
}
