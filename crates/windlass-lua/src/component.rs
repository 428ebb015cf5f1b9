//! `windlass.lua`: a component of a graph that is written in Lua.
//!
//! The script defines `execute(inputs)`, which is called for each invocation and says what to publish
//! (`publish(port, value)`). It cannot wait; it can be ended by force (`execution.timeout_ms`). What it does depends on
//! its messages only: time is the graph's, random numbers come from a seed, and `pairs` has an order.

use std::fmt;
use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};
use serde_json::Value as Json;
use windlass_core::hash::Fnv;
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigFault, ConfigField, ConfigKind, Descriptor, Failure, Interrupt, Invocation,
    Output, Registry, Setup,
};
use windlass_graph::model::Config;
use windlass_vm::Bell;

use crate::interpreter::{Inner, Output as Printing, Printed};
use crate::machine::text_of_error;
use crate::native::without_prelude;
use crate::preempt::{self, Guard, ResumeOutcome, Slice};
use crate::script::Script;
use crate::state::{Pending, State, Traits};
use crate::{compile_cost, date, json, value};

/// The bytes that a component may have, unless its configuration says otherwise.
const MEMORY_MB: usize = 64;

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

/// The same, and told of everything that the scripts print and log.
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
    plan: Option<Plan>,
    outputs: Vec<(String, Output<Payload>)>,
    running: Option<Running>,
    stop: Arc<Stop>,
    printing: Option<Printing>,
}

/// What the configuration says.
#[derive(Debug, Clone)]
struct Plan {
    script: Arc<Script>,
    memory: usize,
    seed: u64,
}

struct Running {
    state: State,
    execute: Function,
    exchange: Arc<Exchange>,
}

/// What an invocation publishes, and what its component tells it.
#[derive(Default)]
struct Exchange {
    published: Mutex<Vec<(usize, Payload)>>,
    /// The graph's time, in seconds.
    now: Mutex<f64>,
}

/// Ends an invocation by force.
#[derive(Default)]
struct Stop {
    asked: AtomicBool,
    /// The thread that the script runs on.
    bell: Mutex<Option<Arc<dyn Bell>>>,
}

impl Interrupt for Stop {
    fn interrupt(&self) {
        // Relaxed: the thread that runs the script is told by a signal, or looks when it begins, under the lock.
        self.asked.store(true, Ordering::Relaxed);
        if let Some(bell) = &*self.bell.lock() {
            bell.ring();
        }
    }

    fn forget(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }
}

impl Slice for Stop {
    fn is_over(&self, _: u64) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    fn must_end(&self) -> bool {
        true
    }

    fn throws(&self) -> bool {
        true
    }

    fn granularity(&self) -> Option<u32> {
        None
    }
}

impl Plan {
    fn read(id: &str, config: &Config) -> Result<Plan, Failure> {
        let text = |key: &str| config.get(key).and_then(Json::as_str);
        let script = match (text("script"), text("file")) {
            (Some(script), None) => Script::text(format!("{id}.lua"), script),
            (None, Some(file)) => {
                Script::file(file).map_err(|problem| Failure::new(problem.to_string()))?
            }
            (Some(_), Some(_)) => {
                return Err(Failure::new(
                    "`script` and `file` are both there: give one of them",
                ));
            }
            (None, None) => {
                return Err(Failure::new(
                    "there is no code: give `script`, or the name of a `file`",
                ));
            }
        };
        let memory = config.get("memory_mb").and_then(Json::as_u64);
        let seed = config.get("seed").and_then(Json::as_u64);
        Ok(Plan {
            script: Arc::new(script),
            memory: memory.map_or(MEMORY_MB, |megabytes| megabytes as usize) << 20,
            // Another for each component, and the same in every run.
            seed: seed.unwrap_or_else(|| Fnv::of(id.as_bytes())),
        })
    }

    /// Loads the script into a state of its own.
    fn start(
        &self,
        outputs: &[(String, Output<Payload>)],
        stop: &Arc<Stop>,
        printing: Option<Printing>,
    ) -> Result<Running, Failure> {
        let failed = |error: mlua::Error| Failure::new(without_prelude(&text_of_error(&error)));
        let inner = Arc::new(Inner::bare(printing));
        let pending = Arc::new(Pending::default());
        let traits = Traits {
            memory: self.memory,
            tasks: Some(0),
            fixed: true,
            seed: Some(self.seed),
        };
        let state = State::new(&inner, &self.script, &pending, &traits).map_err(failed)?;
        let exchange = Arc::new(Exchange::default());
        add_functions(&state, outputs.to_vec(), &exchange).map_err(failed)?;
        let chunk = state.load(&self.script).map_err(failed)?;
        call(&state, &chunk, MultiValue::new(), stop)?;
        let execute = state
            .env
            .get::<Option<Function>>("execute")
            .map_err(failed)?;
        let execute =
            execute.ok_or_else(|| Failure::new("the script defines no function `execute`"))?;
        Ok(Running {
            state,
            execute,
            exchange,
        })
    }
}

