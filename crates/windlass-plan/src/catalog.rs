//! What a component type says about itself: its ports, its configuration, its place at the
//! boundary.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::expression::Names;
use crate::model::{BoundaryRole, Config};
use windlass_value::Data;

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
    /// Whether `config.ports` lists them; see [`Descriptor::declared_ports`].
    pub declared_ports: bool,
    /// Whether an invocation can be ended from outside; see [`Descriptor::preemptible`].
    pub preemptible: bool,
    /// Whether it is a source that comes to an end; see [`Descriptor::finite_source`].
    pub finite_source: bool,
    /// Where it is meant to be.
    pub boundary_role: BoundaryRole,
    /// One sentence for people.
    pub about: String,
}

/// An input or output of a component type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The name of the port.
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
    /// The name of the field.
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
    /// A number of any kind.
    Number,
    /// Text of any kind.
    String,
    /// The text of an expression that may use these names.
    Expression(Names),
    /// A list of anything.
    List,
    /// A map of anything.
    Map,
    /// A value of any kind.
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

    /// Lets each component say in `config.ports` which ports it has besides those that are listed:
    /// `{inputs: [a, {name: b, required: true}], outputs: [c]}`.
    pub fn declared_ports(mut self) -> Self {
        self.declared_ports = true;
        self.field(ConfigField::new(PORTS, ConfigKind::Map))
    }

    /// This type with the ports that a component's configuration declares.
    ///
    /// # Errors
    /// What is wrong with `config.ports`, and where.
    pub fn for_config(&self, config: &Config) -> Result<Cow<'_, Descriptor>, PortsError> {
        let Some(ports) = config.get(PORTS).filter(|_| self.declared_ports) else {
            return Ok(Cow::Borrowed(self));
        };
        let error = |field: &str, message: &str| PortsError {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let ports = ports
            .as_object()
            .ok_or_else(|| error("", "has to be a map of `inputs` and `outputs`"))?;
        let mut resolved = self.clone();
        // From here on they are listed.
        resolved.declared_ports = false;
        for (side, list) in ports {
            let to = match side.as_str() {
                "inputs" => &mut resolved.inputs,
                "outputs" => &mut resolved.outputs,
                _ => return Err(error(side, "has to be `inputs` or `outputs`")),
            };
            let list = list
                .as_array()
                .ok_or_else(|| error(side, "has to be a list of ports"))?;
            for (nth, port) in list.iter().enumerate() {
                let at = format!("{side}[{nth}]");
                let port = declared(port).map_err(|message| error(&at, message))?;
                if to.iter().any(|there| there.name == port.name) {
                    return Err(error(&at, "is there already"));
                }
                to.push(port);
            }
        }
        Ok(Cow::Owned(resolved))
    }

    /// Says that an invocation can be ended from outside: `Component::interrupt` gives
    /// what does so. If it gives nothing, a run does not begin.
    pub fn preemptible(mut self) -> Self {
        self.preemptible = true;
        self
    }

    /// Says that it is a source that comes to an end, such as a file, and publishes what was not
    /// accepted again. Its edges then apply back-pressure: `publish` returns false while an edge is
    /// full, unless the edge's policy says that messages are replaced or dropped.
    pub fn finite_source(mut self) -> Self {
        self.finite_source = true;
        self
    }

    /// Puts it at the boundary.
    pub fn boundary(mut self, role: BoundaryRole) -> Self {
        self.boundary_role = role;
        self
    }
}

/// Where a configuration declares ports.
const PORTS: &str = "ports";

/// `config.ports` is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortsError {
    /// Which part of it; empty: all.
    pub field: String,
    /// What is wrong with that.
    pub message: String,
}

impl fmt::Display for PortsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "config.ports {}", self.message),
            field => write!(f, "config.ports.{field} {}", self.message),
        }
    }
}

impl std::error::Error for PortsError {}

