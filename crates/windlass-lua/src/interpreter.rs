//! What makes Lua processes.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mlua::Lua;
use windlass_actor::{Message, Pid};
use windlass_core::sync::Mutex;
use windlass_http::Client;
use windlass_value::{Payload, Payloads};
use windlass_vm::{Exception, SpawnOptions, Task, Vm};

use crate::error::{BuildError, ScriptError};
use crate::guest::LuaGuest;
use crate::preempt;
use crate::sandbox::Sandbox;
use crate::script::Script;

/// The bytes that a Lua process may have, unless its limits say otherwise.
const MEMORY: usize = 256 << 20;

/// Makes an [`Interpreter`].
pub struct Builder {
    vm: Vm,
    sandbox: Sandbox,
    signal: i32,
    memory: usize,
    watched: bool,
    output: Option<Output>,
    setups: Vec<Setup>,
    blocking: HashMap<String, Blocking>,
}

pub(crate) type Output = Arc<dyn Fn(Printed<'_>) + Send + Sync>;
type Setup = Arc<dyn Fn(&Lua) -> mlua::Result<()> + Send + Sync>;
type Blocking = Arc<dyn Fn(Payloads) -> Result<Payload, Exception> + Send + Sync>;

impl Builder {
    /// What scripts may reach; nothing unless this says otherwise.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Builder {
        self.sandbox = sandbox;
        self
    }

    /// The signal that preempts: SIGURG unless this says otherwise.
    pub fn signal(mut self, signal: i32) -> Builder {
        self.signal = signal;
        self
    }

    /// The bytes that a Lua process may have, where its [limits](windlass_vm::Limits) do not say:
    /// 256 MiB unless this says otherwise.
    pub fn memory(mut self, bytes: usize) -> Builder {
        self.memory = bytes;
        self
    }

    /// Calls this with everything that scripts print and log. By default what is printed goes to
    /// the standard output, and what is logged to `tracing`.
    pub fn output(mut self, notify: impl Fn(Printed<'_>) + Send + Sync + 'static) -> Builder {
        self.output = Some(Arc::new(notify));
        self
    }

    /// Prepares each new Lua state: functions of the host, as globals. They must not block.
    pub fn setup<F>(mut self, prepare: F) -> Builder
    where
        F: Fn(&Lua) -> mlua::Result<()> + Send + Sync + 'static,
    {
        self.setups.push(Arc::new(prepare));
        self
    }

    /// A function that may block; scripts call it as `blocking(name, ...)`, and other tasks go on
    /// meanwhile.
    pub fn blocking<F>(mut self, name: impl Into<String>, function: F) -> Builder
    where
        F: Fn(Payloads) -> Result<Payload, Exception> + Send + Sync + 'static,
    {
        self.blocking.insert(name.into(), Arc::new(function));
        self
    }

    /// Lua processes can be notified that their script has changed ([`Interpreter::changed`]).
    pub fn watched(mut self) -> Builder {
        self.watched = true;
        self
    }

    /// Makes the interpreter.
    pub fn build(self) -> Result<Interpreter, BuildError> {
        preempt::install(self.signal).map_err(BuildError::Signal)?;
        Ok(Interpreter(Arc::new(InterpreterShared {
            vm: Some(self.vm),
            sandbox: Arc::new(self.sandbox.resolved()?),
            signal: self.signal,
            memory: self.memory,
            watched: self.watched,
            output: self.output,
            setups: self.setups,
            blocking: self.blocking,
            scripts: Mutex::default(),
            client: OnceLock::new(),
        })))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("sandbox", &self.sandbox)
            .field("signal", &self.signal)
            .finish_non_exhaustive()
    }
}

/// Something that a script has printed or logged.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Printed<'a> {
    /// The process that printed it; none for code that is no process.
    pub pid: Option<Pid>,
    /// The level of a log line; none for what `print` wrote.
    pub level: Option<Level>,
    /// The text, without a line end.
    pub text: &'a str,
}

/// How much something matters that was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for something.
    Debug,
    /// Something that is expected.
    Info,
    /// Perhaps not as expected.
    Warn,
    /// Something went wrong.
    Error,
}

/// Makes Lua processes, in one VM and with one sandbox. Cheap to clone.
#[derive(Clone)]
pub struct Interpreter(pub(crate) Arc<InterpreterShared>);

pub(crate) struct InterpreterShared {
    /// None: for code that is no guest's.
    vm: Option<Vm>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) signal: i32,
    pub(crate) memory: usize,
    pub(crate) watched: bool,
    output: Option<Output>,
    pub(crate) setups: Vec<Setup>,
    pub(crate) blocking: HashMap<String, Blocking>,
    /// Files that were read already: a thousand processes of one script read it once.
    scripts: Mutex<HashMap<PathBuf, Arc<Script>>>,
    client: OnceLock<Client>,
}

