//! What a component type says about itself: its ports, its configuration, its place at the boundary.

use crate::model::BoundaryRole;
use crate::payload::Data;

/// What a component type says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Descriptor {
    /// Where it may receive.
    pub inputs: Vec<Port>,
    /// Where it may publish.
    pub outputs: Vec<Port>,
    /// What `config` may hold; see [`Descriptor::open_config`].
    pub config: Vec<ConfigField>,
    /// Whether `config` may hold other things, too.
    pub open_config: bool,
    /// Whether edges may name ports that are not listed.
    pub open_ports: bool,
    /// Where it is meant to be.
    pub boundary_role: BoundaryRole,
    /// One sentence for people.
    pub about: String,
}

/// An input or output of a component type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The schema of its payloads; empty: any.
    pub schema: String,
    /// The type of its payloads; empty: any.
    pub payload_type: String,
    /// Whether several edges may end here.
    pub multiple: bool,
    /// Whether an edge has to end here.
    pub required: bool,
}

/// A field of a component type's `config`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigField {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ConfigKind,
    /// Whether it has to be there.
    pub required: bool,
    /// The least number.
    pub min: Option<f64>,
    /// The greatest number.
    pub max: Option<f64>,
    /// The only strings it may be; any if empty.
    pub one_of: Vec<String>,
}

/// What a field of `config` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigKind {
    /// true or false.
    Bool,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// Text.
    String,
    /// A list.
    List,
    /// A map.
    Map,
    /// Anything.
    Any,
}

impl Descriptor {
    /// A type without ports.
    pub fn new() -> Descriptor {
        Descriptor::default()
    }

    /// Says what it does.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Adds an input.
    pub fn input(mut self, port: impl Into<Port>) -> Self {
        self.inputs.push(port.into());
        self
    }

    /// Adds an output.
    pub fn output(mut self, port: impl Into<Port>) -> Self {
        self.outputs.push(port.into());
        self
    }

    /// Adds an input of this type.
    pub fn input_of<T: Data>(self, name: impl Into<String>) -> Self {
        self.input(Port::new(name).of(T::TYPE))
    }

    /// Adds an output of this type.
    pub fn output_of<T: Data>(self, name: impl Into<String>) -> Self {
        self.output(Port::new(name).of(T::TYPE))
    }

    /// Adds a field of `config`.
    pub fn field(mut self, field: ConfigField) -> Self {
        self.config.push(field);
        self
    }

    /// Lets `config` hold things that are not listed.
    pub fn open_config(mut self) -> Self {
        self.open_config = true;
        self
    }

    /// Lets edges name ports that are not listed.
    pub fn open_ports(mut self) -> Self {
        self.open_ports = true;
        self
    }

    /// Puts it at the boundary.
    pub fn boundary(mut self, role: BoundaryRole) -> Self {
        self.boundary_role = role;
        self
    }
}

impl Port {
    /// A port that takes anything.
    pub fn new(name: impl Into<String>) -> Port {
        Port {
            name: name.into(),
            schema: String::new(),
            payload_type: String::new(),
            multiple: false,
            required: false,
        }
    }

    /// Says the type of its payloads.
    pub fn of(mut self, payload_type: impl Into<String>) -> Self {
        self.payload_type = payload_type.into();
        self
    }

    /// Says the schema of its payloads.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Lets several edges end here.
    pub fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// Demands an edge.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl From<&str> for Port {
    fn from(name: &str) -> Port {
        Port::new(name)
    }
}

impl ConfigField {
    /// A field that may be left out.
    pub fn new(name: impl Into<String>, kind: ConfigKind) -> ConfigField {
        ConfigField {
            name: name.into(),
            kind,
            required: false,
            min: None,
            max: None,
            one_of: Vec::new(),
        }
    }

    /// Demands it.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The least and the greatest number.
    pub fn within(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// The only strings it may be.
    pub fn one_of<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.one_of = names.into_iter().map(Into::into).collect();
        self
    }
}

/// Knows component types.
pub trait Catalog {
    /// What this type says about itself, if it is known.
    fn descriptor(&self, type_name: &str) -> Option<&Descriptor>;
}

impl Catalog for std::collections::BTreeMap<String, Descriptor> {
    fn descriptor(&self, type_name: &str) -> Option<&Descriptor> {
        self.get(type_name)
    }
}
