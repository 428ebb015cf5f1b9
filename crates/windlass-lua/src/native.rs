//! The functions of the host that scripts call and that answer at once.
//!
//! Those that can fail answer `true` and their values, or `false`, a kind and a message: the prelude raises that with the
//! place in the script. Whatever a script does not compute itself goes through [`Budget::ask`], so that a replay
//! has the same answers.

use std::sync::Arc;
use std::time::Duration;

use mlua::{
    Function, IntoLua, IntoLuaMulti, Lua, LuaString, MetaMethod, MultiValue, Table, UserData,
    UserDataFields, UserDataMethods, Value,
};
use windlass_core::sync::clock;
use windlass_process::{
    Message, MonitorRef, Payload, Pid, ProcessContext, RegisterError, Topic, Why,
};
use windlass_vm::{Budget, Limits, SpawnOptions, Task};

use crate::compile_cost;
use crate::guest::LuaGuest;
use crate::interpreter::{Inner, Level, Printed};
use crate::op::{Op, Refusal, duration, pid_of};
use crate::preempt::{is_thrown, with_budget};
use crate::script::Script;
use crate::state::{Notes, Part};
use crate::value::{Buffer, LuaPid, to_lua, to_payload};
use crate::{date, json, supervise};

/// What functions give that can fail.
type Answer = Result<Payload, Refusal>;

/// A process that this one has started.
pub(crate) struct ProcessHandle(pub(crate) Task);

impl UserData for ProcessHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("pid", |_, handle| Ok(LuaPid(handle.0.pid())));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, handle, ()| {
            Ok(format!("process {}", handle.0.pid()))
        });
        methods.add_method("cancel", |_, handle, reason: Option<String>| {
            let reason = reason.unwrap_or_else(|| "cancelled".to_owned());
            ask(|budget| {
                budget.cancel(&handle.0, reason);
                Payload::Nil
            });
            Ok(())
        });
        methods.add_method("kill", |_, handle, ()| {
            ask(|budget| {
                budget.ask(|_| {
                    handle.0.kill();
                    Payload::Nil
                })
            });
            Ok(())
        });
    }
}

/// Asks with the budget of the guest that runs; nil if none does.
fn ask(question: impl FnOnce(&Budget<'_>) -> Payload) -> Payload {
    with_budget(|budget| budget.map_or(Payload::Nil, question))
}

/// Another task of this process is ready: who runs now has a slice only.
fn share() {
    with_budget(|budget| {
        if let Some(budget) = budget {
            budget.share();
        }
    });
}

/// Asks something of the guest's process.
fn ask_process(question: impl FnOnce(&ProcessContext) -> Payload) -> Payload {
    ask(|budget| budget.ask(question))
}

/// A random number, which is the same in a replay.
pub(crate) fn random() -> i64 {
    with_budget(|budget| budget.map_or(0, Budget::random)) as i64
}

/// `true` and a value, or `false` and why.
fn answered(lua: &Lua, answer: Answer) -> mlua::Result<MultiValue> {
    match answer {
        Ok(payload) => (true, to_lua(lua, &payload)?).into_lua_multi(lua),
        Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
    }
}

/// The same, with a value of Lua.
pub(crate) fn tried(lua: &Lua, answer: Result<Value, Refusal>) -> mlua::Result<MultiValue> {
    match answer {
        Ok(value) => (true, value).into_lua_multi(lua),
        Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
    }
}

/// Makes a function of something that can fail.
fn function<F>(lua: &Lua, call: F) -> mlua::Result<Function>
where
    F: Fn(&Lua, MultiValue) -> Answer + Send + 'static,
{
    lua.create_function(move |lua, args: MultiValue| answered(lua, call(lua, args)))
}

fn text_of(value: Option<&Value>, what: &str) -> Result<String, Refusal> {
    match value {
        Some(Value::String(text)) => Ok(text.to_string_lossy()),
        other => {
            let found = other.map_or("nothing", Value::type_name);
            Err(("argument", format!("{what} must be a text, not {found}")))
        }
    }
}

/// Whom a value names: a PID, a handle, or a name.
enum Whom {
    Pid(Pid),
    Name(String),
}

fn whom(value: &Value) -> Result<Whom, Refusal> {
    match value {
        Value::String(name) => Ok(Whom::Name(name.to_string_lossy())),
        other => pid_of(other).map(Whom::Pid),
    }
}

fn why_not(why: &Why) -> &'static str {
    match why {
        Why::Full => "full",
        Why::TooLarge => "too_large",
        Why::NoConnection => "no_connection",
        Why::NotUnderstood => "not_understood",
        _ => "no_process",
    }
}

