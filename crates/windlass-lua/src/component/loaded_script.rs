//! The script of a component, loaded.

use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value};
use serde_json::Value as Json;
use windlass_core::sync::Mutex;
use windlass_graph::component::{Failure, Invocation, Output};
use windlass_value::Payload;

use super::{ForcedStop, ScriptConfig};
use crate::error_text::text_of_error;
use crate::interpreter::{InterpreterShared, Output as Printing};
use crate::native::without_prelude;
use crate::preempt::{self, Guard, ResumeOutcome};
use crate::state::{Pending, State, StateOptions};
use crate::{date, json, value};

/// The script of a component that was activated.
pub(super) struct LoadedScript {
    state: State,
    execute: Function,
    exchange: Arc<Exchange>,
}

impl LoadedScript {
    /// Loads the script into a state of its own.
    pub(super) fn start(
        config: &ScriptConfig,
        outputs: &[(String, Output<Payload>)],
        stop: &Arc<ForcedStop>,
        printing: Option<Printing>,
    ) -> Result<LoadedScript, Failure> {
        let failed = |error: mlua::Error| Failure::new(without_prelude(&text_of_error(&error)));
        let inner = Arc::new(InterpreterShared::bare(printing));
        let pending = Arc::new(Pending::default());
        let traits = StateOptions {
            memory: config.memory,
            tasks: Some(0),
            fixed: true,
            seed: Some(config.seed),
        };
        let state = State::new(&inner, &config.script, &pending, &traits).map_err(failed)?;
        let exchange = Arc::new(Exchange::default());
        add_functions(&state, outputs.to_vec(), &exchange).map_err(failed)?;
        let chunk = state.load(&config.script).map_err(failed)?;
        call(&state, &chunk, MultiValue::new(), stop)?;
        let execute = state
            .env
            .get::<Option<Function>>("execute")
            .map_err(failed)?;
        let execute =
            execute.ok_or_else(|| Failure::new("the script defines no function `execute`"))?;
        Ok(LoadedScript {
            state,
            execute,
            exchange,
        })
    }

    pub(super) fn lua(&self) -> &Lua {
        &self.state.lua
    }

    /// Calls `execute` with the messages of an invocation. Returns what the script publishes, with
    /// the number of the output.
    pub(super) fn execute(
        &self,
        invocation: &Invocation<'_>,
        stop: &Arc<ForcedStop>,
    ) -> Result<Vec<(usize, Payload)>, Failure> {
        let failed = |error: mlua::Error| Failure::new(text_of_error(&error));
        *self.exchange.now.lock() = invocation.now() as f64 / 1e9;
        self.exchange.published.lock().clear();
        let inputs = inputs_of(&self.state.lua, invocation).map_err(failed)?;
        let args = MultiValue::from_iter([Value::Table(inputs)]);
        call(&self.state, &self.execute, args, stop)?;
        Ok(std::mem::take(&mut *self.exchange.published.lock()))
    }

    /// Calls a function that the script may or may not have.
    pub(super) fn call_optional(
        &self,
        name: &str,
        arg: Option<&Json>,
        stop: &Arc<ForcedStop>,
    ) -> Result<Option<Value>, Failure> {
        let failed = |error: mlua::Error| Failure::new(text_of_error(&error));
        let function = self.state.env.get::<Option<Function>>(name);
        let Some(function) = function.map_err(failed)? else {
            return Ok(None);
        };
        let mut args = MultiValue::new();
        if let Some(arg) = arg {
            args.push_back(json::to_value(&self.state.lua, arg).map_err(failed)?);
        }
        let mut values = call(&self.state, &function, args, stop)?;
        Ok(values.pop_front())
    }
}

/// The values that pass between an invocation and its script.
#[derive(Default)]
struct Exchange {
    published: Mutex<Vec<(usize, Payload)>>,
    /// The graph's time, in seconds.
    now: Mutex<f64>,
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
    stop: &Arc<ForcedStop>,
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
