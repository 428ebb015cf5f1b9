//! Supervisors that scripts start: those of `windlass-actor`, with scripts as children.

use std::sync::Arc;

use mlua::{Lua, Table, Value};
use windlass_actor::supervisor::{Backoff, ChildSpec, Restart, Strategy, Supervisor};
use windlass_value::Payload;
use windlass_vm::Vm;

use crate::guest::LuaGuest;
use crate::interpreter::InterpreterShared;
use crate::native::wanted;
use crate::op::{Refusal, duration};
use crate::preempt::with_budget;
use crate::script::Script;

/// Starts one, as a table describes it; gives its PID.
pub(crate) fn start(
    lua: &Lua,
    inner: &Arc<InterpreterShared>,
    from: &Arc<Script>,
    described: Option<&Value>,
) -> Result<Payload, Refusal> {
    let bad = |problem: String| ("argument", problem);
    let Some(Value::Table(described)) = described else {
        let problem = "supervisor.start takes a table: {strategy =, children = {{id =, script =}}}";
        return Err(bad(problem.to_owned()));
    };
    let strategy = match choice(described, "strategy")?.as_deref() {
        None | Some("one_for_one") => Strategy::OneForOne,
        Some("one_for_all") => Strategy::OneForAll,
        Some("rest_for_one") => Strategy::RestForOne,
        Some(other) => {
            return Err(bad(format!(
                "there is no strategy {other:?}: one_for_one, one_for_all, rest_for_one"
            )));
        }
    };
    let mut supervisor = Supervisor::new(strategy);
    if let Some(name) = choice(described, "name")? {
        supervisor = supervisor.name(name);
    }
    let number = |key: &str| described.get::<Option<f64>>(key).ok().flatten();
    let most = number("max_restarts").unwrap_or(5.0);
    let within = number("within").and_then(duration);
    let within = within.unwrap_or(std::time::Duration::from_secs(60));
    supervisor = supervisor.intensity(most as usize, within);
    if let Some(first) = number("backoff").and_then(duration) {
        supervisor = supervisor.backoff(Backoff {
            first,
            ..Backoff::default()
        });
    }
    let vm = inner
        .vm()
        .ok_or_else(|| ("spawn", "there are no processes here".to_owned()))?;
    let children = described.get::<Option<Table>>("children").ok().flatten();
    let children = children.ok_or_else(|| bad("a supervisor needs children".to_owned()))?;
    for (place, child) in children.sequence_values::<Table>().enumerate() {
        let child = child.map_err(|_| bad(format!("child {} is no table", place + 1)))?;
        supervisor = supervisor.child(child_of(lua, inner, vm, from, &child, place + 1)?);
    }
    // It is started in a replay, too: its children come from there.
    let host = vm.host();
    let started = supervisor
        .start(host)
        .map_err(|problem| ("spawn", problem.to_string()))?;
    let pid = Payload::Pid(started.pid());
    Ok(with_budget(|budget| match budget {
        Some(budget) => budget.ask(|_| pid),
        None => pid,
    }))
}

fn choice(table: &Table, key: &str) -> Result<Option<String>, Refusal> {
    table
        .get::<Option<String>>(key)
        .map_err(|_| ("argument", format!("{key} must be a text")))
}

fn child_of(
    lua: &Lua,
    inner: &Arc<InterpreterShared>,
    vm: &Vm,
    from: &Arc<Script>,
    child: &Table,
    place: usize,
) -> Result<ChildSpec, Refusal> {
    let id = choice(child, "id")?.unwrap_or_else(|| format!("child {place}"));
    let wanted = wanted(lua, inner, from, &Value::Table(child.clone()))?;
    let name = choice(child, "name")?;
    let restart = match choice(child, "restart")?.as_deref() {
        None | Some("permanent") => Restart::Permanent,
        Some("transient") => Restart::Transient,
        Some("temporary") => Restart::Temporary,
        Some(other) => {
            let problem = format!("there is no restart {other:?}: permanent, transient, temporary");
            return Err(("argument", problem));
        }
    };
    let (inner, vm) = (inner.clone(), vm.clone());
    let spec = ChildSpec::new(id, move |spawn| {
        let spawn = match &name {
            Some(name) => spawn.name(name.as_str()),
            None => spawn,
        };
        // The file as it is known now: a changed one is read again.
        let script = match (&wanted.script.root, &wanted.script.path) {
            (Some(root), Some(path)) => {
                let named = path.display().to_string();
                inner
                    .script(root, &named)
                    .unwrap_or_else(|_| wanted.script.clone())
            }
            _ => wanted.script.clone(),
        };
        let guest = LuaGuest::new(inner.clone(), script, wanted.args.clone());
        let limits = wanted.limits.unwrap_or_else(|| vm.limits());
        Ok(vm.spawn_in_with(spawn, guest, limits)?.pid())
    });
    let spec = spec.restart(restart);
    let stop = child.get::<Option<f64>>("stop_within").ok().flatten();
    Ok(match stop.and_then(duration) {
        Some(time) => spec.stop_within(time),
        None => spec,
    })
}