/// Sends a message: true, or false and why it did not arrive; nil, a kind and a message if it cannot be sent at all.
fn send(
    lua: &Lua,
    to: &Value,
    topic: Value,
    payload: &Value,
) -> (Option<bool>, Option<&'static str>, Option<String>) {
    let topic = match topic {
        Value::String(topic) => match topic.to_str() {
            Ok(text) => Topic::from(Arc::<str>::from(&*text)),
            Err(_) => Topic::from(topic.to_string_lossy()),
        },
        other => {
            let problem = format!("a topic must be a text, not a {}", other.type_name());
            return (None, Some("argument"), Some(problem));
        }
    };
    let (whom, payload) = match (whom(to), to_payload(lua, payload)) {
        (Ok(whom), Ok(payload)) => (whom, payload),
        (Err((kind, problem)), _) => return (None, Some(kind), Some(problem)),
        (_, Err(problem)) => return (None, Some("argument"), Some(problem.to_string())),
    };
    let message = Message::new(topic, payload);
    let sent = with_budget(|budget| {
        let budget = budget.ok_or(Why::NoProcess)?;
        let to = match whom {
            Whom::Pid(pid) => pid,
            Whom::Name(name) => {
                let found = budget.ask(|process| {
                    process
                        .host()
                        .whereis(&name)
                        .map_or(Payload::Nil, Payload::Pid)
                });
                found.as_pid().ok_or(Why::NoProcess)?
            }
        };
        budget.send(to, message)
    });
    match sent {
        Ok(()) => (Some(true), None, None),
        Err(why) => (Some(false), Some(why_not(&why)), None),
    }
}

pub(crate) fn library(
    lua: &Lua,
    inner: &Arc<Inner>,
    script: &Arc<Script>,
    notes: &Arc<Notes>,
    tasks: Option<usize>,
) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    add_tasks(lua, &native, notes, tasks)?;
    add_first(lua, &native)?;
    // The others come with the first of them that is looked for: a process that only waits does
    // without.
    let (inner, script, notes) = (inner.clone(), script.clone(), notes.clone());
    let others = lua.create_function(move |lua, (native, name): (Table, Value)| {
        add_processes(lua, &native, &inner, &script, &notes)?;
        add_bonds(lua, &native, &notes)?;
        add_names(lua, &native)?;
        add_output(lua, &native, &inner)?;
        add_world(lua, &native, &inner, &script)?;
        native.set("patterns", crate::pattern::library(lua)?)?;
        native.set("is_thrown", lua.create_function(|_, ()| Ok(is_thrown()))?)?;
        // Only now: where the memory was not enough, it is tried again.
        native.set_metatable(None)?;
        native.raw_get::<Value>(name)
    })?;
    let meta = lua.create_table()?;
    meta.set("__index", others)?;
    native.set_metatable(Some(meta))?;
    Ok(native)
}

/// What every state needs, or the prelude looks at when it begins.
fn add_first(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "self",
        lua.create_function(|_, ()| {
            let pid = with_budget(|budget| budget.map(Budget::pid));
            Ok(pid.map(LuaPid))
        })?,
    )?;
    native.set(
        "send",
        lua.create_function(|lua, (to, topic, payload): (Value, Value, Value)| {
            Ok(send(lua, &to, topic, &payload))
        })?,
    )?;
    native.set(
        "now",
        lua.create_function(|_, ()| {
            let now = with_budget(|budget| budget.map_or_else(clock::now, Budget::now));
            Ok(Duration::from_nanos(now).as_secs_f64())
        })?,
    )?;
    native.set(
        "part",
        lua.create_function(|lua, name: LuaString| {
            let part = Part::named(&name.as_bytes());
            let part = part.ok_or_else(|| mlua::Error::runtime("the prelude has no such part"))?;
            Ok((part.load(lua)?, Op::table(lua)?))
        })?,
    )
}

