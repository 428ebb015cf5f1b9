//! A Lua state, with everything that scripts see.

use std::sync::{Arc, OnceLock};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Thread};
use windlass_core::sync::Mutex;

use crate::interpreter::InterpreterShared;
use crate::op::Op;
use crate::script::Script;
use crate::value::MemoryLimit;
use crate::{compile_cost, native, preempt};

/// A Lua state, and the functions of the prelude that the host calls.
pub(crate) struct State {
    pub(crate) lua: Lua,
    pub(crate) env: Table,
    pub(crate) main: Function,
    pub(crate) upgrade: Function,
    pub(crate) report: Function,
}

/// How a state is to be.
pub(crate) struct StateOptions {
    /// The bytes that it may have.
    pub(crate) memory: usize,
    /// The tasks that it may have; None: any number.
    pub(crate) tasks: Option<usize>,
    /// What depends on chance in Lua (the order of `pairs`, addresses) is the same in every run.
    pub(crate) fixed: bool,
    /// Of random numbers; None: the runtime's dice.
    pub(crate) seed: Option<u64>,
}

/// Requests that functions of the host leave for the task set, which looks at them after each turn
/// of a task.
#[derive(Default)]
pub(crate) struct Pending(Mutex<PendingState>);

/// The requests, by kind.
#[derive(Default)]
pub(crate) struct PendingState {
    /// Tasks that were started.
    pub(crate) born: Vec<(u64, Thread)>,
    /// Tasks that were served.
    pub(crate) woken: Vec<u64>,
    /// Tasks that shall stop, and why.
    pub(crate) cancelled: Vec<(u64, Arc<str>)>,
    /// The ends of other processes are wanted.
    pub(crate) wants_exits: bool,
    /// Tasks that have not ended.
    pub(crate) alive: usize,
    last: u64,
}

impl Pending {
    /// Calls `call` with all requests, under the lock.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut PendingState) -> T) -> T {
        call(&mut self.0.lock())
    }

    pub(crate) fn wake(&self, task: u64) {
        self.with(|state| state.woken.push(task));
    }

    /// A new task: its number, unless there are `most` already.
    pub(crate) fn bear(&self, thread: Thread, most: Option<usize>) -> Option<u64> {
        self.with(|state| {
            if most.is_some_and(|most| state.alive >= most) {
                return None;
            }
            state.alive += 1;
            state.last += 1;
            state.born.push((state.last, thread));
            Some(state.last)
        })
    }
}

/// A piece of the prelude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreludePart {
    /// What every state has.
    Core,
    /// Tasks that a script starts, errors, printing: from the first of them on.
    Tasks,
    /// Channels, mutexes and semaphores, from the first of them on.
    Sync,
    /// What makes recordings come out the same again.
    Fixed,
    /// What scripts look into: `process`, `fs`, `http` and others, from the first look on.
    Libraries,
}

impl PreludePart {
    pub(crate) fn named(name: &[u8]) -> Option<PreludePart> {
        match name {
            b"tasks" => Some(PreludePart::Tasks),
            b"sync" => Some(PreludePart::Sync),
            b"fixed" => Some(PreludePart::Fixed),
            b"libraries" => Some(PreludePart::Libraries),
            _ => None,
        }
    }

    fn source(self) -> &'static str {
        match self {
            PreludePart::Core => include_str!("prelude.lua"),
            PreludePart::Tasks => include_str!("prelude_tasks.lua"),
            PreludePart::Sync => include_str!("prelude_sync.lua"),
            PreludePart::Fixed => include_str!("prelude_fixed.lua"),
            PreludePart::Libraries => include_str!("prelude_libraries.lua"),
        }
    }

    /// The part, compiled: a state is made in a tenth of the time. Without what only debuggers
    /// need, which would take 12 KiB more in each state; `preempt::PRELUDE` says how its functions
    /// are known then.
    fn compiled(self) -> mlua::Result<&'static [u8]> {
        static COMPILED: [OnceLock<Vec<u8>>; 5] = [const { OnceLock::new() }; 5];
        let compiled = &COMPILED[self as usize];
        if let Some(compiled) = compiled.get() {
            return Ok(compiled);
        }
        let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
        let function = lua
            .load(self.source())
            .set_name("=windlass")
            .into_function()?;
        let stripped = function.dump(true);
        Ok(compiled.get_or_init(|| stripped))
    }

    /// The part, as a function of this state.
    pub(crate) fn load(self, lua: &Lua) -> mlua::Result<Function> {
        lua.load(self.compiled()?)
            .set_name("=windlass")
            .set_mode(ChunkMode::Binary)
            .into_function()
    }
}

impl State {
    /// A new one, for this script.
    pub(crate) fn new(
        inner: &Arc<InterpreterShared>,
        script: &Arc<Script>,
        pending: &Arc<Pending>,
        traits: &StateOptions,
    ) -> mlua::Result<State> {
        let libs = StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::UTF8 | StdLib::MATH;
        let lua = Lua::new_with(libs, LuaOptions::new())?;
        lua.set_memory_limit(traits.memory)?;
        lua.set_app_data(MemoryLimit(traits.memory));
        let coroutines = preempt::library(&lua)?;
        let native = native::library(&lua, inner, script, pending, traits.tasks)?;
        lua.globals()
            .raw_get::<Table>("math")?
            .raw_get::<Function>("randomseed")?
            .call::<()>(match traits.seed {
                Some(seed) => (seed as i64, 0),
                None => (native::random(), native::random()),
            })?;
        let prelude = PreludePart::Core.load(&lua)?;
        let (receive, sleep) = (Op::Receive.number(), Op::Sleep.number());
        let args = (
            native,
            coroutines,
            &*script.name,
            traits.fixed,
            receive,
            sleep,
        );
        let (env, main, upgrade, report) = prelude.call(args)?;
        drop(prelude);
        let state = State {
            env,
            main,
            upgrade,
            report,
            lua,
        };
        for setup in &inner.setups {
            setup(&state.lua)?;
        }
        if !inner.setups.is_empty() {
            state.take_globals()?;
        }
        // The code that has made all this, and the tables that it was given: a process that only
        // waits would keep them.
        state.lua.gc_collect()?;
        Ok(state)
    }

    /// What a setup has made global is there for scripts, too.
    fn take_globals(&self) -> mlua::Result<()> {
        const OWN: [&str; 3] = ["dofile", "loadfile", "warn"];
        for pair in self.lua.globals().pairs::<mlua::Value, mlua::Value>() {
            let (name, value) = pair?;
            let is_own = (name.as_string().and_then(|name| name.to_str().ok()))
                .is_some_and(|name| OWN.contains(&&*name));
            if !is_own && !self.env.contains_key(&name)? {
                self.env.raw_set(name, value)?;
            }
        }
        Ok(())
    }

    /// The code of a script, as a function of this state.
    pub(crate) fn load(&self, script: &Script) -> mlua::Result<Function> {
        compile_cost::check_script(script.code())
            .map_err(|problem| mlua::Error::runtime(format!("{}: {problem}", script.name)))?;
        self.lua
            .load(script.code())
            .set_name(script.chunk_name())
            .set_mode(ChunkMode::Text)
            .set_environment(self.env.clone())
            .into_function()
    }
}