/// A port as a configuration writes it: a name, or a map.
fn declared(written: &Value) -> Result<Port, &'static str> {
    if let Some(name) = written.as_str().filter(|name| is_port_name(name)) {
        return Ok(Port::new(name));
    }
    let fields = written.as_object().ok_or(NO_PORT)?;
    let name = fields.get("name").and_then(Value::as_str);
    let mut port = Port::new(name.filter(|name| is_port_name(name)).ok_or(NO_PORT)?);
    for (field, value) in fields {
        match (field.as_str(), value) {
            ("name", _) => {}
            ("payload_type", Value::String(kind)) => port.payload_type.clone_from(kind),
            ("required", &Value::Bool(required)) => port.required = required,
            ("multiple", &Value::Bool(multiple)) => port.multiple = multiple,
            _ => return Err(NO_PORT),
        }
    }
    Ok(port)
}

const NO_PORT: &str =
    "has to be a name without a dot, or a map of `name`, `payload_type`, `required` and `multiple`";

/// Endpoints are written `component.port`, and the last dot separates them.
fn is_port_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('.')
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

    /// Demands that the field is there.
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

    /// The names of the types that are known, for "did you mean".
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns what a type finds wrong with the configuration of a component beyond what its
    /// descriptor says, such as a script that cannot be parsed.
    fn check_config(&self, _type_name: &str, _id: &str, _config: &Config) -> Vec<ConfigError> {
        Vec::new()
    }
}

/// The former names of the built-in types, and their present ones. Files may use either.
const FORMER_NAMES: [(&str, &str); 12] = [
    ("topoexec.boundary.Input", "windlass.boundary.Input"),
    ("topoexec.boundary.Output", "windlass.boundary.Output"),
    (
        "topoexec.boundary.FrameInput",
        "windlass.boundary.FrameInput",
    ),
    (
        "topoexec.boundary.BinaryInput",
        "windlass.boundary.BinaryInput",
    ),
    (
        "topoexec.transforms.Identity",
        "windlass.transform.Identity",
    ),
    ("topoexec.transforms.Join", "windlass.transform.Join"),
    (
        "topoexec.transforms.Validator",
        "windlass.transform.Validator",
    ),
    (
        "topoexec.transforms.AsyncWorker",
        "windlass.transform.AsyncWorker",
    ),
    ("topoexec.example.Sensor", "windlass.example.Sensor"),
    ("topoexec.example.Estimator", "windlass.example.Estimator"),
    ("topoexec.example.Controller", "windlass.example.Controller"),
    ("topoexec.example.Actuator", "windlass.example.Actuator"),
];

/// Returns the present name of a built-in type, if `type_name` is its former one.
///
/// A [`Catalog`] looks for the name as it is written first, so that a program may still register a
/// type of its own under a former name.
pub fn present_name(type_name: &str) -> Option<&'static str> {
    let (_, present) = FORMER_NAMES
        .iter()
        .find(|(former, _)| *former == type_name)?;
    Some(present)
}

/// The namespaces of the types that had another name before.
const RENAMED: [&str; 3] = [
    "windlass.boundary.",
    "windlass.transform.",
    "windlass.example.",
];

/// Whether a type of this name came with schema version 2, as all types of this project did that
/// never had another name.
pub(crate) fn came_with_version_2(type_name: &str) -> bool {
    type_name.starts_with("windlass.") && !RENAMED.iter().any(|start| type_name.starts_with(start))
}

/// What a type finds wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The field of `config`; empty: all of it.
    pub field: String,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl ConfigError {
    /// What is wrong with a field, and what to do about it.
    pub fn new(
        field: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> ConfigError {
        ConfigError {
            field: field.into(),
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl Catalog for std::collections::BTreeMap<String, Descriptor> {
    fn descriptor(&self, type_name: &str) -> Option<&Descriptor> {
        self.get(type_name)
            .or_else(|| self.get(present_name(type_name)?))
    }

    fn names(&self) -> Vec<&str> {
        self.keys().map(String::as_str).collect()
    }
}
