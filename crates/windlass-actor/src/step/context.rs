//! The handle of a step machine to itself.

use std::fmt;
use std::sync::Arc;

use windlass_sync::CancellationToken;
use windlass_value::Pid;

use crate::address::Address;
use crate::error::SendError;
use crate::exit::MonitorRef;
use crate::host::Host;
use crate::message::Message;
use crate::shell::Core;

/// The handle of a step machine to itself. The machine may keep a clone.
#[derive(Clone)]
pub struct ProcessContext {
    core: Arc<Core<Message>>,
}

impl ProcessContext {
    pub(crate) fn new(core: Arc<Core<Message>>) -> ProcessContext {
        ProcessContext { core }
    }

    /// Returns the PID of this process.
    pub fn pid(&self) -> Pid {
        self.core.shell.pid
    }

    /// Returns the host of this process.
    pub fn host(&self) -> Host {
        Host(self.core.shell.host.clone())
    }

    /// Returns the address of this process.
    pub fn address(&self) -> Address<Message> {
        Address::new(self.core.clone())
    }

    /// Sends a message; it says that it is from this process.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        let message = message.from(self.pid());
        self.core.shell.host.route(to, message)
    }

    /// From now on the end of a linked process is an event, and does not end this one.
    pub fn trap_links(&self, traps: bool) {
        self.core.shell.trap_links(traps);
    }

    /// Links this process to another.
    pub fn link(&self, other: Pid) {
        self.core.link(other);
    }

    /// Undoes a link.
    pub fn unlink(&self, other: Pid) {
        self.core.unlink(other);
    }

    /// Lets this process know of the end of another, exactly once.
    pub fn monitor(&self, other: Pid) -> MonitorRef {
        self.core.monitor(other)
    }

    /// Undoes a monitor; nothing comes from it any more.
    pub fn demonitor(&self, monitor: MonitorRef) {
        self.core.demonitor(monitor);
    }

    /// Asks for a step of this process, though no event may have come: for those that keep what
    /// wakes them in a place of their own. Several before the step are one.
    pub fn request_step(&self) {
        self.core.shell.request_step();
    }

    /// Whether it was ended from outside: its step is the last one, and should come to an end.
    pub fn is_killed(&self) -> bool {
        self.core.shell.is_killed()
    }

    /// A token that is cancelled when the process ends, or goes on with other code.
    pub fn token(&self) -> CancellationToken {
        self.core.shell.context()
    }
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessContext({})", self.core.shell.pid)
    }
}