fn add_tasks(
    lua: &Lua,
    native: &Table,
    notes: &Arc<Notes>,
    most: Option<usize>,
) -> mlua::Result<()> {
    let (born, woken, stopped) = (notes.clone(), notes.clone(), notes.clone());
    native.set(
        "launch",
        lua.create_function(move |lua, body: Function| {
            let thread = lua.create_thread(body)?;
            match born.bear(thread.clone(), most) {
                Some(id) => {
                    share();
                    (id, thread).into_lua_multi(lua)
                }
                None => {
                    let problem = format!(
                        "the process has {} tasks already, which is its limit",
                        most.unwrap_or_default()
                    );
                    (Value::Nil, problem).into_lua_multi(lua)
                }
            }
        })?,
    )?;
    native.set(
        "wake",
        lua.create_function(move |_, task: u64| {
            woken.wake(task);
            share();
            Ok(())
        })?,
    )?;
    native.set(
        "cancel_task",
        lua.create_function(move |_, (task, reason): (u64, String)| {
            stopped.with(|noted| noted.cancelled.push((task, reason.into())));
            Ok(())
        })?,
    )
}

fn add_processes(
    lua: &Lua,
    native: &Table,
    inner: &Arc<Inner>,
    script: &Arc<Script>,
    notes: &Arc<Notes>,
) -> mlua::Result<()> {
    let (of, from, notes) = (inner.clone(), script.clone(), notes.clone());
    native.set(
        "spawn_process",
        lua.create_function(move |lua, args: MultiValue| {
            match spawn_process(lua, &of, &from, &notes, args) {
                Ok(task) => (true, ProcessHandle(task)).into_lua_multi(lua),
                Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
            }
        })?,
    )?;
    let (of, from) = (inner.clone(), script.clone());
    native.set(
        "start_supervisor",
        function(lua, move |lua, args| {
            supervise::start(lua, &of, &from, args.front())
        })?,
    )?;
    native.set(
        "cancel",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            let reason = match args.get(1) {
                Some(Value::String(reason)) => reason.to_string_lossy(),
                _ => "cancelled".to_owned(),
            };
            Ok(ask_process(|process| {
                process.host().cancel(pid, reason);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "kill",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.host().kill(pid);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "alive",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| process.host().is_alive(pid).into()))
        })?,
    )?;
    native.set(
        "to_pid",
        function(lua, |_, args| {
            let text = text_of(args.front(), "a PID")?;
            let pid = text.parse::<Pid>();
            pid.map(Payload::Pid)
                .map_err(|problem| ("argument", problem.to_string()))
        })?,
    )
}

/// The process that a value names; an error if nobody has the name.
fn found(value: Option<&Value>) -> Result<Pid, Refusal> {
    match whom(value.unwrap_or(&Value::Nil))? {
        Whom::Pid(pid) => Ok(pid),
        Whom::Name(name) => {
            let found = ask_process(|process| {
                process
                    .host()
                    .whereis(&name)
                    .map_or(Payload::Nil, Payload::Pid)
            });
            found
                .as_pid()
                .ok_or_else(|| ("no_process", format!("nobody is registered as {name:?}")))
        }
    }
}

/// What a script says about a process that it starts.
pub(crate) struct Wanted {
    pub(crate) script: Arc<Script>,
    pub(crate) args: Vec<Payload>,
    pub(crate) limits: Option<Limits>,
}

