//! The component types that the command knows.

use windlass::graph::component::Registry;

/// The built-in types, those of `windlass::components`, and `windlass.lua`.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::built_in();
    windlass::components::register(&mut registry);
    windlass::lua::register_with_output(&mut registry, |printed| crate::run::print(printed, false));
    registry
}
