//! `windlass.lua`: a component of a graph that is written in Lua.
//!
//! The script defines `execute(inputs)`, which is called for each invocation and says what to
//! publish (`publish(port, value)`). It cannot wait; it can be ended by force
//! (`execution.timeout_ms`). What it does depends on its messages only: time is the graph's, random
//! numbers come from a seed, and `pairs` has an order.

mod forced_stop;
mod loaded_script;
mod script_config;

use std::fmt;
use std::sync::Arc;

use mlua::Value;
use serde_json::Value as Json;
use windlass_graph::component::{
    Component, ConfigError, ConfigField, ConfigKind, Descriptor, Failure, Interrupt, Invocation,
    Output, Registry, Setup,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use self::forced_stop::ForcedStop;
use self::loaded_script::LoadedScript;
use self::script_config::{ScriptConfig, syntax_error};
use crate::interpreter::{Output as Printing, Printed};
use crate::preempt::{self};
use crate::script::Script;
use crate::{compile_cost, json, value};

/// Adds the type `windlass.lua`.
///
/// ```
/// use windlass_graph::component::Registry;
/// use windlass_graph::{LoadOptions, Prepared, RunOptions, load};
///
/// let mut registry = Registry::built_in();
/// windlass_lua::register(&mut registry);
/// let graph = "
/// schema_version: 2
/// graph: {name: shout}
/// lanes: {main: {type: event_loop}}
/// components:
///   - {id: in, type: windlass.boundary.Input, execution: {lane: main}}
///   - id: shout
///     type: windlass.lua
///     config:
///       ports: {inputs: [text], outputs: [loud]}
///       script: |
///         function execute(inputs) publish('loud', inputs.text:upper()) end
///     trigger_policy: {type: any_input, input: text}
///     execution: {lane: main, timeout_ms: 100}
///   - {id: out, type: windlass.boundary.Output, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
/// edges:
///   - {id: a, from: in.out, to: shout.text, kind: immediate}
///   - {id: b, from: shout.loud, to: out.in, kind: immediate}
/// ";
/// let prepared = Prepared::new(load(graph, &LoadOptions::default())?.graph, registry)?;
/// let result = windlass_runtime::Runtime::new()?.block_on(prepared.run(RunOptions::steps(3)));
/// assert!(result.is_ok(), "{:?}", result.errors);
/// assert_eq!(result.metrics.of("runtime.channel.delivery_count", "b"), Some(3.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn register(registry: &mut Registry) {
    registry.register::<LuaComponent>("windlass.lua");
}

/// The same, and calls `notify` with everything that the scripts print and log.
pub fn register_with_output(
    registry: &mut Registry,
    notify: impl Fn(Printed<'_>) + Send + Sync + 'static,
) {
    let notify: Printing = Arc::new(notify);
    let make = move || -> Box<dyn Component> {
        Box::new(LuaComponent {
            printing: Some(notify.clone()),
            ..LuaComponent::default()
        })
    };
    registry.register_with("windlass.lua", LuaComponent::describe(), make);
}

#[derive(Default)]
struct LuaComponent {
    config: Option<ScriptConfig>,
    outputs: Vec<(String, Output<Payload>)>,
    loaded: Option<LoadedScript>,
    stop: Arc<ForcedStop>,
    printing: Option<Printing>,
}

impl LuaComponent {
    /// Calls a function that the script may or may not have.
    fn optional(&mut self, name: &str, arg: Option<&Json>) -> Result<Option<Value>, Failure> {
        let Some(loaded) = &self.loaded else {
            return Ok(None);
        };
        loaded.call_optional(name, arg, &self.stop)
    }
}

impl Component for LuaComponent {
    fn describe() -> Descriptor {
        let field = ConfigField::new;
        Descriptor::new()
            .declared_ports()
            .preemptible()
            .field(field("script", ConfigKind::String))
            .field(field("file", ConfigKind::String))
            .field(field("memory_mb", ConfigKind::Integer).within(1.0, 65_536.0))
            .field(field("seed", ConfigKind::Integer).within(0.0, 9_007_199_254_740_992.0))
            .about("Calls `execute(inputs)` of a Lua script, and publishes what it says.")
    }

    fn check_config(&self, id: &str, config: &Config) -> Vec<ConfigError> {
        let text = |key: &str| config.get(key).and_then(Json::as_str);
        let (field, script) = match (text("script"), text("file")) {
            (Some(script), None) => ("script", Script::text(format!("{id}.lua"), script)),
            // A file that is not there yet may be there when the graph is run.
            (None, Some(file)) => match Script::file(file) {
                Ok(script) => ("file", script),
                Err(_) => return Vec::new(),
            },
            (Some(_), Some(_)) => {
                let message = "`script` and `file` are both there";
                return vec![ConfigError::new("", message, "give one of them")];
            }
            (None, None) if config.contains_key("script") || config.contains_key("file") => {
                return Vec::new();
            }
            (None, None) => {
                let fix = "give `script`, or the name of a `file`";
                return vec![ConfigError::new("", "there is no Lua code", fix)];
            }
        };
        if let Err(problem) = compile_cost::check_script(script.code()) {
            let fix = "move a part of the script into a module, or into another component";
            return vec![ConfigError::new(field, problem, fix)];
        }
        match syntax_error(&script) {
            Some(problem) => {
                let message = format!("the script is no Lua: {problem}");
                vec![ConfigError::new(
                    field,
                    message,
                    "correct the line that it names",
                )]
            }
            None => Vec::new(),
        }
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.config = Some(ScriptConfig::read(setup.id(), setup.config())?);
        let described = LuaComponent::describe();
        let described = described.for_config(setup.config())?;
        for port in &described.outputs {
            let output = setup.output(&port.name)?;
            self.outputs.push((port.name.clone(), output));
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        if let Err(problem) = preempt::install(libc::SIGURG) {
            return Err(Failure::new(problem.to_string()));
        }
        if let Some(config) = &self.config {
            self.loaded = Some(LoadedScript::start(
                config,
                &self.outputs,
                &self.stop,
                self.printing.clone(),
            )?);
        }
        self.optional("activate", None).map(drop)
    }

    fn restore(&mut self, snapshot: &Json) -> Result<(), Failure> {
        self.optional("restore", Some(snapshot)).map(drop)
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.optional("reset", None).map(drop)
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(loaded) = &self.loaded else {
            return Ok(());
        };
        for (output, payload) in loaded.execute(invocation, &self.stop)? {
            // One that is not accepted is counted by its channel.
            let _ = invocation.publish(self.outputs[output].1, payload);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Json>, Failure> {
        let Some(value) = self.optional("snapshot", None)? else {
            return Ok(None);
        };
        let Some(loaded) = &self.loaded else {
            return Ok(None);
        };
        let lua = loaded.lua();
        let payload =
            value::to_payload(lua, &value).map_err(|problem| Failure::new(problem.to_string()))?;
        let json = value::fitting(lua, |room| json::to_json(&payload, room))
            .map_err(|(_, problem)| Failure::new(problem))?;
        Ok(Some(json))
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        let ended = self.optional("deactivate", None).map(drop);
        self.loaded = None;
        ended
    }

    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        Some(self.stop.clone())
    }
}

impl fmt::Debug for LuaComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaComponent")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