/// `{script =, args =, memory =, cpu =, tasks =}`, or the name of a script.
pub(crate) fn wanted(
    lua: &Lua,
    inner: &Inner,
    from: &Script,
    value: &Value,
) -> Result<Wanted, Refusal> {
    let table = value.as_table();
    let name = match table {
        Some(table) => text_of(table.get::<Value>("script").ok().as_ref(), "the script")?,
        None => text_of(Some(value), "the script")?,
    };
    let root = from.root.as_ref().ok_or_else(|| {
        let problem = "this script is no file, so it has no folder with others";
        ("script", problem.to_owned())
    })?;
    let script = inner
        .script(root, &name)
        .map_err(|problem| ("script", problem.to_string()))?;
    let mut given = Vec::new();
    let mut limits = None;
    if let Some(table) = table {
        if let Ok(Some(args)) = table.get::<Option<Table>>("args") {
            for value in args.sequence_values::<Value>().flatten() {
                let arg = to_payload(lua, &value);
                given.push(arg.map_err(|problem| ("argument", problem.to_string()))?);
            }
        }
        limits = limits_of(table)?;
    }
    Ok(Wanted {
        script,
        args: given,
        limits,
    })
}

fn limits_of(table: &Table) -> Result<Option<Limits>, Refusal> {
    let number = |key: &'static str| match table.get::<Value>(key) {
        Ok(Value::Nil) | Err(_) => Ok(None),
        Ok(Value::Integer(number)) if number > 0 => Ok(Some(number as f64)),
        Ok(Value::Number(number)) if number > 0.0 => Ok(Some(number)),
        Ok(_) => Err(("argument", format!("{key} must be a number above 0"))),
    };
    let (memory, cpu, tasks) = (number("memory")?, number("cpu")?, number("tasks")?);
    if memory.is_none() && cpu.is_none() && tasks.is_none() {
        return Ok(None);
    }
    let mut limits = Limits::NONE;
    limits.memory = memory.map(|bytes| bytes as usize);
    limits.cpu = cpu.and_then(duration);
    limits.tasks = tasks.map(|tasks| tasks as usize);
    Ok(Some(limits))
}

/// What `process.spawn` takes in a table.
const SPAWN_FIELDS: [&str; 8] = [
    "script", "args", "name", "link", "monitor", "memory", "cpu", "tasks",
];

/// A limit whose name is misspelt would be no limit.
fn check_spawn_fields(table: &Table) -> Result<(), Refusal> {
    for (key, _) in table.pairs::<Value, Value>().flatten() {
        let name = key.to_string().unwrap_or_default();
        if !SPAWN_FIELDS.contains(&&*name) {
            let known = SPAWN_FIELDS.join(", ");
            let problem = format!("process.spawn has no field '{name}'; there are: {known}");
            return Err(("argument", problem));
        }
    }
    Ok(())
}

fn spawn_process(
    lua: &Lua,
    inner: &Arc<Inner>,
    from: &Script,
    notes: &Notes,
    mut args: MultiValue,
) -> Result<Task, Refusal> {
    let first = args.pop_front().unwrap_or(Value::Nil);
    first.as_table().map_or(Ok(()), check_spawn_fields)?;
    let mut wanted = wanted(lua, inner, from, &first)?;
    for value in args {
        let arg = to_payload(lua, &value);
        wanted
            .args
            .push(arg.map_err(|problem| ("argument", problem.to_string()))?);
    }
    let mut options = SpawnOptions::new();
    if let Some(table) = first.as_table() {
        let flag = |key: &str| table.get::<bool>(key).unwrap_or(false);
        if let Ok(Some(name)) = table.get::<Option<String>>("name") {
            options = options.name(name);
        }
        if flag("link") {
            options = options.linked();
        }
        if flag("monitor") {
            options = options.monitored();
            notes.with(|noted| noted.wants_exits = true);
        }
    }
    if let Some(limits) = wanted.limits {
        options = options.limits(limits);
    }
    let guest = LuaGuest::new(inner.clone(), wanted.script, wanted.args);
    with_budget(|budget| match budget {
        Some(budget) => budget
            .spawn_with(guest, options)
            .map_err(|problem| ("spawn", problem.to_string())),
        None => Err((
            "spawn",
            "there is no process here that could start others".to_owned(),
        )),
    })
}