/// What a component has beside the usual: `publish`, and the graph's time.
fn add_functions(
    state: &State,
    outputs: Vec<(String, Output<Payload>)>,
    exchange: &Arc<Exchange>,
) -> mlua::Result<()> {
    let lua = &state.lua;
    let to = exchange.clone();
    let publish = move |lua: &Lua, (port, value): (String, Value)| {
        let Some(place) = outputs.iter().position(|(name, _)| *name == port) else {
            let names: Vec<&str> = outputs.iter().map(|(name, _)| &**name).collect();
            let problem = match names.is_empty() {
                true => format!("there is no output {port:?}: config.ports declares none"),
                false => format!(
                    "there is no output {port:?}: the outputs are {}",
                    names.join(", ")
                ),
            };
            return Err(mlua::Error::runtime(problem));
        };
        let payload = match outputs[place].1.is_connected() {
            true => to_graph(lua, &value)?,
            // The run drops and counts it: that it could be published is all that matters.
            false => {
                value::to_payload(lua, &value)
                    .map_err(|problem| mlua::Error::runtime(problem.to_string()))?;
                Payload::default()
            }
        };
        to.published.lock().push((place, payload));
        Ok(())
    };
    state.env.set("publish", lua.create_function(publish)?)?;
    let now = exchange.clone();
    state.env.set(
        "now",
        lua.create_function(move |_, ()| Ok(*now.now.lock()))?,
    )?;
    let os: Table = state.env.get("os")?;
    let (time, day) = (exchange.clone(), exchange.clone());
    let time = move |lua: &Lua, table: Value| {
        let seconds = date::time(Some(&table), || *time.now.lock() as i64);
        let seconds = seconds.map_err(|(_, problem)| mlua::Error::runtime(problem))?;
        value::to_lua(lua, &seconds)
    };
    os.set("time", lua.create_function(time)?)?;
    let day = move |lua: &Lua, (format, time): (Value, Value)| {
        date::date(lua, Some(&format), Some(&time), || *day.now.lock() as i64)
            .map_err(|(_, problem)| mlua::Error::runtime(problem))
    };
    os.set("date", lua.create_function(day)?)?;
    os.set("clock", state.env.get::<Function>("now")?)
}

fn to_graph(lua: &Lua, value: &Value) -> mlua::Result<Payload> {
    value::to_payload(lua, value).map_err(|problem| mlua::Error::runtime(problem.to_string()))
}

fn to_lua(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    match payload.may_be_copied() {
        true => value::to_lua_with_null(lua, payload),
        // A script could publish it twice.
        false => {
            let name = payload.type_name();
            Err(mlua::Error::runtime(format!(
                "a {name} cannot be given to a script, because there must be one only"
            )))
        }
    }
}

/// Calls a function of the script, from which only an end or a failure comes back.
fn call(
    state: &State,
    function: &Function,
    args: MultiValue,
    stop: &Arc<Stop>,
) -> Result<MultiValue, Failure> {
    let failed = |error: mlua::Error| Failure::new(without_prelude(&text_of_error(&error)));
    let thread = state.lua.create_thread(function.clone()).map_err(failed)?;
    *stop.bell.lock() = Some(preempt::bell(libc::SIGURG));
    let guard = Guard::of_slice(&**stop);
    let driven = preempt::drive(&state.lua, &thread, args, &guard);
    drop(guard);
    *stop.bell.lock() = None;
    let (outcome, values) = driven.map_err(failed)?;
    match outcome {
        ResumeOutcome::Ended => Ok(values),
        ResumeOutcome::Suspended | ResumeOutcome::Preempted | ResumeOutcome::PreemptedInside => {
            Err(Failure::new(
                "a component cannot wait: it is called when its messages are there",
            ))
        }
        ResumeOutcome::Failed => Err(Failure::new(message_of(&values))),
    }
}

/// What Lua's compiler says about a script that it cannot compile. Nothing of the script runs.
fn syntax_error(script: &Script) -> Option<String> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new()).ok()?;
    let chunk = lua.load(script.code()).set_name(script.chunk_name());
    let compiled = chunk.set_mode(ChunkMode::Text).into_function();
    let text = text_of_error(&compiled.err()?);
    text.lines().next().map(str::to_owned)
}

