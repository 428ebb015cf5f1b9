//! Which component types there are, and how they are made.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{
    Catalog, Component, ConfigError, Descriptor, Failure, Invocation, Output, Reentrant, Setup,
    built_in,
};
use windlass_plan::catalog::present_name;
use windlass_plan::model::Config;
use windlass_value::Payload;

/// Makes a component.
pub type Maker = Arc<dyn Fn() -> Box<dyn Component> + Send + Sync>;

/// The component types that a graph can use, by name.
///
/// ```
/// use windlass_graph::component::{Descriptor, Registry};
///
/// let mut registry = Registry::built_in();
/// registry.function(
///     "mine.Print",
///     Descriptor::new().input("in"),
///     |invocation| {
///         for message in invocation.inputs() {
///             println!("{:?}", message.payload());
///         }
///         Ok(())
///     },
/// );
/// assert!(registry.contains("mine.Print"));
/// assert!(registry.contains("windlass.transform.Identity"));
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    types: BTreeMap<String, Type>,
}

#[derive(Clone)]
struct Type {
    descriptor: Descriptor,
    maker: Maker,
}

impl Registry {
    /// Without any type.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// With the built-in types.
    pub fn built_in() -> Registry {
        let mut registry = Registry::new();
        built_in::register(&mut registry);
        registry
    }

    /// Adds a type, or replaces the one of this name.
    pub fn register<C>(&mut self, type_name: impl Into<String>)
    where
        C: Component + Default + 'static,
    {
        self.register_with(type_name, C::describe(), || Box::new(C::default()));
    }

    /// Adds a type that is made in another way than by its default.
    pub fn register_with(
        &mut self,
        type_name: impl Into<String>,
        descriptor: Descriptor,
        make: impl Fn() -> Box<dyn Component> + Send + Sync + 'static,
    ) {
        let maker: Maker = Arc::new(make);
        self.types
            .insert(type_name.into(), Type { descriptor, maker });
    }

    /// Adds a type that is a function without state; it may run several times at once.
    pub fn function<F>(&mut self, type_name: impl Into<String>, descriptor: Descriptor, f: F)
    where
        F: Fn(&mut Invocation<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    {
        let f: Arc<dyn Reentrant> = Arc::new(f);
        self.register_with(type_name, descriptor, move || Box::new(Function(f.clone())));
    }

    /// Adds a stub: it publishes what comes at all its outputs, or the text `stub-<epoch>` if it
    /// has no inputs.
    pub fn stub(&mut self, type_name: impl Into<String>) {
        let descriptor = Descriptor::new()
            .open_ports()
            .open_config()
            .about("Stands in for a type that lives elsewhere.");
        self.register_with(type_name, descriptor, || Box::new(Stub::default()));
    }

    /// Whether there is a type of this name.
    pub fn contains(&self, type_name: &str) -> bool {
        self.find(type_name).is_some()
    }

    /// The names of all types, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// What all types say about themselves.
    pub fn descriptors(&self) -> BTreeMap<String, Descriptor> {
        let described = |(name, kind): (&String, &Type)| (name.clone(), kind.descriptor.clone());
        self.types.iter().map(described).collect()
    }

    pub(crate) fn make(&self, type_name: &str) -> Option<Box<dyn Component>> {
        Some((self.find(type_name)?.maker)())
    }

    /// The type of this name, or the built-in type that had this name before.
    fn find(&self, type_name: &str) -> Option<&Type> {
        let types = &self.types;
        types
            .get(type_name)
            .or_else(|| types.get(present_name(type_name)?))
    }
}

impl Catalog for Registry {
    fn descriptor(&self, type_name: &str) -> Option<&Descriptor> {
        Some(&self.find(type_name)?.descriptor)
    }

    fn names(&self) -> Vec<&str> {
        Registry::names(self).collect()
    }

    fn check_config(&self, type_name: &str, id: &str, config: &Config) -> Vec<ConfigError> {
        // A type that panics here panics again when it is run, and that is reported.
        let check = || Some(self.make(type_name)?.check_config(id, config));
        let checked = catch_unwind(AssertUnwindSafe(check));
        checked.ok().flatten().unwrap_or_default()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.types.keys()).finish()
    }
}

/// A function without state, as a component.
struct Function(Arc<dyn Reentrant>);

impl Component for Function {
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        self.0.execute(invocation)
    }

    fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
        Some(self.0.clone())
    }
}

/// Stands in for a type that lives elsewhere.
#[derive(Default)]
struct Stub {
    has_inputs: bool,
    outputs: Vec<Output<Payload>>,
}

impl Component for Stub {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.has_inputs = setup.inputs().next().is_some();
        self.outputs = setup
            .outputs()
            .map(|name| setup.output(name))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let payloads: Vec<Payload> = match self.has_inputs {
            true => invocation.take_inputs().map(|m| m.into_payload()).collect(),
            false => vec![Payload::from(format!("stub-{}", invocation.epoch()))],
        };
        for payload in payloads {
            for &output in &self.outputs {
                invocation.publish(output, payload.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windlass_plan::catalog::present_name;

    use super::{Catalog, Descriptor, Registry};

    fn former(name: &str) -> String {
        let former = name.replacen("windlass.transform.", "topoexec.transforms.", 1);
        former.replacen("windlass.", "topoexec.", 1)
    }

    #[test]
    fn every_built_in_type_is_found_by_its_former_name_and_listed_by_its_present_one() {
        let registry = Registry::built_in();
        for name in registry.names() {
            let former = former(name);
            assert_eq!(present_name(&former), Some(name));
            assert!(registry.contains(&former) && registry.make(&former).is_some());
            assert_eq!(registry.descriptor(&former), registry.descriptor(name));
            assert!(registry.descriptors().descriptor(&former).is_some());
        }
        assert!(registry.names().all(|name| name.starts_with("windlass.")));
        assert_eq!(registry.names().count(), 12);
    }

    #[test]
    fn a_type_that_is_registered_under_a_former_name_comes_first() {
        let mut registry = Registry::built_in();
        let own = Descriptor::new().about("Mine.");
        registry.function("topoexec.transforms.Join", own, |_| Ok(()));
        let found = registry.descriptor("topoexec.transforms.Join");
        assert_eq!(found.map(|found| &*found.about), Some("Mine."));
    }
}