fn add_bonds(lua: &Lua, native: &Table, notes: &Arc<Notes>) -> mlua::Result<()> {
    native.set(
        "link",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.link(pid);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "unlink",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.unlink(pid);
                Payload::Nil
            }))
        })?,
    )?;
    let wants = notes.clone();
    native.set(
        "trap_links",
        function(lua, move |_, args| {
            let traps = args
                .front()
                .is_none_or(|value| value.as_boolean() != Some(false));
            wants.with(|noted| noted.wants_exits = true);
            Ok(ask_process(|process| {
                process.trap_links(traps);
                Payload::Nil
            }))
        })?,
    )?;
    let wants = notes.clone();
    native.set(
        "monitor",
        function(lua, move |_, args| {
            let pid = found(args.front())?;
            wants.with(|noted| noted.wants_exits = true);
            Ok(ask_process(|process| {
                Payload::Int(process.monitor(pid).number() as i64)
            }))
        })?,
    )?;
    native.set(
        "demonitor",
        function(lua, |_, args| {
            let number = args.front().and_then(Value::as_integer);
            let number = number.ok_or(("argument", "a monitor is a number".to_owned()))?;
            Ok(ask_process(|process| {
                process.demonitor(MonitorRef::from_number(number as u64));
                Payload::Nil
            }))
        })?,
    )
}

fn add_names(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "register",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            let other = args.get(1).map(pid_of).transpose()?;
            registered(ask_process(|process| {
                let pid = other.unwrap_or(process.pid());
                said(process.host().register(name, pid))
            }))
        })?,
    )?;
    native.set(
        "unregister",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            Ok(ask_process(|process| {
                process.host().unregister(&name).is_some().into()
            }))
        })?,
    )?;
    native.set(
        "whereis",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            Ok(ask_process(|process| {
                process
                    .host()
                    .whereis(&name)
                    .map_or(Payload::Nil, Payload::Pid)
            }))
        })?,
    )?;
    native.set(
        "join",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            registered(ask_process(|process| {
                said(process.host().join(group, process.pid()))
            }))
        })?,
    )?;
    native.set(
        "leave",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            Ok(ask_process(|process| {
                process.host().leave(&group, process.pid()).into()
            }))
        })?,
    )?;
    native.set(
        "members",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            Ok(ask_process(|process| {
                let members = process.host().members(&group);
                Payload::from(members.into_iter().map(Payload::Pid).collect::<Vec<_>>())
            }))
        })?,
    )?;
    native.set(
        "broadcast",
        function(lua, |lua, args| {
            let group = text_of(args.front(), "a group")?;
            let topic = text_of(args.get(1), "a topic")?;
            let payload = to_payload(lua, args.get(2).unwrap_or(&Value::Nil));
            let payload = payload.map_err(|problem| ("argument", problem.to_string()))?;
            Ok(ask_process(|process| {
                let message = Message::new(Topic::from(topic), payload).from(process.pid());
                Payload::Int(process.host().broadcast(&group, &message) as i64)
            }))
        })?,
    )
}

/// What came of a registration, as something that can be written down: nil, or why not.
fn said(result: Result<(), RegisterError>) -> Payload {
    match result {
        Ok(()) => Payload::Nil,
        Err(problem) => problem.to_string().into(),
    }
}

fn registered(said: Payload) -> Answer {
    match said {
        Payload::Text(problem) => Err(("register", problem.to_string())),
        _ => Ok(Payload::Bool(true)),
    }
}

