//! Commands: processes of the operating system, with piped input and output.
//!
//! (A *process* in the sense of this library is something else: an actor with a mailbox.) The end
//! of a command is an event of the driver like any other, so that nothing polls and no signal is
//! needed. In a simulation there are none.
//!
//! ```
//! use windlass_runtime::Runtime;
//! use windlass_io::command::Command;
//!
//! Runtime::new()?.block_on(async {
//!     let output = Command::new("echo").arg("hello").output().await?;
//!     assert!(output.status.success());
//!     assert_eq!(output.stdout, b"hello\n");
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod child;
mod pipe;

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;

pub use std::process::{ExitStatus, Output, Stdio};

pub use self::bound::kill_bound;
pub use self::child::Child;
pub use self::pipe::{ChildStderr, ChildStdin, ChildStdout};

/// A command to be: which program, with which arguments, where and how.
#[derive(Debug)]
pub struct Command {
    command: std::process::Command,
    /// Which of input, output and complaints were said where to go.
    given: [bool; 3],
    kill_on_drop: bool,
    /// Whether it ends with this program; whether the system knows that.
    bound: bool,
    armed: bool,
    /// Whether it has a process group of its own.
    leads: bool,
}

impl Command {
    /// Runs `program`, looked for as the shell would.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        std::process::Command::new(program).into()
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Sets what the command sees as its own name, in place of the program's.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg0(name);
        self
    }

    /// Adds several arguments.
    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    /// Sets variables of its environment.
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        self.command.envs(variables);
        self
    }

    /// Takes a variable out of its environment.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    /// Gives it an empty environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.command.env_clear();
        self
    }

    /// Sets the directory in which the command runs.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(directory);
        self
    }

    /// Sets what the command reads; by default the program's own input.
    pub fn stdin(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(stdio);
        self.given[0] = true;
        self
    }

    /// Sets where the output goes; by default to the program's own.
    pub fn stdout(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(stdio);
        self.given[1] = true;
        self
    }

    /// Sets where the error output goes; by default to the program's own.
    pub fn stderr(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(stdio);
        self.given[2] = true;
        self
    }

    /// Puts it into a process group: 0 is one of its own.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.command.process_group(group);
        self.leads = group == 0;
        self
    }

    /// Kills it when its [`Child`] is dropped. Otherwise it goes on, and is still reaped.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Ends it with this program, however that ends: by a return from `main`, a crash, or SIGKILL.
    /// The kernel kills the command itself, but not what the command has started: an exit that runs
    /// no destructors calls [`kill_bound`] first, which kills whole process groups. Not for
    /// commands that change their user: the kernel forgets it for them. Linux only; elsewhere it
    /// has no effect.
    pub fn end_with_program(&mut self, bound: bool) -> &mut Self {
        self.bound = bound;
        self
    }

    /// Sets the user id of the command.
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.command.uid(id);
        self
    }

    /// Sets the group id of the command.
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.command.gid(id);
        self
    }

    /// Returns what [`Command::kill_on_drop`] set.
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Returns the standard library's command, to look at.
    pub fn as_std(&self) -> &std::process::Command {
        &self.command
    }

    /// Returns the standard library's command; what only this type knows is lost.
    pub fn into_std(self) -> std::process::Command {
        self.command
    }

    /// The standard library's command, for what is not here.
    pub fn as_std_mut(&mut self) -> &mut std::process::Command {
        &mut self.command
    }

    /// Starts it.
    ///
    /// # Errors
    /// `Unsupported` in a simulation; otherwise what the operating system says.
    pub fn spawn(&mut self) -> io::Result<Child> {
        let bound = self.bound.then_some(self.leads);
        if self.bound && !self.armed {
            crate::os::end_with_thread(&mut self.command);
            self.armed = true;
        }
        Child::spawn(&mut self.command, self.kill_on_drop, bound)
    }

    /// Starts it and waits for its end. A dropped wait leaves it running, unless
    /// [`kill_on_drop`](Command::kill_on_drop) was asked for.
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send + use<> {
        let child = self.spawn();
        async { child?.wait().await }
    }

    /// Starts it, collects its output and complaints unless they were sent elsewhere, and waits for
    /// its end. Its input is empty unless it was given one. Dropped, as
    /// [`status`](Command::status).
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + Send + use<> {
        let [stdin, stdout, stderr] = self.given;
        if !stdin {
            self.command.stdin(Stdio::null());
        }
        if !stdout {
            self.command.stdout(Stdio::piped());
        }
        if !stderr {
            self.command.stderr(Stdio::piped());
        }
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<std::process::Command> for Command {
    fn from(command: std::process::Command) -> Command {
        Command {
            command,
            given: [false; 3],
            kill_on_drop: false,
            bound: false,
            armed: false,
            leads: false,
        }
    }
}