fn message_of(values: &MultiValue) -> String {
    let message = match values.front() {
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(Value::Error(error)) => text_of_error(error),
        Some(Value::Table(table)) => {
            let message = table.raw_get::<Option<String>>("message").ok().flatten();
            message.unwrap_or_else(|| "a table".to_owned())
        }
        Some(other) => format!("a {}", other.type_name()),
        None => "nil".to_owned(),
    };
    match values.get(1) {
        Some(Value::String(traceback)) => {
            format!(
                "{message}\n{}",
                without_prelude(&traceback.to_string_lossy())
            )
        }
        _ => message,
    }
}

impl LuaComponent {
    /// Calls a function that the script may or may not have.
    fn optional(&mut self, name: &str, arg: Option<&Json>) -> Result<Option<Value>, Failure> {
        let Some(running) = &self.running else {
            return Ok(None);
        };
        let failed = |error: mlua::Error| Failure::new(text_of_error(&error));
        let function = running
            .state
            .env
            .get::<Option<Function>>(name)
            .map_err(failed)?;
        let Some(function) = function else {
            return Ok(None);
        };
        let mut args = MultiValue::new();
        if let Some(arg) = arg {
            args.push_back(json::to_value(&running.state.lua, arg).map_err(failed)?);
        }
        let mut values = call(&running.state, &function, args, &self.stop)?;
        Ok(values.pop_front())
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

    fn check_config(&self, id: &str, config: &Config) -> Vec<ConfigFault> {
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
                return vec![ConfigFault::new("", message, "give one of them")];
            }
            (None, None) if config.contains_key("script") || config.contains_key("file") => {
                return Vec::new();
            }
            (None, None) => {
                let fix = "give `script`, or the name of a `file`";
                return vec![ConfigFault::new("", "there is no Lua code", fix)];
            }
        };
        if let Err(problem) = compile_cost::check_script(script.code()) {
            let fix = "move a part of the script into a module, or into another component";
            return vec![ConfigFault::new(field, problem, fix)];
        }
        match syntax_error(&script) {
            Some(problem) => {
                let message = format!("the script is no Lua: {problem}");
                vec![ConfigFault::new(
                    field,
                    message,
                    "correct the line that it names",
                )]
            }
            None => Vec::new(),
        }
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.plan = Some(Plan::read(setup.id(), setup.config())?);
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
        if let Some(plan) = &self.plan {
            self.running = Some(plan.start(&self.outputs, &self.stop, self.printing.clone())?);
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
        let Some(running) = &self.running else {
            return Ok(());
        };
        let failed = |error: mlua::Error| Failure::new(text_of_error(&error));
        *running.exchange.now.lock() = invocation.now() as f64 / 1e9;
        running.exchange.published.lock().clear();
        let inputs = inputs_of(&running.state.lua, invocation).map_err(failed)?;
        let args = MultiValue::from_iter([Value::Table(inputs)]);
        call(&running.state, &running.execute, args, &self.stop)?;
        let published = std::mem::take(&mut *running.exchange.published.lock());
        for (place, payload) in published {
            // One that is not accepted is counted by its channel.
            let _ = invocation.publish(self.outputs[place].1, payload);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Json>, Failure> {
        let Some(value) = self.optional("snapshot", None)? else {
            return Ok(None);
        };
        let Some(running) = &self.running else {
            return Ok(None);
        };
        let lua = &running.state.lua;
        let payload =
            value::to_payload(lua, &value).map_err(|problem| Failure::new(problem.to_string()))?;
        let json = value::fitting(lua, |room| json::to_json(&payload, room))
            .map_err(|(_, problem)| Failure::new(problem))?;
        Ok(Some(json))
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        let ended = self.optional("deactivate", None).map(drop);
        self.running = None;
        ended
    }

    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        Some(self.stop.clone())
    }
}

/// The messages of an invocation: the newest by port, and all in their order.
fn inputs_of(lua: &Lua, invocation: &Invocation<'_>) -> mlua::Result<Table> {
    let inputs = lua.create_table()?;
    for message in invocation.inputs() {
        let port = invocation.port_of(message);
        let value = to_lua(lua, message.payload())?;
        let entry = lua.create_table_with_capacity(0, 3)?;
        entry.raw_set("port", port)?;
        entry.raw_set("value", value.clone())?;
        if let Some(time) = message.event_time() {
            entry.raw_set("time", time)?;
        }
        inputs.raw_push(entry)?;
        inputs.raw_set(port, value)?;
    }
    Ok(inputs)
}

impl fmt::Debug for LuaComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaComponent")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