fn add_output(lua: &Lua, native: &Table, inner: &Arc<Inner>) -> mlua::Result<()> {
    let own = || with_budget(|budget| budget.map(Budget::pid));
    let to = inner.clone();
    native.set(
        "print",
        lua.create_function(move |_, text: LuaString| {
            let text = &text.to_string_lossy();
            let (pid, level) = (own(), None);
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )?;
    let to = inner.clone();
    native.set(
        "log",
        lua.create_function(move |_, (level, text): (LuaString, LuaString)| {
            let level = match &*level.as_bytes() {
                b"debug" => Level::Debug,
                b"warn" => Level::Warn,
                b"error" => Level::Error,
                _ => Level::Info,
            };
            let text = &text.to_string_lossy();
            let (pid, level) = (own(), Some(level));
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )?;
    let to = inner.clone();
    native.set(
        "uncaught",
        lua.create_function(move |_, (task, text): (u64, LuaString)| {
            let text = without_prelude(&text.to_string_lossy());
            let text = &format!("task {task} failed and nobody awaited it: {text}");
            let (pid, level) = (own(), Some(Level::Error));
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )
}

fn add_world(
    lua: &Lua,
    native: &Table,
    inner: &Arc<Inner>,
    script: &Arc<Script>,
) -> mlua::Result<()> {
    native.set(
        "clock",
        lua.create_function(|_, ()| {
            // Processor time depends on the moment: it is an answer like any other.
            let used =
                ask(|budget| budget.ask(|_| Payload::Float(budget.cpu_time().as_secs_f64())));
            Ok(used.as_float().unwrap_or_default())
        })?,
    )?;
    native.set("random", lua.create_function(|_, ()| Ok(random()))?)?;
    native.set("null", Value::NULL)?;
    native.set(
        "time",
        function(lua, |_, args| date::time(args.front(), date::wall))?,
    )?;
    native.set(
        "date",
        lua.create_function(|lua, args: MultiValue| {
            tried(lua, date::date(lua, args.front(), args.get(1), date::wall))
        })?,
    )?;
    let allowed = inner.sandbox.allows_env();
    native.set(
        "getenv",
        function(lua, move |_, args| {
            let name = text_of(args.front(), "the name of a variable")?;
            if !allowed {
                let problem =
                    "the sandbox does not allow the environment: allow it with --allow-env";
                return Err(("sandbox", problem.to_owned()));
            }
            Ok(ask_process(|_| {
                std::env::var(&name).map_or(Payload::Nil, Payload::from)
            }))
        })?,
    )?;
    let from = script.clone();
    native.set(
        "module",
        lua.create_function(move |lua, name: Value| {
            let found = text_of(Some(&name), "the name of a module").and_then(|name| {
                let root = from.root.as_ref().ok_or_else(|| {
                    (
                        "require",
                        "this script is no file, so it has no modules".to_owned(),
                    )
                })?;
                let module = Script::module(root, &name)
                    .map_err(|problem| ("require", problem.to_string()))?;
                compile_cost::check_script(module.code())
                    .map_err(|problem| ("require", format!("{}: {problem}", module.name)))?;
                Ok(module)
            });
            match found {
                Ok(module) => (true, module.code(), module.chunk_name()).into_lua_multi(lua),
                Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
            }
        })?,
    )?;
    native.set(
        "json_encode",
        function(lua, |lua, args| json::encode(lua, args.front()))?,
    )?;
    native.set(
        "too_costly",
        lua.create_function(|_, text: LuaString| {
            Ok(compile_cost::check_loaded(&text.as_bytes()).err())
        })?,
    )?;
    native.set(
        "json_decode",
        lua.create_function(|lua, text: Value| {
            let decoded = text_of(Some(&text), "JSON").and_then(|text| json::decode(lua, &text));
            tried(lua, decoded)
        })?,
    )?;
    native.set(
        "buffer",
        lua.create_function(|lua, text: Value| match &text {
            Value::String(text) => {
                let buffer = Buffer((&*text.as_bytes()).into()).into_lua(lua)?;
                (true, buffer).into_lua_multi(lua)
            }
            other => {
                let problem = format!("a buffer is made of a text, not of a {}", other.type_name());
                (false, "argument", problem).into_lua_multi(lua)
            }
        })?,
    )?;
    native.set(
        "without_prelude",
        lua.create_function(|_, text: LuaString| Ok(without_prelude(&text.to_string_lossy())))?,
    )
}

/// A traceback as a user wants it: without the lines that are ours.
pub(crate) fn without_prelude(text: &str) -> String {
    let ours = |line: &&str| {
        ["\twindlass:", "\t?: in ", "\t[C]: in function 'xpcall'"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut lines: Vec<&str> = text.lines().filter(|line| !ours(line)).collect();
    if lines
        .last()
        .is_some_and(|line| line.trim() == "(...tail calls...)")
    {
        lines.pop();
    }
    lines.join("\n")
}