impl InterpreterShared {
    /// For code that is no guest's: nothing is allowed.
    pub(crate) fn bare(output: Option<Output>) -> InterpreterShared {
        InterpreterShared {
            vm: None,
            sandbox: Arc::default(),
            signal: libc::SIGURG,
            memory: MEMORY,
            watched: false,
            output,
            setups: Vec::new(),
            blocking: HashMap::new(),
            scripts: Mutex::default(),
            client: OnceLock::new(),
        }
    }

    /// The VM, which there is wherever there are guests.
    pub(crate) fn vm(&self) -> Option<&Vm> {
        self.vm.as_ref()
    }

    /// A script of the folder `root`, as it was when it was first read.
    pub(crate) fn script(&self, root: &Path, name: &str) -> Result<Arc<Script>, ScriptError> {
        let key = root.join(name);
        if let Some(script) = self.scripts.lock().get(&key) {
            return Ok(script.clone());
        }
        let script = Arc::new(Script::sibling(root, name)?);
        self.scripts.lock().insert(key, script.clone());
        Ok(script)
    }

    pub(crate) fn client(&self) -> Client {
        self.client.get_or_init(Client::new).clone()
    }

    /// Says what a script has printed or logged.
    pub(crate) fn print(&self, printed: Printed<'_>) {
        if let Some(output) = &self.output {
            return output(printed);
        }
        let (pid, text) = (printed.pid.map(|pid| pid.to_string()), printed.text);
        let pid = pid.as_deref().unwrap_or("-");
        match printed.level {
            None => println!("{text}"),
            Some(Level::Debug) => tracing::debug!(target: "windlass::lua", pid, "{text}"),
            Some(Level::Info) => tracing::info!(target: "windlass::lua", pid, "{text}"),
            Some(Level::Warn) => tracing::warn!(target: "windlass::lua", pid, "{text}"),
            Some(Level::Error) => tracing::error!(target: "windlass::lua", pid, "{text}"),
        }
    }
}

/// The topic of the message that a script has changed.
pub(crate) const CHANGED: &str = "$windlass.changed";

/// The group of the processes of one script.
pub(crate) fn group_of(script: &Script) -> Option<String> {
    let path = script.path.as_ref()?;
    Some(format!("$windlass.lua {}", path.display()))
}

impl Interpreter {
    /// How to make one, for the guests of this VM.
    pub fn builder(vm: &Vm) -> Builder {
        Builder {
            vm: vm.clone(),
            sandbox: Sandbox::new(),
            signal: libc::SIGURG,
            memory: MEMORY,
            watched: false,
            output: None,
            setups: Vec::new(),
            blocking: HashMap::new(),
        }
    }

    /// Starts the script in this file: its code, and then its function `main` with these arguments.
    /// Blocks while the file is read.
    pub fn spawn_file(
        &self,
        path: impl AsRef<Path>,
        args: impl Into<Payloads>,
    ) -> Result<Task, ScriptError> {
        self.spawn(Script::file(path)?, args)
    }

    /// Starts a text as a script.
    pub fn spawn_text(
        &self,
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        args: impl Into<Payloads>,
    ) -> Result<Task, ScriptError> {
        self.spawn(Script::text(name, text), args)
    }

    /// Starts a script.
    pub fn spawn(&self, script: Script, args: impl Into<Payloads>) -> Result<Task, ScriptError> {
        self.spawn_with(script, args, SpawnOptions::new())
    }

    /// Starts a script, with what else there is to say.
    pub fn spawn_with(
        &self,
        script: Script,
        args: impl Into<Payloads>,
        options: SpawnOptions,
    ) -> Result<Task, ScriptError> {
        let guest = self.guest(script, args);
        Ok(self.vm().spawn_with(guest, options)?)
    }

    /// A script as a guest, for those who start it themselves: a supervisor's child with
    /// [`Vm::spawn_in`](windlass_vm::Vm::spawn_in), say.
    pub fn guest(&self, script: Script, args: impl Into<Payloads>) -> LuaGuest {
        LuaGuest::new(self.0.clone(), Arc::new(script), args.into())
    }

    /// Says that a file has changed. Lua processes that run it go on with what is in it now: those
    /// that have said how (`process.on_upgrade`) with the state that their function gives, the
    /// others from the beginning. Gives how many were notified. Only if it is
    /// [`watched`](Builder::watched).
    pub fn changed(&self, path: impl AsRef<Path>) -> usize {
        let path = path.as_ref();
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.0
            .scripts
            .lock()
            .retain(|_, script| script.path.as_deref() != Some(&real));
        let script = Script {
            path: Some(real),
            ..Script::text("", "")
        };
        let group = group_of(&script).unwrap_or_default();
        let message = Message::new(CHANGED, Payload::Nil);
        self.vm().host().broadcast(&group, &message)
    }

    /// The VM that its processes are guests of.
    pub fn vm(&self) -> &Vm {
        self.0.vm().expect("an interpreter is built with one")
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter")
            .field("sandbox", &self.0.sandbox)
            .field("scripts", &self.0.scripts.lock().len())
            .finish_non_exhaustive()
    }
}
